//! Aggregate calls: which query they belong to, and where they are allowed. GROUPING().

use std::sync::Arc;

use melba_catalog::Function;
use melba_types::{Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::call_syntax::CallSyntax;
use super::context::Context;
use super::scope::ExprKind;
use super::{coerce, sort_key};
use melba_tree::*;

impl ExprKind {
    /// The place as "... are not allowed in" messages have it.
    pub fn noun(self) -> &'static str {
        match self {
            ExprKind::JoinOn | ExprKind::JoinUsing => "JOIN conditions",
            ExprKind::FromSubselect => "FROM clause of their own query level",
            ExprKind::FromFunction => "functions in FROM",
            ExprKind::Policy => "policy expressions",
            ExprKind::MergeWhen => "MERGE WHEN conditions",
            ExprKind::CheckConstraint | ExprKind::DomainCheck => "check constraints",
            ExprKind::ColumnDefault | ExprKind::FunctionDefault => "DEFAULT expressions",
            ExprKind::IndexExpression => "index expressions",
            ExprKind::IndexPredicate => "index predicates",
            ExprKind::AlterColumnTransform => "transform expressions",
            ExprKind::ExecuteParameter => "EXECUTE parameters",
            ExprKind::TriggerWhen => "trigger WHEN conditions",
            ExprKind::PartitionBound => "partition bound",
            ExprKind::PartitionExpression => "partition key expressions",
            ExprKind::StatisticsExpression => "statistics expressions",
            ExprKind::CallArgument => "CALL arguments",
            ExprKind::CopyWhere => "COPY FROM WHERE conditions",
            ExprKind::GeneratedColumn => "column generation expressions",
            other => other.name(),
        }
    }
}

/// Builds an aggregate call from a resolved call.
pub fn aggregate_call<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    syntax: &CallSyntax<'p>,
    function: &Arc<Function>,
    call: FunctionCall,
    filter: Option<Expr>,
    shown: &str,
    names: &[&str],
) -> Result<Expr> {
    let n = syntax.node;
    let location = n.location;
    if n.args.is_empty() && !n.agg_star && !n.agg_within_group {
        return Err(err!(WRONG_OBJECT_TYPE, "{shown}(*) must be used to call a parameterless aggregate function").at(location));
    }
    if call.returns_set {
        return Err(err!(INVALID_FUNCTION_DEFINITION, "aggregates cannot return sets").at(location));
    }
    if !names.is_empty() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "aggregates cannot use named arguments").at(location));
    }
    let mut args = call.args;
    let mut direct_args = Vec::new();
    let mut order_by = Vec::new();
    if n.agg_within_group {
        let aggregated = args.split_off(args.len() - n.agg_order.len());
        direct_args = std::mem::replace(&mut args, aggregated);
        for (arg, node) in args.iter().zip(&n.agg_order) {
            order_by.push(aggregate_order(analyzer.cx(), arg.clone(), node)?);
        }
    } else {
        order_by = aggregate_order_by(analyzer, &n.agg_order, &args, n.agg_distinct)?;
    }
    if n.agg_distinct {
        check_distinct(analyzer, &mut args, &order_by)?;
    }
    finish(
        analyzer,
        AggregateCall {
            function: function.oid,
            args,
            direct_args,
            star: n.agg_star,
            distinct: n.agg_distinct,
            order_by,
            filter,
            ordered_set: n.agg_within_group,
            variadic: call.variadic,
            ty: call.ty,
            collation: Oid::INVALID,
            input_collation: Oid::INVALID,
            levels_up: 0,
            location,
        },
    )
}

/// Finds the query level of an aggregate whose parts are known, and whether it is allowed there.
pub fn finish(analyzer: &mut Analyzer<'_, '_>, mut call: AggregateCall) -> Result<Expr> {
    let (filter, location) = (call.filter.as_ref(), call.location);
    call.levels_up = aggregate_level(&call.args, &call.direct_args, &call.order_by, filter, location)?;
    check_place(analyzer, call.levels_up, location, "aggregate functions")?;
    analyzer.level_up_mut(call.levels_up).has_aggregates = true;
    Ok(Expr::Aggregate(Box::new(call)))
}

/// ORDER BY among an aggregate's arguments.
pub fn aggregate_order_by<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    nodes: &'p [pb::Node],
    args: &[Expr],
    distinct: bool,
) -> Result<Vec<AggregateOrder>> {
    let mut order_by = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Some(pg_query::NodeEnum::SortBy(sort)) = &node.node else { continue };
        let Some(expr) = sort.node.as_deref() else { continue };
        let e = order_argument(analyzer, expr, args, distinct)?;
        order_by.push(aggregate_order(analyzer.cx(), e, node)?);
    }
    Ok(order_by)
}

/// The arguments of DISTINCT must have an equality, and those of ORDER BY be among them.
fn check_distinct(analyzer: &mut Analyzer<'_, '_>, args: &mut [Expr], order_by: &[AggregateOrder]) -> Result<()> {
    for arg in args.iter_mut() {
        *arg = coerce::resolve_unknown(analyzer, arg.clone())?;
        if !analyzer.cx().catalog.type_operators(arg.ty()).equal.is_valid() {
            let ty = analyzer.cx().type_name(arg.ty());
            return Err(err!(UNDEFINED_FUNCTION, "could not identify an equality operator for type {ty}").at(arg.location()));
        }
    }
    for order in order_by {
        if !args.iter().any(|a| equal(a, &order.expr)) {
            return Err(not_in_arguments(order.expr.location()));
        }
    }
    Ok(())
}

/// An expression of an aggregate's ORDER BY: an argument, if it is the same.
fn order_argument<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::Node, args: &[Expr], distinct: bool) -> Result<Expr> {
    let e = analyzer.expression(node, ExprKind::OrderBy)?;
    // The arguments have their types by now, so that a literal without one equals none of them.
    if distinct && e.ty() == oids::UNKNOWN && args.iter().all(|a| a.ty() != oids::UNKNOWN) {
        return Err(not_in_arguments(e.location()));
    }
    let own = |a: &&Expr| equal(&e, a) || equal(&e, super::coerce::strip_implicit(a));
    let e = args.iter().find(own).cloned().unwrap_or(e);
    coerce::resolve_unknown(analyzer, e)
}

fn aggregate_order(cx: &Context<'_>, expr: Expr, node: &pb::Node) -> Result<AggregateOrder> {
    let Some(pg_query::NodeEnum::SortBy(sort)) = &node.node else {
        return Err(melba_types::DbError::internal("unrecognized ORDER BY item"));
    };
    let key = sort_key::sort_key(cx, expr.ty(), sort, expr.location())?;
    Ok(AggregateOrder { expr, sort: key.sort, equal: key.equal, descending: key.descending, nulls_first: key.nulls_first })
}

/// The query level an aggregate belongs to: that of its innermost variable.
fn aggregate_level(
    args: &[Expr],
    direct: &[Expr],
    order: &[AggregateOrder],
    filter: Option<&Expr>,
    location: i32,
) -> Result<usize> {
    let mut levels = Levels::default();
    args.iter().for_each(|a| levels.look(a));
    order.iter().for_each(|o| levels.look(&o.expr));
    filter.iter().for_each(|f| levels.look(f));
    if levels.window {
        return Err(
            err!(GROUPING_ERROR, "aggregate function calls cannot contain window function calls").at(levels.window_location)
        );
    }
    if let Some(srf) = levels.set_returning {
        return Err(err!(FEATURE_NOT_SUPPORTED, "aggregate function calls cannot contain set-returning function calls")
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(srf));
    }
    let level = match (levels.variable, levels.aggregate) {
        (None, None) => 0,
        (None, Some((a, _))) => a,
        (Some(v), None) => v,
        (Some(v), Some((a, _))) => v.min(a),
    };
    if let Some((inner, at)) = levels.aggregate
        && inner == level
    {
        return Err(err!(GROUPING_ERROR, "aggregate function calls cannot be nested").at(at));
    }
    let mut own = Levels::default();
    direct.iter().for_each(|a| own.look(a));
    if own.variable.is_some_and(|v| v < level) {
        return Err(err!(GROUPING_ERROR, "outer-level aggregate cannot contain a lower-level variable in its direct arguments")
            .at(location));
    }
    if let Some((inner, at)) = own.aggregate
        && inner <= level
    {
        return Err(err!(GROUPING_ERROR, "aggregate function calls cannot be nested").at(at));
    }
    Ok(level)
}

fn check_place(analyzer: &mut Analyzer<'_, '_>, levels_up: usize, location: i32, what: &str) -> Result<()> {
    let kind = analyzer.level_up_mut(levels_up).kind.0;
    let allowed = matches!(
        kind,
        ExprKind::None
            | ExprKind::Other
            | ExprKind::Having
            | ExprKind::WindowPartition
            | ExprKind::WindowOrder
            | ExprKind::SelectTarget
            | ExprKind::OrderBy
            | ExprKind::DistinctOn
    );
    if allowed {
        return Ok(());
    }
    Err(err!(GROUPING_ERROR, "{what} are not allowed in {}", kind.noun()).at(location))
}

pub fn grouping_function<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::GroupingFunc) -> Result<Expr> {
    const ARGUMENTS_MAX: usize = 31;
    if n.args.len() > ARGUMENTS_MAX {
        return Err(err!(TOO_MANY_ARGUMENTS, "GROUPING must have fewer than 32 arguments").at(n.location));
    }
    let mut args = Vec::with_capacity(n.args.len());
    for arg in &n.args {
        args.push(analyzer.expr(arg)?);
    }
    let levels_up = aggregate_level(&args, &[], &[], None, n.location)?;
    check_place(analyzer, levels_up, n.location, "grouping operations")?;
    analyzer.level_up_mut(levels_up).has_aggregates = true;
    Ok(Expr::Grouping { args, references: Vec::new(), levels_up, location: n.location })
}

fn not_in_arguments(location: i32) -> melba_types::DbError {
    err!(INVALID_COLUMN_REFERENCE, "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
        .at(location)
}

/// The lowest query levels that an aggregate's arguments mention.
#[derive(Default)]
struct Levels {
    variable: Option<usize>,
    aggregate: Option<(usize, i32)>,
    window: bool,
    window_location: i32,
    set_returning: Option<i32>,
}

impl Levels {
    fn look(&mut self, e: &Expr) {
        e.visit(0, &mut |e, level| {
            match e {
                Expr::Var(v) if v.levels_up >= level => {
                    let up = v.levels_up - level;
                    self.variable = Some(self.variable.map_or(up, |m| m.min(up)));
                }
                Expr::Aggregate(a) if a.levels_up >= level => {
                    let up = a.levels_up - level;
                    if self.aggregate.is_none_or(|(m, _)| up < m) {
                        self.aggregate = Some((up, a.location));
                    }
                    return false;
                }
                Expr::Grouping { levels_up, .. } if *levels_up >= level => {
                    let up = levels_up - level;
                    if self.aggregate.is_none_or(|(m, _)| up < m) {
                        self.aggregate = Some((up, e.location()));
                    }
                }
                Expr::Window(w) if level == 0 => {
                    self.window = true;
                    self.window_location = w.location;
                }
                Expr::Function(f) if level == 0 && f.returns_set => self.set_returning = Some(f.location),
                Expr::Operator(o) if level == 0 && o.returns_set => self.set_returning = Some(o.location),
                _ => {}
            }
            true
        });
    }
}
