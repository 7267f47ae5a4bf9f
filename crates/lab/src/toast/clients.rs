//! Several clients that share the rows of a corpus among them, each with a connection and one transaction per statement.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};

use super::TABLE;
use super::corpus::Corpus;
use crate::{Result, Target};

/// The operation on every row.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Insert,
    /// Reads the whole value and compares it with the inserted one.
    Select,
    /// Length, a slice and a search.
    StringFunctions,
    /// Replaces five characters.
    StringUpdate,
}

impl Work {
    fn sql(self) -> String {
        match self {
            Work::Insert => format!("INSERT INTO {TABLE} VALUES ($1, $2)"),
            Work::Select => format!("SELECT body FROM {TABLE} WHERE id = $1"),
            Work::StringFunctions => {
                format!(
                    "SELECT octet_length(body), substr(body, 100, 50), position('PostgreSQL' in body) FROM {TABLE} WHERE id = $1"
                )
            }
            Work::StringUpdate => format!("UPDATE {TABLE} SET body = overlay(body PLACING 'melba' FROM 3 FOR 5) WHERE id = $1"),
        }
    }
}

/// A value's bytes, for any type: nothing is converted on the way.
#[derive(Debug)]
struct Raw<'a>(&'a [u8]);

impl ToSql for Raw<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::BYTEA)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Raw<'a>, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(kind: &Type) -> bool {
        <Raw as ToSql>::accepts(kind)
    }
}

/// The time from the first statement to the end of the last client.
pub fn run(target: &Target, corpus: &Corpus, work: Work, clients: usize, repeat: usize) -> Result<Duration> {
    let rows = corpus.values.len() * repeat;
    let next = AtomicUsize::new(0);
    let ready = Barrier::new(clients + 1);
    std::thread::scope(|scope| {
        let body = || {
            let prepared = prepare(target, work);
            ready.wait();
            let (mut client, statement) = prepared?;
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                if row >= rows {
                    return Ok(());
                }
                one(target, &mut client, &statement, work, row as i32, &corpus.values[row % corpus.values.len()])?;
            }
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(body)).collect();
        ready.wait();
        let started = Instant::now();
        let results: Vec<Result<()>> =
            threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))).collect();
        let elapsed = started.elapsed();
        results.into_iter().collect::<Result<()>>()?;
        Ok(elapsed)
    })
}

fn prepare(target: &Target, work: Work) -> Result<(Client, Statement)> {
    let mut client = target.connect()?;
    let statement = client.prepare(&work.sql()).map_err(|e| target.error(e))?;
    Ok((client, statement))
}

/// Does the work on one row, and checks the answer.
fn one(target: &Target, client: &mut Client, statement: &Statement, work: Work, id: i32, value: &[u8]) -> Result<()> {
    let fail = |e| target.error(e);
    let right = match work {
        Work::Insert => client.execute(statement, &[&id, &Raw(value)]).map_err(fail)? == 1,
        Work::Select => {
            let row = client.query_one(statement, &[&id]).map_err(fail)?;
            row.get::<_, Raw>(0).0 == value
        }
        Work::StringFunctions => {
            let row = client.query_one(statement, &[&id]).map_err(fail)?;
            row.get::<_, i32>(0) as usize == value.len()
        }
        Work::StringUpdate => client.execute(statement, &[&id]).map_err(fail)? == 1,
    };
    if right { Ok(()) } else { Err(format!("{}: row {id} is not what was written", target.name)) }
}
