//! UNION, INTERSECT, EXCEPT.

use std::sync::Arc;

use melba_types::{DbError, Result, limits};

use super::layout::{Layout, SET, computed};
use super::node::*;
use super::planner::{Planner, Stage};
use super::union_order::{UnionOrder, union_arms};
use super::{sort, stage};
use melba_tree::{CoercionForm, Expr, FunctionCall, OutputColumn, Query, RangeKind, SetInput, SetOperation, SetTree};

pub fn set_operation(planner: &mut Planner<'_>, query: &mut Query) -> Result<Stage> {
    let Some(tree) = query.set_operation.take() else {
        return Err(DbError::internal("set operation expected"));
    };
    planner.level_mut().entries = std::mem::take(&mut query.range_table);
    let wanted = stage::wanted(planner, query);
    let limit = query.limit.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let offset = query.offset.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let bound = limit.as_ref().filter(|_| !query.with_ties).map(|l| (Some(l.clone()), offset.clone()));
    let order = UnionOrder::of(planner, query, &tree, wanted);
    let (stage, is_merged) = match order {
        Some(order) => union_in_order(planner, &tree, &order, &bound)?,
        None => (set_tree(planner, &tree)?, false),
    };
    // The targets are variables of the leftmost leaf; any leaf's column n is column n of the result.
    let width = stage.node.kinds.len();
    let mut stage = Stage { node: stage.node, layout: Layout::of(SET, width) };
    for target in &mut query.targets {
        target.expr.visit_mut(0, &mut |e, level| {
            if let Expr::Var(v) = e
                && v.levels_up == level
                && v.column > 0
            {
                let mut by = computed(SET, v.column as usize - 1, e);
                if let Expr::Var(b) = &mut by {
                    b.levels_up = level;
                }
                *e = by;
            }
            true
        });
    }
    let mut ties = None;
    if !query.order_by.is_empty() {
        let keys = sort::sort_keys(planner, &query.order_by, &query.targets, &stage.layout)?;
        ties = query.with_ties.then(|| keys.clone());
        if !planner.grant_wish(is_merged) && !is_merged {
            let shown = super::explain::sort_key(planner, &query.order_by, &query.targets);
            stage = sort::sorted(planner, stage, keys, bound, shown);
        }
    }
    stage = stage::limited(planner, stage, limit, offset, ties);
    let exprs: Vec<Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.clone()).collect();
    stage::projected(planner, stage, &exprs, super::layout::TARGET)
}

/// An arm, its columns cast to the types of the result.
pub fn set_input(planner: &mut Planner<'_>, input: &SetInput, columns: &[OutputColumn]) -> Result<Stage> {
    limits::check_stack()?;
    limits::check_interrupt()?;
    let (stage, types) = set_arm(planner, input)?;
    if types.iter().zip(columns).all(|(a, b)| a.ty == b.ty) {
        return Ok(stage);
    }
    let stage = Stage { layout: Layout::of(SET, types.len()), node: stage.node };
    let mut exprs = Vec::with_capacity(columns.len());
    for (i, (from, to)) in types.iter().zip(columns).enumerate() {
        let value = super::layout::column(SET, i as i16 + 1, from.ty, from.typmod, from.collation);
        exprs.push(cast(planner, value, to)?);
    }
    stage::projected(planner, stage, &exprs, SET)
}

/// The implicit cast of a value to a column's type.
fn cast(planner: &Planner<'_>, value: Expr, to: &OutputColumn) -> Result<Expr> {
    let from = value.ty();
    if from == to.ty {
        return Ok(value);
    }
    let form = CoercionForm::ImplicitCast;
    let catalog = planner.catalog();
    let (source, target) = (catalog.base_type(from), catalog.base_type(to.ty));
    if let Some(cast) = catalog.cast(source, target)
        && cast.method == b'f'
    {
        return Ok(Expr::Function(Box::new(FunctionCall {
            function: cast.function,
            input_collation: value.collation(),
            args: vec![value],
            defaulted: 0,
            ty: to.ty,
            collation: to.collation,
            returns_set: false,
            variadic: false,
            form,
            typmod: -1,
            location: -1,
        })));
    }
    if catalog.is_binary_coercible(from, to.ty) || source == target {
        return Ok(Expr::Relabel { arg: Box::new(value), ty: to.ty, typmod: -1, collation: to.collation, form });
    }
    Ok(Expr::CoerceViaIo { arg: Box::new(value), ty: to.ty, collation: to.collation, form })
}

fn set_arm(planner: &mut Planner<'_>, input: &SetInput) -> Result<(Stage, Vec<OutputColumn>)> {
    match input {
        SetInput::Tree(tree) => Ok((set_tree(planner, tree)?, tree.columns.clone())),
        SetInput::Leaf(entry) => {
            let kind = std::mem::replace(&mut planner.level_mut().entries[*entry].kind, RangeKind::Result);
            let RangeKind::Subquery { query, .. } = kind else {
                return Err(DbError::internal("an arm of a set operation is no subquery"));
            };
            let columns = query.output_columns();
            Ok((planner.query(*query, None)?, columns))
        }
    }
}

fn set_tree(planner: &mut Planner<'_>, tree: &SetTree) -> Result<Stage> {
    let kinds = planner.kinds_of(&tree.columns);
    let compared: &[OutputColumn] = if tree.all && tree.operation == SetOperation::Union { &[] } else { &tree.columns };
    let keys = sort::column_keys(planner, compared, &kinds)?;
    if tree.operation == SetOperation::Union {
        let mut inputs = Vec::new();
        for input in union_arms(tree, &tree.columns) {
            inputs.push(set_input(planner, input, &tree.columns)?.node);
        }
        let mut estimate = Estimate::default();
        for input in &inputs {
            estimate.rows += input.estimate.rows;
            estimate.total += input.estimate.total;
        }
        let node =
            planner.node(Op::Append(Arc::new(AppendNode { inputs, merge: vec![], pruning: None })), kinds.clone(), estimate);
        let layout = Layout::of(SET, kinds.len());
        if tree.all {
            return Ok(Stage { node, layout });
        }
        let distinct = DistinctNode { input: node, keys, sorted: false };
        return Ok(Stage { node: planner.node(Op::Distinct(Arc::new(distinct)), kinds, estimate), layout });
    }
    let left = set_input(planner, &tree.left, &tree.columns)?.node;
    let right = set_input(planner, &tree.right, &tree.columns)?.node;
    let mut estimate = left.estimate;
    estimate.total += right.estimate.total;
    let layout = Layout::of(SET, kinds.len());
    let node = SetOpNode { operation: tree.operation, all: tree.all, left, right, keys };
    Ok(Stage { node: planner.node(Op::SetOp(Arc::new(node)), kinds, estimate), layout })
}

/// A UNION ALL, and whether its rows come in the order: if some arm has it, the others are sorted and all are merged.
fn union_in_order(
    planner: &mut Planner<'_>,
    tree: &SetTree,
    order: &UnionOrder,
    bound: &Option<SortBound>,
) -> Result<(Stage, bool)> {
    let kinds = planner.kinds_of(&tree.columns);
    let mut arms = Vec::new();
    for input in union_arms(tree, &tree.columns) {
        let asked = match input {
            SetInput::Leaf(entry) => match &planner.level().entries[*entry].kind {
                RangeKind::Subquery { query, .. } => order.asked(planner, tree, query),
                _ => None,
            },
            SetInput::Tree(_) => None,
        };
        arms.push(match asked {
            Some(arm) => planner.query_in_order(arm, order.wanted)?,
            None => (set_input(planner, input, &tree.columns)?, false),
        });
    }
    let is_merged = arms.iter().any(|(_, is_ordered)| *is_ordered);
    let keys = if is_merged { order.sort_keys(planner, tree, &kinds) } else { vec![] };
    let (mut inputs, mut estimate) = (Vec::with_capacity(arms.len()), Estimate::default());
    for (mut arm, is_ordered) in arms {
        if is_merged && !is_ordered {
            arm = sort::sorted(planner, arm, keys.clone(), bound.clone(), order.shown.clone());
        }
        estimate.rows += arm.node.estimate.rows;
        estimate.startup += if is_merged { arm.node.estimate.startup } else { 0.0 };
        estimate.total += arm.node.estimate.total;
        inputs.push(arm.node);
    }
    let append = AppendNode { inputs, merge: keys, pruning: None };
    let mut node = planner.node(Op::Append(Arc::new(append)), kinds.clone(), estimate);
    if is_merged {
        planner.detail(&mut node, "Sort Key", || order.shown.clone());
    }
    Ok((Stage { node, layout: Layout::of(SET, kinds.len()) }, is_merged))
}
