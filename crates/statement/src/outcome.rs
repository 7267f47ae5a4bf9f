//! The result of a statement: rows to be read, a COPY to be driven, or just its command tag.

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_protocol::Format;
use melba_spill::{Place, Store};
use melba_types::{Batch, Column, Datum, Kind, Oid, Result};

/// A column of a result, as RowDescription needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// The collation is not that of the type.
    pub has_own_collation: bool,
    /// The table and column it comes straight from, or 0.
    pub table: Oid,
    pub attribute: i16,
    /// pg_type.typlen.
    pub size: i16,
}

impl ResultColumn {
    pub fn new(name: &str, ty: Oid, catalog: &Catalog) -> ResultColumn {
        let described = catalog.type_(ty);
        ResultColumn {
            name: name.into(),
            ty,
            typmod: -1,
            collation: described.map_or(Oid::INVALID, |t| t.collation),
            has_own_collation: false,
            table: Oid::INVALID,
            attribute: 0,
            size: described.map_or(-1, |t| t.length),
        }
    }
}

/// Rows on their way to a client. Owns everything it reads from.
pub trait RowSource: Send {
    /// The next rows, `limit` or fewer unless they exist already; `None` at the end. Batches may be empty. The cost and the
    /// effects of a row arise only when it is requested.
    fn next(&mut self, limit: usize) -> Result<Option<Batch>>;
    /// Rows are written to a table: long values stay in stored form.
    fn keep_stored(&mut self) {}
}

/// Rows that exist already.
pub struct StoredRows(pub std::vec::IntoIter<Batch>);

impl RowSource for StoredRows {
    fn next(&mut self, _limit: usize) -> Result<Option<Batch>> {
        Ok(self.0.next())
    }
}

/// Rows that exist already, however many.
pub(crate) struct KeptRows {
    pub rows: Store,
    pub place: Place,
}

impl RowSource for KeptRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        self.rows.read(&mut self.place, limit)
    }
}

/// How the command tag of a finished statement is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Tag {
    /// `SELECT 5`: the word and the number of rows that this execution sent.
    Counted(&'static str),
    /// Complete already.
    Fixed(String),
}

impl Tag {
    pub fn text(&self, rows: u64) -> String {
        match self {
            Tag::Counted(word) => [word, " ", itoa::Buffer::new().format(rows)].concat(),
            Tag::Fixed(text) => text.clone(),
        }
    }
}

/// A COPY FROM STDIN that takes its data piece by piece; pieces end anywhere.
pub trait CopyIn: Send {
    fn feed(&mut self, data: &[u8]) -> Result<()>;
    /// The client is slow: processes the data it has sent so far, so that it gets the errors in them.
    fn catch_up(&mut self) -> Result<()>;
    /// Which line of which table comes next, as an error's context says it.
    fn place(&self) -> String;
    /// The client has sent everything: the number of rows copied.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// A COPY TO STDOUT.
pub trait CopyOut: Send {
    /// Appends the data of the next row (or header, or trailer); false at the end.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
    /// Rows given so far.
    fn rows(&self) -> u64;
}

/// The result of a statement. `formats` of rows are the result's own choice (FETCH from a binary cursor), empty for text.
pub enum Outcome {
    /// A result to be read.
    Rows { columns: Arc<[ResultColumn]>, source: Box<dyn RowSource>, tag: Tag, formats: Vec<Format> },
    /// No result (utility statements, INSERT without RETURNING).
    Done { tag: String },
    /// COPY FROM STDIN: the session feeds it the client's data.
    CopyIn { format: Format, columns: usize, copy: Box<dyn CopyIn> },
    /// COPY TO STDOUT.
    CopyOut { format: Format, columns: usize, copy: Box<dyn CopyOut> },
}

/// A batch of text columns of equal length.
pub fn text_rows(table: Vec<Vec<String>>) -> Batch {
    let rows = table.first().map_or(0, Vec::len);
    let columns = table.into_iter().map(|values| {
        let mut column = Column::with_capacity(Kind::Text, rows);
        values.into_iter().for_each(|v| column.push(Datum::text(v)));
        column
    });
    Batch::new(columns.collect(), rows)
}
