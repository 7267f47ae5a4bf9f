//! EXCEPTION: a block whose work can be undone.

use melba_plpgsql::tree::{Block, Condition, Exceptions};
use melba_types::{Datum, DbError, Result, Severity, SqlState};

use super::frame::{Flow, Frame};

impl Frame {
    /// Runs a block's body in a subtransaction, and a handler when it fails.
    pub fn guarded(&mut self, block: &Block, exceptions: &Exceptions) -> Result<Flow> {
        let mark = self.tx.savepoint()?;
        self.context.session.settings.lock().push_level();
        let error = match self.statements(&block.body) {
            Ok(flow) => {
                self.context.session.settings.lock().commit_level();
                self.tx.release(mark)?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        self.context.session.settings.lock().rollback_level();
        self.tx.rollback_to(&mark)?;
        self.tx.release(mark)?;
        self.refresh();
        let state = error.sqlstate();
        let handler = exceptions.handlers.iter().find(|h| h.conditions.iter().any(|c| catches(c, state)));
        let Some(handler) = handler.filter(|_| is_catchable(&error)) else { return Err(error) };
        self.located = false;
        self.values[exceptions.state] = Datum::text(state.to_string());
        self.values[exceptions.message] = Datum::text(error.message().to_owned());
        let outer = self.handled.replace(error);
        let result = self.statements(&handler.body);
        self.handled = outer;
        result
    }
}

/// What ends the statement, or the session, nobody may catch.
fn is_catchable(error: &DbError) -> bool {
    error.fields().severity == Severity::Error && melba_types::limits::check_interrupt().is_ok()
}

fn catches(condition: &Condition, state: SqlState) -> bool {
    match condition {
        Condition::Others => !matches!(state, SqlState::QUERY_CANCELED | SqlState::ASSERT_FAILURE),
        Condition::State(code) if code.ends_with(b"000") => state.0[..2] == code[..2],
        Condition::State(code) => state.0 == *code,
    }
}
