//! Rows in a table of a server: one column per document.

use std::time::{Duration, Instant};

use postgres::types::ToSql;
use postgres::{Client, Statement};

use super::files::{unzlib, zlib};
use super::form::{Form, Row, timed};
use crate::{Result, Target};

const TABLE: &str = "melba_lab_documents";
/// The table is steady when its size stayed the same for this many looks, a second apart.
const STEADY_LOOKS: usize = 3;

/// The client's encoding of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Text,
    /// A zlib stream as bytea.
    Zlib,
}

pub struct DocumentTable {
    target: Target,
    client: Client,
    column: Column,
    insert: Statement,
    update: Statement,
    delete: Statement,
    select: Statement,
}

impl DocumentTable {
    /// Creates the table. An error says why it cannot be created.
    pub fn create(target: &Target, column: Column, method: &str, columns: usize) -> Result<DocumentTable> {
        let mut client = target.connect()?;
        let kind = if column == Column::Text { "text" } else { "bytea" };
        let names: Vec<String> = (1..=columns).map(|at| format!("d{at}")).collect();
        let each = |form: &dyn Fn(&str, usize) -> String| -> String {
            names.iter().enumerate().map(|(at, name)| form(name, at + 2)).collect::<Vec<_>>().join(", ")
        };
        target.execute(&mut client, &format!("DROP TABLE IF EXISTS {TABLE}"))?;
        let definitions = each(&|name, _| format!("{name} {kind} COMPRESSION {method}"));
        target.execute(&mut client, &format!("CREATE TABLE {TABLE} (id bigint PRIMARY KEY, {definitions})"))?;
        let mut prepare = |sql: String| client.prepare(&sql).map_err(|e| target.error(e));
        let insert = prepare(format!("INSERT INTO {TABLE} VALUES ($1, {})", each(&|_, at| format!("${at}"))))?;
        let update = prepare(format!("UPDATE {TABLE} SET {} WHERE id = $1", each(&|name, at| format!("{name} = ${at}"))))?;
        let delete = prepare(format!("DELETE FROM {TABLE} WHERE id = $1"))?;
        let select = prepare(format!("SELECT {} FROM {TABLE} WHERE id = $1", names.join(", ")))?;
        Ok(DocumentTable { target: target.clone(), client, column, insert, update, delete, select })
    }

    /// Runs a statement for each row, in one transaction.
    fn change(&mut self, statement: &Statement, rows: &[Row]) -> Result<Duration> {
        let started = Instant::now();
        let failed = |e| self.target.error(e);
        let mut transaction = self.client.transaction().map_err(failed)?;
        for row in rows {
            let id = row.id as i64;
            match self.column {
                Column::Text => {
                    let texts: Vec<&str> = row
                        .documents
                        .iter()
                        .map(|d| std::str::from_utf8(d))
                        .collect::<std::result::Result<_, _>>()
                        .map_err(|e| e.to_string())?;
                    let values: Vec<&(dyn ToSql + Sync)> =
                        [&id as &(dyn ToSql + Sync)].into_iter().chain(texts.iter().map(|t| t as _)).collect();
                    transaction.execute(statement, &values).map_err(failed)?;
                }
                Column::Zlib => {
                    let streams: Vec<Vec<u8>> = row.documents.iter().map(|d| zlib(d)).collect::<Result<_>>()?;
                    let values: Vec<&(dyn ToSql + Sync)> =
                        [&id as &(dyn ToSql + Sync)].into_iter().chain(streams.iter().map(|s| s as _)).collect();
                    transaction.execute(statement, &values).map_err(failed)?;
                }
            }
        }
        transaction.commit().map_err(failed)?;
        Ok(started.elapsed())
    }
}

impl Form for DocumentTable {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        self.change(&self.insert.clone(), rows)
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        self.change(&self.update.clone(), rows)
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        let started = Instant::now();
        let failed = |e| self.target.error(e);
        let mut transaction = self.client.transaction().map_err(failed)?;
        for id in ids {
            transaction.execute(&self.delete, &[&(*id as i64)]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(started.elapsed())
    }

    fn maintain(&mut self) -> Result<Duration> {
        let started = Instant::now();
        // Rows still in memory have other sizes. VACUUM is a separate statement.
        self.target.execute(&mut self.client, "CHECKPOINT")?;
        self.target.execute(&mut self.client, &format!("VACUUM {TABLE}"))?;
        let took = started.elapsed();
        self.target.steady_bytes(&mut self.client, &[TABLE], STEADY_LOOKS)?;
        Ok(took)
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        timed(|| {
            let row = self.client.query_opt(&self.select, &[&(id as i64)]).map_err(|e| self.target.error(e))?;
            let Some(row) = row else { return Ok(None) };
            let document = |at: usize| match self.column {
                Column::Text => Ok(row.get::<_, &str>(at).as_bytes().to_vec()),
                Column::Zlib => unzlib(row.get::<_, &[u8]>(at)),
            };
            (0..row.len()).map(document).collect::<Result<_>>().map(Some)
        })
    }

    fn bytes(&mut self) -> Result<u64> {
        let sql = format!("SELECT pg_total_relation_size('{TABLE}')");
        Ok(self.target.number(&mut self.client, &sql)? as u64)
    }

    fn remove(&mut self) -> Result<()> {
        self.target.execute(&mut self.client, &format!("DROP TABLE {TABLE}"))
    }
}
