//! Subqueries in expressions that did not become joins: sub-plans.

use std::sync::Arc;

use melba_types::{Oid, Result};

use super::comparison;
use super::fold::makes_rows;
use super::layout::Layout;
use super::node::SubPlanNode;
use super::planner::Planner;
use super::prepare::{lower, refers_out, refers_up};
use super::rels::conjuncts;
use super::volatility;
use melba_expression::Expression;
use melba_expression::key::KeyPart;
use melba_expression::{Node, SubPlan, SubPlanKind, SubPlanTest};
use melba_tree::{Expr, Param, ParamKind, Sublink, SublinkKind, Target, Var};

/// A subquery with a higher cost is not run for every row if there is another way.
const EACH_ROW_COST_MAX: f64 = 10.0;

impl Planner<'_> {
    /// Plans a sublink for evaluation on rows of `layout`.
    pub fn sublink(&mut self, sublink: &Sublink, layout: &Layout) -> Result<Expression> {
        if sublink.kind == SublinkKind::Exists
            && let Some(hashed) = exists_as_any(sublink)
        {
            return cheaper_exists(self, sublink, &hashed, layout);
        }
        sublink_as_is(self, sublink, layout)
    }
}

/// EXISTS runs its subquery for every row, or reads all of it once and looks rows up by hash.
fn cheaper_exists(planner: &mut Planner<'_>, sublink: &Sublink, hashed: &Sublink, layout: &Layout) -> Result<Expression> {
    let used = planner.used.clone();
    let (subplans, ctes, parameters) = (planner.subplans.len(), planner.ctes.len(), planner.parameters.len());
    let each = sublink_as_is(planner, sublink, layout)?;
    let Some(cost) = planner.subplans.last().map(|s| s.node.estimate.total) else { return Ok(each) };
    if cost < EACH_ROW_COST_MAX {
        return Ok(each);
    }
    planner.used = used;
    planner.subplans.truncate(subplans);
    planner.ctes.truncate(ctes);
    planner.parameters.truncate(parameters);
    // Outer levels have noted which parameters carry their columns.
    planner.levels.iter_mut().for_each(|level| level.parameters.retain(|_, number| *number < parameters));
    let mut value = sublink_as_is(planner, hashed, layout)?;
    if let Node::SubPlan(subplan) = &mut value.node {
        let decided = subplan.test.as_ref().is_some_and(|t| t.probes.is_some());
        if !decided {
            return sublink_as_is(planner, sublink, layout);
        }
        subplan.kind = SubPlanKind::ExistsAny;
    }
    Ok(value)
}

fn sublink_as_is(planner: &mut Planner<'_>, sublink: &Sublink, layout: &Layout) -> Result<Expression> {
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
    let saved: Vec<_> = planner.levels.iter_mut().map(|l| std::mem::take(&mut l.parameters)).collect();
    let planned = subquery_alone(planner, sublink);
    for (level, parameters) in planner.levels.iter_mut().zip(saved) {
        level.parameters = parameters;
    }
    let (node, used) = planned?;
    let index = planner.subplans.len();
    let depth = planner.levels.len() - 1;
    let mut args = Vec::new();
    let mut parameters = Vec::new();
    for &parameter in &used {
        let Some((level, entry, column)) = planner.parameters[parameter] else { continue };
        // Those of the subquery's own level are set within it.
        if level > depth {
            continue;
        }
        parameters.push(parameter);
        if entry == super::layout::WORK {
            planner.used.insert(parameter);
            continue;
        }
        let var = Var::new(entry, column, Oid::INVALID, -1, Oid::INVALID);
        let var = Expr::Var(Var { levels_up: depth - level, ..var });
        args.push((parameter, planner.compile(&var, layout)?));
    }
    // The action under way is another one for each row, like a column of it.
    if reads_merge_action(&sublink.query) {
        let action = planner.new_parameter(None);
        parameters.push(action);
        let text = melba_types::oids::TEXT;
        args.push((action, Expression::new(Node::MergeAction, text, planner.kind(text))));
    }
    let is_fixed = parameters.is_empty() && sublink.test.is_none();
    planner.subplans.push(SubPlanNode { node, parameters, probe_keys: Arc::from([]), name: format!("SubPlan {}", index + 1) });
    let test = match &sublink.test {
        Some(test) if sublink.kind != SublinkKind::RowCompare => {
            Some(sub_plan_test(planner, index, sublink.kind, test, columns.len(), layout)?)
        }
        _ => None,
    };
    let element_type = planner.catalog().type_(sublink.ty).map(|t| t.element).unwrap_or_default();
    let is_repeatable = !volatility::query_is_volatile(planner, &sublink.query);
    let subplan = SubPlan { index, kind, args, test, column_types, element_type, is_repeatable, is_fixed };
    let value = Expression::new(Node::SubPlan(Box::new(subplan)), sublink.ty, planner.kind(sublink.ty));
    if sublink.kind != SublinkKind::RowCompare {
        return Ok(value);
    }
    row_test(planner, sublink, value, layout)
}

fn subquery_alone(
    planner: &mut Planner<'_>,
    sublink: &Sublink,
) -> Result<(super::node::PlanNode, std::collections::BTreeSet<usize>)> {
    let outer = std::mem::take(&mut planner.used);
    let result = planner.query(sublink.query.clone(), None);
    let used = std::mem::replace(&mut planner.used, outer);
    Ok((result?.node, used))
}

fn sub_plan_test(
    planner: &mut Planner<'_>,
    index: usize,
    kind: SublinkKind,
    test: &Expr,
    columns: usize,
    layout: &Layout,
) -> Result<SubPlanTest> {
    let first = planner.parameters.len();
    for _ in 0..columns {
        planner.new_parameter(None);
    }
    let condition = planner.compile_in(test, layout, Some(first))?;
    // ANY searches for a row with the key; ALL for a row without it.
    let probes = if kind == SublinkKind::Any { probes(planner, index, test, columns, layout)? } else { None };
    Ok(SubPlanTest { condition, first, columns, probes })
}

/// A test that is a conjunction of equalities with the columns in order can be decided by hashing.
fn probes(
    planner: &mut Planner<'_>,
    index: usize,
    test: &Expr,
    columns: usize,
    layout: &Layout,
) -> Result<Option<Vec<Expression>>> {
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
        let sides = ((left.ty(), left.collation()), (p.ty, p.collation));
        if p.kind != ParamKind::Executor || p.number != i || !comparison::hashes_alike(planner, op, sides.0, sides.1) {
            return Ok(None);
        }
        parts.push(KeyPart::equality(planner.catalog(), (p.ty, p.collation)));
        probes.push(planner.compile(left, layout)?);
    }
    planner.subplans[index].probe_keys = parts.into();
    Ok(Some(probes))
}

/// ROW(...) op (SELECT ...): the test over the fields of the sub-plan's only row, which is computed once.
fn row_test(planner: &mut Planner<'_>, sublink: &Sublink, value: Expression, layout: &Layout) -> Result<Expression> {
    let Some(test) = &sublink.test else { return Ok(value) };
    let types = sublink.query.output_columns();
    let first = planner.parameters.len();
    for _ in 0..types.len() {
        planner.new_parameter(None);
    }
    let condition = planner.compile_in(test, layout, Some(first))?;
    let Node::SubPlan(mut subplan) = value.node else { return Ok(condition) };
    subplan.test = Some(SubPlanTest { condition, first, columns: types.len(), probes: None });
    let bool_ty = melba_types::oids::BOOL;
    Ok(Expression::new(Node::SubPlan(subplan), bool_ty, planner.kind(bool_ty)))
}

/// `EXISTS (SELECT ... WHERE inner = outer AND ...)` as `outer = ANY (SELECT inner ...)`, when no other condition ties it to the
/// outer query.
fn exists_as_any(sublink: &Sublink) -> Option<Sublink> {
    let mut query = sublink.query.clone();
    if makes_rows(&query) || query.limit.is_some() || !query.ctes.is_empty() || query.from.is_empty() {
        return None;
    }
    let mut conditions = Vec::new();
    conjuncts(query.filter.take()?, &mut conditions);
    let (mut kept, mut tests) = (Vec::new(), Vec::new());
    for condition in conditions {
        if !refers_out(&condition) {
            kept.push(condition);
            continue;
        }
        let Expr::Operator(op) = &condition else { return None };
        let [a, b] = &op.args[..] else { return None };
        let (outer, inner) = match (refers_out(a), refers_out(b)) {
            (true, false) if !a.has_vars() => (a, b),
            (false, true) if !b.has_vars() => (b, a),
            _ => return None,
        };
        let mut outer = outer.clone();
        lower(&mut outer);
        let test = lookup(&mut query, op, outer, inner);
        tests.push(Expr::Operator(test));
    }
    if tests.is_empty() {
        return None;
    }
    query.filter = if kept.is_empty() { None } else { Some(Expr::And(kept)) };
    if refers_up(&query, 1) {
        return None;
    }
    let test = if tests.len() == 1 { tests.swap_remove(0) } else { Expr::And(tests) };
    Some(Sublink { kind: SublinkKind::Any, query, test: Some(test), ..sublink.clone() })
}

/// `outer = column`, the column being a new target of the query.
fn lookup(
    query: &mut melba_tree::Query,
    op: &melba_tree::OperatorCall,
    outer: Expr,
    inner: &Expr,
) -> Box<melba_tree::OperatorCall> {
    let number = query.targets.len();
    query.targets.push(Target {
        expr: inner.clone(),
        name: "?column?".into(),
        junk: false,
        reference: 0,
        column: 0,
        origin: (Oid::INVALID, 0),
    });
    let column = Expr::Param(Param {
        kind: ParamKind::Executor,
        number,
        ty: inner.ty(),
        typmod: -1,
        collation: inner.collation(),
        location: -1,
    });
    // Only equality is looked up by hash, and equality commutes.
    Box::new(melba_tree::OperatorCall { args: vec![outer, column], ..op.clone() })
}

fn reads_merge_action(query: &melba_tree::Query) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, _| {
        found |= matches!(e, Expr::MergeAction);
        !found
    });
    found
}
