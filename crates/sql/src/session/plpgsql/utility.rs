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
use super::sql::misuse;

impl Frame<'_> {
    /// A statement that is no query.
    pub fn utility(&mut self, statement: &Arc<Statement>) -> Result<Outcome> {
        if matches!(statement.node, NodeEnum::TransactionStmt(_)) {
            return Err(misuse(err!(FEATURE_NOT_SUPPORTED, "unsupported transaction command in PL/pgSQL")));
        }
        self.check_may_run(&statement.node)?;
        command::check_in_routine(&statement.node)?;
        match &statement.node {
            NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
                Err(misuse(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in PL/pgSQL")))
            }
            NodeEnum::CallStmt(call) => routine::run_call(&self.context, call, None, (&[], &Arc::from([])), Control::NONE),
            NodeEnum::ExplainStmt(s) => explain::run(&self.context, &self.tx, s, &[], &Arc::from([])),
            NodeEnum::DoStmt(block) => {
                routine::run_do(&self.context, block, statement, Control::NONE)?;
                Ok(Outcome::Done { tag: "DO".into() })
            }
            node if is_session_statement(node) => self.session_statement(statement),
            _ => {
                self.note_use();
                self.refresh();
                utility::execute(&self.context, &self.tx, statement, (&[], &Arc::from([])))
            }
        }
    }

    fn session_statement(&mut self, statement: &Arc<Statement>) -> Result<Outcome> {
        let context = self.context.clone();
        match &statement.node {
            NodeEnum::VariableSetStmt(set) => {
                match self.control.session() {
                    Some(session) => {
                        session.set(set)?;
                        self.follow_transaction()?;
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
            NodeEnum::ExecuteStmt(s) => prepared_query::execute_prepared(&context, &self.tx, s),
            NodeEnum::DeallocateStmt(s) => context.session.run_deallocate(s),
            NodeEnum::DiscardStmt(s) => discard_in_routine(&context, DiscardMode::try_from(s.target).unwrap_or_default()),
            _ => Err(DbError::unsupported("a statement about the session in a function")),
        }
    }
}
