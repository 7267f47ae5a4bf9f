//! The transaction block to which a session's statements belong.
//!
//! ```text
//!            BEGIN                    error
//!   None ─────────────► Explicit ───────────────► Failed
//!    │  ▲                 │  ▲                      │
//!    │  └──COMMIT/ROLLBACK┘  └──ROLLBACK TO─────────┤
//!    │ several statements in one message            │ COMMIT/ROLLBACK
//!    ▼                                              ▼
//!   Implicit ──end of the message──► None ◄─────────┘
//! ```
//!
//! Invariants:
//! 1. A transaction may be open in `None` (a single statement runs in its own) and is open in `Implicit` and `Explicit`.
//! 2. In `Failed` the transaction is open only if a savepoint remains to which it can be rolled back.

use melba_protocol::TransactionStatus;
use melba_types::{DbError, Result, err};

use super::activity::BackendState;

/// The state of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    None,
    /// Statements sent together: one transaction, until the message ends.
    Implicit,
    Explicit,
    Failed,
}

impl Block {
    pub fn status(self) -> TransactionStatus {
        match self {
            Block::None | Block::Implicit => TransactionStatus::Idle,
            Block::Explicit => TransactionStatus::InBlock,
            Block::Failed => TransactionStatus::Failed,
        }
    }

    /// The activity of a session in this state while it waits for its client.
    pub fn activity(self) -> BackendState {
        match self {
            Block::None | Block::Implicit => BackendState::Idle,
            Block::Explicit => BackendState::InTransaction,
            Block::Failed => BackendState::Aborted,
        }
    }
}

/// transaction_isolation, transaction_read_only, transaction_deferrable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    pub isolation: IsolationLevel,
    pub read_only: bool,
    pub deferrable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl IsolationLevel {
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read uncommitted",
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    pub fn from_name(name: &str) -> Option<IsolationLevel> {
        [
            IsolationLevel::ReadUncommitted,
            IsolationLevel::ReadCommitted,
            IsolationLevel::RepeatableRead,
            IsolationLevel::Serializable,
        ]
        .into_iter()
        .find(|l| l.name().eq_ignore_ascii_case(name))
    }

    /// Every statement of the transaction sees the same snapshot.
    pub fn one_snapshot(self) -> bool {
        self >= IsolationLevel::RepeatableRead
    }
}

impl PartialOrd for IsolationLevel {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

pub fn aborted() -> DbError {
    err!(IN_FAILED_SQL_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block")
}

/// PostgreSQL's error for statements that must not run inside a block.
pub fn prevent_in_block(block: Block, statement: &str) -> Result<()> {
    if block == Block::None {
        return Ok(());
    }
    Err(err!(ACTIVE_SQL_TRANSACTION, "{statement} cannot run inside a transaction block"))
}

/// PostgreSQL's error for statements that make sense only inside a block.
pub fn require_block(block: Block, statement: &str) -> Result<()> {
    if block == Block::Explicit {
        return Ok(());
    }
    Err(err!(NO_ACTIVE_SQL_TRANSACTION, "{statement} can only be used in transaction blocks"))
}
