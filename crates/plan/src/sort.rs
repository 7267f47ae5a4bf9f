//! Sort keys, and the sort above a stage.

use std::sync::Arc;

use melba_expression::key::KeyPart;
use melba_tree::{Query, SortGroup, Target, places_of_targets};
use melba_types::{DbError, Result, err};

use super::layout::{Layout, same};
use super::node::*;
use super::path::OrderKey;
use super::planner::{Planner, Stage};
use super::{parallel, top_filter};

pub fn order_keys(query: &Query) -> Vec<OrderKey> {
    let mut keys: Vec<OrderKey> = Vec::new();
    for (group, place) in places_of_targets(&query.order_by, &query.targets) {
        let Some(target) = place.map(|at| &query.targets[at]) else { return vec![] };
        if !keys.iter().any(|k| same(&k.expr, &target.expr)) {
            keys.push(OrderKey { expr: target.expr.clone(), descending: group.descending, nulls_first: group.nulls_first });
        }
    }
    keys
}

/// The key part for a sort or group column.
///
/// # Errors
/// 42P22 for a text of several collations.
pub fn key_part(planner: &Planner<'_>, group: &SortGroup, expr: &melba_tree::Expr) -> Result<KeyPart> {
    let is_collatable = planner.catalog().type_(expr.ty()).is_some_and(|ty| ty.collation.is_valid());
    if is_collatable && !expr.collation().is_valid() {
        return Err(err!(INDETERMINATE_COLLATION, "could not determine which collation to use for string comparison")
            .hint("Use the COLLATE clause to set the collation explicitly."));
    }
    Ok(KeyPart::new(planner.catalog(), (expr.ty(), expr.collation()), group.descending, group.nulls_first))
}

/// A query's own `key_part`s, with compiled expressions.
pub fn sort_keys(
    planner: &mut Planner<'_>,
    groups: &[SortGroup],
    targets: &[Target],
    layout: &Layout,
) -> Result<Vec<(melba_expression::Expression, KeyPart)>> {
    let mut keys = Vec::with_capacity(groups.len());
    for (group, place) in places_of_targets(groups, targets) {
        let expr = &targets[place.ok_or_else(without_target)?].expr;
        let part = key_part(planner, group, expr)?;
        keys.push((planner.compile(expr, layout)?, part));
    }
    Ok(keys)
}

pub fn sorted(
    planner: &mut Planner<'_>,
    mut stage: Stage,
    keys: Vec<SortKey>,
    bound: Option<(Option<melba_expression::Expression>, Option<melba_expression::Expression>)>,
    shown: String,
) -> Stage {
    let mut estimate = stage.node.estimate;
    // 0.005 a comparison: twice cpu_operator_cost, as in PostgreSQL.
    estimate.total += estimate.rows * estimate.rows.max(2.0).log2() * 0.005;
    estimate.startup = estimate.total;
    let kinds = stage.node.kinds.clone();
    let top_filter = match (&bound, keys.first()) {
        (Some(_), Some(first)) => top_filter::offer_top_filter(planner, &mut stage.node, first),
        _ => None,
    };
    let is_safe = keys.iter().all(|(key, _)| key.is_parallel_safe());
    let workers = if is_safe { parallel::workers_for(planner, &stage.node) } else { 0 };
    let sort = SortNode { input: stage.node, keys, bound, top_filter, workers };
    let mut node = planner.node(Op::Sort(Arc::new(sort)), kinds, estimate);
    planner.detail(&mut node, "Sort Key", || shown);
    Stage { node, layout: stage.layout }
}

/// Sort keys over computed targets.
pub fn output_keys(
    planner: &mut Planner<'_>,
    groups: &[SortGroup],
    targets: &[Target],
    stage: &Stage,
) -> Result<Vec<(melba_expression::Expression, KeyPart)>> {
    let mut keys = Vec::with_capacity(groups.len());
    for (group, place) in places_of_targets(groups, targets) {
        let at = place.ok_or_else(without_target)?;
        let kind = stage.node.kinds[at];
        let ty = targets[at].expr.ty();
        let column = melba_expression::Expression::new(melba_expression::Node::Column(at), ty, kind);
        keys.push((column, key_part(planner, group, &targets[at].expr)?));
    }
    Ok(keys)
}

/// The analyzer gives each group a target.
pub fn without_target() -> DbError {
    DbError::internal("sort column is no target")
}
