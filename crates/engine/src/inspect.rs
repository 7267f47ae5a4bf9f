//! Information about stored data without a transaction: estimates, checks, and the salvage of damaged files.

use std::sync::Arc;

use melba_segment::ColumnEstimate;
use melba_store::Result;
use melba_types::TreeId;
use melba_vfs::Directory;

use crate::engine::Engine;
use crate::samples::{Drawing, TableSample};

impl Engine {
    /// The statistics of a column, counted from 0, over all of a table's segments; `None` for an index, and for a column that no
    /// segment has. Rows that are only in memory are not counted.
    pub fn tree_column_estimate(&self, tree: TreeId, column: usize) -> Option<ColumnEstimate> {
        let tree = self.shared.store.tree(tree).ok()?;
        let levels = tree.as_table()?.levels.read();
        let readers = levels.runs.iter().map(|run| &run.reader);
        let kind = *readers.clone().find_map(|reader| reader.kinds().get(column))?;
        let chunks = readers.flat_map(|reader| {
            let groups = reader.row_groups().iter().enumerate();
            groups.filter_map(move |(i, group)| Some((group.rows as u64, reader.statistics(i, column)?)))
        });
        Some(ColumnEstimate::new(kind, chunks))
    }

    /// Some rows of a table's segments, of which `columns` are given, counted from 0; `None` for an index, and when no rows are in
    /// segments.
    pub fn tree_sample(&self, tree: TreeId, columns: &[usize]) -> Option<TableSample> {
        let drawing = {
            let tree = self.shared.store.tree(tree).ok()?;
            let levels = tree.as_table()?.levels.read();
            Drawing::new(levels.runs.iter().map(|run| (run.segment.file, Arc::clone(&run.reader))))
        };
        let cold = &self.shared.store.files.cold;
        let is_cold = |file| cold.is_used() && cold.is_cold(file);
        let mut columns = self.shared.queries.samples.columns(tree, &drawing, columns, is_cold);
        let drawn = columns.iter().flatten().next().map_or(0, |column| column.values.len());
        // A segment that has become cold since another column was drawn.
        columns.iter_mut().for_each(|column| *column = column.take().filter(|column| column.values.len() == drawn));
        let (is_complete, cluster_rows) = (drawing.is_complete(), drawing.cluster_rows());
        (drawn > 0).then_some(TableSample { rows: drawn, is_complete, cluster_rows, columns })
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
