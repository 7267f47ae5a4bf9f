//! Whether a key is taken, in the newest committed state.

use std::ops::Bound;
use std::sync::Arc;

use melba_store::{KeyBytes, Result, Tree};
use melba_types::{RowId, TreeId};

use super::index::{may_have_entries, successor};
use crate::txn::Transaction;
use crate::view::ReadView;

impl Transaction {
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
            let levels = tree.require_index()?.levels.read();
            known |= levels.used_memory().any(|table| table.map.read().range::<[u8], _>(bounds).next().is_some());
            Arc::clone(&levels.runs)
        };
        let (lower, upper) = (Bound::Included(KeyBytes::new(key)), Bound::Excluded(end));
        for run in runs.iter() {
            known = known || may_have_entries(run, view, &lower, &upper, Some(key))?;
        }
        Ok(!known)
    }
}
