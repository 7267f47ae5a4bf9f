//! A server under test: how to reach it, its version, and its process.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::str::FromStr as _;
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, NoTls};

use crate::Result;
use crate::process::ServerProcess;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Checks of a size that keeps changing, a second apart.
const SETTLED_WITHIN: usize = 60;

/// The protocol a target speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    PostgreSql,
    MySql,
}

/// A server under test.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub protocol: Protocol,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub database: String,
}

impl Target {
    /// NAME=postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE or mysql://.
    pub fn parse(text: &str) -> Result<Target> {
        let (name, url) = text.split_once('=').ok_or("expected NAME=URL")?;
        let (scheme, rest) = url.split_once("://").ok_or("expected postgres:// or mysql://")?;
        let (protocol, default_port) = match scheme {
            "postgres" | "postgresql" => (Protocol::PostgreSql, 5432),
            "mysql" => (Protocol::MySql, 3306),
            other => return Err(format!("unknown scheme \"{other}\", expected postgres:// or mysql://")),
        };
        // Both kinds of URL have the same parts.
        let parts = postgres::Config::from_str(&format!("postgres://{rest}")).map_err(|e| e.to_string())?;
        let host = match parts.get_hosts() {
            [Host::Tcp(host)] => host.clone(),
            _ => return Err("expected one host".to_owned()),
        };
        Ok(Target {
            name: name.to_owned(),
            protocol,
            host,
            port: if names_port(rest) { parts.get_ports().first().copied().unwrap_or(default_port) } else { default_port },
            user: parts.get_user().unwrap_or("postgres").to_owned(),
            password: String::from_utf8_lossy(parts.get_password().unwrap_or_default()).into_owned(),
            database: parts.get_dbname().unwrap_or("postgres").to_owned(),
        })
    }

    /// The same server, another database.
    pub fn in_database(&self, database: &str) -> Target {
        Target { database: database.to_owned(), ..self.clone() }
    }

    /// The URL without its password: as reports show it, and as programs get it that read PGPASSWORD.
    pub fn url(&self) -> String {
        let scheme = match self.protocol {
            Protocol::PostgreSql => "postgres",
            Protocol::MySql => "mysql",
        };
        format!("{scheme}://{}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    pub fn connect(&self) -> Result<Client> {
        let mut config = postgres::Config::new();
        config.host(&self.host).port(self.port).user(&self.user).dbname(&self.database).connect_timeout(CONNECT_WITHIN);
        if !self.password.is_empty() {
            config.password(&self.password);
        }
        config.application_name("melba lab");
        config.connect(NoTls).map_err(|e| self.error(e))
    }

    /// A client's error with the target's name.
    pub fn error(&self, e: postgres::Error) -> String {
        let text = match e.as_db_error() {
            Some(e) => format!("{} (SQLSTATE {})", e.message(), e.code().code()),
            None => e.to_string(),
        };
        format!("{}: {text}", self.name)
    }

    /// Runs statements whose results do not matter.
    pub fn execute(&self, client: &mut Client, sql: &str) -> Result<()> {
        client.batch_execute(sql).map_err(|e| format!("{}, in {sql}", self.error(e)))
    }

    /// One value, as text.
    pub fn value(&self, client: &mut Client, sql: &str) -> Result<Option<String>> {
        let messages = client.simple_query(sql).map_err(|e| format!("{}, in {sql}", self.error(e)))?;
        Ok(messages.into_iter().find_map(|m| match m {
            postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// One number.
    pub fn number(&self, client: &mut Client, sql: &str) -> Result<f64> {
        let value = self.value(client, sql)?;
        value
            .as_deref()
            .and_then(|v| v.parse().ok())
            .ok_or_else(|| format!("{}: {sql} answered {value:?}, not a number", self.name))
    }

    /// Bytes of relations with all that belongs to them, once they have stayed the same for `looks` checks, a second apart.
    pub fn steady_bytes(&self, client: &mut Client, relations: &[&str], looks: usize) -> Result<f64> {
        let sizes: Vec<String> = relations.iter().map(|name| format!("pg_total_relation_size('{name}')")).collect();
        let sql = format!("SELECT {}", sizes.join(" + "));
        let (mut last, mut same) = (f64::NAN, 0);
        for _ in 0..SETTLED_WITHIN {
            let bytes = self.number(client, &sql)?;
            same = if bytes == last { same + 1 } else { 0 };
            last = bytes;
            if same == looks {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(last)
    }

    /// The version that the server reports.
    pub fn version(&self) -> Result<String> {
        match self.protocol {
            Protocol::PostgreSql => {
                let mut client = self.connect()?;
                Ok(self.value(&mut client, "SELECT version()")?.unwrap_or_default())
            }
            Protocol::MySql => self.mysql_version(),
        }
    }

    /// MySQL's greeting: a packet header of 4 bytes, the protocol's version, the server's version up to a zero byte.
    fn mysql_version(&self) -> Result<String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.name);
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(CONNECT_WITHIN)).map_err(failed)?;
        let mut greeting = [0u8; 128];
        let length = stream.read(&mut greeting).map_err(failed)?;
        let version = greeting[..length].get(5..).unwrap_or_default();
        let end = version.iter().position(|b| *b == 0).unwrap_or(0);
        Ok(format!("MySQL {}", String::from_utf8_lossy(&version[..end])))
    }

    /// The server's process, when it runs on this machine and may be inspected.
    pub fn process(&self) -> Option<ServerProcess> {
        matches!(self.host.as_str(), "127.0.0.1" | "localhost" | "::1").then(|| ServerProcess::listening_on(self.port)).flatten()
    }

    /// A PostgreSQL client program with its connection parameters.
    pub fn client_program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("PGHOST", &self.host)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", &self.user)
            .env("PGDATABASE", &self.database)
            .env("LC_ALL", "C.UTF-8");
        if !self.password.is_empty() {
            command.env("PGPASSWORD", &self.password);
        }
        command
    }
}

/// Whether the part of a URL behind :// names a port: the parser fills in PostgreSQL's.
fn names_port(rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit('@').next().is_some_and(|host| host.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        let target = Target::parse("pg=postgres://ann:s%40@db:5433/shop").unwrap();
        let parts = (target.name.as_str(), target.protocol, target.host.as_str(), target.port);
        assert_eq!(parts, ("pg", Protocol::PostgreSql, "db", 5433));
        assert_eq!((target.password.as_str(), target.database.as_str()), ("s@", "shop"));
        assert_eq!(target.url(), "postgres://ann@db:5433/shop");
        assert_eq!(Target::parse("m=mysql://sb:sb@127.0.0.1/sbtest").unwrap().port, 3306);
        for bad in ["postgres://x", "a=b", "a=oracle://h/d"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
