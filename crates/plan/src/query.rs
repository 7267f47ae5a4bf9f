//! One query: joins, then grouping, windows, DISTINCT, ORDER BY, LIMIT, targets.

use std::sync::Arc;

use melba_expression::{Expression, Node};
use melba_tree::{Command, Distinct, Expr, Query, SortGroup, Target, places_of_targets};
use melba_types::{Datum, Result, limits};

use super::dependency::{Dependencies, dependencies};
use super::layout::{Layout, TARGET};
use super::node::*;
use super::path::{Goal, OrderKey, Wanted};
use super::planner::{Level, Planner, Purpose, Stage, Wish};
use super::project_set::has_set;
use super::recheck::{RecheckExpr, rechecks};
use super::{
    cte, extremes, fold, grouping, groups, join, locking, modify, needed, prepare, project_set, rels, selectivity, set_operation,
    sort, stage, volatility, window,
};

/// Assumed of what is no table.
const ROWS_UNKNOWN: f64 = 1000.0;
/// LIMIT ends DISTINCT over rows in order early if it wants no more than this share of the distinct rows.
const DISTINCT_SHARE_MAX: f64 = 0.1;
/// Distinct rows may be spread unevenly.
const DISTINCT_SHARE_MIN: f64 = 0.01;

impl<'a> Planner<'a> {
    /// Plans a query at a new level. The result's columns are its visible targets (or RETURNING's).
    pub fn query(&mut self, mut query: Query, purpose: Option<Purpose>) -> Result<Stage> {
        limits::check_stack()?;
        // Trees are as large as the text, except for nested queries, which may be planned several times.
        if self.levels.is_empty() {
            limits::check_interrupt()?
        } else {
            limits::check()?
        }
        self.levels.push(Level::default());
        let result = query_at_level(self, &mut query, purpose);
        self.levels.pop();
        result
    }

    /// Plans a query whose ORDER BY is only wished for, and tells whether its rows come in that order.
    pub fn query_in_order(&mut self, mut query: Query, wanted: Wanted) -> Result<(Stage, bool)> {
        limits::check_stack()?;
        limits::check()?;
        self.levels.push(Level { wish: Some(Wish { wanted, is_granted: false }), ..Level::default() });
        let result = query_at_level(self, &mut query, None);
        let level = self.levels.pop();
        Ok((result?, level.and_then(|level| level.wish).is_some_and(|wish| wish.is_granted)))
    }

    /// The query's wished order is what its rows come in; false where an order is more than a wish.
    pub fn grant_wish(&mut self, is_granted: bool) -> bool {
        let wish = self.level_mut().wish.as_mut();
        wish.map(|wish| wish.is_granted = is_granted).is_some()
    }
}

fn query_at_level(planner: &mut Planner<'_>, query: &mut Query, purpose: Option<Purpose>) -> Result<Stage> {
    cte::plan_ctes(planner, query)?;
    if query.command != Command::Select {
        return modify::modify(planner, query);
    }
    if query.set_operation.is_some() {
        return set_operation::set_operation(planner, query);
    }
    extremes::select(planner, query, purpose)
}

/// A SELECT with the aggregates that it has.
pub(super) fn select_as_is(planner: &mut Planner<'_>, query: &mut Query, purpose: Option<Purpose>) -> Result<Stage> {
    let grouped = query.has_aggregates || !query.group_by.is_empty() || query.grouping_sets.is_some() || query.having.is_some();
    if grouped {
        fold::lower_having(planner, query);
    }
    let upper = if grouped { Some(grouping::split_grouping(query)?) } else { None };
    let mut tree = prepare::prepare(planner, query)?;
    if !query.locking.is_empty() {
        locking::refuse_nullable(&query.locking, &tree)?;
        tree.keep_partners();
    }
    planner.level_mut().entries = std::mem::take(&mut query.range_table);
    needed::gather_needed(planner, query, &tree, purpose.as_ref().map_or(&[][..], |p| &p.needed));
    let (order, wanted) = match &query.distinct {
        _ if grouped || query.has_windows => (vec![], Wanted::All),
        Distinct::None if query.has_set_returning => (vec![], stage::wanted(planner, query)),
        Distinct::None => (sort::order_keys(planner, query), stage::wanted(planner, query)),
        Distinct::All(groups) => match first_distinct(planner, query, groups) {
            Some(share) => (sort::order_keys(planner, query), Wanted::Share(share)),
            None => (vec![], Wanted::All),
        },
        Distinct::On(_) => (vec![], Wanted::All),
    };
    let groups = if matches!(wanted, Wanted::All) { vec![] } else { groups_by_order(planner, &order) };
    let goal = Goal { order, groups, wanted };
    let (path, gates) = join::plan_joins(planner, &tree, &goal)?;
    let presorted = match path.ordered {
        _ if goal.order.is_empty() => 0,
        keys if keys >= goal.order.len() => query.order_by.len(),
        // An expression that stands in ORDER BY twice is one key of the goal.
        _ if goal.order.len() < query.order_by.len() => 0,
        keys => keys,
    };
    let mut stage = planner.create(&path)?;
    if !gates.is_empty() {
        let conditions = planner.compile_all(&gates, &Layout::default())?;
        if conditions.iter().any(|c| !matches!(c.as_const(), Some(Datum::Bool(true)))) {
            let (kinds, estimate) = (stage.node.kinds.clone(), stage.node.estimate);
            let op = Op::Result(Arc::new(ResultNode { input: Some(stage.node), conditions }));
            let mut node = planner.node(op, kinds, estimate);
            planner.detail(&mut node, "One-Time Filter", || planner.show_all(&gates));
            stage = Stage { node, layout: stage.layout };
        }
    }
    if let Some(upper) = upper {
        let dependencies = if upper.has_several_groups() { dependencies(planner, &tree) } else { Dependencies::default() };
        stage = grouping::group(planner, query, upper, stage, &dependencies)?;
    }
    if query.has_windows {
        stage = window::windows(planner, query, stage)?;
    }
    let recheck = rechecks(&tree, &planner.level().entries);
    let groups = presorted.checked_sub(1).and_then(|at| goal.groups.get(at)).copied().unwrap_or(1.0);
    finish(planner, query, stage, (presorted, groups), recheck)
}

/// The share of the rows that DISTINCT reads, where the query's order puts equal rows together and LIMIT wants few of the distinct ones.
fn first_distinct(planner: &Planner<'_>, query: &Query, groups: &[SortGroup]) -> Option<f64> {
    let Wanted::Rows(wanted) = stage::wanted(planner, query) else { return None };
    let is_ordered = |group: &SortGroup| query.order_by.iter().any(|key| key.reference == group.reference);
    let is_volatile = |target: &Target| volatility::has_volatile(planner, &target.expr);
    if query.has_set_returning || !groups.iter().all(is_ordered) || query.targets.iter().any(is_volatile) {
        return None;
    }
    let of_target = |target: &Target| {
        let (entry, column) = selectivity::column_of(planner, &target.expr)?;
        selectivity::distinct_values(planner, entry, column)
    };
    let distinct = query.targets.iter().map(of_target).try_fold(1.0, |all, one| Some(all * one?))?;
    let share = wanted / distinct;
    (share <= DISTINCT_SHARE_MAX).then(|| share.max(DISTINCT_SHARE_MIN))
}

/// `Goal::groups`.
fn groups_by_order(planner: &Planner<'_>, order: &[OrderKey]) -> Vec<f64> {
    let keys: Vec<Expr> = order.iter().map(|key| key.expr.clone()).collect();
    let entry = keys.first().map(rels::rels_of).filter(|rels| rels.count_ones() == 1).map(|rels| rels.trailing_zeros() as usize);
    let table =
        entry.filter(|entry| *entry < planner.level().entries.len()).and_then(|entry| selectivity::table_of(planner, entry));
    let rows = table.map_or(ROWS_UNKNOWN, |table| selectivity::table_rows(planner, table));
    (1..keys.len()).map(|n| groups::groups_of(planner, &keys[..n], rows)).collect()
}

/// Targets, DISTINCT, ORDER BY, locks, LIMIT; junk is dropped.
/// `presorted`: how many sort keys rows come in the order of; `groups`: how many groups they make by these.
fn finish(
    planner: &mut Planner<'_>,
    query: &Query,
    stage: Stage,
    (presorted, groups): (usize, f64),
    recheck: Vec<RecheckExpr>,
) -> Result<Stage> {
    let limit = query.limit.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let offset = query.offset.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let distinct = !matches!(query.distinct, Distinct::None);
    let computes_first = |e: &Expr| has_set(e) || volatility::has_volatile(planner, e);
    let mut sorted = places_of_targets(&query.order_by, &query.targets).filter_map(|(_, place)| place);
    let sorts_computed = sorted.any(|at| computes_first(&query.targets[at].expr));
    let early = distinct || sorts_computed || (query.has_set_returning && query.order_by.is_empty());
    let bound = match (&limit, query.with_ties) {
        (Some(limit), false) if !query.has_set_returning => Some((Some(limit.clone()), offset.clone())),
        _ => None,
    };
    let visible = query.targets.iter().filter(|t| !t.junk).count();
    let shown = super::explain::sort_key(planner, &query.order_by, &query.targets);
    if !early {
        let mut stage = stage;
        let mut ties = None;
        if !query.order_by.is_empty() {
            let keys = sort::sort_keys(planner, &query.order_by, &query.targets, &stage.layout)?;
            ties = query.with_ties.then(|| keys.clone());
            let is_wished = planner.grant_wish(presorted == query.order_by.len());
            if presorted < query.order_by.len() && !is_wished {
                // Rows that are locked or changed by others fall out above the sort: LIMIT counts those that stay.
                let bound = bound.filter(|_| query.locking.is_empty());
                let presorted = super::explain::keys_alone(planner, &query.order_by[..presorted], &query.targets);
                stage = sort::partly_sorted(planner, stage, keys, bound, shown, (&presorted, groups));
            }
        }
        stage = locking::locked(planner, query, stage, recheck)?;
        if query.has_set_returning {
            stage = project_set::targets(planner, query, stage)?;
            stage = stage::limited(planner, stage, limit, offset, None);
            return stage::strip(planner, stage, visible);
        }
        stage = stage::limited(planner, stage, limit, offset, ties);
        let exprs: Vec<Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.clone()).collect();
        return stage::projected(planner, stage, &exprs, TARGET);
    }
    let stage = locking::locked(planner, query, stage, recheck)?;
    let mut stage = project_set::targets(planner, query, stage)?;
    let in_order = distinct && presorted > 0 && presorted == query.order_by.len();
    stage = without_duplicates(planner, query, stage, in_order)?;
    let mut ties = None;
    if !query.order_by.is_empty() {
        let keys = sort::output_keys(planner, &query.order_by, &query.targets, &stage)?;
        ties = query.with_ties.then(|| keys.clone());
        if !in_order {
            stage = sort::sorted(planner, stage, keys, bound, shown);
        }
    }
    stage = stage::limited(planner, stage, limit, offset, ties);
    stage::strip(planner, stage, visible)
}

/// `in_order`: rows of DISTINCT come in the query's order, equal ones together.
fn without_duplicates(planner: &mut Planner<'_>, query: &Query, stage: Stage, in_order: bool) -> Result<Stage> {
    let (groups, on) = match &query.distinct {
        Distinct::None => return Ok(stage),
        Distinct::All(groups) => (groups, false),
        Distinct::On(groups) => (groups, true),
    };
    let mut stage = stage;
    let mut keys = Vec::with_capacity(groups.len());
    for (group, place) in places_of_targets(groups, &query.targets) {
        let at = place.ok_or_else(sort::without_target)?;
        let expr = &query.targets[at].expr;
        let column = Expression::new(Node::Column(at), expr.ty(), stage.node.kinds[at]);
        keys.push(sort::equality(planner, group.sort, (expr.ty(), expr.collation()), column)?);
    }
    // The first row of each set of equals is the one ORDER BY puts first.
    if on && !query.order_by.is_empty() {
        let order = sort::output_keys(planner, &query.order_by, &query.targets, &stage)?;
        let shown = super::explain::sort_key(planner, &query.order_by, &query.targets);
        stage = sort::sorted(planner, stage, order, None, shown);
    }
    let mut estimate = stage.node.estimate;
    // Assumed: three rows in ten are distinct.
    estimate.rows = (estimate.rows * 0.3).max(1.0);
    let kinds = stage.node.kinds.clone();
    let node = DistinctNode { input: stage.node, keys, sorted: in_order || on && !query.order_by.is_empty() };
    let node = planner.node(Op::Distinct(Arc::new(node)), kinds, estimate);
    let stage = Stage { node, layout: stage.layout };
    if !on || !query.order_by.is_empty() {
        return Ok(stage);
    }
    // PostgreSQL can only sort for DISTINCT ON, so that its rows come in the order of the keys: clients rely on that.
    let order = sort::output_keys(planner, groups, &query.targets, &stage)?;
    let shown = super::explain::sort_key(planner, groups, &query.targets);
    Ok(sort::sorted(planner, stage, order, None, shown))
}
