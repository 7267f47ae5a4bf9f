//! The partition hierarchy: pg_partition_ancestors, pg_partition_tree, pg_partition_root.

use std::sync::Arc;

use melba_catalog::{Catalog, Relation, RelationKind};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result};

type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[("pg_partition_root", |call, args| {
    let chain = ancestors(call, args);
    Ok(chain.last().map_or(Datum::Null, |oid| Datum::Oid(oid.0)))
})];

/// The relation and the partitioned ones above it, nearest first; nothing when it is no part of a hierarchy.
fn ancestors(call: &CallInfo<'_>, args: &[Datum]) -> Vec<Oid> {
    let catalog = call.session.catalog();
    let mut chain = Vec::new();
    let mut next = catalog.relation(super::oid_argument(args, 0)).filter(|r| is_in_hierarchy(r));
    while let Some(relation) = next {
        chain.push(relation.oid);
        next = parent(relation).and_then(|parent| catalog.relation(parent));
    }
    chain
}

/// Of a partition, or of its index.
fn parent(relation: &Relation) -> Option<Oid> {
    relation.parents.first().copied().filter(|_| is_partition(relation) && !relation.detach_pending)
}

/// A partition, or a partition's index.
fn is_partition(relation: &Relation) -> bool {
    relation.partition_bound.is_some() || (relation.index.is_some() && !relation.parents.is_empty())
}

fn is_in_hierarchy(relation: &Relation) -> bool {
    is_partition(relation) || matches!(relation.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex)
}

pub fn partition_ancestors(call: &CallInfo<'_>, args: &[Datum]) -> Result<Rows> {
    Ok(Box::new(ancestors(call, args).into_iter().map(|oid| Ok(vec![Datum::Oid(oid.0)]))))
}

/// The relation and all below it: OID, parent, whether a leaf, level.
pub fn partition_tree(call: &CallInfo<'_>, args: &[Datum]) -> Result<Rows> {
    let catalog = call.session.catalog();
    let mut rows = Vec::new();
    if let Some(root) = catalog.relation(super::oid_argument(args, 0)).filter(|r| is_in_hierarchy(r)) {
        let mut level: Vec<Arc<Relation>> = vec![root.clone()];
        let mut number = 0;
        while !level.is_empty() {
            rows.extend(level.iter().map(|r| Ok(row(r, number))));
            level = level.iter().flat_map(|r| children(catalog, r.oid)).collect();
            number += 1;
        }
    }
    Ok(Box::new(rows.into_iter()))
}

fn children(catalog: &Catalog, parent: Oid) -> Vec<Arc<Relation>> {
    catalog.children(parent).into_iter().filter_map(|oid| catalog.relation(oid).cloned()).collect()
}

fn row(relation: &Relation, level: i32) -> Vec<Datum> {
    let leaf = !matches!(relation.kind, RelationKind::PartitionedTable | RelationKind::PartitionedIndex);
    let parent = parent(relation).map_or(Datum::Null, |p| Datum::Oid(p.0));
    vec![Datum::Oid(relation.oid.0), parent, Datum::Bool(leaf), Datum::Int4(level)]
}
