//! Keys of sorting and of equality, and the sort above a stage.

use std::sync::Arc;

use melba_catalog::classes::PG_CATALOG;
use melba_expression::key::KeyPart;
use melba_expression::{Expression, Node, OrderLabel};
use melba_fmgr::value_order::ValueOrder;
use melba_tree::{OutputColumn, Query, SortGroup, Target, places_of_targets};
use melba_types::{DbError, Kind, Oid, Result, err, oids};

use super::layout::{Layout, same};
use super::node::*;
use super::path::{OrderKey, sorting_cost};
use super::planner::{Planner, Stage};
use super::{parallel, top_filter};

/// The order that a query wants, as indexes may give it; none where functions of users order values.
pub fn order_keys(planner: &Planner<'_>, query: &Query) -> Vec<OrderKey> {
    let mut keys: Vec<OrderKey> = Vec::new();
    for (group, place) in places_of_targets(&query.order_by, &query.targets) {
        let Some(target) = place.map(|at| &query.targets[at]) else { return vec![] };
        if !matches!(value_order(planner, group.sort, (target.expr.ty(), target.expr.collation())), Ok(None)) {
            return vec![];
        }
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

/// The order of values by functions of users: that of an ordering operator of their type, or of one that USING names; `None`: keys
/// have it.
pub fn value_order(planner: &Planner<'_>, sort: Oid, (ty, collation): (Oid, Oid)) -> Result<Option<Arc<ValueOrder>>> {
    let catalog = planner.catalog();
    if !catalog.has_user_classes() {
        return Ok(None);
    }
    let own = catalog.type_operators(ty);
    let order = match sort.is_valid() && sort != own.less && sort != own.greater {
        true => match ValueOrder::of_operator(catalog, sort, ty, collation)? {
            // An operator of a built-in class, of a type that only another class orders by functions.
            None if catalog.type_order(ty).is_function() => None,
            None => ValueOrder::of_type(catalog, ty, collation)?,
            order => order,
        },
        false => ValueOrder::of_type(catalog, ty, collation)?,
    };
    Ok(order.map(Arc::new))
}

/// The label of an expression's value.
pub fn labelled(arg: Expression, order: Arc<ValueOrder>) -> Expression {
    Expression::new(Node::OrderLabel(Box::new(OrderLabel { arg, order })), oids::BYTEA, Kind::Bytes)
}

/// A key by which an expression sorts; `sort`: the ordering operator.
pub fn ordered(planner: &Planner<'_>, sort: Oid, of: (Oid, Oid), (expression, part): SortKey) -> Result<SortKey> {
    Ok(match value_order(planner, sort, of)? {
        Some(order) if order.is_equality() => return Err(without_order(planner, of.0)),
        Some(order) => (labelled(expression, order), KeyPart::of_labels(part.descending(), part.nulls_first())),
        None => (expression, part),
    })
}

/// A key by which values of an expression are equal; `sort`: an ordering operator of the equality, or 0.
pub fn equality(planner: &Planner<'_>, sort: Oid, of: (Oid, Oid), expression: Expression) -> Result<SortKey> {
    Ok(match value_order(planner, sort, of)? {
        Some(order) => (labelled(expression, order), KeyPart::of_labels(false, false)),
        None => (expression, KeyPart::equality(planner.catalog(), of)),
    })
}

/// Equality keys of the columns of a row.
pub fn column_keys(planner: &Planner<'_>, columns: &[OutputColumn], kinds: &[Kind]) -> Result<Vec<SortKey>> {
    let key = |(at, (column, kind)): (usize, (&OutputColumn, &Kind))| {
        let expression = Expression::new(Node::Column(at), column.ty, *kind);
        equality(planner, Oid::INVALID, (column.ty, column.collation), expression)
    };
    columns.iter().zip(kinds).enumerate().map(key).collect()
}

fn without_order(planner: &Planner<'_>, ty: Oid) -> DbError {
    let name = planner.catalog().type_name(ty, &[PG_CATALOG]);
    err!(UNDEFINED_FUNCTION, "could not identify an ordering operator for type {name}")
}

/// A query's own `key_part`s, with compiled expressions.
pub fn sort_keys(planner: &mut Planner<'_>, groups: &[SortGroup], targets: &[Target], layout: &Layout) -> Result<Vec<SortKey>> {
    let mut keys = Vec::with_capacity(groups.len());
    for (group, place) in places_of_targets(groups, targets) {
        let expr = &targets[place.ok_or_else(without_target)?].expr;
        let key = (planner.compile(expr, layout)?, key_part(planner, group, expr)?);
        keys.push(ordered(planner, group.sort, (expr.ty(), expr.collation()), key)?);
    }
    Ok(keys)
}

pub fn sorted(planner: &mut Planner<'_>, stage: Stage, keys: Vec<SortKey>, bound: Option<SortBound>, shown: String) -> Stage {
    partly_sorted(planner, stage, keys, bound, shown, (&[], 1.0))
}

/// The same of rows that come in the order of the first keys already, which EXPLAIN shows as `presorted`, and make so many
/// groups by them.
pub fn partly_sorted(
    planner: &mut Planner<'_>,
    mut stage: Stage,
    keys: Vec<SortKey>,
    bound: Option<SortBound>,
    shown: String,
    (presorted, groups): (&[String], f64),
) -> Stage {
    let mut estimate = stage.node.estimate;
    // 0.005 a comparison: twice cpu_operator_cost, as in PostgreSQL.
    let groups = groups.clamp(1.0, estimate.rows.max(1.0));
    estimate.total += sorting_cost(estimate.rows, groups);
    estimate.startup += (estimate.total - estimate.startup) / groups;
    let kinds = stage.node.kinds.clone();
    let top_filter = match (&bound, keys.first()) {
        (Some(_), Some(first)) if presorted.is_empty() => top_filter::offer_top_filter(planner, &mut stage.node, first),
        _ => None,
    };
    let is_safe = keys.iter().all(|(key, _)| key.is_parallel_safe());
    let workers = if is_safe && presorted.is_empty() { parallel::workers_for(planner, &stage.node) } else { 0 };
    let sort = SortNode { input: stage.node, keys, presorted: presorted.len(), bound, top_filter, workers };
    let mut node = planner.node(Op::Sort(Arc::new(sort)), kinds, estimate);
    planner.detail(&mut node, "Sort Key", || shown);
    if !presorted.is_empty() {
        planner.detail(&mut node, "Presorted Key", || presorted.join(", "));
    }
    Stage { node, layout: stage.layout }
}

/// Sort keys over computed targets.
pub fn output_keys(planner: &mut Planner<'_>, groups: &[SortGroup], targets: &[Target], stage: &Stage) -> Result<Vec<SortKey>> {
    let mut keys = Vec::with_capacity(groups.len());
    for (group, place) in places_of_targets(groups, targets) {
        let at = place.ok_or_else(without_target)?;
        let kind = stage.node.kinds[at];
        let ty = targets[at].expr.ty();
        let column = melba_expression::Expression::new(melba_expression::Node::Column(at), ty, kind);
        let expr = &targets[at].expr;
        let key = (column, key_part(planner, group, expr)?);
        keys.push(ordered(planner, group.sort, (expr.ty(), expr.collation()), key)?);
    }
    Ok(keys)
}

/// The analyzer gives each group a target.
pub fn without_target() -> DbError {
    DbError::internal("sort column is no target")
}
