//! The rows of melba_cold and melba_cold_cache.

use melba_catalog::Catalog;
use melba_types::{Datum, Result};

use super::cold::{option, tree_of};
use super::context::StatementContext;
use super::user::sees_activity_of;

/// melba_get_cold: relid, relname, store, local_files, local_bytes, cold_files, cold_bytes, kept_bytes, error, failed_at.
pub(super) fn cold_rows(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let instance = &context.session.instance;
    let engine = &instance.cluster.engine;
    let used = engine.cold_tables();
    let catalog: &Catalog = &context.catalog;
    let mut rows = Vec::new();
    for relation in catalog.user_relations() {
        let Some(tree) = tree_of(relation) else { continue };
        let store = option(relation, "cold_store");
        if store.is_none() && !used.contains(&tree) {
            continue;
        }
        let found = engine.cold_use(tree)?;
        let numbers = [found.local_files, found.local_bytes, found.cold_files, found.cold_bytes, found.kept_bytes];
        let mut row =
            vec![Datum::Oid(relation.oid.0), Datum::text(relation.name.clone()), store.map_or(Datum::Null, Datum::text)];
        row.extend(numbers.map(|n| Datum::Int8(n as i64)));
        // It names places of the server.
        let may_see = sees_activity_of(catalog, context.user.oid, relation.owner);
        match instance.cold.failure(tree, instance.cluster.clock.now_micros()).filter(|_| may_see) {
            Some((message, at)) => row.extend([Datum::text(message), Datum::Int8(at)]),
            None => row.extend([Datum::Null, Datum::Null]),
        }
        rows.push(row);
    }
    Ok(rows)
}

/// melba_get_cold_cache: hits, reads, read_bytes, failures, used_bytes, limit_bytes.
pub(super) fn cold_cache_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let counts = context.session.instance.cluster.engine.cold_counts();
    let numbers = [counts.hits, counts.reads, counts.read_bytes, counts.failures, counts.cache_bytes, counts.cache_bytes_max];
    vec![numbers.map(|n| Datum::Int8(n as i64)).to_vec()]
}
