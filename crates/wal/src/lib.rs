//! The write-ahead log: records in files, appended in one order, made durable in groups, read back after a crash.
//!
//! Invariants:
//! 1. A record's LSN is its byte position in the log; records are contiguous, and a file holds whole records only.
//! 2. A file is begun only after everything before it is durable. So only the last file may end in a torn record, and a gap
//!    anywhere else is corruption.
//! 3. Recovery never appends to a file that existed before: bytes of lost records may lie beyond the end of what is valid,
//!    and must not be taken for records again.
//! 4. After a failed write or sync nothing is acknowledged any more. A full disk fails `reserve`, before anything is appended.
//! 5. A batch is written only after the one before it is durable, and its first record says so: what is not whole before such a
//!    record is damage, and an error.
//!
//! 6. A file has its header before it has its name, and is named before the one before it says that it has ended: so a file that is
//!    missing is missed, but for the first of a start, which the engine's manifest knows.
//!
//! The engine is the only caller. docs/design/wal.md has the bytes.

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
pub use format::{CSN_MAX, FILE_HEADER_BYTES, FORMAT_VERSION, RECORD_HEADER_BYTES, Record};
pub use reader::{Belongs, Known, LogFiles, replay};
pub use salvage::salvage;
pub use writer::{Wal, WalOptions, WalStatistics, Written, WrittenBy, payload_crc};
