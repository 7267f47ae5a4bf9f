//! SELECT.

use melba_types::Result;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::scope::{ExprKind, WindowSource};
use super::{clauses, collate, cte, from, grouping, limit, locking, targets, window};
use melba_tree::*;

pub fn plain_select<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt) -> Result<Query> {
    let mut q = Query::new(Command::Select);
    q.recursive = cte::with_clause(analyzer, s.with_clause.as_ref())?;
    for node in &s.window_clause {
        if let Some(pg_query::NodeEnum::WindowDef(d)) = &node.node {
            analyzer.level_mut().window_definitions.push(WindowSource { definition: d, anonymous: false });
        }
    }
    q.from = from::from_clause(analyzer, &s.from_clause)?;
    q.targets = targets::target_list(analyzer, &s.target_list, ExprKind::SelectTarget)?;
    targets::mark_origins(analyzer, &mut q.targets);
    q.filter = analyzer.condition(&s.where_clause, ExprKind::Where, "WHERE")?;
    q.having = analyzer.condition(&s.having_clause, ExprKind::Having, "HAVING")?;
    q.order_by = clauses::sort_list(analyzer, &s.sort_clause, &mut q.targets, ExprKind::OrderBy)?;
    let group = clauses::group_clause(analyzer, &s.group_clause, &mut q.targets, &q.order_by)?;
    q.group_by = group.groups;
    q.grouping_sets = group.sets;
    q.grouping_text = group.text;
    q.group_distinct = s.group_distinct;
    if s.group_distinct
        && let Some(sets) = &mut q.grouping_sets
    {
        remove_duplicates(sets);
    }
    q.distinct = clauses::distinct_clause(analyzer, &s.distinct_clause, &mut q.targets, &q.order_by)?;
    limit::limits(analyzer, s, &mut q)?;
    q.windows = window::window_clause(analyzer, &mut q.targets)?;
    if !analyzer.level().is_insert_select {
        targets::resolve_unknown_targets(analyzer, &mut q.targets)?;
    }
    locking::locking_clauses(analyzer, &s.locking_clause, &mut q)?;
    finish_select(analyzer, &mut q)?;
    Ok(q)
}

/// Collations, then the rules of grouping, once everything else is known.
pub fn finish_select(analyzer: &mut Analyzer<'_, '_>, q: &mut Query) -> Result<()> {
    collate::assign_query(analyzer.cx(), q)?;
    let level = analyzer.level();
    if level.has_aggregates || !q.group_by.is_empty() || q.grouping_sets.is_some() || q.having.is_some() {
        grouping::check_grouping(analyzer, q)?;
    }
    Ok(())
}

fn remove_duplicates(sets: &mut Vec<Vec<usize>>) {
    let mut seen: Vec<Vec<usize>> = Vec::new();
    sets.retain(|set| {
        let mut sorted = set.clone();
        sorted.sort_unstable();
        let new = !seen.contains(&sorted);
        if new {
            seen.push(sorted);
        }
        new
    });
}
