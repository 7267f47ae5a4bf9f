//! Operations on index entries.

use std::ops::Bound;
use std::sync::Arc;

use melba_types::{RowId, TreeId};

use super::{PrivateRun, ReadView, Transaction};
use crate::error::{EngineError, Result};
use crate::key::{KeyBytes, split_entry};
use crate::levels::IndexRun;
use crate::scan::{IndexScan, may_have_entries, successor};
use crate::tree::{IndexTree, Tree};

pub(super) fn index_of(tree: &Tree) -> Result<&IndexTree> {
    tree.as_index().ok_or(EngineError::Misuse("not an index tree"))
}

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
        index_of(&tree)?;
        let entry = KeyBytes::entry(key, row);
        self.note_entry(tree.id, entry.as_slice())?;
        self.change(|state| {
            let command = state.command;
            state.writes.put_key(command, &tree, entry, live);
            self.limit_writes(state)
        })
    }

    /// Entries with keys within bounds, ascending or descending. Bounds are keys without row ids; a key that starts with an
    /// included upper bound is within it, so bounds may be prefixes.
    pub fn index_scan(
        self: &Arc<Self>,
        view: ReadView,
        tree: TreeId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        reverse: bool,
    ) -> Result<IndexScan> {
        let tree = self.tree(tree)?;
        index_of(&tree)?;
        IndexScan::open(Arc::clone(self), view, &tree, (lower, upper), reverse, None)
    }

    /// Entries whose whole key is `key` (all columns of the index): like `index_scan` with it as both bounds, but segments
    /// without it are left out by their filters.
    pub fn index_lookup(self: &Arc<Self>, view: ReadView, tree: TreeId, key: &[u8]) -> Result<IndexScan> {
        let tree = self.tree(tree)?;
        index_of(&tree)?;
        let bounds = (Bound::Included(key), Bound::Included(key));
        IndexScan::open(Arc::clone(self), view, &tree, bounds, false, Some(key))
    }

    /// The row of a live entry with exactly this key, other than `except`, in the newest committed state with everything of
    /// our own: for checks of constraints.
    pub fn index_probe_latest(self: &Arc<Self>, tree: TreeId, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        self.with_newest(|csn| self.probe(ReadView { csn, command: ReadView::LATEST_COMMAND }, tree, key, except))
    }

    fn probe(self: &Arc<Self>, view: ReadView, tree: TreeId, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        if self.is_absent(view, &*self.tree(tree)?, key)? {
            return Ok(None);
        }
        let mut scan = self.index_lookup(view, tree, key)?;
        while let Some(row) = scan.next_of(key)? {
            if Some(row) != except {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Whether no source of entries has any that begins with `key`, which for most new keys costs a search in memory.
    fn is_absent(&self, view: ReadView, tree: &Tree, key: &[u8]) -> Result<bool> {
        let Some(end) = successor(key).filter(|_| !self.tracks(view)) else { return Ok(false) };
        let bounds = (Bound::Included(key), Bound::Excluded(end.as_slice()));
        let mut known = !self.private_indexes(view, tree.id).is_empty();
        self.own_keys(view, tree.id, bounds, false, 1, |_, _| known = true);
        let runs = {
            let levels = index_of(tree)?.levels.read();
            known |= levels.used_memory().any(|table| table.map.read().range::<[u8], _>(bounds).next().is_some());
            Arc::clone(&levels.runs)
        };
        let (lower, upper) = (Bound::Included(KeyBytes::new(key)), Bound::Excluded(end));
        for run in runs.iter() {
            known = known || may_have_entries(run, view, &lower, &upper, Some(key))?;
        }
        Ok(!known)
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
