//! The contents of a dump, as JSON in stream 0.

use serde::{Deserialize, Serialize};

use crate::large_objects::OidRange;

/// The kind of entries that need the large objects to be there.
pub const LARGE_OBJECT_COMMENT: &str = "LARGE OBJECT COMMENT";

/// When an entry is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Section {
    /// Before the data: types, tables, views.
    Before,
    /// After it: indexes, constraints, privileges.
    After,
}

/// Statements that make one object or one property of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub section: Section,
    /// TABLE, INDEX, COMMENT, ...: the kind in a listing.
    pub kind: String,
    pub schema: Option<String>,
    /// The object's name, or the table's that it belongs to.
    pub name: String,
    pub sql: String,
}

/// The content of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamKind {
    /// Rows in COPY's text format for `COPY table (columns)`, both quoted as SQL.
    Table { schema: String, name: String, target: String },
    /// A line an object, by OID: OID, owner, ACL, in COPY's text format.
    LargeObjects(OidRange),
    /// A tuple a page of 2 kB, by OID and page: OID, page, bytea, in COPY's binary format. Of the objects of the stream before.
    LargeObjectPages(OidRange),
}

/// A stream of data, by number from 1 in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    pub kind: StreamKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The server's reported version.
    pub server: String,
    pub database: String,
    /// When the snapshot was taken, as the server writes a timestamp.
    pub taken_at: String,
    pub entries: Vec<Entry>,
    pub streams: Vec<StreamInfo>,
}

impl StreamInfo {
    /// The stream's name in messages.
    pub fn title(&self) -> String {
        match &self.kind {
            StreamKind::Table { schema, name, .. } => format!("the rows of table {schema}.{name}"),
            StreamKind::LargeObjects(range) => format!("the list of large objects {range}"),
            StreamKind::LargeObjectPages(range) => format!("the contents of large objects {range}"),
        }
    }
}

impl Contents {
    /// The streams with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &StreamInfo)> {
        (1..).zip(&self.streams)
    }
}
