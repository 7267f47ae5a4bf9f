//! A statement's view, and how the statements of a transaction share it.

use melba_types::Csn;

/// PostgreSQL's isolation levels; READ UNCOMMITTED is READ COMMITTED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    /// Results that serial execution could have given; see docs/design/isolation.md.
    Serializable,
}

/// A statement's view: commits up to `csn`, and its own transaction's changes by commands before `command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadView {
    pub csn: Csn,
    pub command: u32,
}

impl ReadView {
    /// The command of views that see everything of their own transaction: those of constraint checks.
    pub(crate) const LATEST_COMMAND: u32 = u32::MAX;
}
