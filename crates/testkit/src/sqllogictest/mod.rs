//! Runs files of the sqllogictest format against a server, each in a new schema.
//!
//! The collections have SQLite's answers. Where Melba's differs, PostgreSQL decides, when there is one: an answer that equals
//! PostgreSQL's is not wrong.

mod parse;

use std::fmt::Write as _;
use std::path::Path;

use md5::{Digest, Md5};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use parse::{Expected, Record, RecordKind, SortMode, parse};

/// The result of one or several files.
#[derive(Default)]
pub struct Outcome {
    pub files: usize,
    pub records: usize,
    /// Answers that are neither the collection's nor PostgreSQL's.
    pub wrong: usize,
    /// Errors that were not expected.
    pub refused: usize,
    /// Not the collection's, but PostgreSQL's.
    pub as_postgres: usize,
    pub notes: Vec<String>,
}

impl Outcome {
    pub fn add(&mut self, other: Outcome) {
        self.files += other.files;
        self.records += other.records;
        self.wrong += other.wrong;
        self.refused += other.refused;
        self.as_postgres += other.as_postgres;
        self.notes.extend(other.notes);
    }
}

/// Rows as text, or an SQLSTATE and message.
type Answer = Result<Vec<Vec<Option<String>>>, String>;

pub struct Runner {
    server: Client,
    reference: Option<Client>,
}

impl Runner {
    pub fn connect(server: &str, reference: Option<&str>) -> Result<Runner, String> {
        Ok(Runner { server: connect(server)?, reference: reference.map(connect).transpose()? })
    }

    /// One file, in the schema `schema`, which is dropped afterwards.
    pub fn file(&mut self, path: &Path, schema: &str) -> Result<Outcome, String> {
        let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let records = parse(&String::from_utf8_lossy(&text), "postgresql").map_err(|e| format!("{}: {e}", path.display()))?;
        self.on_both(&format!("drop schema if exists {schema} cascade; create schema {schema}; set search_path = {schema}"))?;
        let mut outcome = Outcome { files: 1, ..Outcome::default() };
        for record in &records {
            outcome.records += 1;
            self.record(record, path, &mut outcome)?;
        }
        self.on_both(&format!("drop schema {schema} cascade"))?;
        Ok(outcome)
    }

    fn on_both(&mut self, sql: &str) -> Result<(), String> {
        for client in std::iter::once(&mut self.server).chain(&mut self.reference) {
            client.batch_execute(sql).map_err(|e| format!("{sql}: {e}"))?;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record, path: &Path, outcome: &mut Outcome) -> Result<(), String> {
        let answer = ask(&mut self.server, &record.sql)?;
        let changes = matches!(record.kind, RecordKind::Statement { .. });
        let mut reference = match &mut self.reference {
            Some(client) if changes => Some(ask(client, &record.sql)?),
            _ => None,
        };
        if as_expected(&record.kind, &answer) {
            return Ok(());
        }
        if reference.is_none()
            && let Some(client) = &mut self.reference
        {
            reference = Some(ask(client, &record.sql)?);
        }
        match (&answer, &reference) {
            (Ok(rows), Some(Ok(others))) if changes || same(&record.kind, rows, others) => outcome.as_postgres += 1,
            (Err(a), Some(Err(b))) if a.get(..5) == b.get(..5) => outcome.as_postgres += 1,
            (Err(error), _) => {
                outcome.refused += 1;
                outcome.notes.push(format!("{}:{}: {error}\n{}", path.display(), record.line, record.sql));
            }
            (Ok(rows), _) => {
                outcome.wrong += 1;
                let rows = rows.iter().take(5).map(|r| format!("{r:?}")).collect::<Vec<_>>().join(" ");
                outcome.notes.push(format!("{}:{}: wrong: {rows}\n{}", path.display(), record.line, record.sql));
            }
        }
        Ok(())
    }
}

fn connect(address: &str) -> Result<Client, String> {
    let (host_port, database) = address.split_once('/').unwrap_or((address, "postgres"));
    let (host, port) = host_port.rsplit_once(':').ok_or_else(|| format!("{address} is not HOST:PORT[/DATABASE]"))?;
    let mut config = Config::new();
    config.host(host).port(port.parse().map_err(|_| format!("{port} is no port"))?).user("postgres").dbname(database);
    let mut client = config.connect(NoTls).map_err(|e| format!("{address}: {e}"))?;
    client.batch_execute("set statement_timeout = '60s'; set client_min_messages = error").map_err(|e| e.to_string())?;
    Ok(client)
}

/// The inner error is the server's; the outer one ends the run.
fn ask(client: &mut Client, sql: &str) -> Result<Answer, String> {
    let messages = match client.simple_query(sql) {
        Ok(messages) => messages,
        Err(error) => {
            let Some(db) = error.as_db_error() else { return Err(format!("the server is gone: {error}: {sql}")) };
            return Ok(Err(format!("{} {}", db.code().code(), db.message())));
        }
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect()),
        _ => None,
    });
    Ok(Ok(rows.collect()))
}

fn as_expected(kind: &RecordKind, answer: &Answer) -> bool {
    match (kind, answer) {
        (RecordKind::Statement { succeeds }, answer) => *succeeds == answer.is_ok(),
        (RecordKind::Query { types, sort, expected }, Ok(rows)) => {
            let values = values(rows, types, *sort);
            match expected {
                Expected::Values(expected) => *expected == values || (*sort == SortMode::No && by_rows(expected, rows, types)),
                Expected::Hash { count, md5 } => *count == values.len() && *md5 == hash(&values),
            }
        }
        (RecordKind::Query { .. }, Err(_)) => false,
    }
}

/// Some collections write a row a line.
fn by_rows(expected: &[String], rows: &[Vec<Option<String>>], types: &str) -> bool {
    let lines = rows.iter().map(|row| values(std::slice::from_ref(row), types, SortMode::No).join(" "));
    expected.len() == rows.len() && lines.eq(expected.iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn same(kind: &RecordKind, rows: &[Vec<Option<String>>], others: &[Vec<Option<String>>]) -> bool {
    let RecordKind::Query { types, sort, .. } = kind else { return true };
    values(rows, types, *sort) == values(others, types, *sort)
        || values(rows, types, SortMode::Rows) == values(others, types, SortMode::Rows)
}

/// The values one after the other, written as the format wants.
fn values(rows: &[Vec<Option<String>>], types: &str, sort: SortMode) -> Vec<String> {
    let types = types.as_bytes();
    let row = |row: &Vec<Option<String>>| -> Vec<String> {
        row.iter().enumerate().map(|(i, value)| written(value.as_deref(), types.get(i).copied())).collect()
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    if sort == SortMode::Rows {
        rows.sort();
    }
    let mut values: Vec<String> = rows.into_iter().flatten().collect();
    if sort == SortMode::Values {
        values.sort();
    }
    values
}

fn written(value: Option<&str>, ty: Option<u8>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    let value = match value {
        "t" => "1",
        "f" => "0",
        value => value,
    };
    match (ty, value.parse::<f64>()) {
        (Some(b'I'), Ok(number)) if value.contains(['.', 'e']) => format!("{}", number.trunc()),
        (Some(b'R'), Ok(number)) => format!("{number:.3}"),
        _ if value.is_empty() => "(empty)".to_owned(),
        _ => value.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '@' }).collect(),
    }
}

fn hash(values: &[String]) -> String {
    let mut md5 = Md5::new();
    for value in values {
        md5.update(value.as_bytes());
        md5.update(b"\n");
    }
    md5.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[[&str; 2]]) -> Vec<Vec<Option<String>>> {
        values.iter().map(|row| row.iter().map(|v| (*v != "-").then(|| (*v).to_owned())).collect()).collect()
    }

    #[test]
    fn values_are_written_as_the_format_wants() {
        let found = values(&rows(&[["2", "1.5"], ["-", ""], ["1", "x\ty"]]), "IR", SortMode::No);
        assert_eq!(found, ["2", "1.500", "NULL", "(empty)", "1", "x@y"]);
        assert_eq!(values(&rows(&[["2", "b"], ["1", "c"]]), "IT", SortMode::Rows), ["1", "c", "2", "b"]);
        assert_eq!(values(&rows(&[["2", "b"], ["1", "c"]]), "IT", SortMode::Values), ["1", "2", "b", "c"]);
    }

    #[test]
    fn hashes_are_of_lines() {
        // printf '1\n2\n' | md5sum
        assert_eq!(hash(&["1".to_owned(), "2".to_owned()]), "6ddb4095eb719e2a9f0a3f95677d24e0");
    }
}
