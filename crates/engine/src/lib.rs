//! The storage engine: the boundary that everything above storage is written against.
//!
//! An `Engine` holds trees: table trees (rows by row id) and index trees (memcomparable keys, each followed by a row id).
//! A `Session` is one client's context, a `Transaction` its unit of work, a `ReadView` what one statement sees.
//!
//! Invariants:
//! 1. A transaction's changes are in its private write set until commit; rollback drops the write set.
//! 2. Commits become visible in commit sequence number (CSN) order, each whole, and in the order of their WAL records.
//! 3. A synchronous commit is visible only once it is durable.
//! 4. A version that a registered snapshot can see is never dropped.
//! 5. After a failed write or sync of the log, or a panic in a background step or within a commit, the engine is poisoned: nothing is
//!    acknowledged any more.

mod batch;
mod bulk;
mod chain;
mod commit;
mod density;
mod engine;
mod entry_merge;
mod entry_sort;
mod error;
mod flush;
mod index_build;
mod index_load;
mod inspect;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
mod interrupt;
mod key;
mod levels;
mod locks;
mod log_writer;
mod manifest;
mod memory;
mod merge;
mod output;
mod pace;
#[doc(hidden)]
pub mod planted;
mod progress;
mod recovery;
mod replay;
mod reserve;
mod salvage;
mod scan;
mod sequence;
mod serializable;
mod session;
mod snapshot;
mod swap;
mod sync;
mod temp;
mod tree;
mod trees;
mod txn;
mod verify;
mod versions;
mod wait;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use commit::Durability;
pub use density::DenseStatistics;
pub use engine::{BackgroundStep, Engine, EngineOptions};
pub use error::{EngineError, Result};
pub use index_build::{Duplicate, IndexBuilder};
pub use index_load::IndexLoad;
pub use interrupt::{Interrupt, InterruptReason};
pub use locks::{LockTag, LockedObject, RelationLockMode, RowLockMode, Wait};
pub use melba_segment::{ColumnEstimate, Point};
pub use melba_wal::{WalStatistics, Written};
pub use memory::{Held, MemoryBudget, QueryMemory};
pub use progress::RecoveryProgress;
pub use scan::{IndexScan, Morsel, ScanBatch, TableScan, ZoneOp, ZonePredicate};
pub use sequence::{SequenceDefinition, SequenceId, SequenceState};
pub use session::Session;
pub use temp::{TempBlock, TempFile};
pub use tree::Persistence;
pub use txn::{
    Committing, ExportedSnapshot, Isolation, Latest, OnPublish, ReadView, RowLockResult, Savepoint, Transaction, ViewPin,
};
pub use wait::{about_to_start_thread, about_to_wait, set_thread_hooks};

/// An encoded row (`melba_types::row`). Cloning shares the bytes.
pub type RowBytes = Arc<[u8]>;
