//! The columns of a node's rows.

use melba_tree::{Const, Expr, Var};
use melba_types::{Datum, Oid, oids};

/// Entries that are no range table entries: computed columns of the stage below.
pub(super) const GROUP: usize = usize::MAX;
pub(super) const AGGREGATE: usize = usize::MAX - 1;
pub(super) const GROUPING: usize = usize::MAX - 2;
pub(super) const WINDOW: usize = usize::MAX - 3;
pub(super) const SET: usize = usize::MAX - 4;
pub(super) const TARGET: usize = usize::MAX - 5;
/// A recursive union's working table as a whole.
pub(super) const WORK: usize = usize::MAX - 8;
/// RETURNING's OLD and NEW row of the target.
pub(super) const OLD: usize = usize::MAX - 6;
pub(super) const NEW: usize = usize::MAX - 7;
/// In MERGE: the row that the action left or, of DELETE, had found.
pub(super) const LATEST: usize = usize::MAX - 9;
/// Parts of arguments of aggregates.
pub(super) const COMMON: usize = usize::MAX - 10;

/// For each column, the entry and attribute number it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout(pub Vec<(usize, i16)>);

impl Layout {
    pub fn position(&self, entry: usize, column: i16) -> Option<usize> {
        // Most layouts begin with an entry's columns in order.
        let in_order = usize::try_from(column).ok().and_then(|number| number.checked_sub(1));
        in_order
            .filter(|at| self.0.get(*at) == Some(&(entry, column)))
            .or_else(|| self.0.iter().position(|c| *c == (entry, column)))
    }

    pub fn joined(mut self, other: &Layout) -> Layout {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Columns numbered from 1 of one entry.
    pub fn of(entry: usize, columns: usize) -> Layout {
        Layout((1..=columns as i16).map(|c| (entry, c)).collect())
    }
}

/// A reference to a computed column.
pub(super) fn computed(entry: usize, index: usize, of: &Expr) -> Expr {
    Expr::Var(Var::holding(of, entry, index as i16 + 1))
}

/// A reference to a column of a range table entry.
pub(super) fn column(entry: usize, column: i16, ty: Oid, typmod: i32, collation: Oid) -> Expr {
    Expr::Var(Var::new(entry, column, ty, typmod, collation))
}

/// Equal in everything but the place in the statement.
pub(super) fn same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Var(a), Expr::Var(b)) => {
            a.entry == b.entry && a.column == b.column && a.levels_up == b.levels_up && a.version == b.version
        }
        (Expr::Var(_), _) | (_, Expr::Var(_)) => false,
        _ if std::mem::discriminant(a) != std::mem::discriminant(b) => false,
        _ => signature(a) == signature(b),
    }
}

/// The expression without locations, as text.
pub(super) fn signature(e: &Expr) -> String {
    let mut e = e.clone();
    e.clear_locations();
    format!("{e:?}")
}

pub(super) fn boolean(value: bool) -> Expr {
    Expr::Const(Const { value: Datum::Bool(value), ty: oids::BOOL, typmod: -1, collation: Oid::INVALID, location: -1 })
}

/// Places in a row of the columns of a scan: (column of the row, index into the scan's outputs).
pub fn row_columns(row: &Layout, scan: &Layout) -> Vec<(usize, usize)> {
    scan.0.iter().enumerate().filter_map(|(i, (entry, column))| Some((row.position(*entry, *column)?, i))).collect()
}
