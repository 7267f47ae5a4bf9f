//! COPY: reads and writes rows as text, CSV, binary or Parquet.
//!
//! ```text
//! FROM   bytes -> lines (`text`, `csv`) or tuples (`binary`) -> columns -> TableWriter, a batch at a time
//! TO     batches -> `format` -> bytes
//! ```
//!
//! Text, CSV and binary are PostgreSQL's (documentation of COPY, "File Formats"). A Parquet file is read from its end, so its input is
//! kept until it is whole (`spool`), and written a row group at a time (`parquet_out`).

mod binary;
mod csv;
mod foreign;
mod format;
mod from;
mod load;
mod long_line;
mod newline;
mod options;
mod parquet_out;
mod plain;
mod scan;
mod spool;
mod text;
mod values;

pub use foreign::{COLUMN_OPTIONS, ColumnOptions, ForeignFile, ForeignFormat, ForeignSource, TABLE_OPTIONS, flag};
pub use format::{CopiedColumn, CopyTo};
pub use from::CopyFrom;
pub use options::{CopyFormat, CopyOptions};
pub use scan::CopyScan;
pub use spool::StoredObject;
pub use values::{InputColumn, push_value};

/// The fields of one row, unescaped, end to end. Buffers are reused from row to row.
#[derive(Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    /// End of each field, and its kind.
    ends: Vec<(usize, FieldKind)>,
    /// Escapes were replaced, so that the text need not be UTF-8 any more.
    escaped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Value,
    Null,
    /// The DEFAULT marker.
    Default,
}

impl Fields {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.escaped = false;
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, i: usize) -> (FieldKind, &[u8]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 };
        (self.ends[i].1, &self.bytes[start..self.ends[i].0])
    }

    /// Ends the field that the bytes since the last one make.
    fn end(&mut self, kind: FieldKind) {
        self.ends.push((self.bytes.len(), kind));
    }
}
