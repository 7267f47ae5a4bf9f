//! Window functions: one sort and one node per window.

use std::collections::HashMap;
use std::sync::Arc;

use melba_fmgr::registry;
use melba_types::{DbError, Kind, Result, oids};

use super::layout::{Layout, WINDOW, computed, signature};
use super::node::*;
use super::planner::{Planner, Stage};
use super::{explain_output, grouping, sort};
use melba_expression::Expression;
use melba_expression::{Call, CallTarget, compile};
use melba_tree::{Expr, FrameBound, Query, SortGroup, Window, WindowCall};

/// Computes all window functions of the targets.
pub fn windows(planner: &mut Planner<'_>, query: &mut Query, mut stage: Stage) -> Result<Stage> {
    let mut calls: Vec<Expr> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for target in &query.targets {
        target.expr.visit(0, &mut |e, level| {
            if level == 0 && matches!(e, Expr::Window(_)) {
                let at = *known.entry(signature(e)).or_insert(calls.len());
                calls.extend((at == calls.len()).then(|| e.clone()));
            }
            true
        });
    }
    let order = evaluation_order(&query.windows);
    explain_output::note_windows(planner, query, &order);
    // Targets that sort windows are computed from the input, so they must not be replaced by the columns of this node.
    let mut place = vec![0usize; calls.len()];
    let mut next = 0;
    for number in order {
        let window = &query.windows[number];
        let mine: Vec<usize> = (0..calls.len()).filter(|&i| matches!(&calls[i], Expr::Window(w) if w.window == number)).collect();
        if mine.is_empty() {
            continue;
        }
        let functions: Vec<&WindowCall> = mine
            .iter()
            .filter_map(|&i| match &calls[i] {
                Expr::Window(w) => Some(&**w),
                _ => None,
            })
            .collect();
        for &i in &mine {
            place[i] = next;
            next += 1;
        }
        stage = window_stage(planner, window, &functions, query, stage, next - mine.len())?;
        explain_output::outputs(planner, &mut stage.node, mine.iter().map(|i| &calls[*i]));
        planner.detail(&mut stage.node, "Window", || explain_output::show_window(planner, number));
    }
    let mut computed_calls: Vec<(usize, &Expr)> = place.iter().copied().zip(&calls).collect();
    computed_calls.sort_by_key(|(place, _)| *place);
    planner.note_computed(WINDOW, &computed_calls.into_iter().map(|(_, call)| call.clone()).collect::<Vec<_>>());
    for target in &mut query.targets {
        target.expr.visit_mut(0, &mut |e, level| {
            if level == 0
                && matches!(e, Expr::Window(_))
                && let Some(at) = known.get(&signature(e))
            {
                *e = computed(WINDOW, place[*at], e);
                return false;
            }
            true
        });
    }
    Ok(stage)
}

fn window_stage(
    planner: &mut Planner<'_>,
    window: &Window,
    functions: &[&WindowCall],
    query: &Query,
    stage: Stage,
    first: usize,
) -> Result<Stage> {
    let partition = sort::sort_keys(planner, &window.partition_by, &query.targets, &stage.layout)?;
    let order = sort::sort_keys(planner, &window.order_by, &query.targets, &stage.layout)?;
    let mut keys = partition.clone();
    keys.extend(order.iter().cloned());
    let stage = if keys.is_empty() {
        stage
    } else {
        let groups: Vec<SortGroup> = window.partition_by.iter().chain(&window.order_by).cloned().collect();
        let shown = super::explain::sort_key(planner, &groups, &query.targets);
        sort::sorted(planner, stage, keys, None, shown)
    };
    let offset = |planner: &mut Planner<'_>, bound: &FrameBound| -> Result<Option<(Expression, melba_types::Oid)>> {
        match bound {
            FrameBound::Preceding(e) | FrameBound::Following(e) => Ok(Some((planner.compile(e, &Layout::default())?, e.ty()))),
            _ => Ok(None),
        }
    };
    let start = offset(planner, &window.frame.start)?;
    let end = offset(planner, &window.frame.end)?;
    let order_type = order.first().map(|(e, _)| e.unlabelled().ty).unwrap_or_default();
    let in_range_start = in_range(planner, window.frame.in_range.0, order_type, start.as_ref().map(|s| s.1))?;
    let in_range_end = in_range(planner, window.frame.in_range.1, order_type, end.as_ref().map(|s| s.1))?;
    let mut specs = Vec::with_capacity(functions.len());
    for call in functions {
        specs.push(window_spec(planner, call, &stage.layout)?);
    }
    let mut kinds: Vec<Kind> = stage.node.kinds.to_vec();
    let mut layout = stage.layout;
    for (i, spec) in specs.iter().enumerate() {
        kinds.push(spec.kind);
        layout.0.push((WINDOW, (first + i) as i16 + 1));
    }
    let mut estimate = stage.node.estimate;
    // Each function costs twice an aggregate a row.
    estimate.total += estimate.rows * 0.02 * functions.len() as f64;
    let node = WindowNode {
        input: stage.node,
        partition,
        order,
        frame: window.frame.clone(),
        start_offset: start.map(|s| s.0),
        end_offset: end.map(|s| s.0),
        in_range_start,
        in_range_end,
        functions: specs,
    };
    let node = planner.node(Op::Window(Arc::new(node)), kinds.into(), estimate);
    Ok(Stage { node, layout })
}

fn in_range(
    planner: &Planner<'_>,
    function: melba_types::Oid,
    order: melba_types::Oid,
    offset: Option<melba_types::Oid>,
) -> Result<Option<Call>> {
    let Some(offset) = offset.filter(|_| function.is_valid()) else { return Ok(None) };
    let mut call = compile::call_of(planner.catalog(), function, vec![], oids::BOOL, melba_types::Oid::INVALID, false, -1)?;
    call.arg_types = [order, order, offset, oids::BOOL, oids::BOOL].into();
    Ok(Some(call))
}

fn window_spec(planner: &mut Planner<'_>, call: &WindowCall, layout: &Layout) -> Result<WindowSpec> {
    let Some(function) = planner.catalog().function(call.function).cloned() else {
        return Err(DbError::internal(format!("window function {} does not exist", call.function)));
    };
    let args = planner.compile_all(&call.args, layout)?;
    let kind = planner.kind(call.ty);
    let target = if call.aggregate {
        let (make, strict) = grouping::aggregate_function(planner, &function, &[], &call.args, call.ty)?;
        WindowFunction::Aggregate { make, strict }
    } else {
        let found = registry::window(&function.source);
        WindowFunction::Window(found.ok_or_else(|| DbError::unsupported(format!("window function {}", function.name)))?)
    };
    let filter = call.filter.as_ref().map(|f| planner.compile(f, layout)).transpose()?;
    Ok(WindowSpec {
        function: target,
        call: Call {
            parallel_safe: function.parallel == b's',
            collation: call.input_collation,
            ..Call::plain(CallTarget::System(function.name.clone()), args, call.ty, call.location)
        },
        kind,
        filter,
    })
}

/// The order in which windows are computed, which shows in the order of rows that nothing else orders: as PostgreSQL does,
/// those that sort by later targets, by the greater operator or by more columns come first.
fn evaluation_order(windows: &[Window]) -> Vec<usize> {
    let keys = |w: &Window| -> Vec<SortGroup> { w.partition_by.iter().chain(&w.order_by).cloned().collect() };
    let mut order: Vec<usize> = (0..windows.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (keys(&windows[a]), keys(&windows[b]));
        for (x, y) in a.iter().zip(&b) {
            let by = y.reference.cmp(&x.reference).then(y.sort.cmp(&x.sort)).then(y.nulls_first.cmp(&x.nulls_first));
            if by.is_ne() {
                return by;
            }
        }
        b.len().cmp(&a.len())
    });
    order
}
