//! Operations on index entries.

use std::ops::Bound;
use std::sync::Arc;

use melba_store::{EngineError, IndexRun, KeyBytes, Result, split_entry};
use melba_types::{RowId, TreeId};

use super::{IndexAccess, Transaction, announce, spill};
use crate::serializable::{Tracking, Write};
use crate::view::ReadView;
use crate::write_set::PrivateRun;

impl IndexAccess<'_> {
    /// Adds an index entry.
    pub fn insert(&self, key: &[u8], row: RowId) -> Result<()> {
        self.put(key, row, true)
    }

    /// Removes an index entry.
    pub fn delete(&self, key: &[u8], row: RowId) -> Result<()> {
        self.put(key, row, false)
    }

    /// Before a duplicate key is reported: fails if the transaction would otherwise have to fail with a serialization failure,
    /// which says that trying again may help.
    ///
    /// # Errors
    /// `SerializationConflict`.
    pub fn check_serializable(&self, key: &[u8]) -> Result<()> {
        match self.txn.tracking.as_deref().and_then(Tracking::registered) {
            None => Ok(()),
            Some((id, _)) => self.txn.shared().serializable.attempt(id, Write::Entry(self.tree, key)),
        }
    }

    fn put(&self, key: &[u8], row: RowId, live: bool) -> Result<()> {
        let tree = self.txn.tree(self.tree)?;
        tree.require_index()?;
        let entry = KeyBytes::entry(key, row);
        announce::entry(self.txn, tree.id, entry.as_slice())?;
        self.txn.change(|state| {
            let command = state.command;
            state.writes.put_key(command, &tree, entry, live);
            spill::limit_writes(self.txn, state)
        })
    }
}

/// Own entries for a scan: `each` gets key and liveness, see `WriteSet::keys_between`.
pub fn own_keys(
    txn: &Transaction,
    view: ReadView,
    tree: TreeId,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    reverse: bool,
    limit: usize,
    each: impl FnMut(&[u8], bool),
) {
    if txn.has_writes() {
        txn.state.lock().writes.keys_between(tree, bounds, reverse, view.command, limit, each);
    }
}

/// The private segments of an index that commands before the view's wrote, newest first.
pub fn private_indexes(txn: &Transaction, view: ReadView, tree: TreeId) -> Vec<Arc<IndexRun>> {
    if !txn.has_writes() {
        return Vec::new();
    }
    let state = txn.state.lock();
    let runs = state.writes.private_runs(tree, view.command).filter_map(|link| match &link.run {
        PrivateRun::Index(run) => Some(Arc::clone(run)),
        PrivateRun::Table(_) => None,
    });
    runs.collect()
}

/// Splits an entry that the engine built itself.
pub fn split(entry: &[u8]) -> Result<(&[u8], RowId)> {
    split_entry(entry).ok_or_else(|| EngineError::Corrupt { what: "an index entry is shorter than a row id".into() })
}
