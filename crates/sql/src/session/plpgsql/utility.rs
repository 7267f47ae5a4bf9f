//! Utility statements in a function's body.

use std::sync::Arc;

use melba_parse::Statement;
use melba_parse::command::is_session_statement;
use melba_types::{DbError, Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf::DiscardMode;

use super::super::control::Control;
use super::super::cursor::declare_cursor;
use super::super::outcome::Outcome;
use super::super::session_statement::{discard_in_routine, prepare_in_routine, run_show};
use super::super::set::set_in_routine;
use super::super::{command, explain, prepared_query, routine, utility};
use super::frame::Frame;
use super::misuse::misuse;

/// A statement that is no query.
pub fn run_utility(frame: &mut Frame<'_>, statement: &Arc<Statement>) -> Result<Outcome> {
    if matches!(statement.node, NodeEnum::TransactionStmt(_)) {
        return Err(misuse(err!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")));
    }
    command::check_in_function(&statement.node, frame.program.shares_view, &frame.context.session)?;
    command::check_in_routine(&statement.node)?;
    match &statement.node {
        NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
            Err(misuse(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")))
        }
        NodeEnum::CallStmt(call) => routine::run_call(&frame.context, call, None, (&[], &Arc::from([])), Control::NONE),
        NodeEnum::ExplainStmt(s) => explain::run(&frame.context, &frame.tx, s, &[], &Arc::from([])),
        NodeEnum::DoStmt(block) => {
            routine::run_do(&frame.context, block, statement, Control::NONE)?;
            Ok(Outcome::Done { tag: "DO".into() })
        }
        node if is_session_statement(node) => session_statement(frame, statement),
        _ => {
            note_use(frame);
            frame.refresh();
            utility::execute(&frame.context, &frame.tx, statement, (&[], &Arc::from([])))
        }
    }
}

fn session_statement(frame: &mut Frame<'_>, statement: &Arc<Statement>) -> Result<Outcome> {
    let context = frame.context.clone();
    match &statement.node {
        NodeEnum::VariableSetStmt(set) => {
            match frame.control.session() {
                Some(session) => {
                    session.set(set)?;
                    frame.follow_transaction()?;
                }
                None => set_in_routine(&context, set)?,
            }
            Ok(Outcome::Done { tag: "SET".into() })
        }
        NodeEnum::VariableShowStmt(show) => run_show(&context, show),
        NodeEnum::DeclareCursorStmt(s) => declare_cursor(&context, s, statement, &[], &Arc::from([])),
        NodeEnum::FetchStmt(s) => context.session.run_fetch(s),
        NodeEnum::ClosePortalStmt(s) => context.session.run_close(&s.portalname),
        NodeEnum::PrepareStmt(s) => prepare_in_routine(&context, s, statement),
        NodeEnum::ExecuteStmt(s) => prepared_query::execute_prepared(&context, &frame.tx, s),
        NodeEnum::DeallocateStmt(s) => context.session.run_deallocate(s),
        NodeEnum::DiscardStmt(s) => discard_in_routine(&context, DiscardMode::try_from(s.target).unwrap_or_default()),
        _ => Err(DbError::unsupported("a statement about the session in a function")),
    }
}

/// The transaction's modes are fixed from now on.
pub fn note_use(frame: &mut Frame<'_>) {
    if let Some(session) = frame.control.session() {
        session.note_use();
    }
}
