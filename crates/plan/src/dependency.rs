//! Grouping expressions that others determine: their values are those of any row of the group, and no part of its key.
//!
//! All columns of a table's row are determined by the columns of one of its keys, and those by columns that conditions make them
//! equal to: by `c_custkey` all columns of a customer, and those of the nation with `n_nationkey = c_nationkey`. A row that an outer
//! join extends with NULLs has NULLs for its key, too, and keys have no others.

use std::sync::Arc;

use melba_catalog::classes::BTREE;
use melba_catalog::{Catalog, IndexInfo, IndexKey, Relation};
use melba_types::Kind;

use super::equivalence;
use super::join_tree::Tree;
use super::planner::Planner;
use super::rels::{Rels, has, rels_of};
use melba_tree::{Expr, RangeEntry, RangeKind};

/// An entry's number, and a column's, from 1 on.
pub(super) type Place = (usize, i16);

/// What determines the columns of a query's rows.
#[derive(Default)]
pub(super) struct Dependencies {
    /// Keys of entries, which are tables.
    keys: Vec<(usize, Vec<i16>)>,
    /// Columns that are equal in all rows.
    equal: Vec<[Place; 2]>,
}

/// Those of the rows that the joins of a tree give.
pub(super) fn dependencies(planner: &Planner<'_>, tree: &Tree) -> Dependencies {
    let entries = planner.level().entries.iter().enumerate().take(Rels::BITS as usize);
    let keys: Vec<(usize, Vec<i16>)> =
        entries.flat_map(|(at, entry)| keys_of(planner.catalog(), entry).into_iter().map(move |key| (at, key))).collect();
    let equal = if keys.is_empty() { Vec::new() } else { equivalence::columns_equal_in(planner, tree) };
    Dependencies { keys, equal }
}

/// The columns of each key of a table: no two of its rows have them equal, and none is NULL.
fn keys_of(catalog: &Catalog, entry: &RangeEntry) -> Vec<Vec<i16>> {
    let relation = match &entry.kind {
        RangeKind::Relation { oid, inherit, .. } => {
            // Rows of children may have the keys of their parent's.
            let is_alone = |r: &&Arc<Relation>| r.is_partitioned() || !(*inherit && catalog.has_children(r.oid));
            catalog.relation(*oid).filter(is_alone)
        }
        _ => None,
    };
    let Some(relation) = relation else { return Vec::new() };
    let indexes = relation.indexes.iter().filter_map(|oid| catalog.relation(*oid)?.index.as_ref());
    let keys = indexes.filter(|index| is_key(catalog, relation, index));
    keys.map(|index| index.keys.iter().map(|key| key.column).collect()).collect()
}

fn is_key(catalog: &Catalog, relation: &Relation, index: &IndexInfo) -> bool {
    let is_plain = |key: &IndexKey| {
        let place = usize::try_from(key.column - 1).ok().filter(|place| *place < relation.columns.len());
        let is_never_null = place.is_some_and(|place| catalog.is_never_null(relation, place));
        // As groups compare its values.
        let class = catalog.default_operator_class(BTREE, key.ty);
        is_never_null && key.collation == key.natural_collation && class.is_some_and(|class| class.oid == key.opclass)
    };
    index.unique && index.valid && !index.deferrable && index.predicate.is_none() && index.keys.iter().all(is_plain)
}

impl Dependencies {
    /// The grouping expressions of a set without those that the others determine. `kinds`: how their values are held.
    pub fn determining(&self, exprs: &[Expr], kinds: &[Kind], set: &[usize]) -> Vec<usize> {
        let mut kept = set.to_vec();
        if self.keys.is_empty() || set.len() < 2 {
            return kept;
        }
        // Integers make the shortest keys.
        let (integers, others): (Vec<usize>, Vec<usize>) = set.iter().rev().partition(|at| kinds[**at].is_integer());
        for at in others.into_iter().chain(integers) {
            let rels = rels_of(&exprs[at]);
            // What is computed of a row may differ when it is computed again.
            if rels == 0 || !matches!(exprs[at], Expr::Var(_)) {
                continue;
            }
            let rest: Vec<Place> = kept.iter().filter(|other| **other != at).filter_map(|other| place(&exprs[*other])).collect();
            if rels & !self.determined(&rest) == 0 {
                kept.retain(|other| *other != at);
            }
        }
        kept
    }

    /// The entries of whose rows only one can have some values of columns.
    fn determined(&self, columns: &[Place]) -> Rels {
        let mut found: Rels = 0;
        loop {
            let is_known = |place: Place| columns.contains(&place) || has(found, place.0);
            let is_equal =
                |place: Place| self.equal.iter().any(|[a, b]| (*a == place && is_known(*b)) || (*b == place && is_known(*a)));
            let is_found = |(entry, key): &&(usize, Vec<i16>)| {
                key.iter().all(|column| is_known((*entry, *column)) || is_equal((*entry, *column)))
            };
            let more = self.keys.iter().filter(is_found).fold(found, |all, (entry, _)| all | 1 << entry);
            if more == found {
                return found;
            }
            found = more;
        }
    }
}

/// The column of this query's rows that an expression is.
fn place(expr: &Expr) -> Option<Place> {
    match expr {
        Expr::Var(v) if v.levels_up == 0 && v.column > 0 => Some((v.entry, v.column)),
        _ => None,
    }
}
