//! Parquet files as columns of PostgreSQL's types, and back.
//!
//! ```text
//! write   batches -> a row group in memory -> `values`, `levels` -> pages
//! read    pages -> `decode`: a column of the type next to the file's -> `fit`: of the table's type -> `levels`: arrays
//! ```
//!
//! Invariants:
//! 1. What is written and read again into a column of the same type is the same value. A value that the file's type cannot hold is
//!    an error, never another value (`mapping` has the table of types).
//! 2. The bytes of a file are never trusted: whatever they are, reading gives rows or an error. A panic of the decoder is an error.
//! 3. A writer holds one row group, of `ROW_GROUP_BYTES_MAX` at most unless a single batch is larger, and announces it.
//!
//! `copy` calls it. It opens no file: bytes come from `FileBytes`, and go to a `Write`.

mod decode;
mod file_type;
mod fit;
mod footer;
mod levels;
mod mapping;
mod matching;
mod pages;
mod prune;
mod reader;
mod source;
mod values;
mod writer;

#[cfg(test)]
mod tests;

use parquet::errors::ParquetError;

use melba_types::err;

pub use melba_types::DbError;

pub use file_type::FileType;
pub use mapping::{element_id, iceberg_type};
pub use matching::{ColumnMatch, check_all_wanted, match_columns};
pub use prune::ColumnLimits;
pub use reader::{FileColumn, FileReader, Scan, Wanted};
pub use source::{FileBytes, SourceFile, SourceReader};
pub use writer::{Compression, FileWriter, Written};

/// The key of the file's metadata under which the columns' PostgreSQL types stand: a JSON array of objects with `name` and `type`.
pub const TYPES_KEY: &str = "postgresql.columns";

/// The error that a source or target of bytes has given as one of input and output.
fn within(error: &ParquetError) -> Option<DbError> {
    let ParquetError::External(inner) = error else { return None };
    inner.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<DbError>().cloned()
}

/// The error of a file whose bytes are wrong, or of reading them.
fn damaged(error: ParquetError) -> DbError {
    // A cancelled statement, or a store's refusal.
    if let Some(inner) = within(&error) {
        return inner;
    }
    if let ParquetError::External(inner) = &error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return err!(IO_ERROR, "could not read Parquet file: {io}");
    }
    err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file").detail(format!("{error}."))
}
