//! Random histories of SERIALIZABLE transactions that read by predicate, and whether they could have run one after the other.
//!
//! A transaction finds rows by ranges of their keys, and inserts, changes and removes rows. Each change is a version that no
//! other has, and names the version that it replaces, which its transaction has read. So the versions of a row stand in one
//! order. A read is the exact set of versions that it found; a row that it did not find was in a state outside of the range then,
//! and that state follows from the times of commits as far as they decide it. A transaction that changes whether a row is within
//! a range, or its content there, comes after those that read the range before (Adya, "Weak Consistency", 1999, predicate-based
//! dependencies). A cycle of dependencies is an execution that no order explains.

mod check;

#[cfg(test)]
mod tests;

pub use check::check;

pub type Row = u64;
/// No two changes of a history have the same.
pub type Version = u64;
/// The key by which rows are found.
pub type Key = i64;

/// A transaction's operations, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredicateOperation {
    /// All rows with keys from the first to the second, both included, and their versions.
    Read(Key, Key, Vec<(Row, Version)>),
    Write(Write),
}

/// A row's new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub row: Row,
    /// The version it replaces; `None`: the row is new.
    pub before: Option<Version>,
    pub after: Version,
    /// The row's key from then on; `None`: it is removed.
    pub key: Option<Key>,
}

/// A transaction; its times are of one clock for the whole history.
#[derive(Clone, Debug, Default)]
pub struct PredicateTransaction {
    pub operations: Vec<PredicateOperation>,
    pub committed: bool,
    /// Before its first statement was sent, and after that was answered: its snapshot was taken in between.
    pub began: u64,
    pub looked: u64,
    /// Before COMMIT was sent, and after it was answered.
    pub committing: u64,
    pub ended: u64,
}
