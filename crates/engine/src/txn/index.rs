//! Operations on index entries.

use std::ops::Bound;
use std::sync::Arc;

use melba_store::{EngineError, IndexRun, KeyBytes, Result, split_entry};
use melba_types::{RowId, TreeId};

use super::Transaction;
use crate::view::ReadView;
use crate::write_set::PrivateRun;

impl Transaction {
    /// Adds an index entry.
    pub fn index_insert(&self, tree: TreeId, key: &[u8], row: RowId) -> Result<()> {
        self.put_entry(tree, key, row, true)
    }

    /// Removes an index entry.
    pub fn index_delete(&self, tree: TreeId, key: &[u8], row: RowId) -> Result<()> {
        self.put_entry(tree, key, row, false)
    }

    fn put_entry(&self, tree: TreeId, key: &[u8], row: RowId, live: bool) -> Result<()> {
        let tree = self.tree(tree)?;
        tree.require_index()?;
        let entry = KeyBytes::entry(key, row);
        self.note_entry(tree.id, entry.as_slice())?;
        self.change(|state| {
            let command = state.command;
            state.writes.put_key(command, &tree, entry, live);
            self.limit_writes(state)
        })
    }

    /// Own entries for a scan: `each` gets key and liveness, see `WriteSet::keys_between`.
    pub(crate) fn own_keys(
        &self,
        view: ReadView,
        tree: TreeId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        reverse: bool,
        limit: usize,
        each: impl FnMut(&[u8], bool),
    ) {
        if self.has_writes() {
            self.state.lock().writes.keys_between(tree, bounds, reverse, view.command, limit, each);
        }
    }

    /// The private segments of an index that commands before the view's wrote, newest first.
    pub(crate) fn private_indexes(&self, view: ReadView, tree: TreeId) -> Vec<Arc<IndexRun>> {
        if !self.has_writes() {
            return Vec::new();
        }
        let state = self.state.lock();
        let runs = state.writes.private_runs(tree, view.command).filter_map(|link| match &link.run {
            PrivateRun::Index(run) => Some(Arc::clone(run)),
            PrivateRun::Table(_) => None,
        });
        runs.collect()
    }

    /// Splits an entry that the engine built itself.
    pub(crate) fn split(entry: &[u8]) -> Result<(&[u8], RowId)> {
        split_entry(entry).ok_or_else(|| EngineError::Corrupt { what: "an index entry is shorter than a row id".into() })
    }
}
