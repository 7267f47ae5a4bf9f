//! What is known of stored data without a transaction: estimates, checks, and what can be saved of damaged files.

use std::sync::Arc;

use melba_segment::ColumnEstimate;
use melba_store::Result;
use melba_types::TreeId;
use melba_vfs::Directory;

use crate::engine::Engine;

impl Engine {
    /// What a table's segments say together of a column, counted from 0; `None` of an index, and of a column that no segment has.
    /// Rows that are only in memory count for nothing.
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

    /// Makes a damaged data directory openable that no engine has open, with what can still be read of it; answers what is lost.
    /// It is changed: an overlay leaves the damaged files alone.
    ///
    /// # Errors
    /// `Corrupt` when the beginning of the manifest cannot be read.
    pub fn salvage(directory: &Arc<dyn Directory>) -> Result<Vec<String>> {
        crate::salvage::salvage(directory)
    }

    /// Checks a data directory that no engine has open: manifest, every block of every segment, and the log. Answers how many
    /// segments there are, and what is wrong.
    pub fn verify(directory: &Arc<dyn Directory>) -> Result<(usize, Vec<String>)> {
        crate::verify::verify(directory)
    }
}
