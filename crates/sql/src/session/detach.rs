//! ALTER TABLE ... DETACH PARTITION ... CONCURRENTLY: a statement of two transactions.

use std::sync::Arc;

use melba_definition::context::StatementText;
use melba_parse::Statement;
use melba_relation::table::detach::PendingDetach;
use melba_statement::control::TransactionControl;
use melba_statement::ddl_context::{ddl, lookup};
use melba_statement::outcome::Outcome;
use melba_statement::pipeline;
use melba_statement::prepared::Prepared;
use melba_types::{DbError, Result};
use pg_query::protobuf::AlterTableStmt;

use super::Session;

/// Runs the statement as every other one, which marks the partition; then a second transaction waits and completes the detach.
///
/// # Errors
/// After those of the first transaction, the detach is not pending; after those of the second it is.
pub(super) fn run(session: &mut Session, statement: &Statement, s: &AlterTableStmt, prepared: &Prepared) -> Result<Outcome> {
    let no_transaction = || DbError::internal("no transaction is open");
    let context = session.context().clone();
    let outcome = pipeline::execute(&context, statement, prepared, Arc::default())?;
    let tx = context.tx.as_ref().ok_or_else(no_transaction)?;
    let Some(pending) = PendingDetach::of(&lookup(&context, tx), s)? else { return Ok(outcome) };
    session.end_transaction(true, false)?;
    let context = session.context().clone();
    let tx = context.tx.as_ref().ok_or_else(no_transaction)?;
    pending.complete(&ddl(&context, tx, StatementText::default()))?;
    Ok(outcome)
}
