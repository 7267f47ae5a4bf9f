//! pg_class: tables, indexes, sequences, views.

use std::sync::Arc;

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationEstimate, RelationRows, push, values::*};
use crate::classes;
use crate::detaching::detaching_partition;
use crate::objects::*;
use crate::rules::{has_rules, rules_of};
use crate::toast::TOAST_PREFIX;

/// The first transaction id of ordinary transactions: nothing here is ever frozen.
pub const FIRST_NORMAL_XID: u32 = 3;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let relations: Vec<_> = match (s.oid(0), s.text(1), s.oid(2)) {
        (Some(oid), ..) => s.catalog.relation(oid).into_iter().collect(),
        (_, Some(name), Some(namespace)) => s.catalog.relation_by_name(namespace, name).into_iter().collect(),
        (_, Some(name), None) => {
            let mut found: Vec<_> = s.catalog.namespaces().filter_map(|n| s.catalog.relation_by_name(n.oid, name)).collect();
            found.sort_by_key(|r| r.oid);
            found
        }
        (_, None, Some(namespace)) => s.catalog.relations_in(namespace).collect(),
        (None, None, None) if s.oid(3).is_some_and(|ty| ty.is_valid()) => {
            let ty = s.oid(3).and_then(|ty| s.catalog.type_(ty));
            ty.and_then(|ty| s.catalog.relation(ty.relation)).into_iter().collect()
        }
        _ => s.catalog.relations().collect(),
    };
    for relation in relations {
        push(s, relation, out);
    }
}

fn push(s: &GeneratorInput<'_>, r: &Relation, out: &mut RelationRows<'_>) {
    use RelationKind::*;
    let stored = || matches!(r.kind, Table | MaterializedView | Toast);
    let has_file = || !matches!(r.kind, View | Composite | ForeignTable | PartitionedTable | PartitionedIndex);
    let stated = || r.stated.map(|stated| RelationEstimate { pages: stated.pages, rows: stated.rows });
    let estimate = || stated().or_else(|| s.live.relation_estimate(r));
    let constraints = || r.constraints.iter().filter_map(|c| s.catalog.constraint(*c));
    let checks = || constraints().filter(|c| c.kind == ConstraintKind::Check).count();
    let has_indexes = || match r.kind {
        // System relations do not list their indexes.
        Table if matches!(r.storage, Storage::System(_)) => r.namespace == classes::PG_CATALOG,
        Table | MaterializedView | PartitionedTable => !r.indexes.is_empty(),
        _ => false,
    };
    let has_children = || s.catalog.has_children(r.oid) || detaching_partition(s.catalog, r.oid).is_some();
    let shared = || s.catalog.is_shared_relation(r.oid);
    push!(
        out,
        [
            oid(r.oid),
            text(&r.name),
            oid(r.namespace),
            oid(r.row_type),
            oid(r.of_type),
            oid(r.owner),
            oid(r.access_method),
            oid(if has_file() { r.file_node } else { Oid::INVALID }),
            // Shared relations are in pg_global.
            Datum::Oid(if shared() { 1664 } else { 0 }),
            Datum::Int4(estimate().map_or(0, |e| e.pages)),
            Datum::Float4(
                estimate()
                    .map_or(if stored() || matches!(r.kind, PartitionedTable | ForeignTable) { -1.0 } else { 0.0 }, |e| e.rows)
            ),
            Datum::Int4(0),
            Datum::Int4(0),
            oid(if r.has_toast() { r.oid.toast() } else { Oid::INVALID }),
            bool(has_indexes()),
            bool(shared()),
            char(persistence(r.persistence)),
            char(r.kind.letter()),
            int2(column_count(r)),
            int2(checks()),
            bool(r.rule.is_valid() || has_rules(s.catalog) && !rules_of(s.catalog, r.oid).is_empty()),
            bool(has_triggers(s, r)),
            bool(matches!(r.kind, Table | PartitionedTable | PartitionedIndex) && has_children()),
            bool(r.row_security),
            bool(r.force_row_security),
            bool(r.kind != MaterializedView || r.populated),
            char(r.replica_identity),
            bool(r.partition_bound.is_some() || (r.index.is_some() && !r.parents.is_empty())),
            Datum::Oid(0),
            Datum::Oid(if stored() { FIRST_NORMAL_XID } else { 0 }),
            Datum::Oid(u32::from(stored())),
            acl(&r.acl, s.catalog),
            texts_or_null(&own_options(r)),
            text_or_null(&r.partition_bound.as_ref().map(|b| b.text.clone())),
        ]
    );
}

/// The parameters of the relation itself: those of a table's toast table are in that one's row.
fn own_options(r: &Relation) -> Vec<Arc<str>> {
    r.options.iter().filter(|o| !o.starts_with(TOAST_PREFIX)).cloned().collect()
}

fn persistence(p: Persistence) -> u8 {
    match p {
        // A memory table is known by its access method.
        Persistence::Permanent | Persistence::Memory => b'p',
        Persistence::Unlogged => b'u',
        Persistence::Temporary => b't',
    }
}

fn column_count(r: &Relation) -> usize {
    match &r.index {
        Some(index) if r.columns.is_empty() => index.keys.len() + index.include.len(),
        _ => r.columns.len(),
    }
}

/// PostgreSQL enforces foreign keys by triggers on both tables, and says so here.
fn has_triggers(s: &GeneratorInput<'_>, r: &Relation) -> bool {
    let own_key = |c: &Oid| s.catalog.constraint(*c).is_some_and(|c| c.kind == ConstraintKind::ForeignKey);
    !r.triggers.is_empty() || r.constraints.iter().any(own_key) || s.catalog.is_referenced(r.oid)
}
