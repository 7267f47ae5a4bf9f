//! Immutable segments: the files that hold a database's rows and index entries.
//!
//! A table segment keeps rows by column, a key segment sorted index keys. Both are written once, front to back, by a
//! writer that one thread owns, and read by readers that all threads share.
//!
//! Invariants:
//! 1. A finished file never changes; a file without its tail was never finished and does not open.
//! 2. Every byte is under a checksum or a known constant, checked before use: a damaged file is an error that names file and
//!    block, never a wrong answer, a panic or an access out of bounds.
//! 3. A block with a correct checksum holds bytes that a writer wrote. Layouts are bounds-checked all the same; UTF-8 is not
//!    checked again.
//! 4. This crate does not decide visibility: versions are returned with their CSN.
//!
//! The engine is the only caller. docs/design/segment.md defines the bytes.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

mod block;
mod cache;
#[cfg(test)]
mod document;
mod encoding;
mod error;
mod estimate;
#[cfg(test)]
mod failing;
mod file;
mod filter;
mod frame;
mod hash;
mod key;
mod layout;
mod sampled;
mod statistics;
mod table;

pub use melba_toast::dense::{DenseOptions, Effort, Pace};

pub use block::ReferenceName;
pub use cache::{BlockCache, CacheStatistics};
pub use encoding::Coded;
pub use error::{BlockName, Result, SegmentError};
pub use estimate::{ColumnEstimate, Point};
pub use frame::{Codec, FORMAT_VERSION};
pub use key::{KeyCursor, KeyOptions, KeySegmentMeta, KeySegmentReader, KeySegmentWriter, ROW_ID_BYTES};
pub use sampled::{chunks_of_sample, distinct_in_all};
pub use statistics::{Statistics, ZoneOp};
pub use table::{
    ColdLayout, Csns, EncoderPool, Finishing, GroupData, GroupReader, Neighbour, Position, RowGroup, RowVersion, SectionSummary,
    SegmentMeta, TableOptions, TableSegmentReader, TableSegmentWriter, null_batch,
};
