//! A scan's view of its own transaction's changes in memory.
//!
//! Invariant: it stays the same until the scan ends. When changes are moved into segments (`spill`), which the open scans do not
//! read, the scans keep a copy of the changes as they were.

use std::ops::Bound;
use std::sync::Arc;

use melba_store::RowBytes;
use melba_types::{RowId, TreeId};

use super::{Transaction, TransactionState};
use crate::view::ReadView;
use crate::write_set::{Epoch, WriteSet};

/// A scan's view of the changes.
pub(crate) struct OwnView {
    pub txn: Arc<Transaction>,
    view: ReadView,
    /// `None`: there were no changes when it was opened.
    epoch: Option<Arc<Epoch>>,
}

impl OwnView {
    /// It shows nothing before `look`.
    pub fn new(txn: Arc<Transaction>, view: ReadView) -> OwnView {
        OwnView { txn, view, epoch: None }
    }

    /// Takes the changes as they are now. To be called before private segments are listed: a move in between shows changes twice,
    /// and not never.
    pub fn look(&mut self) {
        let txn = &self.txn;
        self.epoch = txn.has_writes().then(|| Arc::clone(txn.state.lock().epoch.get_or_insert_default()));
    }

    pub fn view(&self) -> ReadView {
        self.view
    }

    fn with(&self, f: impl FnOnce(&WriteSet)) {
        if let Some(epoch) = &self.epoch {
            // Under this lock changes are moved.
            let state = self.txn.state.lock();
            f(epoch.before_move().unwrap_or(&state.writes));
        }
    }

    /// See `WriteSet::rows_from`.
    pub fn rows(&self, tree: TreeId, from: RowId, limit: usize, out: &mut Vec<(RowId, Option<RowBytes>)>) {
        self.with(|writes| writes.rows_from(tree, from, self.view.command, limit, out));
    }

    /// See `WriteSet::row_ids_between`.
    pub fn row_ids(&self, tree: TreeId, first: RowId, last: RowId, out: &mut Vec<RowId>) {
        self.with(|writes| writes.row_ids_between(tree, first, last, self.view.command, out));
    }

    /// See `WriteSet::keys_between`.
    pub fn keys(
        &self,
        tree: TreeId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        reverse: bool,
        limit: usize,
        each: impl FnMut(&[u8], bool),
    ) {
        self.with(|writes| writes.keys_between(tree, bounds, reverse, self.view.command, limit, each));
    }
}

impl TransactionState {
    /// To be called before changes are moved.
    pub(super) fn end_epoch(&mut self) {
        if let Some(epoch) = self.epoch.take()
            && Arc::strong_count(&epoch) > 1
        {
            epoch.end(&self.writes);
        }
    }
}
