//! Rows that are read by their ctid.

use crate::planner::Planner;
use crate::selectivity;
use crate::volatility::{is_fixed, is_parameter};
use melba_tree::{Expr, OperatorCall};
use melba_types::{Datum, Result, oids};

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
    let (other, _) = compared(entry, op)?;
    let is_fixed = is_parameter(other) || matches!(other, Expr::Const(_));
    is_fixed.then(|| WantedRow::Value(other.clone()))
}

/// What an operator compares the ctid with, and whether that is the left side.
fn compared(entry: usize, op: &OperatorCall) -> Option<(&Expr, bool)> {
    let [a, b] = &op.args[..] else { return None };
    let is_row = |e: &Expr| matches!(e, Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column == -1);
    if is_row(a) { Some((b, false)) } else { is_row(b).then_some((a, true)) }
}

/// An end of a range of ctids.
pub struct RowEnd {
    pub value: Expr,
    pub is_upper: bool,
    pub is_inclusive: bool,
}

/// The end that a condition such as `ctid < value` makes, when the value is known before the scan begins.
pub fn row_end(planner: &mut Planner<'_>, entry: usize, condition: &Expr) -> Result<Option<RowEnd>> {
    let Expr::Operator(op) = condition else { return Ok(None) };
    let Some((value, flipped)) = compared(entry, op) else { return Ok(None) };
    let strategy = planner.catalog().btree_strategy(op.operator).map(|(_, strategy)| strategy);
    let (is_upper, is_inclusive) = match (strategy, flipped) {
        (Some(1), false) | (Some(5), true) => (true, false),
        (Some(2), false) | (Some(4), true) => (true, true),
        (Some(4), false) | (Some(2), true) => (false, true),
        (Some(5), false) | (Some(1), true) => (false, false),
        _ => return Ok(None),
    };
    if value.ty() != oids::TID || !is_fixed(planner, value)? {
        return Ok(None);
    }
    Ok(Some(RowEnd { value: value.clone(), is_upper, is_inclusive }))
}

/// How many rows conditions on the ctid let through at most, as far as their values are known; and the other conditions.
pub fn rows_between<'a>(planner: &mut Planner<'_>, entry: usize, conditions: &'a [Expr]) -> Result<(f64, Vec<&'a Expr>)> {
    let (mut from, mut to, mut others) = (0.0_f64, f64::INFINITY, Vec::with_capacity(conditions.len()));
    for condition in conditions {
        let end = row_end(planner, entry, condition)?;
        match end.and_then(|end| Some((end.is_upper, selectivity::constant(planner, &end.value)?))) {
            Some((true, Datum::Int8(id))) => to = to.min(id as u64 as f64),
            Some((false, Datum::Int8(id))) => from = from.max(id as u64 as f64),
            _ => others.push(condition),
        }
    }
    Ok(((to - from).max(0.0) + 1.0, others))
}
