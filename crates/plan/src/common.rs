//! Parts that the arguments of a query's aggregates have in common: a projection below the aggregation computes each once.

use std::collections::HashMap;

use melba_types::{Oid, Result};

use super::layout::{COMMON, Layout, computed, signature};
use super::planner::{Planner, Stage};
use super::rels::contains_sublink;
use super::{stage, volatility};
use melba_expression::{Expression, Node};
use melba_tree::Expr;

/// With more calls in the arguments, those that are the same are not looked for: each is compared as text.
const CALLS_MAX: usize = 256;

/// A call that occurs in arguments.
struct CommonCall {
    times: usize,
    /// It is computed for each row that is aggregated.
    is_always: bool,
    /// Its column of the projection, from 0 on.
    column: Option<usize>,
}

/// Makes the parts that occur more than once in the arguments of aggregates columns of the rows that these aggregate.
pub(super) fn compute_common(planner: &mut Planner<'_>, aggregates: &mut [Expr], stage: Stage) -> Result<Stage> {
    let mut parts = parts_of(planner, aggregates);
    if !parts.values().any(CommonCall::is_common) {
        return Ok(stage);
    }
    let mut common = Vec::new();
    for aggregate in aggregates {
        aggregate.visit_mut(0, &mut |e, level| {
            let part = if level == 0 && is_call(e) { parts.get_mut(&signature(e)) } else { None };
            let Some(part) = part.filter(|part| part.is_common()) else { return true };
            let column = *part.column.get_or_insert_with(|| {
                common.push(e.clone());
                common.len() - 1
            });
            *e = computed(COMMON, column, e);
            false
        });
    }
    let Stage { node, layout } = stage;
    let column = |(at, kind)| Expression::new(Node::Column(at), Oid::INVALID, kind);
    let mut expressions: Vec<Expression> = node.kinds.iter().copied().enumerate().map(column).collect();
    expressions.extend(planner.compile_all(&common, &layout)?);
    planner.note_computed(COMMON, &common);
    let joined = layout.clone().joined(&Layout::of(COMMON, common.len()));
    let stage = stage::projected_compiled(planner, Stage { node, layout }, expressions, COMMON);
    Ok(Stage { node: stage.node, layout: joined })
}

/// The calls in the arguments, by their text; none when they are many.
fn parts_of(planner: &Planner<'_>, aggregates: &[Expr]) -> HashMap<String, CommonCall> {
    let mut calls = 0;
    for aggregate in aggregates {
        aggregate.visit(0, &mut |e, _| {
            calls += usize::from(is_call(e));
            calls <= CALLS_MAX
        });
    }
    let mut parts = HashMap::new();
    if !(2..=CALLS_MAX).contains(&calls) {
        return parts;
    }
    for aggregate in aggregates {
        aggregate.visit(0, &mut |e, level| {
            if level == 0 && is_call(e) && may_be_computed_before(planner, e) {
                parts.entry(signature(e)).or_insert(CommonCall { times: 0, is_always: false, column: None }).times += 1;
            }
            true
        });
        // FILTER leaves out rows, whose arguments are not computed.
        if let Expr::Aggregate(call) = aggregate
            && call.filter.is_none()
        {
            call.args.iter().for_each(|arg| note_always(arg, &mut parts));
        }
    }
    parts
}

fn may_be_computed_before(planner: &Planner<'_>, e: &Expr) -> bool {
    e.has_vars() && !volatility::has_volatile(planner, e) && !contains_sublink(e) && !e.any(&mut returns_set)
}

impl CommonCall {
    fn is_common(&self) -> bool {
        self.times > 1 && self.is_always
    }
}

fn is_call(e: &Expr) -> bool {
    matches!(e, Expr::Function(_) | Expr::Operator(_))
}

fn returns_set(e: &Expr) -> bool {
    match e {
        Expr::Function(call) => call.returns_set,
        Expr::Operator(call) => call.returns_set,
        _ => false,
    }
}

/// Marks the calls of an argument that are computed whatever the others give.
fn note_always(e: &Expr, parts: &mut HashMap<String, CommonCall>) {
    match e {
        Expr::Function(_) | Expr::Operator(_) => {
            parts.entry(signature(e)).and_modify(|part| part.is_always = true);
        }
        Expr::Relabel { .. } => {}
        _ => return,
    }
    e.children(&mut |child| note_always(child, parts));
}
