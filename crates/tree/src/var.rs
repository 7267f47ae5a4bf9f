//! References to columns and parameters.

use melba_types::Oid;

use crate::Expr;

/// A column of a range entry, from 1; 0: the whole row; tableoid is -6, cmax -5, xmax -4, cmin -3, xmin -2, ctid -1.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub entry: usize,
    pub column: i16,
    pub levels_up: usize,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// In RETURNING: which version of the row.
    pub version: RowVersion,
    pub location: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVersion {
    Default,
    Old,
    New,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub kind: ParamKind,
    /// `$n` is n; executor parameters number from 0.
    pub number: usize,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    pub location: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Bound by the client or a function call.
    External,
    /// Set by the executor (the planner makes these).
    Executor,
}

impl Var {
    /// A column of a range entry of the same query, which stands at no place of its text.
    pub fn new(entry: usize, column: i16, ty: Oid, typmod: i32, collation: Oid) -> Var {
        Var { entry, column, levels_up: 0, ty, typmod, collation, version: RowVersion::Default, location: -1 }
    }

    /// A column that holds the values of `expr`.
    pub fn holding(expr: &Expr, entry: usize, column: i16) -> Var {
        Var::new(entry, column, expr.ty(), expr.typmod(), expr.collation())
    }
}

/// Makes the columns of a stored expression, which knows one relation, those of the relation's range entry.
pub fn put_on_entry(expr: &mut Expr, entry: usize) {
    expr.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level
        {
            v.entry = entry;
        }
        true
    });
}
