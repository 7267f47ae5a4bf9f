//! Information about stored data without a transaction: estimates, checks, and the salvage of damaged files.

use std::sync::Arc;

use melba_segment::ColumnEstimate;
use melba_store::Result;
use melba_types::TreeId;
use melba_vfs::Directory;

use crate::engine::Engine;

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
