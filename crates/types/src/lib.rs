//! Values, type OIDs, text and binary formats, and the error type that every layer above storage speaks.
//!
//! Invariants:
//! 1. A `Datum` is physical: `date` is `Int4`, `timestamp` is `Int8`. Which SQL type a datum has is always known
//!    statically from the expression or column that produced it, never from the datum.
//! 2. Everything here is pure: no I/O, no clock, no global mutable state except in `limits`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

pub mod array;
mod batch;
mod bitmap;
pub mod bits;
pub mod boolean;
mod byte_strings;
pub mod bytes;
pub mod case;
pub mod codec;
mod coded_strings;
pub mod collate;
pub mod column;
pub mod datetime;
pub mod datum;
pub mod error;
pub mod float;
pub mod hstore;
pub mod ids;
pub mod inet;
pub mod interval;
pub mod json;
pub mod jsonb;
pub mod key;
pub mod key_words;
pub mod limits;
mod mantissas;
pub mod merge_heap;
pub mod numeric;
pub mod oids;
mod rarely_used;
pub mod row;
pub mod shared;
mod sort;
pub mod sqlstate;
pub mod timezone;
pub mod tsquery;
pub mod tsvector;

pub use array::{Array, ArrayDim};
pub use batch::{BATCH_ROWS, Batch};
pub use bitmap::Bitmap;
pub use byte_strings::ByteStrings;
pub use coded_strings::CodedStrings;
pub use column::{Column, ColumnData};
pub use datum::{Datum, Interval, Multirange, Range, Record, TimeTz};
pub use error::{DbError, Result, Severity};
pub use ids::{Csn, Lsn, Oid, RowId, TreeId, TxnId};
pub use mantissas::Mantissas;
pub use numeric::Numeric;
pub use oids::Kind;
pub use rarely_used::RarelyUsed;
pub use sort::sort_by;
pub use sqlstate::SqlState;
