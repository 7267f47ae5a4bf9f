//! Step 2 of a commit: its changes become versions in the row store, and its segments are linked to their trees.

use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use melba_store::{Chain, KeyBytes, MemTable, Payload, Persistence, Result, RowCounts, Store, Tree, TreeData, entry_bytes};
use melba_threads::atomic::Ordering;
use melba_types::{Csn, TreeId};

use crate::runtime::Runtime;
use crate::snapshot::Snapshots;
use crate::step::step;
use crate::write_set::{ChangeKind, Link, PrivateRun, TreeHeads, WriteSet};

/// Changes applied per hold of a memory table's lock.
const APPLY_BATCH: usize = 1024;
/// Chains longer than this are thinned between snapshots, not only cut at the oldest.
const CHAIN_LENGTH_MAX: usize = 16;
/// Tombstones that a commit checks for removal.
const GARBAGE_BATCH: usize = 256;

/// The structures to which a commit's changes are applied.
pub(crate) struct Apply<'a> {
    pub store: &'a Store,
    pub snapshots: &'a Snapshots,
    pub runtime: &'a Runtime,
}

impl Apply<'_> {
    /// Puts the final state of every changed key into the row store.
    pub fn apply(&self, writes: &WriteSet, csn: Csn) {
        for change in &writes.changes {
            self.apply_schema(&change.kind, writes);
        }
        writes.trees.iter().for_each(|written| written.tree.changed.add(written.changed));
        for Link { tree, run, live, spilled, .. } in &writes.links {
            tree.live.fetch_add(*live, Ordering::Relaxed);
            if spilled.is_none() && tree.as_table().is_some() {
                // A bulk load only adds.
                tree.changed.add(RowCounts { inserted: *live as u64, ..RowCounts::default() });
            }
            // Opened again with the CSN that its zeros now stand for; that it opened before makes a failure one of the disk's.
            if let Err(e) = self.link(tree, run, csn) {
                self.runtime.poison(e);
            }
        }
        for written in writes.trees.iter().filter(|t| !t.is_empty()) {
            step();
            let tree = &written.tree;
            match (&tree.data, &written.heads) {
                (TreeData::Table(table), TreeHeads::Rows(heads)) => {
                    let levels = table.levels.read();
                    let rows = writes.final_rows(heads).map(|(row, bytes)| (row, bytes.cloned()));
                    self.apply_to(tree, &levels.active, csn, rows, |_| 0);
                    self.collect_garbage(tree, &levels.active, |id| levels.is_bottom(*id), |_| 0);
                }
                (TreeData::Index(index), TreeHeads::Keys(heads)) => {
                    let levels = index.levels.read();
                    let keys = writes.final_keys(heads).map(|(key, live)| (key.clone(), live));
                    self.apply_to(tree, &levels.active, csn, keys, |k| k.heap_bytes());
                    let bottom = |key: &KeyBytes| levels.is_bottom(key.as_slice());
                    self.collect_garbage(tree, &levels.active, bottom, |k| k.heap_bytes());
                }
                _ => unreachable!("the heads are of the tree's kind"),
            }
            tree.live.fetch_add(written.live, Ordering::Relaxed);
        }
    }

    fn apply_schema(&self, what: &ChangeKind, writes: &WriteSet) {
        match what {
            ChangeKind::CreateTree(tree) => tree.committed.store(true, Ordering::Release),
            ChangeKind::CreateSequence(sequence) => sequence.state.lock().committed = true,
            ChangeKind::ExtendTable { tree, .. } => {
                let layout = writes.layouts.iter().find(|(id, _)| *id == tree.id);
                if let (Some(table), Some((_, layout))) = (tree.as_table(), layout) {
                    table.layout.set(Arc::clone(layout));
                }
            }
            _ => {}
        }
    }

    fn link(&self, tree: &Tree, run: &PrivateRun, csn: Csn) -> Result<()> {
        match (&tree.data, run) {
            (TreeData::Table(table), PrivateRun::Table(run)) => {
                let linked = self.store.files.link_table(run, csn)?.of_tree(tree.id);
                self.store.note_linked(linked.reader.meta().stored_bytes);
                table.levels.write().add_runs([linked]);
            }
            (TreeData::Index(index), PrivateRun::Index(run)) => {
                let linked = self.store.files.link_index(run, csn)?.of_tree(tree.id);
                index.levels.write().add_runs([linked]);
            }
            _ => unreachable!("a private run is of its tree's kind"),
        }
        Ok(())
    }

    /// Puts versions into a memory table.
    fn apply_to<K: Ord + Clone, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        csn: Csn,
        changes: impl Iterator<Item = (K, V)>,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        let oldest = self.snapshots.oldest_lagging();
        let mut changes = changes.peekable();
        table.note_keys();
        while changes.peek().is_some() {
            let mut bytes = 0i64;
            let mut dead = Vec::new();
            let mut map = table.map.write();
            for (key, value) in changes.by_ref().take(APPLY_BATCH) {
                if !value.is_live() {
                    dead.push(key.clone());
                }
                bytes += value.heap_bytes() as i64;
                match map.entry(key) {
                    Entry::Occupied(mut slot) => {
                        let chain = slot.get_mut();
                        chain.push(csn, value);
                        bytes += size_of::<Chain<V>>() as i64 - chain.prune(oldest) as i64;
                        if chain.len_up_to(CHAIN_LENGTH_MAX + 1) > CHAIN_LENGTH_MAX {
                            bytes -= chain.prune_between(&self.snapshots.in_use()) as i64;
                        }
                    }
                    Entry::Vacant(slot) => {
                        bytes += entry_bytes::<K, V>(key_bytes(slot.key())) as i64;
                        slot.insert(Chain::new(csn, value));
                    }
                }
            }
            // `garbage` is locked before `map`, never the other way round.
            drop(map);
            if !dead.is_empty() {
                table.garbage.lock().extend(dead.into_iter().map(|key| (csn, key)));
            }
            self.store.account(tree, table, bytes);
        }
    }

    /// Removes a few tombstones that every snapshot sees, and the versions they hide. Each commit removes about twice as many as it adds.
    fn collect_garbage<K: Ord, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        bottom: impl Fn(&K) -> bool,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        let oldest = self.snapshots.oldest_lagging();
        let mut garbage = table.garbage.lock();
        if garbage.front().is_none_or(|(csn, _)| *csn > oldest) {
            return;
        }
        let mut bytes = 0;
        let mut map = table.map.write();
        for _ in 0..GARBAGE_BATCH {
            let Some((_, key)) = garbage.pop_front_if(|(csn, _)| *csn <= oldest) else { break };
            let Some(chain) = map.get_mut(&key) else { continue };
            bytes += chain.prune(oldest);
            let dead = !chain.value.is_live() && chain.csn <= oldest;
            if dead && bottom(&key) {
                map.remove(&key);
                bytes += entry_bytes::<K, V>(key_bytes(&key));
            }
        }
        drop(map);
        self.store.account(tree, table, -(bytes as i64));
    }

    /// Removes from all trees that are never flushed the versions that no snapshot at `oldest` or later sees.
    pub fn prune_memory_trees(&self, oldest: Csn) {
        for tree in self.store.all_trees().iter().filter(|tree| tree.persistence == Persistence::Memory) {
            match &tree.data {
                TreeData::Table(table) => {
                    let levels = table.levels.read();
                    self.prune(tree, &levels.active, oldest, |id| levels.is_bottom(*id), |_| 0);
                }
                TreeData::Index(index) => {
                    let levels = index.levels.read();
                    self.prune(tree, &levels.active, oldest, |key| levels.is_bottom(key.as_slice()), |key| key.heap_bytes());
                }
            }
        }
    }

    fn prune<K: Ord + Clone, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        oldest: Csn,
        bottom: impl Fn(&K) -> bool,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        {
            let mut garbage = table.garbage.lock();
            while garbage.pop_front_if(|(csn, _)| *csn <= oldest).is_some() {}
        }
        let mut last: Option<K> = None;
        loop {
            let (mut seen, mut bytes, mut dead) = (0, 0, Vec::new());
            let mut map = table.map.write();
            let from = last.take();
            let from = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            for (key, chain) in map.range_mut((from, Bound::Unbounded)).take(APPLY_BATCH) {
                bytes += chain.prune(oldest);
                if !chain.value.is_live() && chain.csn <= oldest && bottom(key) {
                    dead.push(key.clone());
                }
                seen += 1;
                if seen == APPLY_BATCH {
                    last = Some(key.clone());
                }
            }
            for key in dead {
                map.remove(&key);
                bytes += entry_bytes::<K, V>(key_bytes(&key));
            }
            drop(map);
            self.store.account(tree, table, -(bytes as i64));
            if last.is_none() {
                return;
            }
        }
    }

    /// Trees and sequences that the commit dropped. Their relation locks are held, so no session reads them.
    pub fn forget_dropped(&self, writes: &WriteSet, tree_dropped: impl Fn(TreeId)) {
        for change in &writes.changes {
            match &change.kind {
                ChangeKind::DropTree(tree) => {
                    tree_dropped(tree.id);
                    self.store.drop_tree(tree);
                }
                ChangeKind::DropSequence(sequence) => self.store.remove_sequence(sequence.id),
                _ => {}
            }
        }
    }
}
