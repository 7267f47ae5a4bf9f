//! The bulk path: many rows are written directly to segments that only their transaction knows. The commit links them; a rollback
//! drops them.
//!
//! Rows get CSN 0 in the file, which stands for the CSN of the commit that links it. A segment is finished when the statement
//! that writes it ends, so that it belongs to one command and savepoints and visibility work as for single rows.

use std::ops::Range;
use std::sync::Arc;

use melba_store::{Persistence, Result, TableOutput, TableTree, Tree};
use melba_threads::Guard;
use melba_threads::atomic::Ordering;
use melba_types::{Batch, Csn, RowId};

use crate::serializable::Write;
use crate::txn::{BulkRows, Transaction, TransactionState, announce};
use crate::write_set::{BulkWriter, Pool, PrivateRun};

/// Bytes of a batch's strings above which `insert_at` makes a segment of them, however few rows they are.
const BULK_BYTES_MIN: usize = 4 << 20;

fn second_thread(txn: &Transaction) -> Option<Pool> {
    let scheduler = || Arc::clone(&txn.shared().runtime.scheduler);
    (txn.threads() > 1).then(|| Pool { memory: txn.session().query_memory(), scheduler: scheduler() })
}

impl BulkRows<'_> {
    /// Rows that the running command adds by `insert` are many from the first one on.
    pub fn expect_rows(&self) -> Result<()> {
        let tree = self.txn.tree(self.tree)?;
        self.txn.change(|state| {
            state.bulk_writer(&tree, self.txn).small_rows = self.txn.shared().options.bulk_rows_min;
            Ok(())
        })
    }

    /// Adds many rows; `batch` has a column for each of the layout's, in order. Their ids are consecutive. Large amounts bypass
    /// the row store and the log.
    pub fn insert(&self, batch: &Batch) -> Result<Range<RowId>> {
        let tree = self.txn.tree(self.tree)?;
        let layout = self.txn.layout_of(&tree)?;
        let table = tree.require_table()?;
        announce::write(self.txn, || Write::NewRows(tree.id))?;
        self.txn.change(|state| {
            let writer = state.bulk_writer(&tree, self.txn);
            // Under the transaction's lock, so that ids ascend within the segment.
            let first = table.take_rows(batch.rows as u64)?;
            let ids = RowId(first)..RowId(first + batch.rows as u64);
            writer.small_rows += batch.rows;
            if writer.small_rows >= self.txn.shared().options.bulk_rows_min && tree.persistence != Persistence::Memory {
                let output = writer.output(&self.txn.shared().store.files, &layout, true);
                let row_ids: Vec<RowId> = (ids.start.0..ids.end.0).map(RowId).collect();
                output.push_batch(&row_ids, Csn(0), batch)?;
                return Ok(ids);
            }
            let mut encoded = Vec::new();
            for i in 0..batch.rows {
                encoded.clear();
                layout.encode(batch.row(i).iter(), &mut encoded);
                self.txn.put_in(state, &tree, RowId(first + i as u64), Some(encoded.as_slice().into()), 1)?;
            }
            Ok(ids)
        })
    }

    /// Adds many rows under ids of the caller's choice, ascending, with the guarantees that `Transaction::insert_at` requires. Large amounts
    /// bypass the row store and the log at once: later commands of this transaction find them in a segment.
    pub fn insert_at(&self, ids: &[RowId], batch: &Batch) -> Result<()> {
        assert!(ids.len() == batch.rows && ids.is_sorted(), "an id for every row, ascending");
        let tree = self.txn.tree(self.tree)?;
        let table = tree.require_table()?;
        let Some(last) = ids.last() else { return Ok(()) };
        table.take_rows_to(*last)?;
        let large = batch.rows >= self.txn.shared().options.bulk_rows_min || batch.string_bytes() >= BULK_BYTES_MIN;
        if !large || tree.persistence == Persistence::Memory {
            return put_rows(self.txn, &tree, ids, batch, 0..batch.rows as u32);
        }
        let (behind, fresh) = split_known(self.txn, &tree, table, ids);
        put_rows(self.txn, &tree, ids, batch, behind.into_iter())?;
        let files = &self.txn.shared().store.files;
        let mut output =
            TableOutput::new(files, tree.is_synced(), Guard::into_inner(self.txn.layout_of(&tree)?), files.segment_bytes)
                .dense_columns(tree.dense_columns.load(Ordering::Relaxed));
        if fresh.len() == batch.rows {
            output.push_batch(ids, Csn(0), batch)?;
        } else {
            let fresh_ids: Vec<RowId> = fresh.iter().map(|i| ids[*i as usize]).collect();
            output.push_batch(&fresh_ids, Csn(0), &batch.take(&fresh))?;
        }
        let runs = output.finish()?;
        self.txn.change(|state| {
            for run in runs {
                state.writes.put_link(state.command, &tree, PrivateRun::Table(run));
            }
            Ok(())
        })
    }
}

/// Positions of ids that have versions in memory, tombstones mostly, and of all others. A segment lies behind memory, so a
/// row with a version there must not be put into one. No other session adds versions: the caller has locked the ids.
fn split_known(txn: &Transaction, tree: &Tree, table: &TableTree, ids: &[RowId]) -> (Vec<u32>, Vec<u32>) {
    let levels = table.levels.read();
    let in_memory = |id: &RowId| levels.used_memory().any(|m| m.map.read().contains_key(id));
    let state = txn.has_writes().then(|| txn.state());
    let own = |id: RowId| state.as_ref().is_some_and(|s| s.writes.newest_row(tree.id, id).is_some());
    (0..ids.len() as u32).partition(|i| in_memory(&ids[*i as usize]) || own(ids[*i as usize]))
}

fn put_rows(txn: &Transaction, tree: &Arc<Tree>, ids: &[RowId], batch: &Batch, rows: impl Iterator<Item = u32>) -> Result<()> {
    let layout = txn.layout_of(tree)?;
    txn.change(|state| {
        let mut encoded = Vec::new();
        for i in rows {
            encoded.clear();
            layout.encode(batch.row(i as usize).iter(), &mut encoded);
            txn.put_in(state, tree, ids[i as usize], Some(encoded.as_slice().into()), 1)?;
        }
        Ok(())
    })
}

impl TransactionState {
    /// The segments that the running command has written of a tree on the bulk path.
    pub fn bulk_writer(&mut self, tree: &Arc<Tree>, txn: &Transaction) -> &mut BulkWriter {
        let at = self.bulk.iter().position(|b| Arc::ptr_eq(&b.tree, tree)).unwrap_or_else(|| {
            self.bulk.push(BulkWriter::new(tree, second_thread(txn)));
            self.bulk.len() - 1
        });
        &mut self.bulk[at]
    }

    /// Finishes the segments of the command that ends. A failure is remembered: the transaction can only be rolled back then.
    pub fn seal(&mut self) {
        if self.bulk.is_empty() {
            return;
        }
        for writer in std::mem::take(&mut self.bulk) {
            let Some(output) = writer.output else { continue };
            match output.finish() {
                Ok(runs) => {
                    for run in runs {
                        self.writes.put_link(self.command, &writer.tree, PrivateRun::Table(run));
                    }
                }
                Err(e) => self.failure = Some(e),
            }
        }
    }
}
