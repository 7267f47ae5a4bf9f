//! Expressions that raise no error, whatever rows they are evaluated for: also for rows that PostgreSQL would not evaluate them for.

use melba_types::{Datum, Oid};

use super::planner::Planner;
use melba_tree::{Const, Expr, OperatorCall};

/// Whether an expression may raise an error for some row.
pub(super) fn may_fail(planner: &Planner<'_>, expr: &Expr) -> bool {
    expr.any(&mut |e| match e {
        Expr::Const(_)
        | Expr::Var(_)
        | Expr::Param(_)
        | Expr::Relabel { .. }
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::NullTest { .. }
        | Expr::BooleanTest { .. }
        | Expr::Coalesce { .. }
        | Expr::Case(_)
        | Expr::Array(_)
        | Expr::Aggregate(_) => false,
        // Folded when it is planned, where it fails in either form.
        Expr::Operator(op) if !e.has_vars() && op.args.iter().all(|a| matches!(a, Expr::Const(_))) => false,
        Expr::Operator(op) => !(cannot_fail(planner, op.operator, op.function) || is_valid_pattern(planner, op)),
        Expr::ScalarArray(list) => !cannot_fail(planner, list.operator, list.function),
        _ => true,
    })
}

/// Comparisons, and arithmetic of numeric: it has no overflow that stored values reach.
fn cannot_fail(planner: &Planner<'_>, operator: Oid, function: Oid) -> bool {
    let catalog = planner.catalog();
    let is_comparison = |operator| catalog.is_equality(operator) || catalog.btree_strategy(operator).is_some();
    is_comparison(operator)
        || catalog.operator(operator).is_some_and(|o| is_comparison(o.negator))
        || catalog.function(function).is_some_and(|f| matches!(&*f.source, "numeric_add" | "numeric_sub" | "numeric_mul"))
}

/// LIKE with a pattern that does not end within an escape.
fn is_valid_pattern(planner: &Planner<'_>, op: &OperatorCall) -> bool {
    let source = planner.catalog().function(op.function).map(|f| &*f.source);
    let is_like = matches!(source, Some("textlike" | "textnlike" | "bpcharlike" | "bpcharnlike"));
    match op.args.get(1) {
        Some(Expr::Const(Const { value: Datum::Text(pattern), .. })) if is_like => {
            pattern.bytes().rev().take_while(|byte| *byte == b'\\').count().is_multiple_of(2)
        }
        _ => false,
    }
}
