//! Proves which expressions are not NULL: by NOT NULL constraints, by conditions, by their form.
//!
//! A column of a relation that an outer join may extend with NULLs may be NULL despite its constraint; so may one of a table with
//! children, whose columns may lack the constraint (NO INHERIT). A constraint that is NOT VALID proves nothing.

use melba_catalog::Catalog;

use super::layout::same;
use super::rels::{Rels, conjuncts};
use melba_tree::{Command, Expr, FromItem, JoinKind, Query, RangeEntry, RangeKind};

/// The rows over which expressions are considered.
pub(super) struct ConsideredRows<'a> {
    pub catalog: &'a Catalog,
    pub entries: &'a [RangeEntry],
    /// Relations that outer joins may have extended with NULLs.
    pub extended: Rels,
    /// Conditions that hold for all rows.
    pub conditions: &'a [Expr],
}

impl ConsideredRows<'_> {
    pub fn are_never_null(&self, expr: &Expr) -> bool {
        let is_asked = |c: &Expr| matches!(c, Expr::NullTest { arg, is_null: false, row: false } if same(arg, expr));
        if self.conditions.iter().any(is_asked) {
            return true;
        }
        match expr {
            Expr::Const(c) => !c.value.is_null(),
            Expr::Relabel { arg, .. } => self.are_never_null(arg),
            Expr::Coalesce { args, .. } => args.iter().any(|arg| self.are_never_null(arg)),
            Expr::Var(v) if v.levels_up == 0 && self.extended >> v.entry.min(127) & 1 == 0 => {
                usize::try_from(v.column - 1).is_ok_and(|place| self.is_column_never_null(v.entry, place))
            }
            _ => false,
        }
    }

    fn is_column_never_null(&self, entry: usize, place: usize) -> bool {
        match &self.entries[entry].kind {
            RangeKind::Relation { oid, inherit, .. } => self.catalog.relation(*oid).is_some_and(|relation| {
                let has_others = *inherit && !relation.is_partitioned() && self.catalog.has_children(relation.oid);
                !has_others && place < relation.columns.len() && self.catalog.is_never_null(relation, place)
            }),
            RangeKind::Subquery { query, .. } => is_output_never_null(self.catalog, query, place),
            RangeKind::Join { merged, .. } => merged.get(place).is_some_and(|column| self.are_never_null(column)),
            _ => false,
        }
    }
}

/// Whether an output column of a query, by its place, is NULL in no row.
pub(super) fn is_output_never_null(catalog: &Catalog, query: &Query, place: usize) -> bool {
    let is_plain = query.command == Command::Select && query.set_operation.is_none() && query.grouping_sets.is_none();
    let Some(target) = query.targets.iter().filter(|target| !target.junk).nth(place) else { return false };
    let mut conditions = Vec::new();
    query.filter.iter().for_each(|filter| conjuncts(filter.clone(), &mut conditions));
    let mut extended = 0;
    query.from.iter().for_each(|item| add_extended(item, false, &mut extended));
    let rows = ConsideredRows { catalog, entries: &query.range_table, extended, conditions: &conditions };
    is_plain && rows.are_never_null(&target.expr)
}

/// Adds the relations of a FROM item that outer joins may extend.
fn add_extended(item: &FromItem, is_extended: bool, out: &mut Rels) {
    match item {
        FromItem::Range(entry) if is_extended => *out |= 1 << (*entry).min(127),
        FromItem::Range(_) => {}
        FromItem::Join(join) => {
            let (left, right) = match join.kind {
                JoinKind::Inner => (false, false),
                JoinKind::Left => (false, true),
                JoinKind::Right => (true, false),
                JoinKind::Full => (true, true),
            };
            add_extended(&join.left, is_extended || left, out);
            add_extended(&join.right, is_extended || right, out);
        }
    }
}
