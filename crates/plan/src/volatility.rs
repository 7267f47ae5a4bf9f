//! Whether an expression keeps its value: volatile functions, constants, parameters.

use melba_tree::{Expr, Query};
use melba_types::Result;

use super::layout::Layout;
use super::planner::Planner;
use super::rels::{contains_sublink, rels_of};

pub fn has_volatile(planner: &Planner<'_>, expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(0, &mut |e, _| {
        let function = match e {
            Expr::Function(f) => f.function,
            Expr::Operator(o) => o.function,
            Expr::NextValue { .. } => {
                found = true;
                return false;
            }
            _ => return !found,
        };
        found |= planner.catalog().function(function).is_some_and(|f| f.volatility == b'v');
        !found
    });
    found
}

/// `*=`, `*<>`, `*<`, `*>`, `*<=` and `*>=` of pg_operator, which compare the bytes of rows.
const RECORD_IMAGE_OPERATORS: std::ops::RangeInclusive<u32> = 3188..=3193;

/// Whether a condition may hold for one of two rows that GROUP BY takes for equal: it is no condition on their group.
pub fn tells_equal_apart(planner: &Planner<'_>, condition: &Expr) -> bool {
    condition.any(&mut |e| match e {
        Expr::Operator(o) if RECORD_IMAGE_OPERATORS.contains(&o.operator.0) => true,
        Expr::ScalarArray(s) => RECORD_IMAGE_OPERATORS.contains(&s.operator.0),
        // Whatever a condition asks of a text, another one that is equal to it may answer differently.
        e => melba_fmgr::order::equality_collation(planner.catalog(), e.collation()).is_valid(),
    })
}

pub fn query_is_volatile(planner: &Planner<'_>, query: &Query) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, _| {
        found |= match e {
            Expr::Function(f) => planner.catalog().function(f.function).is_some_and(|f| f.volatility == b'v'),
            Expr::NextValue { .. } => true,
            _ => false,
        };
        !found
    });
    found
}

/// Whether an expression has one value for a whole scan, which is known when it begins.
pub fn is_fixed(planner: &mut Planner<'_>, expr: &Expr) -> Result<bool> {
    match expr {
        _ if is_parameter(expr) => Ok(true),
        Expr::Array(array) => array.elements.iter().try_fold(true, |all, element| Ok(all && is_fixed(planner, element)?)),
        _ => is_constant(planner, expr),
    }
}

/// Whether an expression is constant before anything runs: a literal of another type, for example.
fn is_constant(planner: &mut Planner<'_>, expr: &Expr) -> Result<bool> {
    Ok(rels_of(expr) == 0 && !contains_sublink(expr) && planner.compile(expr, &Layout::default())?.as_const().is_some())
}

/// Whether an expression is a parameter, which literals often are, through binary-compatible casts.
pub fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Param(_) => true,
        Expr::Relabel { arg, .. } => is_parameter(arg),
        _ => false,
    }
}
