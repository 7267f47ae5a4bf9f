//! The columns of each entry that a query reads.

use melba_tree::{Command, Expr, Query, RangeKind};
use std::collections::{BTreeMap, BTreeSet};

use super::join_tree::visit_tree;
use super::member;
use super::planner::Planner;

/// Which columns of which entries anything in the query reads.
pub fn gather_needed(planner: &mut Planner<'_>, query: &Query, tree: &super::join_tree::Tree, extra: &[(usize, i16)]) {
    let mut needed: Vec<BTreeMap<i16, usize>> = vec![BTreeMap::new(); planner.level().entries.len()];
    let mut note = |e: &Expr, level: usize| {
        if let Expr::Var(v) = e
            && v.levels_up == level
            && v.entry < needed.len()
        {
            *needed[v.entry].entry(v.column).or_default() += 1;
        }
        true
    };
    query.visit(0, &mut note);
    visit_tree(tree, &mut |e| e.visit(0, &mut note));
    // Subqueries and functions in FROM may refer to their siblings.
    for entry in &planner.level().entries {
        entry.security.iter().for_each(|e| e.visit(0, &mut note));
        match &entry.kind {
            RangeKind::Subquery { query, .. } => query.visit(1, &mut note),
            RangeKind::Function { functions, .. } => functions.iter().for_each(|f| f.expr.visit(0, &mut note)),
            RangeKind::Values { rows } => rows.iter().flatten().for_each(|e| e.visit(0, &mut note)),
            RangeKind::JsonTable(table) => super::access::json_table::inputs(table).for_each(|e| e.visit(0, &mut note)),
            _ => {}
        }
    }
    for &(entry, column) in extra {
        *needed[entry].entry(column).or_default() += 1;
    }
    for lock in &query.locking {
        // A locked row is found again by its ctid (-1); in a family also by its tableoid (-6).
        let RangeKind::Relation { oid, inherit, .. } = planner.level().entries[lock.entry].kind else { continue };
        let Some(relation) = planner.catalog().relation(oid) else { continue };
        if relation.foreign.is_some() {
            continue;
        }
        *needed[lock.entry].entry(-1).or_default() += 1;
        if member::is_family(planner.catalog(), relation, inherit) {
            *needed[lock.entry].entry(-6).or_default() += 1;
        }
    }
    let level = planner.level_mut();
    level.needed = needed;
    level.rechecks = query.command != Command::Select || !query.locking.is_empty();
}

/// The columns of a relation that the query reads apart from conditions that the way to its rows makes sure of.
pub fn needed(planner: &Planner<'_>, entry: usize, decided: &[Expr]) -> BTreeSet<i16> {
    let mut needed = planner.level().needed[entry].clone();
    // All members of a family return the same columns.
    if !planner.level().rechecks && planner.level().member.is_none() {
        for condition in decided {
            condition.visit_vars(&mut |v| {
                if v.entry == entry
                    && let Some(places) = needed.get_mut(&v.column)
                {
                    *places = places.saturating_sub(1);
                }
            });
        }
    }
    needed.into_iter().filter(|(_, places)| *places > 0).map(|(column, _)| column).collect()
}
