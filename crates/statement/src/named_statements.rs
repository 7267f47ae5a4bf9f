//! PREPARE, DEALLOCATE and DISCARD, as far as they need a statement's context only.

use std::sync::Arc;

use melba_parse::Statement;
use melba_parse::command::is_session_statement;
use melba_types::{DbError, Oid, Result, bail};
use pg_query::protobuf::{DeallocateStmt, DiscardMode, PrepareStmt};

use super::context::{SessionState, StatementContext};
use super::outcome::Outcome;
use super::prepared::{Prepared, nested};
use super::{pipeline, planning};

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Done { tag: tag.to_owned() })
}

impl SessionState {
    /// DEALLOCATE.
    pub fn run_deallocate(&self, deallocate: &DeallocateStmt) -> Result<Outcome> {
        if deallocate.isall {
            self.prepared.lock().clear();
            return done("DEALLOCATE ALL");
        }
        match self.prepared.lock().remove(&deallocate.name) {
            Some(_) => done("DEALLOCATE"),
            None => bail!(UNDEFINED_PSTATEMENT, "prepared statement \"{}\" does not exist", deallocate.name),
        }
    }
}

/// The statement that PREPARE names.
pub fn check_prepare(context: &StatementContext, prepare: &PrepareStmt, statement: &Statement) -> Result<Arc<Statement>> {
    if prepare.name.is_empty() {
        bail!(INVALID_PSTATEMENT_DEFINITION, "invalid statement name: must not be empty");
    }
    if context.session.prepared.lock().contains_key(&prepare.name) {
        bail!(DUPLICATE_PSTATEMENT, "prepared statement \"{}\" already exists", prepare.name);
    }
    nested(prepare.query.as_deref().and_then(|q| q.node.as_ref()), statement)
}

/// PREPARE in a function.
pub fn prepare_in_routine(context: &StatementContext, prepare: &PrepareStmt, statement: &Statement) -> Result<Outcome> {
    let inner = check_prepare(context, prepare, statement)?;
    if is_session_statement(&inner.node) {
        return Err(DbError::unsupported("PREPARE of a statement about the session in a function"));
    }
    let types = prepare.argtypes.iter().map(|t| planning::resolve_type(context, t)).collect::<Result<Vec<Oid>>>()?;
    let analyzed = pipeline::analyze(context, &inner, &types)?;
    let prepared = Prepared::new(inner, analyzed, context.statement_start);
    context.session.prepared.lock().insert(prepare.name.clone(), Arc::new(Prepared { from_sql: true, ..prepared }));
    done("PREPARE")
}

/// DISCARD in a function.
pub fn discard_in_routine(context: &StatementContext, mode: DiscardMode) -> Result<Outcome> {
    pipeline::discard(context, mode)?;
    done("DISCARD")
}
