//! The foreign keys that refer to a table, each as a key of a table that has rows: of a partitioned table every leaf has the key.

use std::sync::Arc;

use melba_catalog::foreign_keys::{is_referenced_part, referencing_keys};
use melba_catalog::{Catalog, Constraint, ForeignKeyInfo, Relation};
use melba_types::{Oid, err};

use super::routing::ColumnMap;

/// The keys that are enforced. That of a leaf has the OID of the key that refers to the table, and the leaf's columns.
pub(super) fn keys_of_leaves(catalog: &Catalog, table: Oid) -> Vec<Arc<Constraint>> {
    let mut all = Vec::new();
    for key in referencing_keys(catalog, table).filter(|key| key.enforced) {
        match catalog.relation(key.relation) {
            Some(whole) if whole.is_partitioned() => {
                let leaves = catalog.descendants(whole.oid).into_iter().filter_map(|leaf| catalog.relation(leaf));
                all.extend(leaves.filter(|leaf| !leaf.is_partitioned()).map(|leaf| Arc::new(of_leaf(key, whole, leaf))));
            }
            _ => all.push(key.clone()),
        }
    }
    all
}

fn of_leaf(key: &Constraint, whole: &Relation, leaf: &Relation) -> Constraint {
    let map = ColumnMap::new(whole, leaf);
    let below = |number: &i16| map.below(*number as usize - 1).map_or(0, |at| at as i16 + 1);
    let foreign_key = key.foreign_key.as_ref().map(|info| {
        let delete_set_columns = info.delete_set_columns.iter().map(below).collect();
        Arc::new(ForeignKeyInfo { delete_set_columns, ..(**info).clone() })
    });
    Constraint { relation: leaf.oid, columns: key.columns.iter().map(below).collect(), foreign_key, ..key.clone() }
}

/// Raises 0A000 when a row may not leave a leaf for another one below `root`: a key refers to a table in between, which the row may
/// leave or not.
pub(super) fn check_movable(catalog: &Catalog, leaf: &Relation, root: &Relation) -> melba_types::Result<()> {
    let mut below = leaf;
    while let Some(above) = below.parents.first().and_then(|p| catalog.relation(*p)).filter(|_| below.is_partition()) {
        if above.oid == root.oid {
            return Ok(());
        }
        let is_own = |key: &Arc<Constraint>| key.enforced && !is_referenced_part(catalog, key);
        if referencing_keys(catalog, above.oid).any(is_own) {
            let message = "cannot move tuple across partitions when a non-root ancestor of the source partition is directly \
                           referenced in a foreign key";
            let (ancestor, root) = (&above.name, &root.name);
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}")
                .detail(format!("A foreign key points to ancestor \"{ancestor}\" but not the root ancestor \"{root}\"."))
                .hint(format!("Consider defining the foreign key on table \"{root}\".")));
        }
        below = above;
    }
    Ok(())
}
