//! Databases that Python's packages reach: DuckDB and ClickHouse inside Python, MySQL by its driver; `peer.py` serves each in a process.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::data::{OlapTable, drop_tables};
use super::database::{Crowd, Database, Dialect, Loaded};
use super::queries::Statement;
use crate::Result;
use crate::python::{Python, PythonAnswer};

const PROGRAM: &str = include_str!("peer.py");

pub struct Embedded {
    dialect: Dialect,
    /// Ends before its folder is removed.
    python: Option<Python>,
    folder: PathBuf,
    pub version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "do")]
enum Asked<'a> {
    Execute { statements: &'a [String] },
    Copy { table: &'a str, file: &'a Path, types: String },
    Maintain { table: &'a str },
    Bytes { tables: Vec<&'a str> },
    Query { sql: String },
    Rate { statements: Vec<String>, rows: &'a [u64], clients: usize, seconds: f64 },
}

impl Embedded {
    /// Starts a kind of database in an empty folder; `server` is where MySQL is. An error says why there is none.
    pub fn start(interpreter: &Path, dialect: Dialect, scratch: &Path, threads: u32, server: &str) -> Result<Embedded> {
        let kind = match dialect {
            Dialect::DuckDb => "duckdb",
            Dialect::ClickHouse => "clickhouse",
            Dialect::MySql => "mysql",
            Dialect::PostgreSql => return Err("PostgreSQL is no database inside of Python".to_owned()),
        };
        let folder = scratch.join(kind);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let arguments = [kind, &folder.to_string_lossy(), &threads.to_string(), server];
        let (python, version) = Python::start(interpreter, PROGRAM, &arguments)?;
        Ok(Embedded { dialect, python: Some(python), folder, version })
    }

    fn python(&mut self) -> Result<&mut Python> {
        self.python.as_mut().ok_or_else(|| "the database has ended".to_owned())
    }

    fn ask(&mut self, asked: &Asked) -> Result<PythonAnswer> {
        Ok(self.python()?.ask(asked, &[])?.0)
    }
}

impl Database for Embedded {
    fn load(&mut self, table: &OlapTable, file: &Path) -> Result<Loaded> {
        self.execute(&self.dialect.create(table))?;
        let columns = table.columns.iter().map(|(name, kind)| format!("{name} {}", self.dialect.kind(*kind)));
        let types = columns.collect::<Vec<_>>().join(", ");
        let copy = self.ask(&Asked::Copy { table: table.name, file, types })?.seconds;
        let maintenance = self.ask(&Asked::Maintain { table: table.name })?.seconds;
        Ok(Loaded { copy, maintenance })
    }

    fn execute(&mut self, statements: &[String]) -> Result<f64> {
        Ok(self.ask(&Asked::Execute { statements })?.seconds)
    }

    fn bytes(&mut self, tables: &[OlapTable]) -> Result<f64> {
        let tables = tables.iter().map(|table| table.name).collect();
        Ok(self.ask(&Asked::Bytes { tables })?.number)
    }

    fn query(&mut self, sql: &str, row: &mut dyn FnMut(&[u8])) -> Result<f64> {
        let sql = self.dialect.query(sql);
        let python = self.python()?;
        let mut answer = python.ask(&Asked::Query { sql: sql.clone() }, &[]).map_err(|e| format!("{e}, in {sql}"))?;
        // A row may be split between two answers.
        let mut rest: Vec<u8> = Vec::new();
        loop {
            rest.extend_from_slice(&answer.1);
            let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let rows = &rest[..end];
            rows.split_inclusive(|byte| *byte == b'\n').for_each(|line| row(&line[..line.len() - 1]));
            rest.drain(..end);
            if !answer.0.more {
                break;
            }
            answer = python.answer().map_err(|e| format!("{e}, in {sql}"))?;
        }
        if rest.is_empty() { Ok(answer.0.seconds) } else { Err(format!("rows end within a line, in {sql}")) }
    }

    fn rate(&mut self, statement: &Statement, rows: &[u64], crowd: Crowd) -> Result<f64> {
        let statements = statement.parameters.iter().map(|p| self.dialect.query(&statement.with(p))).collect();
        Ok(self.ask(&Asked::Rate { statements, rows, clients: crowd.clients, seconds: crowd.seconds })?.number)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if self.dialect == Dialect::MySql {
            // A given server keeps nothing of ours; neither does one that has ended.
            let _ = self.execute(&drop_tables());
        }
        self.python = None;
        // The scratch folder is removed as a whole at the end.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
