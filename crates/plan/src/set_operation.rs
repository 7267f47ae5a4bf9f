//! UNION, INTERSECT, EXCEPT.

use std::sync::Arc;

use melba_types::{DbError, Result, limits};

use super::layout::{Layout, SET, computed};
use super::node::*;
use super::planner::{Planner, Stage};
use super::{sort, stage};
use melba_tree::{CoercionForm, Expr, FunctionCall, OutputColumn, Query, RangeKind, SetInput, SetOperation, SetTree};

pub fn set_operation(planner: &mut Planner<'_>, query: &mut Query) -> Result<Stage> {
    let Some(tree) = query.set_operation.take() else {
        return Err(DbError::internal("set operation expected"));
    };
    planner.level_mut().entries = std::mem::take(&mut query.range_table);
    let stage = set_tree(planner, &tree)?;
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
    let limit = query.limit.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let offset = query.offset.as_ref().map(|e| planner.compile(e, &Layout::default())).transpose()?;
    let mut ties = None;
    if !query.order_by.is_empty() {
        let keys = sort::sort_keys(planner, &query.order_by, &query.targets, &stage.layout)?;
        ties = query.with_ties.then(|| keys.clone());
        let bound = limit.as_ref().filter(|_| !query.with_ties).map(|l| (Some(l.clone()), offset.clone()));
        let shown = super::explain::sort_key(planner, &query.order_by, &query.targets);
        stage = sort::sorted(planner, stage, keys, bound, shown);
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
        union_inputs(planner, tree, &tree.columns, &mut inputs)?;
        let mut estimate = Estimate::default();
        for input in &inputs {
            estimate.rows += input.estimate.rows;
            estimate.total += input.estimate.total;
        }
        let node = planner.node(Op::Append(Arc::new(AppendNode { inputs, pruning: None })), kinds.clone(), estimate);
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

/// The arms of nested unions with the same column types, flattened where the duplicates come out the same.
fn union_inputs(planner: &mut Planner<'_>, tree: &SetTree, columns: &[OutputColumn], out: &mut Vec<PlanNode>) -> Result<()> {
    for input in [&tree.left, &tree.right] {
        match input {
            SetInput::Tree(inner)
                if inner.operation == SetOperation::Union
                    && (inner.all || !tree.all)
                    && inner.columns.iter().zip(columns).all(|(a, b)| a.ty == b.ty) =>
            {
                // Duplicates that an inner UNION ALL keeps, an outer UNION drops; the other way round nothing is merged.
                union_inputs(planner, inner, columns, out)?;
            }
            input => out.push(set_input(planner, input, columns)?.node),
        }
    }
    Ok(())
}
