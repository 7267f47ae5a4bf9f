//! Operations on rows.

use std::sync::Arc;

use melba_store::{Found, Persistence, Result, RowBytes, TableRun, Tree, find_row, see_in_own, see_row};
use melba_types::{Csn, RowId, TreeId};

use super::{Latest, Transaction, TransactionState};
use crate::serializable::{Read, Write};
use crate::txn::{announce, spill};
use crate::view::ReadView;
use crate::write_set::{PrivateRun, WriteSet};

impl Transaction {
    /// Adds a row, encoded by the tree's layout.
    pub fn insert(&self, tree: TreeId, row: &[u8]) -> Result<RowId> {
        let tree = self.tree(tree)?;
        announce::write(self, || Write::NewRows(tree.id))?;
        let id = RowId(tree.require_table()?.take_rows(1)?);
        self.put(&tree, id, Some(row.into()), 1)?;
        Ok(id)
    }

    /// Adds a row under an id of the caller's choice. The caller holds the id's lock, and no row has that id.
    pub fn insert_at(&self, tree: TreeId, id: RowId, row: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        tree.require_table()?.take_rows_to(id)?;
        self.note_row(&tree, id)?;
        self.put(&tree, id, Some(row.into()), 1)
    }

    /// Replaces a row. The caller holds its lock.
    pub fn update(&self, tree: TreeId, id: RowId, row: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        self.note_row(&tree, id)?;
        self.put(&tree, id, Some(row.into()), 0)
    }

    /// Removes a row. The caller holds its lock.
    pub fn delete(&self, tree: TreeId, id: RowId) -> Result<()> {
        let tree = self.tree(tree)?;
        self.note_row(&tree, id)?;
        self.put(&tree, id, None, -1)
    }

    /// The same for a row that the caller moves to another tree: a concurrent transaction that has seen it here learns of that
    /// by `has_moved`.
    pub fn delete_to_move(&self, tree: TreeId, id: RowId) -> Result<()> {
        self.delete(tree, id)?;
        self.note_move(tree, id)
    }

    pub(super) fn note_move(&self, tree: TreeId, id: RowId) -> Result<()> {
        self.change(|state| {
            let command = state.command;
            state.writes.moved.push(command, tree, id);
            Ok(())
        })
    }

    /// Whether a row, which a view in use shows and others have deleted, lives on in another tree. `latest` is its state.
    pub fn has_moved(&self, tree: TreeId, id: RowId, latest: &Latest) -> bool {
        latest.row.is_none() && latest.own_command.is_none() && self.shared().moves.has(tree, id, latest.csn)
    }

    /// Removes rows. The caller holds their locks.
    pub fn delete_rows(&self, tree: TreeId, ids: &[RowId]) -> Result<()> {
        let tree = self.tree(tree)?;
        tree.require_table()?;
        ids.iter().try_for_each(|id| self.note_row(&tree, *id))?;
        self.change(|state| ids.iter().try_for_each(|id| self.put_in(state, &tree, *id, None, -1)))
    }

    /// Announces that a row is about to be changed.
    fn note_row(&self, tree: &Tree, id: RowId) -> Result<()> {
        if self.tracking.is_none() {
            return Ok(());
        }
        let levels = &tree.require_table()?.levels;
        let found = self.with_newest(|newest| find_row(levels, id, newest))?;
        announce::write(self, || Write::Row(tree.id, id, found.map_or(Csn(0), |(csn, _)| csn)))
    }

    fn put(&self, tree: &Arc<Tree>, id: RowId, row: Option<RowBytes>, live: i8) -> Result<()> {
        tree.require_table()?;
        self.change(|state| self.put_in(state, tree, id, row, live))
    }

    /// Records a change of a row, unless there is no memory for it.
    pub(crate) fn put_in(
        &self,
        state: &mut TransactionState,
        tree: &Arc<Tree>,
        id: RowId,
        row: Option<RowBytes>,
        live: i8,
    ) -> Result<()> {
        if tree.persistence == Persistence::Memory {
            self.shared().check_memory_tables(&state.writes, row.as_ref().map_or(0, |r| r.len()))?;
        }
        let command = state.command;
        state.writes.put_row(command, tree, id, row, live);
        spill::limit_writes(self, state)
    }

    /// A row as a view sees it.
    pub fn get(&self, view: ReadView, tree: TreeId, id: RowId) -> Result<Option<RowBytes>> {
        let tree = self.tree(tree)?;
        if announce::tracks(self, view) {
            announce::reads(self, std::iter::once(Read::Row(tree.id, id)))?;
        }
        match self.find(view, &tree, id)? {
            Some(Found::Memory(row)) => Ok(row),
            Some(found) => found.into_row(&*self.layout_of(&tree)?),
            None => Ok(None),
        }
    }

    pub(crate) fn find(&self, view: ReadView, tree: &Tree, id: RowId) -> Result<Option<Found>> {
        match self.find_own(view, tree, id)? {
            None => see_row(&tree.require_table()?.levels, id, view.csn),
            own => Ok(own),
        }
    }

    /// The version that this transaction has made, if it has.
    #[inline]
    fn find_own(&self, view: ReadView, tree: &Tree, id: RowId) -> Result<Option<Found>> {
        if !self.has_writes() {
            return Ok(None);
        }
        let state = self.state.lock();
        state.check_failure()?;
        if let Some(own) = state.writes.row(tree.id, id, view.command) {
            return Ok(Some(Found::Memory(own.cloned())));
        }
        let private: Vec<_> = private_tables(&state.writes, tree.id, view.command);
        drop(state);
        if private.is_empty() { Ok(None) } else { see_in_own(&private, id, view.csn) }
    }

    /// The commit that made the version of a row that a view shows; `None`: this transaction made it, or there is none.
    pub fn commit_of(&self, view: ReadView, tree: TreeId, id: RowId) -> Result<Option<Csn>> {
        let tree = self.tree(tree)?;
        if self.find_own(view, &tree, id)?.is_some() {
            return Ok(None);
        }
        Ok(find_row(&tree.require_table()?.levels, id, view.csn)?.map(|(csn, _)| csn))
    }

    /// The same of its newest version that is committed.
    pub fn last_commit_of(&self, tree: TreeId, id: RowId) -> Result<Option<Csn>> {
        let tree = self.tree(tree)?;
        self.with_newest(|newest| Ok(find_row(&tree.require_table()?.levels, id, newest)?.map(|(csn, _)| csn)))
    }

    /// The newest state of a row: read again after waiting for its lock.
    pub fn get_latest(&self, tree: TreeId, id: RowId) -> Result<Latest> {
        let tree = self.tree(tree)?;
        self.with_newest(|newest| self.latest(&tree, id, newest))
    }

    /// Whether the newest state of a row is one that `view` shows, which for most rows is known without reading them.
    pub fn is_latest(&self, view: ReadView, tree: TreeId, id: RowId) -> Result<bool> {
        let tree = self.tree(tree)?;
        if self.has_writes() {
            let state = self.state.lock();
            if state.writes.newest_row(tree.id, id).is_some() || state.writes.private_runs(tree.id, u32::MAX).next().is_some() {
                return Ok(false);
            }
        }
        self.with_newest(|newest| match find_row(&tree.require_table()?.levels, id, newest)? {
            Some((csn, Found::Memory(Some(_)) | Found::Stored(..))) => Ok(csn <= view.csn),
            _ => Ok(false),
        })
    }

    fn latest(&self, tree: &Tree, id: RowId, newest: Csn) -> Result<Latest> {
        let (csn, mut row) = match find_row(&tree.require_table()?.levels, id, newest)? {
            Some((csn, Found::Memory(row))) => (csn, row),
            Some((csn, found)) => (csn, found.into_row(&*self.layout_of(tree)?)?),
            None => (Csn(0), None),
        };
        let mut own_command = None;
        if self.has_writes() {
            let state = self.state.lock();
            state.check_failure()?;
            if let Some((command, own)) = state.writes.newest_row(tree.id, id) {
                own_command = Some(command);
                row = own.cloned();
            } else if !state.writes.links.is_empty() {
                let private: Vec<(u32, PrivateRun)> =
                    state.writes.private_runs(tree.id, u32::MAX).map(|l| (l.command, l.run.clone())).collect();
                drop(state);
                for (command, run) in private {
                    let PrivateRun::Table(run) = run else { continue };
                    if let Some(found) = see_in_own(&[run], id, newest)? {
                        own_command = Some(command);
                        row = found.into_row(&*self.layout_of(tree)?)?;
                        break;
                    }
                }
            }
        }
        Ok(Latest { row, csn, own_command })
    }

    /// The private segments of a table that commands before the view's wrote, newest first.
    pub(crate) fn private_tables(&self, view: ReadView, tree: TreeId) -> Vec<Arc<TableRun>> {
        if !self.has_writes() {
            return Vec::new();
        }
        private_tables(&self.state.lock().writes, tree, view.command)
    }
}

/// The private segments of a table that commands before `command` wrote, newest first.
pub(crate) fn private_tables(writes: &WriteSet, tree: TreeId, command: u32) -> Vec<Arc<TableRun>> {
    let runs = writes.private_runs(tree, command).filter_map(|link| match &link.run {
        PrivateRun::Table(run) => Some(Arc::clone(run)),
        PrivateRun::Index(_) => None,
    });
    runs.collect()
}
