//! Ends the transaction for a procedure, and begins the next one.

use std::sync::Arc;

use melba_statement::context::StatementContext;
use melba_statement::control::{Control, TransactionControl};
use melba_statement::transaction::{Block, Modes};
use melba_types::Result;
use pg_query::protobuf::VariableSetStmt;

use super::Session;
use super::session_set::run_set;

impl TransactionControl for Session {
    fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<()> {
        let modes = self.transaction.as_ref().map(|t| t.modes).filter(|_| chain);
        match commit {
            true => self.commit_transaction()?,
            false => {
                self.hold_portals()?;
                self.roll_back_transaction();
            }
        }
        go_on(self, modes)
    }

    fn surroundings(&mut self) -> Arc<StatementContext> {
        self.context().clone()
    }

    fn set(&mut self, set: &VariableSetStmt) -> Result<()> {
        run_set(self, set)
    }

    fn note_use(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.used = true;
        }
    }
}

/// The control over the transaction of a procedure that is called now.
pub(super) fn transaction_control(session: &mut Session) -> Control<'_> {
    if session.block == Block::None { Control::of(session) } else { Control::NONE }
}

fn go_on(session: &mut Session, modes: Option<Modes>) -> Result<()> {
    session.refresh();
    session.begin_transaction(modes.unwrap_or(session.derived.default_modes))?;
    if let Some(transaction) = &mut session.transaction {
        transaction.start = session.state.instance.cluster.clock.now_micros();
    }
    Ok(())
}
