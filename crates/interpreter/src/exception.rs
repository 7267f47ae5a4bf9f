//! EXCEPTION: a block whose changes can be undone.

use melba_plpgsql::tree::{Condition, Exceptions, StatementBlock};
use melba_types::{Datum, DbError, Result, Severity, SqlState};

use super::frame::{Frame, StatementFlow};

/// Runs a block's body in a subtransaction, and a handler when it fails.
pub fn guarded(frame: &mut Frame<'_>, block: &StatementBlock, exceptions: &Exceptions) -> Result<StatementFlow> {
    let mark = frame.tx.savepoint()?;
    frame.context.session.settings.lock().push_level();
    let portals = frame.context.session.portals.next_number();
    frame.control.subtransactions += 1;
    let result = frame.statements(&block.body);
    frame.control.subtransactions -= 1;
    let error = match result {
        Ok(flow) => {
            frame.context.session.settings.lock().commit_level();
            frame.tx.release(mark)?;
            return Ok(flow);
        }
        Err(error) => error,
    };
    frame.context.session.settings.lock().rollback_level();
    frame.context.session.portals.retain(|p| p.number < portals || p.held);
    frame.tx.rollback_to(&mark)?;
    frame.tx.release(mark)?;
    frame.refresh();
    let state = error.sqlstate();
    let handler = exceptions.handlers.iter().find(|h| h.conditions.iter().any(|c| catches(c, state)));
    let Some(handler) = handler.filter(|_| is_catchable(frame, &error)) else { return Err(error) };
    frame.located = false;
    frame.values[exceptions.state] = Datum::text(state.to_string());
    frame.values[exceptions.message] = Datum::text(error.message().to_owned());
    let outer = frame.handled.replace(error);
    let result = frame.statements(&handler.body);
    frame.handled = outer;
    result
}

/// An error that ends the session cannot be caught. A caught cancel request counts as served.
fn is_catchable(frame: &Frame<'_>, error: &DbError) -> bool {
    let interrupt = &frame.context.session.interrupt;
    let raised = interrupt.check().err().map(|e| e.sqlstate());
    match raised {
        Some(SqlState::QUERY_CANCELED) if error.sqlstate() == SqlState::QUERY_CANCELED => interrupt.start_work(),
        Some(_) => return false,
        None => {}
    }
    error.fields().severity == Severity::Error
}

fn catches(condition: &Condition, state: SqlState) -> bool {
    match condition {
        Condition::Others => !matches!(state, SqlState::QUERY_CANCELED | SqlState::ASSERT_FAILURE),
        Condition::State(code) if code.ends_with(b"000") => state.0[..2] == code[..2],
        Condition::State(code) => state.0 == *code,
    }
}
