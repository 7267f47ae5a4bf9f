//! GROUP BY, aggregates, GROUPING SETS, HAVING.

use std::sync::Arc;

use melba_catalog::Function;
use melba_functions::registry;
use melba_types::{DbError, Kind, Oid, Result};

use super::layout::{AGGREGATE, GROUP, GROUPING, Layout, computed, same, signature};
use super::node::*;
use super::planner::{Planner, Stage};
use super::query::target_of;
use crate::execute::expression::{Call, Target as CallTarget};
use crate::execute::key::KeyPart;
use crate::tree::{AggregateCall, Expr, Query};

/// What is computed by the aggregation, in the order of its output.
struct Computed {
    groups: Vec<Expr>,
    aggregates: Vec<Expr>,
    groupings: Vec<(Expr, Vec<usize>)>,
}

impl Planner<'_> {
    /// Aggregates the rows of `stage`; the query's targets, HAVING and windows then refer to the results.
    pub fn group(&mut self, query: &mut Query, stage: Stage) -> Result<Stage> {
        let mut groups = Vec::with_capacity(query.group_by.len());
        for group in &query.group_by {
            let Some(target) = target_of(&query.targets, group) else {
                return Err(DbError::internal("GROUP BY column is no target"));
            };
            groups.push(target.expr.clone());
        }
        let mut all = Computed { groups, aggregates: vec![], groupings: vec![] };
        let mut having = Vec::new();
        if let Some(condition) = query.having.take() {
            super::prepare::conjuncts(condition, &mut having);
        }
        let signatures: Vec<String> = all.groups.iter().map(signature).collect();
        query.targets.iter_mut().for_each(|t| replace(&mut t.expr, 0, &mut all, &signatures));
        having.iter_mut().for_each(|e| replace(e, 0, &mut all, &signatures));
        for window in &mut query.windows {
            use crate::tree::FrameBound::{Following, Preceding};
            for bound in [&mut window.frame.start, &mut window.frame.end] {
                if let Preceding(e) | Following(e) = bound {
                    replace(e, 0, &mut all, &signatures);
                }
            }
        }
        // Columns that depend on the grouped ones follow them in every set.
        let dependent = signatures.len()..all.groups.len();
        let mut sets = query.grouping_sets.clone().unwrap_or_else(|| vec![(0..signatures.len()).collect()]);
        sets.iter_mut().for_each(|set| set.extend(dependent.clone()));
        self.aggregate(all, sets, having, stage)
    }

    fn aggregate(&mut self, all: Computed, sets: Vec<Vec<usize>>, having: Vec<Expr>, stage: Stage) -> Result<Stage> {
        let input = stage.layout;
        let groups = self.compile_all(&all.groups, &input)?;
        let parts = all.groups.iter().map(|g| KeyPart::equality(self.catalog(), g.ty())).collect();
        let mut aggregates = Vec::with_capacity(all.aggregates.len());
        for call in &all.aggregates {
            if let Expr::Aggregate(call) = call {
                aggregates.push(self.aggregate_spec(call, &input)?);
            }
        }
        let mut kinds: Vec<Kind> = groups.iter().map(|g| g.kind).collect();
        kinds.extend(aggregates.iter().map(|a: &AggregateSpec| a.kind));
        kinds.extend(all.groupings.iter().map(|_| Kind::Int4));
        let mut layout = Layout::of(GROUP, groups.len());
        layout = layout.joined(&Layout::of(AGGREGATE, aggregates.len()));
        layout = layout.joined(&Layout::of(GROUPING, all.groupings.len()));
        let compiled = self.compile_all(&having, &layout)?;
        self.note_computed(GROUP, &all.groups);
        self.note_computed(AGGREGATE, &all.aggregates);
        let below = stage.node.estimate;
        let rows = if groups.is_empty() { 1.0 } else { (below.rows * 0.1).clamp(1.0, 200.0_f64.max(below.rows * 0.1)) };
        let total = below.total + below.rows * 0.01 * (1 + aggregates.len()) as f64;
        let estimate = Estimate { startup: total, total: total + rows * 0.01, rows };
        let node = AggregateNode {
            input: stage.node,
            groups,
            parts,
            sets,
            aggregates,
            groupings: all.groupings.into_iter().map(|(_, g)| g).collect(),
            having: compiled,
        };
        let mut node = self.node(Op::Aggregate(Arc::new(node)), kinds.into(), estimate);
        if !all.groups.is_empty() {
            self.detail(&mut node, "Group Key", || super::explain::list(self, &all.groups));
        }
        if !having.is_empty() {
            self.detail(&mut node, "Filter", || super::explain::conjunction(self, &having));
        }
        Ok(Stage { node, layout })
    }

    fn aggregate_spec(&mut self, call: &AggregateCall, input: &Layout) -> Result<AggregateSpec> {
        let Some(function) = self.catalog().function(call.function).cloned() else {
            return Err(DbError::internal(format!("aggregate {} does not exist", call.function)));
        };
        let (make, strict) = self.aggregate_function(&function)?;
        let hypothetical = function.aggregate.as_ref().is_some_and(|a| a.kind == b'h');
        let exprs: Vec<Expr> = call.direct_args.iter().chain(&call.args).cloned().collect();
        let args = self.compile_all(&exprs, input)?;
        let distinct = call.distinct.then(|| exprs.iter().map(|e| KeyPart::equality(self.catalog(), e.ty())).collect());
        let mut order = Vec::with_capacity(call.order_by.len());
        for key in &call.order_by {
            let part = KeyPart::new(self.catalog(), key.expr.ty(), key.descending, key.nulls_first);
            order.push((self.compile(&key.expr, input)?, part));
        }
        let filter = call.filter.as_ref().map(|f| self.compile(f, input)).transpose()?;
        Ok(AggregateSpec {
            make,
            kind: self.kind(call.ty),
            strict,
            call: Call {
                target: CallTarget::System(function.name.clone()),
                vector: None,
                stored: None,
                strict,
                volatile: false,
                arg_types: args.iter().map(|a| a.ty).collect(),
                args,
                return_type: call.ty,
                collation: call.input_collation,
                variadic: call.variadic,
                columns: None,
                location: call.location,
            },
            filter,
            distinct,
            order,
            hypothetical: hypothetical.then_some(call.direct_args.len()),
        })
    }

    /// The implementation of an aggregate, and whether its transition function is strict.
    pub fn aggregate_function(&self, function: &Function) -> Result<(melba_functions::AggregateFn, bool)> {
        let unsupported = || DbError::unsupported(format!("aggregate function {}", function.name));
        let info = function.aggregate.as_ref().ok_or_else(unsupported)?;
        let source = |oid: Oid| self.catalog().function(oid).map(|f| f.source.clone()).unwrap_or_default();
        let transition = self.catalog().function(info.transition);
        let strict = transition.is_some_and(|f| f.strict);
        let make = registry::aggregate(&source(info.transition), &source(info.final_function)).ok_or_else(unsupported)?;
        Ok((make, strict))
    }
}

/// Replaces grouped expressions, aggregates and GROUPING of this level by references to what the aggregation computes.
fn replace(e: &mut Expr, level: usize, all: &mut Computed, signatures: &[String]) {
    e.visit_mut(level, &mut |e, level| {
        match e {
            Expr::Aggregate(a) if a.levels_up == level => {
                let mut own = e.clone();
                // Seen from the aggregation's own level.
                if let Expr::Aggregate(a) = &mut own {
                    a.levels_up = 0;
                }
                if level > 0 {
                    lower(&mut own, level);
                }
                let at = match all.aggregates.iter().position(|x| same(x, &own)) {
                    Some(at) => at,
                    None => {
                        all.aggregates.push(own);
                        all.aggregates.len() - 1
                    }
                };
                *e = at_level(computed(AGGREGATE, at, e), level);
                return false;
            }
            Expr::Grouping { references, levels_up, .. } if *levels_up == level => {
                let references = references.clone();
                all.groupings.push((e.clone(), references));
                *e = at_level(computed(GROUPING, all.groupings.len() - 1, e), level);
                return false;
            }
            Expr::Const(_) | Expr::Param(_) => return true,
            Expr::Var(v) if v.levels_up != level => return true,
            _ => {}
        }
        let at = if level == 0 {
            let mine = if matches!(e, Expr::Var(_)) { String::new() } else { signature(e) };
            all.groups.iter().zip(signatures).position(|(g, s)| match (g, &*e) {
                (Expr::Var(_), Expr::Var(_)) => same(g, e),
                (Expr::Var(_), _) | (_, Expr::Var(_)) => false,
                _ => *s == mine,
            })
        } else if let Expr::Var(v) = e {
            all.groups.iter().position(|g| matches!(g, Expr::Var(x) if x.entry == v.entry && x.column == v.column))
        } else {
            None
        };
        if let Some(at) = at {
            *e = at_level(computed(GROUP, at, e), level);
            return false;
        }
        if let Expr::Var(_) = e {
            // The grouped columns hold a key of its table: to group by it as well changes no group.
            let own = at_level(e.clone(), 0);
            let known = all.groups[signatures.len()..].iter().position(|g| same(g, &own));
            let at = signatures.len() + known.unwrap_or(all.groups.len() - signatures.len());
            if at == all.groups.len() {
                all.groups.push(own);
            }
            *e = at_level(computed(GROUP, at, e), level);
            return false;
        }
        true
    });
}

fn at_level(mut e: Expr, level: usize) -> Expr {
    if let Expr::Var(v) = &mut e {
        v.levels_up = level;
    }
    e
}

/// An expression that moves `by` levels outwards.
fn lower(e: &mut Expr, by: usize) {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up >= level + by
        {
            v.levels_up -= by;
        }
        true
    });
}
