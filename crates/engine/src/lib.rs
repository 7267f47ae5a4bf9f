//! The storage engine: the API boundary for everything above storage.
//!
//! An `Engine` holds trees: table trees (rows by row id) and index trees (memcomparable keys, each followed by a row id). A
//! `EngineSession` is one client's context, a `Transaction` its unit of work, a `ReadView` the versions that one statement sees. A
//! transaction lends its operations on one index (`IndexAccess`), toast tree (`ToastFrames`) and the like.
//!
//! Invariants:
//! 1. A transaction's changes are in its private write set until commit; rollback drops the write set.
//! 2. Commits become visible in commit sequence number (CSN) order, each whole, and in the order of their WAL records.
//! 3. A synchronous commit is visible only once it is durable.
//! 4. A version that a registered snapshot can see is never dropped.
//! 5. After a failed write or sync of the log, or a panic in a background step or within a commit, the engine is poisoned: it
//!    acknowledges no further commit.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

mod background;
mod backup;
mod cold;
mod commit;
mod engine;
mod events;
mod flush;
mod index_build;
mod index_load;
mod inspect;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
mod merge;
mod moves;
mod options;
mod recovery;
mod runtime;
mod salvage;
mod samples;
mod scan;
mod scan_counts;
mod serializable;
mod session;
mod shared;
mod snapshot;
mod step;
mod txn;
mod verify;
mod view;
mod write_set;

pub use background::{BackgroundStep, BackgroundWorker};
pub use backup::{BackupSegment, OnlineBackup, Restored, restore};
pub use cold::{ColdTarget, ColdUse};
pub use commit::Durability;
pub use engine::{Engine, MemoryPart};
pub use events::{BackgroundEvent, EventWatch};
pub use index_build::{Duplicate, IndexBuilder};
pub use index_load::IndexLoad;
pub use melba_locks::{Claim, ClaimNumber};
pub use melba_locks::{LockTag, LockedObject, LongWait, RelationLockMode, RowLockMode, Wait, WaitPhase, WaitWatch};
pub use melba_segment::Coded;
pub use melba_segment::{ColumnEstimate, Point, distinct_in_all};
pub use melba_store::{
    Asking, ColdCounts, ColdFailure, ColdSource, DenseStatistics, EngineError, Held, Interrupt, InterruptReason, ManifestState,
    MemoryBudget, Persistence, QueryMemory, Result, RowBytes, RowCounts, SequenceDefinition, SequenceId, SequenceState,
    TempBlock, TempFile, TempWatch,
};
#[doc(hidden)]
pub use melba_threads::planted;
pub use melba_threads::{OwnThreads, Scheduler};
pub use melba_vfs::counts::{self as io_counts, IoCounts};
pub use melba_vfs::{OF_OBJECT, Objects};
pub use melba_wal::{WalStatistics, WriteCounts};
pub use options::EngineOptions;
pub use recovery::RecoveryProgress;
pub use samples::{SampleAge, SampledColumn, TableSample};
pub use scan::{ClaimedKeys, DifferingRows, IndexScan, Morsel, ScanBatch, ScanPiece, TableScan, ZoneOp, ZonePredicate};
pub use scan_counts::ScanCounts;
pub use session::EngineSession;
pub use txn::{
    BulkRows, ClaimedValues, Committing, ExportedSnapshot, IndexAccess, Latest, OnPublish, PreparedBytes, RowLockResult,
    Savepoint, ToastFrames, Transaction, TwoPhase, ViewPin, log_bytes,
};
pub use view::{Isolation, ReadView};

#[cfg(test)]
mod tests;
