//! Trees and sequences that are created and dropped with a transaction.

use std::sync::Arc;

use melba_store::{Persistence, Reading, Result, Sequence, SequenceDefinition, SequenceId, SequenceState, Tree};
use melba_threads::Guard;
use melba_threads::atomic::Ordering;
use melba_types::row::RowLayout;
use melba_types::{Kind, Lsn, TreeId};

use super::{Transaction, announce};
use crate::serializable::Write;
use crate::write_set::ChangeKind;

impl Transaction {
    /// A new, empty table tree with columns of these kinds; with a toast tree, when some are of varying width.
    pub fn create_table_tree(&self, kinds: &[Kind], persistence: Persistence) -> Result<TreeId> {
        let id = self.shared().store.next_tree_id();
        self.create_tree(Tree::table(id, kinds, persistence))?;
        if kinds.iter().any(|k| k.is_toastable()) {
            self.create_tree(Tree::table(id.toast(), &[Kind::Frame], persistence))?;
        }
        Ok(id)
    }

    /// A new, empty index tree. The caller fills it.
    pub fn create_index_tree(&self, table: TreeId, persistence: Persistence) -> Result<TreeId> {
        let id = self.shared().store.next_tree_id();
        self.create_tree(Tree::index(id, table, persistence))
    }

    fn create_tree(&self, tree: Tree) -> Result<TreeId> {
        let tree = Arc::new(tree);
        let id = tree.id;
        self.change(|state| {
            self.shared().store.add_tree(Arc::clone(&tree));
            let command = state.command;
            state.writes.put_schema(command, ChangeKind::CreateTree(tree));
            Ok(id)
        })
    }

    /// Drops a tree when the transaction commits, a table's with its toast tree. The caller holds the relation's AccessExclusive
    /// lock.
    pub fn drop_tree(&self, tree: TreeId) -> Result<()> {
        // Also damaged ones.
        let toast = self.shared().store.tree(tree.toast()).ok().map(|tree| Arc::clone(&tree));
        let tree = Arc::clone(&*self.shared().store.tree(tree)?);
        announce::write(self, || Write::All(tree.id))?;
        self.change(|state| {
            let command = state.command;
            for tree in toast.into_iter().chain([tree]) {
                state.writes.put_schema(command, ChangeKind::DropTree(tree));
            }
            Ok(())
        })
    }

    /// Adds columns at the end of a table's layout (ADD COLUMN); the rows stay as they are. The caller holds the relation's
    /// AccessExclusive lock.
    pub fn extend_table_tree(&self, tree: TreeId, kinds: &[Kind]) -> Result<()> {
        let tree = self.tree(tree)?;
        let table = tree.require_table()?;
        if kinds.iter().any(|k| k.is_toastable()) && self.tree(tree.id.toast()).is_err() {
            self.create_tree(Tree::table(tree.id.toast(), &[Kind::Frame], tree.persistence))?;
        }
        self.change(|state| {
            let own =
                state.writes.layouts.iter().position(|(id, _)| *id == tree.id).map(|at| state.writes.layouts.swap_remove(at).1);
            let old = own.clone().unwrap_or_else(|| Arc::clone(&table.layout.read()));
            let kinds: Vec<Kind> = old.kinds().iter().chain(kinds).copied().collect();
            state.writes.layouts.push((tree.id, Arc::new(RowLayout::new(kinds))));
            let command = state.command;
            state.writes.put_schema(command, ChangeKind::ExtendTable { tree: Arc::clone(&tree), before: own });
            Ok(())
        })
    }

    /// Says which of a table's first 64 columns are dense, as bits: their values are marked when they are written into segments,
    /// and merges compress them together. The writer of rows calls this; it has no other effect.
    pub fn note_dense_columns(&self, tree: TreeId, columns: u64) -> Result<()> {
        let tree = self.tree(tree)?;
        if tree.dense_columns.load(Ordering::Relaxed) != columns {
            tree.dense_columns.store(columns, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The layout of a table's rows as this transaction sees it.
    pub fn table_layout(&self, tree: TreeId) -> Result<Arc<RowLayout>> {
        let tree = self.tree(tree)?;
        self.layout_of(&tree).map(Guard::into_inner)
    }

    pub(crate) fn layout_of(&self, tree: &Tree) -> Result<Reading<RowLayout>> {
        let table = tree.require_table()?;
        if self.has_writes() {
            let state = self.state.lock();
            if let Some((_, layout)) = state.writes.layouts.iter().find(|(id, _)| *id == tree.id) {
                return Ok(Guard::from_inner(Arc::clone(layout)));
            }
        }
        Ok(table.layout.read())
    }

    /// A new sequence.
    pub fn create_sequence(
        &self,
        definition: SequenceDefinition,
        state: SequenceState,
        persistence: Persistence,
    ) -> Result<SequenceId> {
        let id = SequenceId(self.shared().store.next_tree_id().0);
        let sequence = Arc::new(Sequence::new(id, definition, state, persistence, false));
        self.change(|state| {
            self.shared().store.add_sequence(Arc::clone(&sequence));
            let command = state.command;
            state.writes.put_schema(command, ChangeKind::CreateSequence(sequence));
            Ok(id)
        })
    }

    /// Drops a sequence when the transaction commits.
    pub fn drop_sequence(&self, id: SequenceId) -> Result<()> {
        let sequence = self.shared().store.sequence(id)?;
        self.change(|state| {
            let command = state.command;
            state.writes.put_schema(command, ChangeKind::DropSequence(sequence));
            Ok(())
        })
    }

    /// Runs `f`, which may log a sequence's state; also returns how far the log must be durable before a synchronous commit that
    /// relies on it returns.
    fn log_sequence<T>(
        &self,
        id: SequenceId,
        f: impl FnOnce(&Sequence, &mut dyn FnMut(SequenceState) -> Lsn) -> Result<T>,
    ) -> Result<T> {
        let sequence = self.shared().store.sequence(id)?;
        self.shared().pipeline.log.with_sequence(id, |log| f(&sequence, log))
    }

    /// The next value of a sequence; never returned again, not even when this transaction rolls back.
    pub fn nextval(&self, id: SequenceId) -> Result<i64> {
        let (value, needed) = self.log_sequence(id, |sequence, log| sequence.next(log))?;
        if needed > self.shared().pipeline.log.wal.durable() {
            self.with_state(|state| {
                state.log_needed = state.log_needed.max(needed);
                Ok(())
            })?;
        }
        Ok(value)
    }

    /// A sequence's last value, and whether it was returned.
    pub fn sequence_state(&self, id: SequenceId) -> Result<SequenceState> {
        Ok(self.shared().store.sequence(id)?.state.lock().state)
    }

    /// Sets a sequence's value, at once and for all.
    pub fn setval(&self, id: SequenceId, value: i64, is_called: bool) -> Result<()> {
        let needed = self.log_sequence(id, |sequence, log| sequence.set(value, is_called, log))?;
        self.with_state(|state| {
            state.log_needed = state.log_needed.max(needed);
            Ok(())
        })
    }
}
