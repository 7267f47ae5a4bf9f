//! EXECUTE of a query where a query is expected: in a function, and for CREATE TABLE AS.

use std::sync::Arc;

use melba_parse::command::is_query;
use melba_plan::PlanCommand;
use melba_transaction::Tx;
use melba_types::{Datum, DbError, Result, err};
use pg_query::protobuf::ExecuteStmt;

use super::context::StatementContext;
use super::execution::{plan_locked, start};
use super::outcome::Outcome;
use super::planned::Planned;
use super::planning::{Purpose, plan_query};
use super::values::evaluate;

/// Runs a prepared query that CREATE TABLE AS names, which returns nothing if it is no SELECT.
pub(super) fn run_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Outcome> {
    match plan_prepared(context, tx, s)? {
        Some((context, planned, values)) if planned.plan.command == PlanCommand::Select => {
            start(&context, tx, &planned, values.into())
        }
        _ => Ok(Outcome::Done { tag: String::new() }),
    }
}

/// EXECUTE in a function.
pub fn execute_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Outcome> {
    let planned = plan_prepared(context, tx, s)?;
    let (context, planned, values) =
        planned.ok_or_else(|| DbError::unsupported("EXECUTE of a statement that is no query in a function"))?;
    start(&context, tx, &planned, values.into())
}

/// A prepared query with the context that it was planned in, and its parameters. Its relations are locked.
type PlannedExecute = (Arc<StatementContext>, Planned, Vec<Datum>);

fn plan_prepared(context: &StatementContext, tx: &Arc<Tx>, s: &ExecuteStmt) -> Result<Option<PlannedExecute>> {
    let prepared = context.session.prepared.lock().get(&s.name).cloned();
    let prepared = prepared.ok_or_else(|| err!(UNDEFINED_PSTATEMENT, "prepared statement \"{}\" does not exist", s.name))?;
    let (expected, given) = (prepared.parameter_types.len(), s.params.len());
    if expected != given {
        return Err(err!(SYNTAX_ERROR, "wrong number of parameters for prepared statement \"{}\"", s.name)
            .detail(format!("Expected {expected} parameters but got {given}.")));
    }
    let values = evaluate(context, &s.params, &prepared.parameter_types)?;
    let Some(statement) = prepared.statement.as_ref().filter(|s| is_query(&s.node)) else {
        return Ok(None);
    };
    let context = Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() });
    let plan = |context: &Arc<StatementContext>| plan_query(context, &statement.node, &prepared.parameter_types, Purpose::Run);
    let (context, planned) = plan_locked(&context, tx, plan)?;
    Ok(Some((context, planned, values)))
}
