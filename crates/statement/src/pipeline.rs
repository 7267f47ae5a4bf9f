//! From a parsed statement to its result: the only path between the session and the crates that analyze, plan and run statements.

use std::sync::Arc;

use melba_parse::Statement;
use melba_parse::command::is_query;
use melba_types::{Datum, DbError, Oid, Result, bail};
use pg_query::NodeEnum;
use pg_query::protobuf::{DiscardMode, ObjectType};

use super::arbiter_values;
use super::context::StatementContext;
use super::execution::{plan_locked, start_with};
use super::explain;
use super::outcome::Outcome;
use super::planned::{AnalyzedStatement, Compiled};
use super::planning::{Purpose, analysis, plan_query, plan_statement, query_within, result_columns};
use super::prepared::{Prepared, same_shape, shape_changed};
use super::routine;
use super::temporary;
use super::utility;

/// Analyzes a statement that the session does not run itself. `parameter_types`: as the client declared them, 0 for "find out".
pub fn analyze(context: &StatementContext, statement: &Statement, parameter_types: &[Oid]) -> Result<AnalyzedStatement> {
    if let NodeEnum::ExplainStmt(s) = &statement.node {
        let parameter_types = match explain::explained(s)? {
            Some(query) => plan_query(context, query, parameter_types, Purpose::Explain { verbose: false })?.parameter_types,
            None => parameter_types.to_vec(),
        };
        let columns = Some(explain::columns(s, &context.catalog)?);
        return Ok(AnalyzedStatement { parameter_types, columns, compiled: Compiled::default() });
    }
    if let NodeEnum::CallStmt(s) = &statement.node {
        let (parameter_types, columns) = routine::call_columns(context, s, parameter_types)?;
        return Ok(AnalyzedStatement { parameter_types, columns, compiled: Compiled::default() });
    }
    if !is_query(&statement.node) {
        let parameter_types = match query_within(&statement.node) {
            Some(query) => melba_analyze::analyze(&analysis(context), query, Some(parameter_types))?.params,
            None => parameter_types.to_vec(),
        };
        if !parameter_types.is_empty() && is_materialized_view(&statement.node) {
            bail!(FEATURE_NOT_SUPPORTED, "materialized views may not be defined using bound parameters");
        }
        return Ok(AnalyzedStatement { parameter_types, columns: None, compiled: Compiled::default() });
    }
    if may_ask_for_values(&statement.node) && statement.literals.is_empty() {
        let analyzed = melba_analyze::analyze(&analysis(context), &statement.node, Some(parameter_types))?;
        if arbiter_values::are_asked_of(&analyzed.query) {
            let columns = result_columns(&analyzed.query, &context.catalog);
            return Ok(AnalyzedStatement { parameter_types: analyzed.params, columns, compiled: Compiled::default() });
        }
    }
    let before = context.clock_reads();
    let mut planned = plan_statement(context, statement, parameter_types)?;
    planned.has_time = context.clock_reads() != before;
    Ok(AnalyzedStatement {
        parameter_types: planned.parameter_types.clone(),
        columns: planned.columns.clone(),
        compiled: Compiled { planned: Some(planned) },
    })
}

fn is_materialized_view(node: &NodeEnum) -> bool {
    matches!(node, NodeEnum::CreateTableAsStmt(s) if s.objtype() == ObjectType::ObjectMatview)
}

/// An arbiter is inferred by a condition.
fn may_ask_for_values(node: &NodeEnum) -> bool {
    let NodeEnum::InsertStmt(insert) = node else { return false };
    let infer = insert.on_conflict_clause.as_ref().and_then(|c| c.infer.as_ref());
    infer.is_some_and(|infer| infer.where_clause.is_some())
}

/// Runs an analyzed statement; of a planned one the relations are locked, and are what they were when it was planned (`is_outdated`).
pub fn execute(
    context: &Arc<StatementContext>,
    statement: &Statement,
    prepared: &Prepared,
    parameters: Arc<[Datum]>,
) -> Result<Outcome> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    match (&prepared.compiled.planned, &statement.node) {
        (Some(planned), _) => start_with(context, tx, planned, parameters, (None, Some(&statement.source))),
        (None, NodeEnum::ExplainStmt(s)) => explain::run(context, tx, s, &prepared.parameter_types, &parameters),
        (None, node) if is_query(node) => {
            let plan = |context: &Arc<StatementContext>| {
                let planned = arbiter_values::plan(context, statement, &prepared.parameter_types, &parameters)?;
                match same_shape(planned.columns.as_deref(), prepared.columns.as_deref()) {
                    true => Ok(planned),
                    false => Err(shape_changed()),
                }
            };
            let (context, planned) = plan_locked(context, tx, plan)?;
            start_with(&context, tx, &planned, parameters, (None, Some(&statement.source)))
        }
        (None, _) => utility::execute(context, tx, statement, (&prepared.parameter_types, &parameters)),
    }
}

/// DISCARD: drops temporary tables, forgets cached sequence values.
pub fn discard(context: &StatementContext, mode: DiscardMode) -> Result<()> {
    if matches!(mode, DiscardMode::DiscardAll | DiscardMode::DiscardTemp) {
        temporary::drop_temporary(context)?;
    }
    if matches!(mode, DiscardMode::DiscardAll | DiscardMode::DiscardSequences) {
        *context.session.sequences.lock() = Default::default();
    }
    Ok(())
}
