//! Random histories of transactions over lists, and the isolation anomalies that they show.
//!
//! A transaction appends values, each used once, to lists that are named by keys, and reads whole lists. A list shows the order
//! of its values, so the order of versions, and with it the dependencies, can be inferred from the reads (Kingsbury and Alvaro,
//! "Elle: Inferring Isolation Anomalies from Experimental Observations", 2020). Anomalies have Adya's names ("Weak Consistency",
//! 1999).
//!
//! A killed server may have shown commits that the crash lost, to transactions whose end it had not answered: `lost_reads` finds
//! the reads of that kind; everything else judges the histories without them.
//!
//! - `check` judges single values and reads: aborted, intermediate, lost, torn ones;
//! - `graph` holds the dependencies and finds cycles;
//! - `level` lists the anomalies that each isolation level forbids.

mod check;
pub(crate) mod graph;
mod level;
mod lost_reads;
mod versions;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use check::check;
pub use level::Level;

/// Names a list.
pub type Key = u32;
/// An element of a list; no two appends of a history have the same.
pub type Value = u64;

/// A transaction's operations, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOperation {
    Append(Key, Value),
    /// The whole list that was found.
    Read(Key, Vec<Value>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Committed,
    /// It was reported as rolled back.
    Aborted,
    /// The answer to its COMMIT was lost in a crash.
    Unknown,
    /// A crash came before it sent COMMIT, or before its ROLLBACK was answered.
    Interrupted,
}

impl Ending {
    /// Whether the client learned how it ended.
    pub fn is_answered(self) -> bool {
        matches!(self, Ending::Committed | Ending::Aborted)
    }
}

#[derive(Clone, Debug)]
pub struct ListTransaction {
    pub operations: Vec<ListOperation>,
    pub ending: Ending,
    /// When it began and when its end was known, on one clock for the whole history.
    pub began: u64,
    pub ended: u64,
}

/// All transactions, and the content of every list at the end.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub transactions: Vec<ListTransaction>,
    pub finally: BTreeMap<Key, Vec<Value>>,
}

/// Something that a level of isolation, or durability, forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnomalyKind {
    /// A list has a value twice, or one that no session appended.
    Garbled,
    /// Two reads of a list disagree about its order.
    Disagreement,
    /// A transaction does not see its own appends, or a snapshot moved.
    Internal,
    /// A committed append is not there in the end.
    LostAppend,
    /// Of one transaction some appends exist, others do not.
    Torn,
    /// A value of an aborted transaction was read.
    G1a,
    /// A state between two appends of one transaction was read.
    G1b,
    /// A cycle of overwrites.
    G0,
    /// A cycle of overwrites and reads.
    G1c,
    /// A cycle with one anti-dependency: a transaction replaced a version that another one read.
    GSingle,
    /// A cycle with anti-dependencies of which no two follow each other: forbidden to snapshots.
    GNonadjacent,
    /// Any other cycle with anti-dependencies: write skew.
    G2Item,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    /// A description, with the positions of the transactions in the history.
    pub text: String,
}
