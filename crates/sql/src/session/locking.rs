//! The locks of a bound statement, and what it is once it has them.
//!
//! PostgreSQL locks relations when it analyzes a statement; here that is done when it runs. The session that held a lock before may have
//! changed a definition: then the statement is prepared and bound anew, to literals of its text that may have other types now.

use std::sync::Arc;

use melba_parse::Statement;
use melba_statement::execution::is_outdated;
use melba_statement::prepared::{BoundStatement, shape_changed};
use melba_types::{DbError, Result};

use super::Session;
use super::literals::bind_literals;
use super::preparation::prepare_statement;

/// What the client knows of a result before the statement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    /// Its columns.
    Columns,
}

/// Locks the relations of a planned statement.
///
/// # Errors
/// 0A000 if the result has other columns than those that the client knows.
pub(super) fn lock_bound(session: &mut Session, mut bound: BoundStatement, known: Known) -> Result<BoundStatement> {
    while let Some(planned) = &bound.prepared.compiled.planned {
        let context = session.context();
        let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        if !is_outdated(context, tx, planned)? {
            break;
        }
        let fresh = bind_again(session, &bound)?;
        if known == Known::Columns && !fresh.prepared.has_shape_of(&bound.prepared) {
            return Err(shape_changed());
        }
        bound = fresh;
    }
    Ok(bound)
}

fn bind_again(session: &mut Session, bound: &BoundStatement) -> Result<BoundStatement> {
    let Some(text) = &bound.text else {
        let statement = bound.prepared.statement.clone();
        let fresh = prepare_statement(session, statement, &bound.prepared.parameter_types)?;
        return Ok(BoundStatement::new(Arc::new(fresh), bound.parameters.clone()));
    };
    if let Some(fresh) = bind_literals(session, text)? {
        return Ok(fresh);
    }
    let own: Option<Arc<Statement>> = session.parse_text(text)?.statements.into_iter().next();
    let fresh = prepare_statement(session, own, &[])?;
    Ok(BoundStatement::new(Arc::new(fresh), Arc::from([])))
}
