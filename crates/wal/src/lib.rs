//! The write-ahead log: records in files, appended in one order, made durable in groups, read back after a crash.
//!
//! Invariants:
//! 1. A record's LSN is its byte position in the log; records are contiguous, and a file holds whole records only.
//! 2. A file is begun only after everything before it is durable. So only the last file may end in a torn record, and a gap
//!    anywhere else is corruption.
//! 3. Recovery never appends to a file that existed before: bytes of lost records may lie beyond the valid end and must not be
//!    read as records.
//! 4. After a failed write or sync no further record is acknowledged. A full disk fails `reserve`, before anything is appended.
//! 5. A batch is written only after the one before it is durable, and its first record says so: an incomplete record before such
//!    a record is damage, and an error.
//!
//! 6. A file gets its header before its name, and its name before the previous file says that it has ended: so a missing file is
//!    detected, except the first file of a start, which the engine's manifest names.
//!
//! The engine is the only caller. docs/design/wal.md defines the bytes.

mod error;
mod follow;
mod format;
mod holds;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
mod reader;
mod salvage;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{Result, WalError};
pub use follow::RecordStream;
pub use format::{CSN_MAX, FILE_HEADER_BYTES, FORMAT_VERSION, RECORD_HEADER_BYTES, WalRecord};
pub use reader::{Belongs, Known, LogFiles, replay};
pub use salvage::salvage;
pub use writer::{Wal, WalOptions, WalStatistics, WriteCounts, WrittenBy, payload_crc};
