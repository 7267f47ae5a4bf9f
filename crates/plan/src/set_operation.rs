//! UNION, INTERSECT, EXCEPT.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, limits};

use super::layout::{Layout, SET, computed};
use super::node::*;
use super::planner::{Planner, Stage};
use melba_expression::key::KeyPart;
use melba_tree::{CoercionForm, Expr, FunctionCall, OutputColumn, Query, RangeKind, SetInput, SetOperation, SetTree};

impl Planner<'_> {
    pub fn set_operation(&mut self, query: &mut Query) -> Result<Stage> {
        let Some(tree) = query.set_operation.take() else {
            return Err(DbError::internal("set operation expected"));
        };
        self.level_mut().entries = std::mem::take(&mut query.range_table);
        let stage = self.set_tree(&tree)?;
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
        let limit = query.limit.as_ref().map(|e| self.compile(e, &Layout::default())).transpose()?;
        let offset = query.offset.as_ref().map(|e| self.compile(e, &Layout::default())).transpose()?;
        let mut ties = None;
        if !query.order_by.is_empty() {
            let keys = self.sort_keys(&query.order_by, &query.targets, &stage.layout)?;
            ties = query.with_ties.then(|| keys.clone());
            let bound = limit.as_ref().filter(|_| !query.with_ties).map(|l| (Some(l.clone()), offset.clone()));
            stage = self.sorted(stage, keys, bound, super::explain::sort_key(self, &query.order_by, &query.targets));
        }
        stage = self.limited(stage, limit, offset, ties);
        let exprs: Vec<Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.clone()).collect();
        self.projected(stage, &exprs, super::layout::TARGET)
    }

    /// An arm, its columns cast to the types of the result.
    pub fn set_input(&mut self, input: &SetInput, columns: &[OutputColumn]) -> Result<Stage> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        let (stage, types) = self.set_arm(input)?;
        if types.iter().zip(columns).all(|(a, b)| a.ty == b.ty) {
            return Ok(stage);
        }
        let stage = Stage { layout: Layout::of(SET, types.len()), node: stage.node };
        let mut exprs = Vec::with_capacity(columns.len());
        for (i, (from, to)) in types.iter().zip(columns).enumerate() {
            let value = super::layout::column(SET, i as i16 + 1, from.ty, from.typmod, from.collation);
            exprs.push(self.cast(value, to)?);
        }
        self.projected(stage, &exprs, SET)
    }

    /// The implicit cast of a value to a column's type.
    fn cast(&self, value: Expr, to: &OutputColumn) -> Result<Expr> {
        let from = value.ty();
        if from == to.ty {
            return Ok(value);
        }
        let form = CoercionForm::ImplicitCast;
        let catalog = self.catalog();
        let (source, target) = (catalog.base_type(from), catalog.base_type(to.ty));
        if let Some(cast) = catalog.cast(source, target)
            && cast.method == b'f'
        {
            return Ok(Expr::Function(Box::new(FunctionCall {
                function: cast.function,
                args: vec![value],
                defaulted: 0,
                ty: to.ty,
                collation: to.collation,
                input_collation: Oid::INVALID,
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

    fn set_arm(&mut self, input: &SetInput) -> Result<(Stage, Vec<OutputColumn>)> {
        match input {
            SetInput::Tree(tree) => Ok((self.set_tree(tree)?, tree.columns.clone())),
            SetInput::Leaf(entry) => {
                let kind = std::mem::replace(&mut self.level_mut().entries[*entry].kind, RangeKind::Result);
                let RangeKind::Subquery { query, .. } = kind else {
                    return Err(DbError::internal("an arm of a set operation is no subquery"));
                };
                let columns = query.output_columns();
                Ok((self.query(*query, None)?, columns))
            }
        }
    }

    fn set_tree(&mut self, tree: &SetTree) -> Result<Stage> {
        let kinds = self.kinds_of(&tree.columns);
        let parts: Vec<KeyPart> = tree.columns.iter().map(|c| KeyPart::equality(self.catalog(), c.ty)).collect();
        if tree.operation == SetOperation::Union {
            let mut inputs = Vec::new();
            self.union_inputs(tree, &tree.columns, &mut inputs)?;
            let mut estimate = Estimate::default();
            for input in &inputs {
                estimate.rows += input.estimate.rows;
                estimate.total += input.estimate.total;
            }
            let node = self.node(Op::Append(Arc::new(AppendNode { inputs, pruning: None })), kinds.clone(), estimate);
            let layout = Layout::of(SET, kinds.len());
            if tree.all {
                return Ok(Stage { node, layout });
            }
            let distinct = DistinctNode { input: node, columns: (0..kinds.len()).collect(), parts, sorted: false };
            return Ok(Stage { node: self.node(Op::Distinct(Arc::new(distinct)), kinds, estimate), layout });
        }
        let left = self.set_input(&tree.left, &tree.columns)?.node;
        let right = self.set_input(&tree.right, &tree.columns)?.node;
        let mut estimate = left.estimate;
        estimate.total += right.estimate.total;
        let layout = Layout::of(SET, kinds.len());
        let node = SetOpNode { operation: tree.operation, all: tree.all, left, right, parts };
        Ok(Stage { node: self.node(Op::SetOp(Arc::new(node)), kinds, estimate), layout })
    }

    /// The arms of nested unions with the same column types, flattened where the duplicates come out the same.
    fn union_inputs(&mut self, tree: &SetTree, columns: &[OutputColumn], out: &mut Vec<PlanNode>) -> Result<()> {
        for input in [&tree.left, &tree.right] {
            match input {
                SetInput::Tree(inner)
                    if inner.operation == SetOperation::Union
                        && (inner.all || !tree.all)
                        && inner.columns.iter().zip(columns).all(|(a, b)| a.ty == b.ty) =>
                {
                    // Duplicates that an inner UNION ALL keeps, an outer UNION drops; the other way round nothing is merged.
                    self.union_inputs(inner, columns, out)?;
                }
                input => out.push(self.set_input(input, columns)?.node),
            }
        }
        Ok(())
    }
}
