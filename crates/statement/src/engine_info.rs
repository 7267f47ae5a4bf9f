//! Sizes for pg_class, and what pg_statistic shows.

use std::sync::Arc;

use melba_catalog::relations::{ColumnStatistics, LiveInfo, RelationEstimate};
use melba_catalog::{Catalog, Relation, Storage};
use melba_engine::Engine;
use melba_types::Result;

/// The page size that pg_class counts in.
const PAGE_BYTES: u64 = 8192;

/// The engine's present knowledge of relations.
pub struct EngineInfo(pub Arc<Engine>);

impl LiveInfo for EngineInfo {
    fn relation_estimate(&self, relation: &Relation) -> Option<RelationEstimate> {
        let Storage::Tree(tree) = relation.storage else { return None };
        let pages = self.0.tree_bytes(tree).div_ceil(PAGE_BYTES);
        Some(RelationEstimate { pages: pages.min(i32::MAX as u64) as i32, rows: self.0.tree_rows_estimate(tree) as f32 })
    }

    fn column_statistics(
        &self,
        catalog: &Catalog,
        table: &Relation,
        column: Option<usize>,
    ) -> Result<Vec<(usize, ColumnStatistics)>> {
        melba_plan::column_statistics(&self.0, catalog, table, column)
    }
}
