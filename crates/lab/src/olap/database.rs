//! A database as the experiment drives it, and how its SQL differs from that of others.

use std::path::Path;

use super::data::{ColumnKind, OlapTable, RECORD, TMP};
use super::queries::Statement;
use crate::Result;

/// The differences in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    PostgreSql,
    MySql,
    DuckDb,
    ClickHouse,
}

/// The duration of a load, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    pub copy: f64,
    /// The database's work afterwards until it has its final shape.
    pub maintenance: f64,
}

/// Many clients at once.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub clients: usize,
    pub seconds: f64,
}

pub trait Database {
    /// Creates a table, drops the remains of an interrupted run, and fills it from a file.
    fn load(&mut self, table: &OlapTable, file: &Path) -> Result<Loaded>;

    /// Runs statements whose results do not matter; returns the seconds.
    fn execute(&mut self, statements: &[String]) -> Result<f64>;

    /// Bytes on disk of tables with their indexes.
    fn bytes(&mut self, tables: &[OlapTable]) -> Result<f64>;

    /// Runs a query and hands over its rows, values as text with tabs between them. Returns the seconds until the last one was there.
    fn query(&mut self, sql: &str, row: &mut dyn FnMut(&[u8])) -> Result<f64>;

    /// Statements a second: each client walks the parameters, and each answer must have the number of rows that is given.
    fn rate(&mut self, statement: &Statement, rows: &[u64], crowd: Crowd) -> Result<f64>;
}

impl Dialect {
    pub fn create(self, table: &OlapTable) -> Vec<String> {
        let column = |(at, (name, kind)): (usize, &(&str, ColumnKind))| {
            let key = table.has_key && at == 0 && self != Dialect::ClickHouse;
            format!("{name} {}{}", self.kind(*kind), if key { " PRIMARY KEY" } else { "" })
        };
        let columns: Vec<String> = table.columns.iter().enumerate().map(column).collect();
        let engine = match (self, table.has_key) {
            (Dialect::ClickHouse, true) => " ENGINE = MergeTree ORDER BY id",
            (Dialect::ClickHouse, false) => " ENGINE = MergeTree ORDER BY tuple()",
            // LIKE and = compare case and bytes, as those of the others do.
            (Dialect::MySql, _) => " CHARACTER SET ascii COLLATE ascii_bin",
            _ => "",
        };
        let name = table.name;
        vec![format!("DROP TABLE IF EXISTS {name}"), format!("CREATE TABLE {name} ({}){engine}", columns.join(", "))]
    }

    pub fn kind(self, kind: ColumnKind) -> &'static str {
        match (self, kind) {
            (Dialect::ClickHouse, ColumnKind::Number) => "Int64",
            (Dialect::ClickHouse, ColumnKind::Text) => "String",
            (Dialect::ClickHouse, ColumnKind::Time) => "DateTime('UTC')",
            (_, ColumnKind::Number) => "bigint",
            (Dialect::MySql, ColumnKind::Text) => "varchar(255)",
            (_, ColumnKind::Text) => "text",
            (Dialect::MySql, ColumnKind::Time) => "datetime",
            (_, ColumnKind::Time) => "timestamp",
        }
    }

    /// The index on phone. ClickHouse has none of that kind: its table is rewritten in that order.
    pub fn index_phone(self) -> Vec<String> {
        let name = TMP.name;
        match self {
            Dialect::ClickHouse => vec![
                format!("CREATE TABLE {name}_sorted AS {name} ENGINE = MergeTree ORDER BY phone"),
                format!("INSERT INTO {name}_sorted SELECT * FROM {name}"),
                format!("DROP TABLE {name} SYNC"),
                format!("RENAME TABLE {name}_sorted TO {name}"),
                format!("OPTIMIZE TABLE {name} FINAL"),
            ],
            Dialect::DuckDb => vec![format!("CREATE INDEX {name}_phone ON {name} (phone)"), "CHECKPOINT".to_owned()],
            _ => vec![format!("CREATE INDEX {name}_phone ON {name} (phone)")],
        }
    }

    /// The index by which a nickname's latest record is found, where there are such.
    pub fn index_records(self) -> Vec<String> {
        let name = RECORD.name;
        match self {
            Dialect::ClickHouse => Vec::new(),
            // An index of two columns is not used for the first alone.
            Dialect::DuckDb => vec![format!("CREATE INDEX {name}_latest ON {name} (nickname)"), "CHECKPOINT".to_owned()],
            _ => vec![format!("CREATE INDEX {name}_latest ON {name} (nickname, update_time)")],
        }
    }

    pub fn query(self, sql: &str) -> String {
        match self {
            Dialect::ClickHouse => sql.replace("bit_length(raw)", "8 * length(raw)"),
            _ => sql.to_owned(),
        }
    }
}
