//! Targets, and the set-returning functions in them.

use std::sync::Arc;

use melba_tree::{Expr, Query};
use melba_types::Result;

use super::access::leaf;
use super::explain_output;
use super::layout::TARGET;
use super::node::*;
use super::planner::{Planner, Stage};
use super::stage;

/// All targets, junk included; set-returning functions are run.
pub fn targets(planner: &mut Planner<'_>, query: &Query, mut stage: Stage) -> Result<Stage> {
    let mut exprs: Vec<Expr> = query.targets.iter().map(|t| t.expr.clone()).collect();
    if query.has_set_returning && exprs.iter().any(has_set) {
        stage = project_set(planner, stage, exprs.iter_mut())?;
    }
    stage::projected(planner, stage, &exprs, TARGET)
}

/// Runs the set-returning functions in expressions, which refer to the result's columns then. Innermost functions first; functions
/// over their results in further rounds.
pub fn project_set<'e>(planner: &mut Planner<'_>, mut stage: Stage, exprs: impl Iterator<Item = &'e mut Expr>) -> Result<Stage> {
    let mut exprs: Vec<&mut Expr> = exprs.collect();
    let mut round = 0;
    loop {
        let mut calls: Vec<Expr> = Vec::new();
        for e in &mut exprs {
            take_sets(e, round, &mut calls);
        }
        if calls.is_empty() {
            return Ok(stage);
        }
        let mut functions = Vec::with_capacity(calls.len());
        for call in &calls {
            let (kinds, types) = (vec![planner.kind(call.ty())], vec![call.ty()]);
            let row = leaf::row_shape(planner, call)?;
            let source = leaf::set_source(planner, call, None, &stage.layout)?;
            if let SetSource::Routine(routine) = &source
                && routine.volatile
            {
                planner.routines.add(Some(routine));
            }
            functions.push(SetCall { source, kinds, types, spread: false, row });
        }
        let mut layout = stage.layout.clone();
        let mut kinds = stage.node.kinds.to_vec();
        for (i, call) in calls.iter().enumerate() {
            layout.0.push((SET_BASE - round, i as i16 + 1));
            kinds.push(planner.kind(call.ty()));
        }
        let mut estimate = stage.node.estimate;
        // A set-returning target is assumed to return ten rows for each.
        estimate.rows *= 10.0;
        let op = Op::ProjectSet(Arc::new(ProjectSetNode { input: stage.node, functions }));
        let mut node = planner.node(op, kinds.into(), estimate);
        explain_output::outputs(planner, &mut node, &calls);
        planner.note_computed(SET_BASE - round, &calls);
        stage = Stage { node, layout };
        round += 1;
    }
}

/// Entries for the results of set-returning functions, one a round.
const SET_BASE: usize = usize::MAX - 100;

/// Replaces the innermost set-returning calls.
pub fn take_sets(e: &mut Expr, round: usize, calls: &mut Vec<Expr>) {
    if let Expr::Function(f) = e
        && f.returns_set
        && !f.args.iter().any(has_set)
    {
        calls.push(e.clone());
        *e = super::layout::computed(SET_BASE - round, calls.len() - 1, e);
        return;
    }
    e.children_mut(&mut |child| take_sets(child, round, calls));
}

pub fn has_set(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Function(f) if f.returns_set) || matches!(e, Expr::Operator(o) if o.returns_set))
}
