//! Sets of range table entries, and which of them an expression refers to.

use melba_types::{DbError, Result};

use melba_tree::Expr;

/// A set of range table entries.
pub(super) type Rels = u128;

pub(super) fn bit(entry: usize) -> Result<Rels> {
    if entry >= 128 {
        return Err(DbError::unsupported("a query over more than 128 relations"));
    }
    Ok(1 << entry)
}

/// Whether an entry is in a set.
pub(super) fn has(rels: Rels, entry: usize) -> bool {
    entry < 128 && rels >> entry & 1 != 0
}

/// Entries of the query's own level that an expression refers to.
pub(super) fn rels_of(expr: &Expr) -> Rels {
    let mut rels: Rels = 0;
    expr.visit_vars(&mut |v| rels |= 1 << v.entry.min(127));
    rels
}

/// Splits a condition into its conjuncts.
pub(super) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(args) => args.into_iter().for_each(|a| conjuncts(a, out)),
        other => out.push(other),
    }
}

pub(super) fn contains_sublink(expr: &Expr) -> bool {
    expr.any(&mut |e| matches!(e, Expr::Sublink(_)))
}

/// Whether a subquery in an expression refers to columns of the query that the expression stands in.
pub(super) fn has_correlated_sublink(expr: &Expr) -> bool {
    expr.any(&mut |e| matches!(e, Expr::Sublink(_)) && e.has_vars())
}

/// The column of an entry that an expression is, through binary-compatible casts; counted from 0.
pub(super) fn plain_column(expr: &Expr, entry: usize) -> Option<usize> {
    match expr {
        Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column > 0 => Some(v.column as usize - 1),
        Expr::Relabel { arg, .. } => plain_column(arg, entry),
        _ => None,
    }
}
