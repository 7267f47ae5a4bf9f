//! Nodes above a stage: filters, projections, LIMIT.

use std::sync::Arc;

use melba_expression::Expression;
use melba_expression::key::KeyPart;
use melba_tree::{Expr, Query};
use melba_types::{Datum, Kind, Result};

use super::explain_output;
use super::layout::{Layout, TARGET};
use super::node::*;
use super::planner::{Planner, Stage};
use super::selectivity;
use super::wanted::Wanted;

pub fn limited(
    planner: &mut Planner<'_>,
    stage: Stage,
    limit: Option<melba_expression::Expression>,
    offset: Option<melba_expression::Expression>,
    ties: Option<Vec<(melba_expression::Expression, KeyPart)>>,
) -> Stage {
    if limit.is_none() && offset.is_none() {
        return stage;
    }
    let mut estimate = stage.node.estimate;
    if let Some(Datum::Int8(n)) = limit.as_ref().and_then(|l| l.as_const()) {
        let share = (*n as f64 / estimate.rows.max(1.0)).clamp(0.0, 1.0);
        estimate.total = estimate.startup + (estimate.total - estimate.startup) * share;
        estimate.rows = estimate.rows.min(*n as f64).max(1.0);
    }
    let kinds = stage.node.kinds.clone();
    let op = Op::Limit(Arc::new(LimitNode { input: stage.node, limit, offset, ties }));
    Stage { node: planner.node(op, kinds, estimate), layout: stage.layout }
}

/// Only the visible targets. Junk stands last or among them.
pub fn strip(planner: &mut Planner<'_>, stage: Stage, visible: usize) -> Result<Stage> {
    if stage.node.kinds.len() == visible {
        return Ok(stage);
    }
    let expressions = stage.node.kinds[..visible]
        .iter()
        .enumerate()
        .map(|(i, kind)| melba_expression::Expression::new(melba_expression::Node::Column(i), melba_types::Oid::INVALID, *kind))
        .collect();
    Ok(projected_compiled(planner, stage, expressions, TARGET))
}

/// A filter above a node; the node itself when there is nothing to filter.
pub fn filtered(planner: &mut Planner<'_>, stage: Stage, conditions: &[Expr]) -> Result<Stage> {
    if conditions.is_empty() {
        return Ok(stage);
    }
    let compiled = planner.compile_all(conditions, &stage.layout)?;
    let mut estimate = stage.node.estimate;
    // PostgreSQL's cpu_operator_cost for each condition.
    estimate.total += estimate.rows * 0.0025 * conditions.len() as f64;
    estimate.rows = (estimate.rows * super::default_selectivity::default_of(conditions)).max(1.0);
    let kinds = stage.node.kinds.clone();
    let mut node = planner.node(Op::Filter(Arc::new(FilterNode { input: stage.node, conditions: compiled })), kinds, estimate);
    planner.detail(&mut node, "Filter", || planner.show_all(conditions));
    Ok(Stage { node, layout: stage.layout })
}

/// A projection to expressions, whose columns are those of `entry`.
pub fn projected(planner: &mut Planner<'_>, stage: Stage, expressions: &[Expr], entry: usize) -> Result<Stage> {
    let compiled = planner.compile_all(expressions, &stage.layout)?;
    let input = stage.node.id;
    let mut stage = projected_compiled(planner, stage, compiled, entry);
    if stage.node.id != input {
        explain_output::outputs(planner, &mut stage.node, expressions);
    }
    Ok(stage)
}

pub fn projected_compiled(planner: &mut Planner<'_>, stage: Stage, expressions: Vec<Expression>, entry: usize) -> Stage {
    let layout = Layout::of(entry, expressions.len());
    let identity = expressions.len() == stage.layout.0.len()
        && expressions.iter().enumerate().all(|(i, e)| matches!(e.node, melba_expression::Node::Column(c) if c == i));
    if identity {
        return Stage { node: stage.node, layout };
    }
    let kinds: Arc<[Kind]> = expressions.iter().map(|e| e.kind).collect();
    let estimate = stage.node.estimate;
    let node = planner.node(Op::Project(Arc::new(ProjectNode { input: stage.node, expressions })), kinds, estimate);
    Stage { node, layout }
}

/// How many rows LIMIT and OFFSET want; a tenth where one of them has no value yet, as PostgreSQL assumes.
pub fn wanted(planner: &Planner<'_>, query: &Query) -> Wanted {
    if let Some(wish) = &planner.level().wish {
        return wish.wanted;
    }
    let Some(limit) = &query.limit else { return Wanted::All };
    let rows = |e: &Expr| selectivity::constant(planner, e);
    match (rows(limit), query.offset.as_ref().map_or(Some(Datum::Int8(0)), rows)) {
        // LIMIT NULL is none.
        (Some(Datum::Null), _) => Wanted::All,
        (Some(Datum::Int8(limit)), Some(Datum::Int8(offset))) => Wanted::Rows(limit.max(1) as f64 + offset.max(0) as f64),
        (Some(Datum::Int8(limit)), Some(Datum::Null)) => Wanted::Rows(limit.max(1) as f64),
        _ => Wanted::Share(0.1),
    }
}
