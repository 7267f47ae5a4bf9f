//! Guesses of how many rows pass: without statistics of values, by the form of the condition.

use melba_tree::{BooleanTest, Expr};

pub(super) const EQUAL: f64 = 0.005;
const RANGE: f64 = 0.3333;
const OTHER: f64 = 0.5;

/// The share of rows that pass one condition.
pub(super) fn of(condition: &Expr, is_equality: &dyn Fn(melba_types::Oid) -> bool) -> f64 {
    match condition {
        Expr::Operator(op) if is_equality(op.operator) => EQUAL,
        Expr::Operator(_) => RANGE,
        Expr::ScalarArray(_) => (EQUAL * 5.0).min(0.5),
        Expr::And(args) => args.iter().map(|a| of(a, is_equality)).product(),
        Expr::Or(args) => args.iter().map(|a| of(a, is_equality)).sum::<f64>().min(1.0),
        Expr::Not(arg) => 1.0 - of(arg, is_equality),
        Expr::NullTest { is_null: true, .. } => EQUAL,
        Expr::NullTest { .. } => 1.0 - EQUAL,
        Expr::BooleanTest { test: BooleanTest::Unknown, .. } => EQUAL,
        _ => OTHER,
    }
}

/// The same without knowing operators.
pub(super) fn default_of(conditions: &[Expr]) -> f64 {
    conditions.iter().map(|c| of(c, &|_| false)).product()
}
