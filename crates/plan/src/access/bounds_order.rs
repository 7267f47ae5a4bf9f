//! Partitions whose rows follow each other in the required order.

use std::sync::Arc;

use melba_catalog::{PartitionStrategy, Relation};
use melba_fmgr::order;
use melba_table::PartitionMap;
use melba_types::Result;

use super::prune::key_columns_in;
use crate::path::OrderKey;
use crate::planner::Planner;
use crate::rels::plain_column;

/// Whether the partitions of a family have their rows in the required order, one after the other in the order of their bounds:
/// `Some(true)`: backwards. `tables`: those that are read, partitioned ones among them, the root first.
///
/// Every partitioned table must be one of ranges of the required order's columns. Its default partition may have any rows, those with
/// NULLs among them, and must not be read.
pub fn bounds_order(
    planner: &Planner<'_>,
    entry: usize,
    tables: &[Arc<Relation>],
    required: &[OrderKey],
) -> Result<Option<bool>> {
    let (Some(root), Some(first)) = (tables.first(), required.first()) else { return Ok(None) };
    if !root.is_partitioned() {
        return Ok(None);
    }
    for table in tables.iter().filter(|table| table.is_partitioned()) {
        let map = PartitionMap::new(planner.catalog(), table)?;
        let reads_default = map.default().is_some_and(|default| tables.iter().any(|read| read.oid == default));
        if map.key().strategy != PartitionStrategy::Range || reads_default {
            return Ok(None);
        }
        // Either order may go on where the other has ended: keys of two partitions differ within the shorter one, or do not matter.
        let columns = key_columns_in(table, root).into_iter().zip(&map.key().columns);
        let follows = columns.zip(required).all(|((place, column), key)| {
            let catalog = planner.catalog();
            let family = |ty| catalog.type_operators(ty).btree_family;
            let has_order = order::is_same_order(catalog, column.collation, key.expr.collation())
                && family(column.ty) == family(key.expr.ty());
            place.is_some() && plain_column(&key.expr, entry) == place && has_order && key.descending == first.descending
        });
        if !follows {
            return Ok(None);
        }
    }
    Ok(Some(first.descending))
}
