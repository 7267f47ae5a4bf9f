//! COPY: reads and writes rows as text, CSV or binary.
//!
//! ```text
//! FROM   bytes -> lines (`text`, `csv`) or tuples (`binary`) -> columns -> TableWriter, a batch at a time
//! TO     batches -> `format` -> bytes
//! ```
//!
//! The formats are PostgreSQL's (documentation of COPY, "File Formats").

mod binary;
mod csv;
mod format;
mod from;
mod options;
mod plain;
mod text;

pub use format::CopyTo;
pub use from::CopyFrom;
pub use options::{CopyFormat, CopyOptions};

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
