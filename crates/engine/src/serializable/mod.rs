//! Serializable snapshot isolation: tracks which transactions read what others wrote, and which must therefore fail.
//!
//! SERIALIZABLE is snapshot isolation (REPEATABLE READ) and this module. Every serializable transaction announces its reads
//! (`Read`) and writes (`Write`) here. When one reads a version that a concurrent one replaces, there is a rw-conflict from the
//! reader to the writer. An execution that is not serializable has two in a row, T1 -> T2 -> T3, with T3 the first of the three
//! to commit; one of them is made to fail with 40001 (Cahill 2008; Ports and Grittner 2012, whose rules these are).
//! docs/design/isolation.md says more.
//!
//! Invariants:
//! 1. A transaction is registered in the same step in which its snapshot is taken, under `state`; so it is known to every
//!    commit that the snapshot does not see.
//! 2. Reader and writer of one thing both announce it and both search for the other under `state`; so one of them finds the
//!    other, whichever accesses the data first.
//! 3. A committed transaction is kept while a transaction that was concurrent with it runs. Beyond `FINISHED_MAX` the oldest are
//!    summarised: their reads and writes are known by tree, their conflicts as flags.
//! 4. Marks are coarsened (rows, blocks of rows, the tree), never dropped: an inexact mark may cost a transaction, never an
//!    anomaly.
//! 5. Transactions of other isolation levels never come here.
//! 6. A commit becomes visible at some moment between `prepare` and `commit`, which are called beside the pipeline. So either of
//!    two transactions may have committed first, unless one was prepared after the other's `commit`; decisions that depend on the
//!    order assume the worse.

mod conflict;
mod lifetime;
mod marks;
mod summary;
mod tracking;

use std::collections::VecDeque;

use hashbrown::HashMap;
use melba_store::{EngineError, Result};
use melba_threads::Mutex;
use melba_types::{Csn, TreeId, TxnId};

pub(crate) use marks::{Read, Write};
use marks::{Reads, Writes};
use summary::Summary;
pub(crate) use tracking::Tracking;

/// Committed transactions kept one by one.
const FINISHED_MAX: usize = 512;

/// "Not yet", among sequence numbers.
const NEVER: u64 = u64::MAX;

/// A place in `SerializableState::transactions`; reused after its transaction is forgotten, when nothing refers to it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(u32);

/// Whether a transaction must wait for a safe snapshot, or has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Some transaction that ran when the snapshot was taken may still make it unsafe.
    Unknown,
    /// Nothing it reads can be part of an anomaly.
    Safe,
    /// Conflicts must be tracked to the end; a DEFERRABLE transaction tries another snapshot.
    Unsafe,
}

/// One transaction: running, or committed and still of interest.
struct Entry {
    txn: TxnId,
    /// The session's slot, while it runs.
    slot: u32,
    snapshot: Csn,
    /// The sequence number when the snapshot was taken.
    begun: u64,
    /// When it was decided that it may commit; nothing can make it fail from then on. Its commit is visible at no earlier moment.
    prepared: u64,
    /// When this module got the message that its commit is visible.
    committed: u64,
    csn: Csn,
    /// Declared so; or it has committed without a write.
    read_only: bool,
    doomed: bool,
    wrote: bool,
    reads: Reads,
    writes: Writes,
    /// The readers of versions that this transaction replaced.
    conflicts_in: Vec<Id>,
    /// Whose writes this one read around.
    conflicts_out: Vec<Id>,
    /// The earliest preparation among those it had a conflict out to: of the summarised ones, and, from its commit on, of all
    /// that may have committed before it.
    earliest_out: u64,
    /// The latest commit among the summarised ones that had a conflict out to it; 0: there are none.
    latest_in: u64,
    safety: Safety,
    /// READ ONLY: the writers that may still make its snapshot unsafe.
    waits_for: Vec<Id>,
    /// The READ ONLY ones that have this one in `waits_for`.
    watched_by: Vec<Id>,
}

impl Entry {
    fn is_prepared(&self) -> bool {
        self.prepared != NEVER
    }

    fn is_committed(&self) -> bool {
        self.committed != NEVER
    }

    /// As T1 of T1 -> T2 -> T3: only a T3 prepared before this may have committed before T1, or, when T1 writes nothing, before
    /// T1 took its snapshot.
    fn horizon(&self) -> u64 {
        match self.read_only {
            true => self.committed.min(self.begun + 1),
            false => self.committed,
        }
    }
}

/// The users of a tree.
#[derive(Default)]
struct Users {
    readers: Vec<Id>,
    writers: Vec<Id>,
}

#[derive(Default)]
struct SerializableState {
    transactions: Vec<Option<Entry>>,
    free: Vec<Id>,
    /// Running ones.
    active: Vec<Id>,
    /// Committed ones in the order of `committed`.
    finished: VecDeque<Id>,
    trees: HashMap<TreeId, Users>,
    /// Counts preparations and commits.
    sequence: u64,
    summary: Summary,
}

/// Knowledge that all serializable transactions of an engine share.
#[derive(Default)]
pub(crate) struct Serializable {
    state: Mutex<SerializableState>,
}

impl SerializableState {
    fn get(&self, id: Id) -> &Entry {
        self.transactions[id.0 as usize].as_ref().expect("an id is used only while its transaction is known")
    }

    fn get_mut(&mut self, id: Id) -> &mut Entry {
        self.transactions[id.0 as usize].as_mut().expect("an id is used only while its transaction is known")
    }

    fn users(&self, tree: TreeId, of: impl Fn(&Users) -> &Vec<Id>) -> Vec<Id> {
        self.trees.get(&tree).map(|u| of(u).clone()).unwrap_or_default()
    }
}

/// 40001 with PostgreSQL's reason codes.
fn failure(reason: impl Into<String>) -> EngineError {
    EngineError::SerializationConflict { reason: reason.into() }
}

fn check_doomed(entry: &Entry, when: &str) -> Result<()> {
    match entry.doomed {
        true => Err(failure(format!("Canceled on identification as a pivot, {when}."))),
        false => Ok(()),
    }
}
#[cfg(test)]
pub(crate) mod tests;
