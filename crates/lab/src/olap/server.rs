//! Servers that speak PostgreSQL's protocol.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row};

use super::data::{OlapTable, drop_tables};
use super::database::{Crowd, Database, Dialect, Loaded};
use super::queries::{Parameter, Statement};
use crate::{Result, Target};

/// A relation is steady when its size stayed the same for this many looks, a second apart.
const STEADY_LOOKS: usize = 2;

pub struct ServerDatabase {
    target: Target,
    client: Client,
    settings: String,
}

impl ServerDatabase {
    /// Settings are those of every session, as SET takes them.
    pub fn connect(target: &Target, settings: &[String]) -> Result<ServerDatabase> {
        let settings = settings.iter().map(|setting| format!("SET {setting};")).collect::<String>();
        let client = session(target, &settings)?;
        Ok(ServerDatabase { target: target.clone(), client, settings })
    }
}

fn session(target: &Target, settings: &str) -> Result<Client> {
    let mut client = target.connect()?;
    target.execute(&mut client, settings)?;
    Ok(client)
}

impl Database for ServerDatabase {
    fn load(&mut self, table: &OlapTable, file: &Path) -> Result<Loaded> {
        for sql in Dialect::PostgreSql.create(table) {
            self.target.execute(&mut self.client, &sql)?;
        }
        let mut file = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let started = Instant::now();
        let failed = |e| self.target.error(e);
        let mut writer = self.client.copy_in(&format!("COPY {} FROM STDIN", table.name)).map_err(failed)?;
        std::io::copy(&mut file, &mut writer).and_then(|_| writer.flush()).map_err(|e| format!("{}: {e}", self.target.name))?;
        writer.finish().map_err(failed)?;
        let copy = started.elapsed().as_secs_f64();
        let maintenance = self.execute(&["CHECKPOINT".to_owned(), format!("VACUUM ANALYZE {}", table.name)])?;
        Ok(Loaded { copy, maintenance })
    }

    fn execute(&mut self, statements: &[String]) -> Result<f64> {
        let started = Instant::now();
        statements.iter().try_for_each(|sql| self.target.execute(&mut self.client, sql))?;
        Ok(started.elapsed().as_secs_f64())
    }

    fn bytes(&mut self, tables: &[OlapTable]) -> Result<f64> {
        // Rows still in memory have other sizes.
        self.target.execute(&mut self.client, "CHECKPOINT")?;
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        self.target.steady_bytes(&mut self.client, &names, STEADY_LOOKS)
    }

    fn query(&mut self, sql: &str, row: &mut dyn FnMut(&[u8])) -> Result<f64> {
        let failed = |e| format!("{}, in {sql}", self.target.error(e));
        let started = Instant::now();
        let mut rows = self.client.query_raw(sql, std::iter::empty::<&dyn ToSql>()).map_err(failed)?;
        let mut line = Vec::new();
        while let Some(values) = rows.next().map_err(failed)? {
            line.clear();
            text(&values, &mut line).map_err(failed)?;
            row(&line);
        }
        Ok(started.elapsed().as_secs_f64())
    }

    fn rate(&mut self, statement: &Statement, rows: &[u64], crowd: Crowd) -> Result<f64> {
        let (target, settings) = (&self.target, &self.settings);
        let ready = Barrier::new(crowd.clients + 1);
        let body = |number: usize| {
            let prepared = prepare(target, settings, statement);
            ready.wait();
            let (mut client, prepared) = prepared?;
            let started = Instant::now();
            let mut done = 0u64;
            while started.elapsed().as_secs_f64() < crowd.seconds {
                let at = (number * statement.parameters.len() / crowd.clients + done as usize) % statement.parameters.len();
                let parameter: &(dyn ToSql + Sync) = match &statement.parameters[at] {
                    Parameter::Number(number) => number,
                    Parameter::Text(text) => text,
                };
                let found = client.query(&prepared, &[parameter]).map_err(|e| target.error(e))?.len() as u64;
                if found != rows[at] {
                    let sql = statement.with(&statement.parameters[at]);
                    return Err(format!("{}: {found} rows instead of {}, in {sql}", target.name, rows[at]));
                }
                done += 1;
            }
            Ok(done as f64 / started.elapsed().as_secs_f64())
        };
        std::thread::scope(|scope| {
            let body = &body;
            let threads: Vec<_> = (0..crowd.clients).map(|number| scope.spawn(move || body(number))).collect();
            ready.wait();
            threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))).sum()
        })
    }
}

fn prepare(target: &Target, settings: &str, statement: &Statement) -> Result<(Client, postgres::Statement)> {
    let mut client = session(target, settings)?;
    let prepared = client.prepare(&statement.sql.replace("{}", "$1")).map_err(|e| target.error(e))?;
    Ok((client, prepared))
}

/// A row's values with tabs between them.
fn text(row: &Row, out: &mut Vec<u8>) -> std::result::Result<(), postgres::Error> {
    for (at, column) in row.columns().iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        // Text of memory cannot fail to be written.
        let _ = match *column.type_() {
            Type::INT8 => row.try_get::<_, i64>(at).map(|value| write!(out, "{value}"))?,
            _ => row.try_get::<_, &str>(at).map(|value| out.write_all(value.as_bytes()))?,
        };
    }
    Ok(())
}

impl Drop for ServerDatabase {
    fn drop(&mut self) {
        // A given server keeps nothing of ours; neither does one that has ended.
        let _ = self.client.batch_execute(&drop_tables().join(";"));
    }
}
