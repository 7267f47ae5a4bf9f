//! The summary of transactions that committed long ago while others that began before them still run: by tree, not one by one.

use hashbrown::HashMap;
use melba_store::Result;
use melba_types::{Csn, TreeId};

use super::{Id, SerializableState, failure};

/// All summarised transactions together.
#[derive(Default)]
pub(super) struct Summary {
    /// By tree: the newest commit among those that read it.
    reads: HashMap<TreeId, u64>,
    writes: HashMap<TreeId, TreeWriters>,
    /// Of those of whom a dropped tree has left nothing exact.
    read_anything: u64,
    written_anything: Option<TreeWriters>,
    /// The newest commit of all.
    newest: u64,
}

/// The writers of a tree.
#[derive(Clone, Copy)]
struct TreeWriters {
    newest: Csn,
    /// The earliest preparation of theirs, and of those to whom one of them had a conflict out.
    prepared: u64,
    earliest_out: u64,
}

impl TreeWriters {
    fn with(self, other: TreeWriters) -> TreeWriters {
        TreeWriters {
            newest: self.newest.max(other.newest),
            prepared: self.prepared.min(other.prepared),
            earliest_out: self.earliest_out.min(other.earliest_out),
        }
    }
}

impl SerializableState {
    /// Summarises the oldest committed transaction.
    pub(super) fn summarise_oldest(&mut self) {
        let Some(id) = self.finished.pop_front() else { return };
        let Some(entry) = self.forget(id) else { return };
        for reader in &entry.conflicts_in {
            let reader = self.get_mut(*reader);
            reader.earliest_out = reader.earliest_out.min(entry.prepared);
        }
        for writer in &entry.conflicts_out {
            let writer = self.get_mut(*writer);
            writer.latest_in = writer.latest_in.max(entry.committed);
        }
        let summary = &mut self.summary;
        summary.newest = summary.newest.max(entry.committed);
        for tree in entry.reads.trees() {
            let newest = summary.reads.entry(tree).or_default();
            *newest = entry.committed.max(*newest);
        }
        let written = TreeWriters { newest: entry.csn, prepared: entry.prepared, earliest_out: entry.earliest_out };
        for tree in entry.writes.trees() {
            let known = summary.writes.entry(tree).or_insert(written);
            *known = known.with(written);
        }
        if entry.reads.anything {
            summary.read_anything = summary.read_anything.max(entry.committed);
        }
        if entry.writes.anything {
            summary.written_anything = Some(summary.written_anything.map_or(written, |known| known.with(written)));
        }
    }

    /// Forgets the summary when no transaction that was concurrent with those in it still runs.
    pub(super) fn clear_summary(&mut self, oldest_begun: u64) {
        if self.summary.newest != 0 && self.summary.newest <= oldest_begun {
            self.summary = Summary::default();
        }
    }

    /// `me` reads a tree that summarised transactions may have written.
    pub(super) fn summarised_writer(&mut self, me: Id, tree: TreeId) -> Result<()> {
        let own = self.get(me);
        let written = [self.summary.writes.get(&tree), self.summary.written_anything.as_ref()];
        let Some(written) = written.into_iter().flatten().copied().reduce(TreeWriters::with) else { return Ok(()) };
        if written.newest <= own.snapshot {
            return Ok(());
        }
        if written.earliest_out < own.horizon() {
            return Err(failure("Canceled on conflict out to old pivot."));
        }
        if self.has_conflict_in(own, written.prepared) {
            return Err(failure("Canceled on identification as a pivot, with conflict out to old committed transaction."));
        }
        let own = self.get_mut(me);
        own.earliest_out = own.earliest_out.min(written.prepared);
        Ok(())
    }

    /// `me` writes a tree that summarised transactions may have read.
    pub(super) fn summarised_reader(&mut self, me: Id, tree: TreeId) -> Result<()> {
        let newest = self.summary.reads.get(&tree).copied().unwrap_or(0).max(self.summary.read_anything);
        if newest <= self.get(me).begun {
            return Ok(());
        }
        if self.writer_is_pivot(newest, me) {
            self.fail_one(me, me)?;
        }
        let own = self.get_mut(me);
        own.latest_in = own.latest_in.max(newest);
        Ok(())
    }

    /// A tree is dropped: its replacement is not known, so anything may concern a transaction that used it.
    pub(super) fn generalise(&mut self, tree: TreeId) {
        let Some(users) = self.trees.get(&tree) else { return };
        let (readers, writers) = (users.readers.clone(), users.writers.clone());
        readers.into_iter().for_each(|id| self.get_mut(id).reads.anything = true);
        writers.into_iter().for_each(|id| self.get_mut(id).writes.anything = true);
    }
}
