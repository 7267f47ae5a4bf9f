//! Information about stored data without a transaction: estimates, checks, and the salvage of damaged files.

use std::sync::Arc;

use melba_segment::{ColumnEstimate, TableSegmentReader};
use melba_store::Result;
use melba_types::{Kind, TreeId};
use melba_vfs::Directory;

use crate::engine::Engine;
use crate::samples::{Drawing, SampleAge, TableSample};

impl Engine {
    /// The statistics of a column, counted from 0, over a table's segments and the rows of its row store, as far as these are sampled;
    /// `None` for an index, and for a column of which nothing is known.
    pub fn tree_column_estimate(&self, tree: TreeId, column: usize) -> Option<ColumnEstimate> {
        let (readers, has_memory) = {
            let tree = self.shared.store.tree(tree).ok()?;
            let levels = tree.as_table()?.levels.read();
            let readers: Vec<Arc<TableSegmentReader>> = levels.runs.iter().map(|run| Arc::clone(&run.reader)).collect();
            (readers, levels.used_memory().next().is_some())
        };
        let chunks = readers.iter().flat_map(|reader| {
            let groups = reader.row_groups().iter().enumerate();
            groups.filter_map(move |(i, group)| Some((group.rows as u64, reader.statistics(i, column)?)))
        });
        let sample = if has_memory { self.tree_sample(tree, &[column], SampleAge::ForPlans) } else { None };
        let sampled = sample.and_then(|mut sample| sample.columns.pop().flatten());
        let in_memory = sampled.as_deref().map_or(&[][..], |sampled| &sampled.in_memory);
        let of_segments = readers.iter().find_map(|reader| reader.kinds().get(column)).copied();
        let kind = of_segments.or_else(|| self.table_layout_kind(tree, column).filter(|_| !in_memory.is_empty()))?;
        Some(ColumnEstimate::new(kind, chunks, in_memory.iter().map(|(rows, statistics)| (*rows, statistics))))
    }

    /// Whether some rows of a table are in segments.
    pub fn tree_has_segments(&self, tree: TreeId) -> bool {
        let tree = self.shared.store.tree(tree);
        tree.ok().and_then(|tree| Some(!tree.as_table()?.levels.read().runs.is_empty())).unwrap_or(false)
    }

    fn table_layout_kind(&self, tree: TreeId, column: usize) -> Option<Kind> {
        let tree = self.shared.store.tree(tree).ok()?;
        tree.as_table()?.layout.read().kinds().get(column).copied()
    }

    /// Some rows of a table, of which `columns` are given, counted from 0; `None` for an index, and when there are no rows.
    pub fn tree_sample(&self, tree: TreeId, columns: &[usize], age: SampleAge) -> Option<TableSample> {
        let drawing = {
            let tree = self.shared.store.tree(tree).ok()?;
            let cold = &self.shared.store.files.cold;
            Drawing::new(&tree, tree.as_table()?, self.visible_csn(), |file| cold.is_used() && cold.is_cold(file))
        };
        if drawing.rows() == 0 {
            return None;
        }
        let (rows, columns) = self.shared.queries.samples.columns(tree, &drawing, columns, age);
        let (is_complete, cluster_rows) = (drawing.is_complete(), drawing.cluster_rows());
        (rows > 0).then_some(TableSample { rows, is_complete, cluster_rows, columns })
    }

    /// Makes a damaged data directory openable, with the data that can still be read; returns a list of the losses. No engine may
    /// have it open. The directory is changed: an overlay protects the damaged files.
    ///
    /// # Errors
    /// `Corrupt` when the beginning of the manifest cannot be read.
    pub fn salvage(directory: &Arc<dyn Directory>) -> Result<Vec<String>> {
        crate::salvage::salvage(directory)
    }

    /// Checks a data directory: manifest, every block of every segment, and the log. No engine may have it open. Returns the
    /// number of segments and the problems found.
    pub fn verify(directory: &Arc<dyn Directory>) -> Result<(usize, Vec<String>)> {
        crate::verify::verify(directory)
    }
}
