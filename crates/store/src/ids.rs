//! Numbers of the store's objects, beside those of `melba_types`.

/// A sequence's storage; never reused. RESTART and ALTER create a new one, as PostgreSQL gives it a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub u64);
