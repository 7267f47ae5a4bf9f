//! The rows of melba_flushes and melba_merges, the last one first.

use std::collections::HashMap;
use std::sync::Arc;

use melba_catalog::{Relation, Storage};
use melba_types::{Datum, TreeId};

use super::background_work::{Flush, Merge};
use super::context::StatementContext;

/// melba_get_flushes: started_at, duration, tables (with indexes and long values each), segments, bytes.
pub(super) fn flush_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let row = |flush: &Flush| {
        let mut row = flush.span.columns().to_vec();
        row.extend([flush.trees as u64, flush.segments as u64, flush.bytes].map(|n| Datum::Int8(n as i64)));
        row
    };
    context.session.instance.background_work.flushes.lock().iter().map(row).collect()
}

/// melba_get_merges: started_at, duration, relid, schemaname, relname (unknown for relations that are dropped or of other databases), place,
/// segments_before, segments_after, bytes_before, bytes_after.
pub(super) fn merge_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let relations: HashMap<TreeId, &Arc<Relation>> = context
        .catalog
        .user_relations()
        .filter_map(|relation| match relation.storage {
            Storage::Tree(tree) => Some((tree, relation)),
            _ => None,
        })
        .collect();
    let row = |merge: &Merge| {
        let mut row = merge.span.columns().to_vec();
        match relations.get(&merge.tree.without_toast()) {
            Some(relation) => {
                let schema = context.catalog.namespace(relation.namespace).map_or(Datum::Null, |n| Datum::text(&*n.name));
                row.extend([Datum::Oid(relation.oid.0), schema, Datum::text(&*relation.name)]);
            }
            None => row.extend([Datum::Null, Datum::Null, Datum::Null]),
        }
        row.push(Datum::text(if merge.tree.is_toast() { "toast" } else { "row" }));
        let numbers = [merge.inputs as u64, merge.outputs as u64, merge.bytes_before, merge.bytes_after];
        row.extend(numbers.map(|n| Datum::Int8(n as i64)));
        row
    };
    context.session.instance.background_work.merges.lock().iter().map(row).collect()
}
