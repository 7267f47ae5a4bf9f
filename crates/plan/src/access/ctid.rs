//! Rows that are read by their ctid.

use crate::planner::Planner;
use crate::volatility::is_parameter;
use melba_tree::Expr;

/// A row that is read by its ctid.
pub enum WantedRow {
    /// The row on which a cursor is positioned.
    Cursor(Expr),
    Value(Expr),
}

/// The one row that a condition lets through.
pub fn wanted_row(planner: &Planner<'_>, entry: usize, condition: &Expr) -> Option<WantedRow> {
    let op = match condition {
        Expr::CurrentOf { args } => return args.first().cloned().map(WantedRow::Cursor),
        Expr::Operator(op) if planner.catalog().is_equality(op.operator) => op,
        _ => return None,
    };
    let [a, b] = &op.args[..] else { return None };
    let is_row = |e: &Expr| matches!(e, Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column == -1);
    let other = if is_row(a) { b } else { Some(a).filter(|_| is_row(b))? };
    let is_fixed = is_parameter(other) || matches!(other, Expr::Const(_));
    is_fixed.then(|| WantedRow::Value(other.clone()))
}
