//! What EXPLAIN tells of a node's relation and, with VERBOSE, of its columns.

use std::sync::Arc;

use melba_expression::Node;
use melba_tree::{Expr, Query, RangeFunction, Var, Window};
use melba_types::Oid;

use super::layout::Layout;
use super::node::*;
use super::planner::{Planner, Stage};
use super::shown::{ScannedName, ShownOutput};

/// The columns as nodes above show them; `None`: not all of them are known.
pub(super) fn above(outputs: Option<&Vec<ShownOutput>>) -> Option<Vec<ShownOutput>> {
    outputs.map(|outputs| outputs.iter().map(ShownOutput::above).collect())
}

/// The columns of a node's rows, from those of its inputs.
pub(super) fn outputs_of(node: &PlanNode, inputs: &[Option<&Vec<ShownOutput>>]) -> Option<Vec<ShownOutput>> {
    let input = |at: usize| above(inputs.get(at).copied().flatten());
    let outputs = match &node.op {
        Op::Window(_) | Op::ProjectSet(_) => [input(0)?, node.outputs.clone()?].concat(),
        // Those that only choose are columns of the input; they are part of the same node for PostgreSQL.
        Op::Project(n) => {
            let below = inputs.first().copied().flatten();
            let columns = n.expressions.iter().enumerate().map(|(at, expression)| match expression.node {
                Node::Column(column) => below?.get(column).cloned(),
                _ => node.outputs.as_ref()?.get(at).cloned(),
            });
            columns.collect::<Option<_>>()?
        }
        _ if node.outputs.is_some() => node.outputs.clone()?,
        Op::HashJoin(n) => of_sides(n.join, input(0), input(1))?,
        Op::NestedLoop(n) => of_sides(n.join, input(0), input(1))?,
        Op::Result(n) if n.input.is_none() => Vec::new(),
        _ => input(0)?,
    };
    (outputs.len() == node.kinds.len()).then_some(outputs)
}

fn of_sides(join: JoinType, left: Option<Vec<ShownOutput>>, right: Option<Vec<ShownOutput>>) -> Option<Vec<ShownOutput>> {
    let left = if join.keeps_left() { left? } else { Vec::new() };
    let right = if join.keeps_right() { right? } else { Vec::new() };
    Some([left, right].concat())
}

/// Notes what a node reads or changes.
pub fn scanned(planner: &Planner<'_>, node: &mut PlanNode, schema: Option<Oid>, name: Option<&str>, alias: &str) {
    if planner.inputs.explain {
        let name_of = |oid| {
            // Of its own temporary schema a session knows no other name.
            let is_own = planner.inputs.session.temporary_namespace() == oid;
            if is_own { Some("pg_temp".into()) } else { planner.catalog().namespace(oid).map(|n| n.name.clone()) }
        };
        let schema = schema.and_then(name_of);
        node.scanned = Some(Box::new(ScannedName { schema, name: name.map(Arc::from), alias: alias.into() }));
    }
}

/// Notes the columns that a node computes. One that has no text leaves all of them out.
pub fn outputs<'e>(planner: &Planner<'_>, node: &mut PlanNode, exprs: impl IntoIterator<Item = &'e Expr>) {
    if planner.inputs.verbose {
        node.outputs = exprs.into_iter().map(|e| output(planner, e)).collect();
    }
}

fn output(planner: &Planner<'_>, expr: &Expr) -> Option<ShownOutput> {
    let expr = planner.resolved(expr);
    let entries = planner.level().entries.len();
    let mut has_text = true;
    expr.visit_vars(&mut |v| has_text &= v.entry < entries);
    let is_plain = matches!(expr, Expr::Var(_) | Expr::Const(_));
    has_text.then(|| ShownOutput { text: planner.print(&expr, planner.has_several_entries), is_plain })
}

/// A node that reads an entry's columns.
pub fn scan_stage(planner: &Planner<'_>, mut node: PlanNode, layout: Layout) -> Stage {
    if planner.inputs.verbose {
        let column = |(entry, number): &(usize, i16)| Expr::Var(Var::new(*entry, *number, Oid::INVALID, -1, Oid::INVALID));
        let columns: Vec<Expr> = layout.0.iter().map(column).collect();
        outputs(planner, &mut node, &columns);
    }
    Stage { node, layout }
}

/// Notes the functions whose rows a node reads.
pub fn function_calls(planner: &Planner<'_>, node: &mut PlanNode, functions: &[RangeFunction]) {
    if planner.inputs.verbose {
        let calls = functions.iter().map(|f| planner.show(&f.expr)).collect::<Vec<_>>();
        planner.detail(node, "Function Call", || calls.join(", "));
    }
}

/// Notes the windows of a query, under the names by which EXPLAIN calls them: those without one are numbered in the order in
/// which they are computed.
pub fn note_windows(planner: &mut Planner<'_>, query: &Query, order: &[usize]) {
    if !planner.inputs.explain {
        return;
    }
    let mut windows: Vec<Window> = query.windows.clone();
    let mut number = 0;
    for &at in order {
        while windows[at].name.is_none() {
            number += 1;
            let name = format!("w{number}");
            if !windows.iter().any(|w| w.name.as_deref() == Some(&*name)) {
                windows[at].name = Some(name.into());
            }
        }
    }
    let mut targets = query.targets.clone();
    targets.iter_mut().for_each(|target| target.expr = planner.resolved(&target.expr));
    planner.level_mut().windows = (windows, targets);
}

/// A window's name and definition.
pub fn show_window(planner: &Planner<'_>, window: usize) -> String {
    let qualify = planner.qualifies_conditions();
    melba_deparse::plan_window(planner.catalog(), planner.inputs.session, &planner.shown_levels(), qualify, window)
}
