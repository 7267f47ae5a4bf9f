//! The changes of its transaction that a procedure, or DO, may make.

use std::sync::Arc;

use melba_types::{DbError, Result, SqlState};
use pg_query::protobuf::VariableSetStmt;

use super::context::StatementContext;

/// A procedure's requests to its session.
pub trait TransactionControl: Send {
    /// Ends the transaction and begins the next one, with the same modes if it is chained.
    fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<()>;
    /// The surroundings of the next statement.
    fn surroundings(&mut self) -> Arc<StatementContext>;
    /// SET and RESET.
    fn set(&mut self, set: &VariableSetStmt) -> Result<()>;
    /// A statement has run: the transaction's modes are fixed.
    fn note_use(&mut self);
}

/// Lets a procedure end the transaction; nothing where its caller is in one that must continue.
pub struct Control<'a> {
    session: Option<&'a mut (dyn TransactionControl + 'static)>,
    /// Blocks with EXCEPTION that are open.
    pub subtransactions: usize,
}

impl<'a> Control<'a> {
    /// For callers in a transaction that must continue.
    pub const NONE: Control<'static> = Control { session: None, subtransactions: 0 };

    pub fn of(session: &'a mut (dyn TransactionControl + 'static)) -> Control<'a> {
        Control { session: Some(session), subtransactions: 0 }
    }

    /// The transaction must not be ended.
    pub fn is_none(&self) -> bool {
        self.session.is_none()
    }

    /// The same, for a called procedure.
    pub fn lent(&mut self) -> Control<'_> {
        let subtransactions = self.subtransactions;
        match &mut self.session {
            Some(session) => Control { session: Some(&mut **session), subtransactions },
            None => Control { session: None, subtransactions },
        }
    }

    pub fn session(&mut self) -> Option<&mut (dyn TransactionControl + 'static)> {
        self.session.as_deref_mut()
    }

    /// # Errors
    /// 2D000 where the transaction may not end.
    pub fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<Arc<StatementContext>> {
        let refused = |message: &str| Err(DbError::new(SqlState::INVALID_TRANSACTION_TERMINATION, message));
        let Some(session) = &mut self.session else { return refused("invalid transaction termination") };
        if self.subtransactions > 0 {
            let what = if commit { "commit" } else { "roll back" };
            return refused(&format!("cannot {what} while a subtransaction is active"));
        }
        session.end_transaction(commit, chain)?;
        Ok(session.surroundings())
    }
}
