//! Connections to the server.

use std::str::FromStr as _;
use std::time::Duration;

use postgres::{Client, NoTls};

use crate::Result;

/// A URL or keyword string as for libpq, with PGPASSWORD as the default.
#[derive(Clone, Debug)]
pub struct Source {
    config: postgres::Config,
}

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The settings under which texts have the same meaning on both sides, whatever the roles' own settings.
const SESSION: &str =
    "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET DateStyle = ISO; SET IntervalStyle = postgres;
    SET extra_float_digits = 3; SET bytea_output = 'hex'; SET statement_timeout = 0; SET lock_timeout = 0; SET row_security = off;
    SET check_function_bodies = off;
    SELECT pg_catalog.set_config('search_path', '', false)";

impl Source {
    pub fn parse(text: &str) -> Result<Source> {
        let mut config = postgres::Config::from_str(text).map_err(|e| format!("{text}: {e}"))?;
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        if config.get_user().is_none() {
            config.user("postgres");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        config.application_name("melba dump");
        Ok(Source { config })
    }

    pub fn connect(&self) -> Result<Client> {
        let mut client = self.config.connect(NoTls).map_err(|e| format!("could not connect: {}", describe(&e)))?;
        execute(&mut client, SESSION)?;
        Ok(client)
    }
}

/// Runs statements whose rows do not matter.
pub fn execute(client: &mut Client, sql: &str) -> Result<()> {
    client.batch_execute(sql).map_err(|e| format!("{}, in {}", describe(&e), beginning(sql)))
}

/// The server's words, or the client's.
pub fn describe(e: &postgres::Error) -> String {
    match e.as_db_error() {
        Some(e) => {
            let detail = e.detail().map_or_else(String::new, |d| format!(" ({d})"));
            format!("{}{detail}, SQLSTATE {}", e.message(), e.code().code())
        }
        None => e.to_string(),
    }
}

/// The same for an error of reading a COPY's data, which the server may have ended.
pub fn describe_read(e: &std::io::Error) -> String {
    let client = e.get_ref().and_then(|e| e.downcast_ref::<postgres::Error>());
    client.map_or_else(|| e.to_string(), describe)
}

/// Enough of a statement to know it.
fn beginning(sql: &str) -> &str {
    sql.char_indices().nth(300).map_or(sql, |(end, _)| &sql[..end])
}
