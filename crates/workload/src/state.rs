//! A session's data, and the text form in which it is compared with a database's content.

use std::collections::{BTreeMap, BTreeSet};

/// The name of a session's table.
pub(crate) fn table_name(session: u32, table: u32) -> String {
    format!("own_{session}_{table}")
}

/// The OID of a session's large object.
pub(crate) fn object_oid(session: u32, object: u32) -> u32 {
    100_000 + session * 100 + object
}

/// A table of a session's own.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// It has the column that was added.
    pub wide: bool,
    pub indexed: bool,
    pub rows: BTreeMap<i32, String>,
}

/// The result of a session's transactions.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub parents: BTreeSet<i32>,
    /// By their keys: the parent's, and a note.
    pub children: BTreeMap<i32, (i32, String)>,
    pub tables: BTreeMap<u32, Table>,
    pub objects: BTreeMap<u32, Vec<u8>>,
    /// The amounts that accounts have received from this session.
    pub moved: BTreeMap<i32, i64>,
}

impl State {
    /// All of it but the accounts, a line each, in the words of `judge::read`.
    pub fn lines(&self, session: u32) -> BTreeSet<String> {
        let mut lines: BTreeSet<String> = self.parents.iter().map(|key| format!("parent {key}")).collect();
        lines.extend(self.children.iter().map(|(key, (parent, note))| format!("child {key} of {parent}: {note}")));
        for (number, table) in &self.tables {
            let name = table_name(session, *number);
            lines.insert(format!("table {name}"));
            if table.indexed {
                lines.insert(format!("index {name}_v"));
            }
            let more = if table.wide { " 7" } else { "" };
            lines.extend(table.rows.iter().map(|(id, value)| format!("{name}: {id} {value}{more}")));
        }
        for (object, content) in &self.objects {
            lines.insert(format!("object {}: {}", object_oid(session, *object), runs(content)));
        }
        lines
    }
}

/// Bytes by their runs: `8*ff 2*00`.
pub(crate) fn runs(bytes: &[u8]) -> String {
    let runs = bytes.chunk_by(|a, b| a == b).map(|run| format!("{}*{:02x}", run.len(), run[0]));
    runs.collect::<Vec<_>>().join(" ")
}
