//! The condition and the commands of a rule, over the rows `old` and `new` of the change that it is for.
//!
//! In a command they are the first two entries of its range table; of INSERT ... SELECT they are entries of the SELECT.

use std::sync::Arc;

use melba_catalog::{Relation, RewriteRule, rule_events};
use melba_types::{DbError, Result, bail, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::context::Context;
use super::scope::{ExprKind, NsItem};
use super::trigger::{NEW_ENTRY, OLD_ENTRY, trigger_entries};
use super::{Params, coerce, collate};
use melba_tree::*;

/// A command of a rule.
#[derive(Clone, Debug)]
pub enum RuleAction {
    Query(Box<Query>),
    Notify { channel: Arc<str>, payload: Option<Arc<str>> },
}

/// A rule, analyzed.
pub struct AnalyzedRule {
    /// Over `old` and `new`, as entries 0 and 1.
    pub condition: Option<Expr>,
    pub actions: Vec<RuleAction>,
}

impl AnalyzedRule {
    /// Gives the columns of `old` and `new` the names that they have now.
    pub fn rename_rows(&mut self, table: &Relation) {
        for action in &mut self.actions {
            if let RuleAction::Query(query) = action {
                let entries = query_over_rows(query).range_table.iter_mut();
                entries.zip(trigger_entries(table)).for_each(|(entry, row)| *entry = row);
            }
        }
    }
}

/// The rows of a rule's event at a query level: their entries and their names.
pub type RuleRows = (Vec<RangeEntry>, Vec<NsItem>);

fn rows_of(table: &Relation) -> RuleRows {
    let entries = trigger_entries(table);
    let item = |(number, entry): (usize, &RangeEntry)| NsItem::new(number, entry.name.clone());
    let items = entries.iter().enumerate().map(item).collect();
    (entries, items)
}

/// Begins a level with the rows, which only qualified names find.
pub fn put_rows(analyzer: &mut Analyzer<'_, '_>, (entries, mut items): RuleRows) {
    items.iter_mut().for_each(|item| item.columns_visible = false);
    let level = analyzer.level_mut();
    level.range_table = entries;
    level.namespace = items;
    level.has_rule_rows = true;
}

/// Takes the rows from the level, for that of the SELECT in it.
pub fn take_rows(analyzer: &mut Analyzer<'_, '_>) -> Option<RuleRows> {
    let level = analyzer.level_mut();
    if !std::mem::take(&mut level.has_rule_rows) {
        return None;
    }
    Some((std::mem::take(&mut level.range_table), std::mem::take(&mut level.namespace)))
}

/// Analyzes a new rule for one of `rule_events`.
///
/// # Errors
/// 42P17 and 0A000 for uses of `old` and `new` that rules do not have, as PostgreSQL's transformRuleStmt.
pub fn analyze_rule(cx: &Context<'_>, s: &pb::RuleStmt, table: &Relation, event: u8) -> Result<AnalyzedRule> {
    let condition = s.where_clause.as_deref().map(|node| condition(cx, node, table, event)).transpose()?;
    let nodes = s.actions.iter().filter_map(|node| node.node.as_ref());
    let mut actions = Vec::with_capacity(s.actions.len());
    for node in nodes {
        let action = action(cx, node, table, true)?;
        check_action(&action, condition.as_ref(), event)?;
        actions.push(action);
    }
    Ok(AnalyzedRule { condition, actions })
}

/// Analyzes a stored rule. `to_print`: views remain the targets of its commands.
pub fn stored_rule(cx: &Context<'_>, rule: &RewriteRule, table: &Relation, to_print: bool) -> Result<AnalyzedRule> {
    let cx = cx.stored();
    let read_condition = |text: &Arc<str>| {
        let node = melba_parse::parse_expression(text)?;
        let mut found = condition(&cx, &node, table, rule.event)?;
        found.clear_locations();
        Ok(found)
    };
    let read_action = |text: &Arc<str>| {
        let parsed = melba_parse::parse(text)?;
        let statement = parsed.statements.first().ok_or_else(|| DbError::internal("a rule with an empty command"))?;
        let mut found = action(&cx, &statement.node, table, to_print)?;
        if let RuleAction::Query(query) = &mut found {
            query.clear_locations();
        }
        Ok(found)
    };
    let read = || {
        Ok(AnalyzedRule {
            condition: rule.condition.as_ref().map(read_condition).transpose()?,
            actions: rule.actions.iter().map(read_action).collect::<Result<_>>()?,
        })
    };
    // Positions would be those in stored text.
    read().map_err(|mut e: DbError| {
        e.fields_mut().position = None;
        e
    })
}

fn condition(cx: &Context<'_>, node: &pb::Node, table: &Relation, event: u8) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    analyzer.with_level(|a| {
        let (entries, items) = rows_of(table);
        let exists = |item: &NsItem| match item.entry {
            OLD_ENTRY => event != rule_events::INSERT,
            _ => event != rule_events::DELETE,
        };
        let level = a.level_mut();
        level.range_table = entries;
        level.namespace = items.into_iter().filter(exists).collect();
        let e = a.expression(node, ExprKind::Where)?;
        let mut e = coerce::to_boolean(a, e, "WHERE")?;
        collate::assign(cx, &mut e)?;
        Ok(e)
    })
}

fn action(cx: &Context<'_>, node: &NodeEnum, table: &Relation, to_print: bool) -> Result<RuleAction> {
    if let NodeEnum::NotifyStmt(s) = node {
        let payload = (!s.payload.is_empty()).then(|| s.payload.as_str().into());
        return Ok(RuleAction::Notify { channel: s.conditionname.as_str().into(), payload });
    }
    let mut analyzer = Analyzer::new(cx, Params::none());
    if to_print {
        analyzer = analyzer.as_action();
    }
    let query = analyzer.with_level(|a| {
        put_rows(a, rows_of(table));
        a.statement_here(node)
    })?;
    Ok(RuleAction::Query(Box::new(query)))
}

/// The query of a command that has the rows of the event in its range table: the command itself, or the SELECT that it inserts.
pub fn query_over_rows(action: &mut Query) -> &mut Query {
    let is_row = |query: &Query, at: usize, name: &str| {
        let entry = query.range_table.get(at);
        entry.is_some_and(|e| &*e.name == name && matches!(e.kind, RangeKind::Relation { .. }))
    };
    let has_rows = |query: &Query| is_row(query, OLD_ENTRY, "old") && is_row(query, NEW_ENTRY, "new");
    match action.insert.as_ref().and_then(|insert| insert.source) {
        Some(source) if !has_rows(action) => match &mut action.range_table[source].kind {
            RangeKind::Subquery { query, .. } => query,
            _ => unreachable!("a command over no rows has a query as its source"),
        },
        _ => action,
    }
}

/// Whether a query, or one in it, refers to an entry of its range table.
pub fn uses(query: &Query, entry: usize) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, level| {
        found |= matches!(e, Expr::Var(v) if v.levels_up == level && v.entry == entry);
        !found
    });
    found
}

pub fn is_used(e: &Expr, entry: usize) -> bool {
    let mut found = false;
    e.visit_vars(&mut |v| found |= v.entry == entry);
    found
}

fn check_action(action: &RuleAction, condition: Option<&Expr>, event: u8) -> Result<()> {
    let query = match action {
        RuleAction::Query(query) => query,
        RuleAction::Notify { .. } if condition.is_some() => bail!(
            INVALID_OBJECT_DEFINITION,
            "rules with WHERE conditions can only have SELECT, INSERT, UPDATE, or DELETE actions"
        ),
        RuleAction::Notify { .. } => return Ok(()),
    };
    let mut whole = (**query).clone();
    let top_ctes = whole.ctes.clone();
    let query = query_over_rows(&mut whole);
    let not_implemented = || err!(FEATURE_NOT_SUPPORTED, "conditional UNION/INTERSECT/EXCEPT statements are not implemented");
    if query.set_operation.is_some() && condition.is_some() {
        return Err(not_implemented());
    }
    let has = |entry| uses(query, entry) || condition.is_some_and(|c| is_used(c, entry));
    let (has_old, has_new) = (has(OLD_ENTRY), has(NEW_ENTRY));
    match event {
        rule_events::INSERT if has_old => bail!(INVALID_OBJECT_DEFINITION, "ON INSERT rule cannot use OLD"),
        rule_events::DELETE if has_new => bail!(INVALID_OBJECT_DEFINITION, "ON DELETE rule cannot use NEW"),
        _ => {}
    }
    for (entry, name) in [(OLD_ENTRY, "OLD"), (NEW_ENTRY, "NEW")] {
        if query.ctes.iter().chain(&top_ctes).any(|cte| reaches(&cte.query, entry)) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot refer to {name} within WITH query");
        }
    }
    if query.set_operation.is_some() && (has_old || has_new) {
        return Err(not_implemented());
    }
    Ok(())
}

/// Whether a WITH query refers to an entry of the query around it.
fn reaches(cte: &Query, entry: usize) -> bool {
    let mut found = false;
    cte.visit(1, &mut |e, level| {
        found |= matches!(e, Expr::Var(v) if v.levels_up == level && v.entry == entry);
        !found
    });
    found
}
