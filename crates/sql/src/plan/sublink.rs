//! Subqueries in expressions that did not become joins: sub-plans.

use std::sync::Arc;

use melba_types::{Oid, Result};

use super::layout::Layout;
use super::node::SubPlanNode;
use super::planner::Planner;
use crate::execute::Expression;
use crate::execute::expression::{Node, SubPlan, SubPlanKind, SubPlanTest};
use crate::execute::key::KeyPart;
use crate::tree::{Expr, ParamKind, RowVersion, Sublink, SublinkKind, Var};

impl Planner<'_> {
    /// Plans a sublink for evaluation on rows of `layout`.
    pub fn sublink(&mut self, sublink: &Sublink, layout: &Layout) -> Result<Expression> {
        let kind = match sublink.kind {
            SublinkKind::Exists => SubPlanKind::Exists,
            SublinkKind::Any => SubPlanKind::Any,
            SublinkKind::All => SubPlanKind::All,
            SublinkKind::Expr => SubPlanKind::Scalar,
            SublinkKind::RowCompare => SubPlanKind::Record,
            SublinkKind::MultiExpr => SubPlanKind::Record,
            SublinkKind::Array => SubPlanKind::Array,
        };
        let columns = sublink.query.output_columns();
        let column_types: Arc<[Oid]> = columns.iter().map(|c| c.ty).collect();
        // The parameters of other loops must not be overwritten while they run: a sub-plan has its own.
        let saved: Vec<_> = self.levels.iter_mut().map(|l| std::mem::take(&mut l.parameters)).collect();
        let planned = self.subquery_alone(sublink);
        for (level, parameters) in self.levels.iter_mut().zip(saved) {
            level.parameters = parameters;
        }
        let (node, used) = planned?;
        let index = self.subplans.len();
        let depth = self.levels.len() - 1;
        let mut args = Vec::new();
        let mut parameters = Vec::new();
        for &parameter in &used {
            let Some((level, entry, column)) = self.parameters[parameter] else { continue };
            // Those of the subquery's own level are set within it.
            if level > depth {
                continue;
            }
            parameters.push(parameter);
            let var = Expr::Var(Var {
                entry,
                column,
                levels_up: depth - level,
                ty: Oid::INVALID,
                typmod: -1,
                collation: Oid::INVALID,
                version: RowVersion::Default,
                location: -1,
            });
            args.push((parameter, self.compile(&var, layout)?));
        }
        self.subplans.push(SubPlanNode { node, parameters, probe_keys: Arc::from([]), name: format!("SubPlan {}", index + 1) });
        let test = match &sublink.test {
            Some(test) if sublink.kind != SublinkKind::RowCompare => Some(self.test(index, test, columns.len(), layout)?),
            _ => None,
        };
        let element_type = column_types.first().copied().unwrap_or_default();
        let subplan = SubPlan { index, kind, args, test, column_types, element_type };
        let value = Expression::new(Node::SubPlan(Box::new(subplan)), sublink.ty, self.kind(sublink.ty));
        if sublink.kind != SublinkKind::RowCompare {
            return Ok(value);
        }
        self.row_test(sublink, value, layout)
    }

    fn subquery_alone(&mut self, sublink: &Sublink) -> Result<(super::node::PlanNode, std::collections::BTreeSet<usize>)> {
        let outer = std::mem::take(&mut self.used);
        let result = self.query(sublink.query.clone(), None);
        let used = std::mem::replace(&mut self.used, outer);
        Ok((result?.node, used))
    }

    fn test(&mut self, index: usize, test: &Expr, columns: usize, layout: &Layout) -> Result<SubPlanTest> {
        let first = self.parameters.len();
        for _ in 0..columns {
            self.new_parameter(None);
        }
        let condition = self.compile_in(test, layout, Some(first))?;
        let probes = self.probes(index, test, columns, layout)?;
        Ok(SubPlanTest { condition, first, columns, probes })
    }

    /// A test that is a conjunction of equalities with the columns in order can be decided by hashing.
    fn probes(&mut self, index: usize, test: &Expr, columns: usize, layout: &Layout) -> Result<Option<Vec<Expression>>> {
        let conjuncts: Vec<&Expr> = match test {
            Expr::And(args) => args.iter().collect(),
            other => vec![other],
        };
        if conjuncts.len() != columns {
            return Ok(None);
        }
        let mut probes = Vec::with_capacity(columns);
        let mut parts = Vec::with_capacity(columns);
        for (i, conjunct) in conjuncts.into_iter().enumerate() {
            let Expr::Operator(op) = conjunct else { return Ok(None) };
            let [left, Expr::Param(p)] = &op.args[..] else { return Ok(None) };
            if p.kind != ParamKind::Executor || p.number != i || !self.hashes_alike(op.operator, left.ty(), p.ty) {
                return Ok(None);
            }
            parts.push(KeyPart::equality(self.catalog(), p.ty));
            probes.push(self.compile(left, layout)?);
        }
        self.subplans[index].probe_keys = parts.into();
        Ok(Some(probes))
    }

    /// ROW(...) op (SELECT ...): the test over the fields of the sub-plan's only row, which is computed once.
    fn row_test(&mut self, sublink: &Sublink, value: Expression, layout: &Layout) -> Result<Expression> {
        let Some(test) = &sublink.test else { return Ok(value) };
        let types = sublink.query.output_columns();
        let first = self.parameters.len();
        for _ in 0..types.len() {
            self.new_parameter(None);
        }
        let condition = self.compile_in(test, layout, Some(first))?;
        let Node::SubPlan(mut subplan) = value.node else { return Ok(condition) };
        subplan.test = Some(SubPlanTest { condition, first, columns: types.len(), probes: None });
        let bool_ty = melba_types::oids::BOOL;
        Ok(Expression::new(Node::SubPlan(subplan), bool_ty, self.kind(bool_ty)))
    }
}
