//! The lock manager: relation, object, advisory, row and unique-key locks in one table with one deadlock detector.
//!
//! Invariants:
//! 1. A session never conflicts with itself. It holds a set of modes on a key, for its transaction, itself, or both.
//! 2. Waiters queue first come, first served; a request passes waiters only when it conflicts with none of them, when its session
//!    holds the lock in some mode already (else upgrades would deadlock at once), or when it is for a row: as in PostgreSQL, row
//!    locks that are compatible with those held are granted at once.
//! 3. A weak relation lock (AccessShare, RowShare, RowExclusive) is kept in its session's own list when no stronger one is
//!    held or wanted on its bucket, and the list is short; a stronger request moves those into the table first (PostgreSQL's
//!    fast path).
//! 4. A commit that is applied releases its row and key locks before it is durable (`ReleaseTurn`), unless another session may
//!    have to wait until it is visible; the next holder then sees the applied versions.
//! 5. A session with very many row and key locks holds further ones in sets (`wide`); the segments of a bulk load stand for the
//!    locks on its keys (`loaded`). The semantics are the same.
//! 6. Values of exclusion constraints are claimed rather than locked (`claims`).
//! 7. A transaction is a lockable object of its own as soon as another one waits for its end (`transactions`).

mod claims;
mod deadlock;
mod loaded;
mod modes;
mod table;
mod tag;
#[cfg(test)]
mod tests;
mod transactions;
mod waits;
mod wide;

pub use claims::{Claim, ClaimNumber, Claims};
pub use loaded::{ForeignKeys, LoadedKeys};
pub use modes::Mode;
pub use modes::{RelationLockMode, RowLockMode};
pub use table::{HoldDuration, LockManager, ReleaseTurn};
pub use tag::LockKey;
pub use tag::{LockTag, LockedObject};
pub use waits::{LongWait, WaitPhase, WaitPolicy, WaitWatch};
pub use wide::TABLE_LOCKS_MAX;

/// Sessions that may exist at once.
pub const SLOTS: usize = melba_threads::sized(4096, 32);

/// The behaviour of a lock request when others hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Waits its turn.
    Block,
    /// Returns `WouldBlock` (the caller raises 55P03).
    NoWait,
    /// Returns `WouldBlock` (the caller skips the row).
    SkipLocked,
}
