//! Stored expressions and queries as clients see them: analyzed, and printed for the session's search path.

use melba_analyze::{
    RoutineScope, analyze_in_routine, analyze_stored_domain_check, analyze_stored_expression, analyze_view, routine_statements,
    stored_rule, stored_trigger_condition, trigger_entries,
};
use melba_catalog::{Function, Relation, RewriteRule};
use melba_tree::{Command, Query};
use melba_types::{Oid, Result};

use super::context::StatementContext;
use super::planning::analysis;

/// `of` is the relation whose columns the expression mentions, the domain whose VALUE it does, the trigger whose condition it
/// is, or 0.
pub(super) fn print_expression(context: &StatementContext, text: &str, of: Oid, pretty: bool) -> Result<String> {
    let surroundings = (context.catalog.clone(), context.session.settings_version(), context.path.path.clone());
    if let Some(shown) = context.session.shown.lock().get(&surroundings, text, pretty) {
        return Ok(shown);
    }
    let cx = analysis(context);
    if let Some(trigger) = context.catalog.trigger(of)
        && let Some(table) = context.catalog.relation(trigger.table)
        && let Some(condition) = stored_trigger_condition(&cx, trigger, table)?
    {
        let over = Query { range_table: trigger_entries(table), ..Query::new(Command::Select) };
        return Ok(melba_deparse::shown_trigger_condition(&cx, &condition, &over, pretty));
    }
    let relation = context.catalog.relation(of);
    if relation.is_none()
        && let Some(domain) = context.catalog.type_(of).and_then(|t| t.domain.as_ref())
    {
        let (base, typmod) = context.catalog.base_type_and_typmod(domain.base, domain.typmod);
        let expression = analyze_stored_domain_check(&cx, text, base, typmod)?;
        return Ok(melba_deparse::shown_expression(&cx, &expression, None, pretty));
    }
    let expression = analyze_stored_expression(&cx, text, relation, None)?;
    let shown = melba_deparse::shown_expression(&cx, &expression, relation.map(|r| &**r), pretty);
    let mut has_columns = false;
    expression.visit_vars(&mut |_| has_columns = true);
    if !has_columns {
        context.session.shown.lock().put(surroundings, text, pretty, &shown);
    }
    Ok(shown)
}

pub(super) fn print_query(context: &StatementContext, view: &Relation, pretty: bool) -> Result<String> {
    let cx = analysis(context);
    Ok(melba_deparse::shown_query(&cx, &analyze_view(&cx, view)?, pretty))
}

/// A rule as the statement that makes it.
pub(super) fn print_rule(context: &StatementContext, rule: &RewriteRule, pretty: bool) -> Result<String> {
    let cx = analysis(context);
    let table = cx.relation(rule.table)?;
    Ok(melba_deparse::shown_rule(&cx, rule, table, &stored_rule(&cx, rule, table, true)?, pretty))
}

/// A SQL-standard body: its statements printed for the session's search path.
pub(super) fn print_body(context: &StatementContext, function: &Function) -> Result<String> {
    let cx = analysis(context);
    let stored = cx.of_body(function);
    let scope = RoutineScope::of(function, &function.arg_types, Oid::INVALID);
    let queries = routine_statements(function, cx.session)?
        .iter()
        .map(|s| analyze_in_routine(&stored, &s.node, &scope))
        .collect::<Result<Vec<_>>>()?;
    let is_return = function.sql_body.as_deref().is_some_and(|b| b.starts_with("RETURN"));
    Ok(melba_deparse::shown_body(&cx, &queries, &scope, is_return))
}
