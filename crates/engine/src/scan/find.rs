//! One row by the whole key of a unique index: the path of most small statements, which sets up nothing more.

use std::ops::{Bound, ControlFlow};

use melba_store::{IndexRun, Result};
use melba_types::{Csn, RowId};

use crate::txn::entries::split;
use crate::txn::{IndexAccess, announce};
use crate::view::ReadView;

/// The entries of one key, in order from the newest level to the oldest.
struct Search {
    csn: Csn,
    /// The row whose versions in the present level have been decided on.
    decided: Option<RowId>,
    /// Rows whose entries newer levels delete.
    gone: Vec<RowId>,
    found: Option<RowId>,
}

impl Search {
    /// A new level begins.
    fn descend(&mut self) {
        self.decided = None;
    }

    /// Processes a version; of one row's in a level the newest comes first. It ends with the first live entry: a unique key has
    /// one at most.
    fn look(&mut self, row: RowId, csn: Csn, tombstone: bool) -> ControlFlow<()> {
        if csn > self.csn || self.decided == Some(row) {
            return ControlFlow::Continue(());
        }
        self.decided = Some(row);
        if self.gone.contains(&row) {
            return ControlFlow::Continue(());
        }
        if tombstone {
            self.gone.push(row);
            return ControlFlow::Continue(());
        }
        self.found = Some(row);
        ControlFlow::Break(())
    }
}

impl IndexAccess<'_> {
    /// The row that a unique index has under `key`, a value for all of its columns, in a view. Only for indexes of which no
    /// statement sees two live entries with one key: not for deferrable ones.
    pub fn find(&self, view: ReadView, key: &[u8]) -> Result<Option<RowId>> {
        let found = self.txn.tree(self.tree)?;
        let index = found.require_index()?;
        if announce::tracks(self.txn, view) || (self.txn.has_writes() && self.txn.state().writes.knows(self.tree)) {
            return self.lookup(view, key)?.next_of(key);
        }
        let mut search = Search { csn: view.csn, decided: None, gone: Vec::new(), found: None };
        let levels = index.levels.read();
        for table in levels.used_memory() {
            search.descend();
            let map = table.map.read();
            for (entry, chain) in map.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)) {
                let entry = entry.as_slice();
                if !entry.starts_with(key) {
                    break;
                }
                let (of, row) = split(entry)?;
                if of == key
                    && let Some(version) = chain.visible(view.csn)
                    && search.look(row, version.csn, !version.value).is_break()
                {
                    return Ok(search.found);
                }
            }
        }
        let mut runs = levels.runs.iter().filter(|run| may_have(run, view, key)).peekable();
        while let Some(run) = runs.next() {
            // A filter tells whether to continue with the next segment; the last one is the likeliest to have the key.
            if runs.peek().is_some() && !run.reader.may_contain(key)? {
                continue;
            }
            search.descend();
            run.reader.find(key, |row, csn, tombstone| search.look(row, csn, tombstone))?;
            if search.found.is_some() {
                break;
            }
        }
        Ok(search.found)
    }

    /// The same in the newest committed state with everything of our own: for checks of constraints.
    pub fn find_latest(&self, key: &[u8]) -> Result<Option<RowId>> {
        self.txn.with_newest(|csn| self.find(ReadView { csn, command: ReadView::LATEST_COMMAND }, key))
    }

    /// The same in the transaction's snapshot, where it keeps one: REPEATABLE READ does not see a referenced row that was
    /// inserted later.
    pub fn find_snapshot(&self, key: &[u8]) -> Result<Option<RowId>> {
        match self.txn.with_state(|state| Ok(state.snapshot))? {
            Some(csn) => self.find(ReadView { csn, command: ReadView::LATEST_COMMAND }, key),
            None => self.find_latest(key),
        }
    }
}

/// Whether a segment may have entries of a key by its bounds.
fn may_have(run: &IndexRun, view: ReadView, key: &[u8]) -> bool {
    let meta = run.reader.meta();
    let first = &meta.key_min[..meta.key_min.len().min(key.len())];
    first <= key && key <= meta.key_max.as_slice() && meta.csn_min <= view.csn
}
