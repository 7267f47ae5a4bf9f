//! Selectivity of conditions by their form alone.

use melba_tree::Expr;

/// Without statistics, PostgreSQL's defaults: DEFAULT_EQ_SEL, DEFAULT_INEQ_SEL.
pub(super) const EQUAL: f64 = 0.005;
pub(super) const RANGE: f64 = 0.3333;
/// A condition of any other form.
pub(super) const OTHER: f64 = 0.5;

/// The share that passes conditions of which nothing is known but their form.
pub(super) fn default_of(conditions: &[Expr]) -> f64 {
    let of_one = |condition: &Expr| match condition {
        Expr::Operator(_) => RANGE,
        Expr::NullTest { is_null: true, .. } => EQUAL,
        Expr::NullTest { .. } => 1.0 - EQUAL,
        _ => OTHER,
    };
    conditions.iter().map(of_one).product()
}
