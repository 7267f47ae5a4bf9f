//! What an index has of its table: keys and predicate as expressions over an entry.

use std::sync::Arc;

use melba_catalog::{IndexInfo, Relation};
use melba_types::Result;

use crate::arbiters::index_expression;
use crate::implication::{implies, is_same};
use crate::planner::Planner;
use crate::rels::{has_correlated_sublink, plain_column, rels_of};
use crate::volatility::has_volatile;
use melba_tree::Expr;

/// What a key of an index is.
pub(super) enum IndexedTerm {
    /// From 0.
    Column(usize),
    Expression(Expr),
}

impl IndexedTerm {
    /// The keys of an index, in its order.
    pub fn of_index(planner: &Planner<'_>, info: &IndexInfo, relation: &Arc<Relation>, entry: usize) -> Result<Vec<IndexedTerm>> {
        let term = |key: &melba_catalog::IndexKey| match &key.expression {
            Some(text) => Ok(IndexedTerm::Expression(index_expression(planner, text, relation, entry)?)),
            None => Ok(IndexedTerm::Column(key.column as usize - 1)),
        };
        info.keys.iter().map(term).collect()
    }

    /// Whether an expression is the key, or one with the same bytes.
    pub fn is(&self, e: &Expr, entry: usize) -> bool {
        match self {
            IndexedTerm::Column(column) => plain_column(e, entry) == Some(*column),
            IndexedTerm::Expression(key) => {
                let (e, key) = (bare(e), bare(key));
                std::mem::discriminant(e) == std::mem::discriminant(key) && is_same(e, key)
            }
        }
    }
}

fn bare(mut e: &Expr) -> &Expr {
    while let Expr::Relabel { arg, .. } = e {
        e = arg;
    }
    e
}

/// Whether an expression has one value while an entry's rows are read.
pub(super) fn is_value(planner: &Planner<'_>, entry: usize, e: &Expr) -> bool {
    rels_of(e) & (1 << entry) == 0 && !has_volatile(planner, e) && !has_correlated_sublink(e)
}

/// The rows that an index has; `None`: all.
pub(super) fn predicate(planner: &Planner<'_>, info: &IndexInfo, relation: &Arc<Relation>, entry: usize) -> Result<Option<Expr>> {
    info.predicate.as_ref().map(|text| index_expression(planner, text, relation, entry)).transpose()
}

/// Whether an index with a predicate has all rows that satisfy the conditions.
pub(super) fn has_all(planner: &Planner<'_>, predicate: &Option<Expr>, conditions: &[Expr]) -> bool {
    predicate.as_ref().is_none_or(|predicate| implies(planner, &Expr::And(conditions.to_vec()), predicate))
}
