//! Segments that a command writes directly, instead of rows for the row store and the log.

use std::sync::Arc;

use melba_store::{Files, Persistence, QueryMemory, TableOutput, Tree};
use melba_threads::Scheduler;
use melba_threads::atomic::Ordering;
use melba_types::row::RowLayout;

/// A command's frames up to this many bytes are written to the row store and the log: they are written twice, but a separate file
/// costs a commit more than its bytes.
const FRAME_BYTES_MIN: usize = 4 << 20;
/// Frames that come together with this many bytes are long ones.
const LONG_BYTES: usize = 256 << 10;

/// State that a second thread needs.
pub(crate) struct Pool {
    /// Of the transaction's query.
    pub memory: Arc<QueryMemory>,
    pub scheduler: Arc<dyn Scheduler>,
}

/// A table's segment in the making.
pub(crate) struct BulkWriter {
    pub tree: Arc<Tree>,
    pool: Option<Pool>,
    /// Rows and frames' bytes added before the segment was begun.
    pub small_rows: usize,
    pub small_bytes: usize,
    pub output: Option<TableOutput>,
}

impl BulkWriter {
    /// `pool`: a second thread may work for it.
    pub fn new(tree: &Arc<Tree>, pool: Option<Pool>) -> BulkWriter {
        BulkWriter { tree: Arc::clone(tree), pool, small_rows: 0, small_bytes: 0, output: None }
    }

    /// The segment that frames are written into, which begins once `more` make a command's frames many bytes.
    pub fn frame_output(&mut self, files: &Arc<Files>, layout: &Arc<RowLayout>, more: usize) -> Option<&mut TableOutput> {
        let is_many = self.small_bytes + more >= FRAME_BYTES_MIN && self.tree.persistence != Persistence::Memory;
        // Long frames are written when they come: there is nothing to do for a second thread.
        if is_many || self.output.is_some() { Some(self.output(files, layout, more < LONG_BYTES)) } else { None }
    }

    pub fn output(&mut self, files: &Arc<Files>, layout: &Arc<RowLayout>, pooled: bool) -> &mut TableOutput {
        let synced = self.tree.is_synced();
        self.output.get_or_insert_with(|| {
            let columns = self.tree.dense_columns.load(Ordering::Relaxed);
            let output = TableOutput::new(files, synced, Arc::clone(layout), files.segment_bytes).dense_columns(columns);
            match &self.pool {
                Some(pool) if pooled => output.pooled(&pool.memory, &pool.scheduler),
                _ => output,
            }
        })
    }
}
