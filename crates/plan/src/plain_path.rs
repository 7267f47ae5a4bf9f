//! Paths without a choice: an entry that is read as it is, and a filter above a path.

use std::rc::Rc;

use super::path::{Access, LeafPath, Path, PathKind};
use super::planner::Planner;
use super::rels::{Rels, rels_of};
use super::selectivity;
use melba_tree::Expr;

/// Work on one row or pair, as PostgreSQL's cpu_tuple_cost.
pub(super) const CPU: f64 = 0.01;
/// An element that is read from an array, beside the comparison: measured, 40 ns a pair of rows.
const ELEMENT: f64 = 0.05;
/// A row of a segment in a sequential scan.
pub(super) const SEQUENTIAL_ROW: f64 = 0.008;
/// Calling a function for its rows takes about as long as a lookup in a system relation.
const FUNCTION_SCAN: f64 = 0.5;

pub fn filter_path(planner: &Planner<'_>, input: Rc<Path>, conditions: Vec<Expr>) -> Rc<Path> {
    let sel = selectivity::conjunction(planner, &conditions);
    // Of a lateral subquery they may be about relations that are joined above.
    let refers = conditions.iter().fold(0, |all, c| all | rels_of(c));
    Rc::new(Path {
        rels: input.rels,
        params: input.params | refers & !input.rels,
        rows: (input.rows * sel).max(1.0),
        startup: input.startup,
        total: input.total + input.rows * effort(&conditions),
        ordered: input.ordered,
        used: input.used.clone(),
        kind: PathKind::Filter { input, conditions },
    })
}

/// The cost of evaluating conditions on a row.
pub fn effort<'e>(conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
    let elements = |condition: &Expr| {
        let mut elements = 0.0;
        condition.any(&mut |e| {
            elements += f64::from(u8::from(matches!(e, Expr::Subscript(_))));
            false
        });
        elements
    };
    conditions.into_iter().map(|condition| CPU + ELEMENT * elements(condition)).sum()
}

/// Other entries of this level that conditions on an entry refer to.
pub fn parameters_of(conditions: &[Expr], entry: usize) -> Rels {
    conditions.iter().fold(0, |all, c| all | rels_of(c)) & !(1 << entry)
}

pub fn simple_path(planner: &Planner<'_>, entry: usize, access: Access, own: &[Expr], params: Rels, rows: f64) -> Rc<Path> {
    let sel = selectivity::conjunction(planner, own);
    let startup = if matches!(access, Access::Function | Access::JsonTable) { FUNCTION_SCAN } else { 0.01 };
    Rc::new(Path {
        rels: 1 << entry,
        params: params & !(1 << entry),
        rows: (rows * sel).max(1.0),
        startup: 0.0,
        total: rows * SEQUENTIAL_ROW + startup,
        ordered: 0,
        used: vec![],
        kind: PathKind::Leaf(LeafPath { entry, access, filter: own.to_vec() }),
    })
}
