//! Versions from the log on their way into the row store.
//!
//! Nobody reads while the log is replayed, and who comes afterwards sees no older state than the log's end. So of each key the row
//! store gets one version, the newest, and a tombstone that nothing lies below is nothing: what a record costs does not depend on
//! how often its keys were changed before.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use melba_store::{Chain, IndexLevels, KeyBytes, MemTable, Payload, RowBytes, Store, TableLevels, Tree, TreeData, entry_bytes};
use melba_threads::atomic::Ordering;
use melba_types::{Csn, RowId, TreeId};

/// The tree that the last operation was for, which the next one is mostly for, too.
#[derive(Default)]
pub(crate) struct Targets {
    last: Option<(TreeId, Option<Target>)>,
}

impl Targets {
    /// Where versions of a tree go; `None` for a tree that is not there (a later record drops it).
    pub fn of(&mut self, store: &Store, id: TreeId) -> Option<&Target> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            self.last = Some((id, store.tree(id).ok().map(|tree| Target::new(&tree))));
        }
        self.last.as_ref().and_then(|(_, target)| target.as_ref())
    }

    /// To be called when trees come and go, or their segments do.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

/// A tree as it is until its levels change.
pub(crate) struct Target {
    tree: Arc<Tree>,
    levels: TargetLevels,
}

enum TargetLevels {
    Table(TableLevels),
    Index(IndexLevels),
}

impl Target {
    fn new(tree: &Arc<Tree>) -> Target {
        let levels = match &tree.data {
            TreeData::Table(table) => TargetLevels::Table(TableLevels::clone(&table.levels.read())),
            TreeData::Index(index) => TargetLevels::Index(IndexLevels::clone(&index.levels.read())),
        };
        Target { tree: Arc::clone(tree), levels }
    }

    /// A row of the log; `None`: deleted.
    pub fn put_row(&self, store: &Store, row: RowId, bytes: Option<&[u8]>, csn: Csn) {
        let (TargetLevels::Table(levels), Some(table)) = (&self.levels, self.tree.as_table()) else { return };
        let fresh = table.next_row.fetch_max(row.0 + 1, Ordering::Relaxed) <= row.0;
        self.tree.live.fetch_add(if bytes.is_none() { -1 } else { i64::from(fresh) }, Ordering::Relaxed);
        let bytes: Option<RowBytes> = bytes.map(Into::into);
        let change = put(&levels.active, csn, row, bytes, |_| 0, |row| self.is_known() && levels.is_bottom(*row));
        store.account(&self.tree, &levels.active, change);
    }

    /// An index entry of the log.
    pub fn put_entry(&self, store: &Store, key: &[u8], live: bool, csn: Csn) {
        let TargetLevels::Index(levels) = &self.levels else { return };
        self.tree.live.fetch_add(if live { 1 } else { -1 }, Ordering::Relaxed);
        let is_bottom = |key: &KeyBytes| self.is_known() && levels.is_bottom(key.as_slice());
        let change = put(&levels.active, csn, KeyBytes::new(key), live, KeyBytes::heap_bytes, is_bottom);
        store.account(&self.tree, &levels.active, change);
    }

    /// What a segment has that cannot be read is unknown.
    fn is_known(&self) -> bool {
        !self.tree.is_damaged()
    }
}

/// Puts a version in the place of an older one; returns by how much the table's memory grows.
fn put<K: Ord + Clone, V: Payload>(
    table: &MemTable<K, V>,
    csn: Csn,
    key: K,
    value: V,
    key_bytes: impl Fn(&K) -> usize,
    is_bottom: impl FnOnce(&K) -> bool,
) -> i64 {
    table.note_keys();
    let is_nothing = !value.is_live() && is_bottom(&key);
    let mut map = table.map.write();
    if is_nothing {
        let removed = map.remove_entry(&key);
        return removed.map_or(0, |(key, chain)| -((entry_bytes::<K, V>(key_bytes(&key)) + chain.value.heap_bytes()) as i64));
    }
    let tombstone = (!value.is_live()).then(|| key.clone());
    let bytes = value.heap_bytes() as i64;
    let (bytes, became_dead) = match map.entry(key) {
        Entry::Occupied(mut slot) => {
            let replaced = std::mem::replace(slot.get_mut(), Chain::new(csn, value));
            (bytes - replaced.value.heap_bytes() as i64, replaced.value.is_live())
        }
        Entry::Vacant(slot) => {
            let bytes = bytes + entry_bytes::<K, V>(key_bytes(slot.key())) as i64;
            slot.insert(Chain::new(csn, value));
            (bytes, true)
        }
    };
    // `garbage` is locked before `map`, never the other way round.
    drop(map);
    if let Some(key) = tombstone.filter(|_| became_dead) {
        table.garbage.lock().push_back((csn, key));
    }
    bytes
}
