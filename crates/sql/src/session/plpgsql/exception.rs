//! EXCEPTION: a block whose changes can be undone.

use melba_plpgsql::tree::{Block, Condition, Exceptions};
use melba_types::{Datum, DbError, Result, Severity, SqlState};

use super::frame::{Flow, Frame};

impl Frame<'_> {
    /// Runs a block's body in a subtransaction, and a handler when it fails.
    pub fn guarded(&mut self, block: &Block, exceptions: &Exceptions) -> Result<Flow> {
        let mark = self.tx.savepoint()?;
        self.context.session.settings.lock().push_level();
        let portals = self.context.session.portals.next_number();
        self.control.subtransactions += 1;
        let result = self.statements(&block.body);
        self.control.subtransactions -= 1;
        let error = match result {
            Ok(flow) => {
                self.context.session.settings.lock().commit_level();
                self.tx.release(mark)?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        self.context.session.settings.lock().rollback_level();
        self.context.session.portals.retain(|p| p.number < portals || p.hold && p.is_stored());
        self.tx.rollback_to(&mark)?;
        self.tx.release(mark)?;
        self.refresh();
        let state = error.sqlstate();
        let handler = exceptions.handlers.iter().find(|h| h.conditions.iter().any(|c| catches(c, state)));
        let Some(handler) = handler.filter(|_| self.is_catchable(&error)) else { return Err(error) };
        self.located = false;
        self.values[exceptions.state] = Datum::text(state.to_string());
        self.values[exceptions.message] = Datum::text(error.message().to_owned());
        let outer = self.handled.replace(error);
        let result = self.statements(&handler.body);
        self.handled = outer;
        result
    }
}

impl Frame<'_> {
    /// An error that ends the session cannot be caught. A caught cancel request counts as served.
    fn is_catchable(&self, error: &DbError) -> bool {
        let interrupt = &self.context.session.interrupt;
        let raised = interrupt.check().err().map(|e| e.sqlstate());
        match raised {
            Some(SqlState::QUERY_CANCELED) if error.sqlstate() == SqlState::QUERY_CANCELED => interrupt.start_work(),
            Some(_) => return false,
            None => {}
        }
        error.fields().severity == Severity::Error
    }
}

fn catches(condition: &Condition, state: SqlState) -> bool {
    match condition {
        Condition::Others => !matches!(state, SqlState::QUERY_CANCELED | SqlState::ASSERT_FAILURE),
        Condition::State(code) if code.ends_with(b"000") => state.0[..2] == code[..2],
        Condition::State(code) => state.0 == *code,
    }
}
