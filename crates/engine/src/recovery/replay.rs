//! Puts versions from the log into the row store.
//!
//! There are no readers while the log is replayed, and later readers see no older state than the log's end. So the row store gets
//! only the newest version of each key, and a tombstone that hides nothing is not kept: the cost of a record does not depend on
//! how often its keys were changed before.
//!
//! Rows enter their tables at once. Index entries wait until there are many and are inserted in the order of their keys: neighbours
//! lie in the same nodes, where keys in no order each miss the processor's cache on the whole way down, twice a node if they are long.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use melba_store::{Chain, IndexLevels, KeyBytes, MemTable, Payload, RowBytes, Store, TableLevels, Tree, TreeData, entry_bytes};
use melba_threads::atomic::Ordering;
use melba_types::{Csn, RowId, TreeId};

/// Entries of all indexes that wait at most; so few in tests that theirs come in several times.
const WAITING_ENTRIES: usize = if cfg!(test) { 50 } else { 128 << 10 };

/// Bytes of their keys.
const WAITING_BYTES: usize = 16 << 20;

/// The trees of operations since trees or segments were last added or dropped.
#[derive(Default)]
pub(crate) struct Targets {
    /// `None` for a tree that is not there (a later record drops it).
    trees: HashMap<TreeId, Option<Target>>,
    entries: usize,
    bytes: usize,
}

impl Targets {
    /// A row of the log; `None`: deleted.
    pub fn put_row(&mut self, store: &Store, tree: TreeId, row: RowId, bytes: Option<&[u8]>, csn: Csn) {
        if let Some(target) = self.of(store, tree) {
            target.put_row(store, row, bytes, csn);
        }
    }

    /// An index entry of the log.
    pub fn put_entry(&mut self, store: &Store, tree: TreeId, key: &[u8], live: bool, csn: Csn) {
        let Some(Target { tree, levels: TargetLevels::Index(_, waiting) }) = self.of(store, tree) else { return };
        tree.live.fetch_add(if live { 1 } else { -1 }, Ordering::Relaxed);
        waiting.push((KeyBytes::new(key), csn, live));
        self.entries += 1;
        self.bytes += key.len();
        if self.entries >= WAITING_ENTRIES || self.bytes >= WAITING_BYTES {
            self.apply(store);
        }
    }

    /// To be called before trees or their segments are added or dropped, and at the log's end.
    pub fn forget(&mut self, store: &Store) {
        self.apply(store);
        self.trees.clear();
    }

    fn of(&mut self, store: &Store, id: TreeId) -> Option<&mut Target> {
        self.trees.entry(id).or_insert_with(|| store.tree(id).ok().map(|tree| Target::new(&tree))).as_mut()
    }

    fn apply(&mut self, store: &Store) {
        self.trees.values_mut().flatten().for_each(|target| target.put_waiting(store));
        (self.entries, self.bytes) = (0, 0);
    }
}

/// A tree in its present state, until its levels change.
struct Target {
    tree: Arc<Tree>,
    levels: TargetLevels,
}

enum TargetLevels {
    Table(TableLevels),
    /// With the entries that wait, in the log's order.
    Index(IndexLevels, Vec<(KeyBytes, Csn, bool)>),
}

impl Target {
    fn new(tree: &Arc<Tree>) -> Target {
        let levels = match &tree.data {
            TreeData::Table(table) => TargetLevels::Table(TableLevels::clone(&table.levels.read())),
            TreeData::Index(index) => TargetLevels::Index(IndexLevels::clone(&index.levels.read()), Vec::new()),
        };
        Target { tree: Arc::clone(tree), levels }
    }

    fn put_row(&self, store: &Store, row: RowId, bytes: Option<&[u8]>, csn: Csn) {
        let (TargetLevels::Table(levels), Some(table)) = (&self.levels, self.tree.as_table()) else { return };
        let fresh = table.next_row.fetch_max(row.0 + 1, Ordering::Relaxed) <= row.0;
        self.tree.live.fetch_add(if bytes.is_none() { -1 } else { i64::from(fresh) }, Ordering::Relaxed);
        let is_bottom = |row: &RowId| self.is_known() && levels.is_bottom(*row);
        let change = put(&levels.active, [(row, csn, bytes)], |_| 0, is_bottom);
        store.account(&self.tree, &levels.active, change);
    }

    fn put_waiting(&mut self, store: &Store) {
        let known = self.is_known();
        let TargetLevels::Index(levels, waiting) = &mut self.levels else { return };
        // Stable: of one key the last is the newest.
        waiting.sort_by(|a, b| a.0.cmp(&b.0));
        let is_bottom = |key: &KeyBytes| known && levels.is_bottom(key.as_slice());
        let change = put(&levels.active, waiting.drain(..), KeyBytes::heap_bytes, is_bottom);
        store.account(&self.tree, &levels.active, change);
    }

    /// The content of a segment that cannot be read is unknown.
    fn is_known(&self) -> bool {
        !self.tree.is_damaged()
    }
}

/// A version as the log has it.
trait Logged<V> {
    /// False: a tombstone.
    fn is_live(&self) -> bool;
    fn value(self) -> V;
    /// Takes the place of an older one.
    fn replace(self, old: &mut V);
}

impl Logged<bool> for bool {
    fn is_live(&self) -> bool {
        *self
    }

    fn value(self) -> bool {
        self
    }

    fn replace(self, old: &mut bool) {
        *old = self;
    }
}

impl Logged<Option<RowBytes>> for Option<&[u8]> {
    fn is_live(&self) -> bool {
        self.is_some()
    }

    fn value(self) -> Option<RowBytes> {
        self.map(Into::into)
    }

    /// A row of the same length, as most updates leave it, stays where it is.
    fn replace(self, old: &mut Option<RowBytes>) {
        match (self, old.as_mut().and_then(Arc::get_mut)) {
            (Some(new), Some(old)) if new.len() == old.len() => old.copy_from_slice(new),
            _ => *old = self.value(),
        }
    }
}

/// Puts versions, the newest of a key last, in the place of older ones; returns by how much the table's memory grows.
fn put<K: Ord + Clone, V: Payload>(
    table: &MemTable<K, V>,
    versions: impl IntoIterator<Item = (K, Csn, impl Logged<V>)>,
    key_bytes: impl Fn(&K) -> usize,
    is_bottom: impl Fn(&K) -> bool,
) -> i64 {
    table.note_keys();
    let (mut growth, mut tombstones) = (0, Vec::new());
    let mut map = table.map.write();
    for (key, csn, version) in versions {
        if !version.is_live() && is_bottom(&key) {
            let removed = map.remove_entry(&key);
            growth -= removed.map_or(0, |(key, chain)| bytes_of::<K, V>(key_bytes(&key), &chain.value));
            continue;
        }
        let tombstone = (!version.is_live()).then(|| key.clone());
        let (change, became_dead) = replace(&mut map, key, csn, version, &key_bytes);
        growth += change;
        tombstones.extend(tombstone.filter(|_| became_dead).map(|key| (csn, key)));
    }
    // `garbage` is locked before `map`, never the other way round.
    drop(map);
    if !tombstones.is_empty() {
        tombstones.sort_by_key(|(csn, _)| *csn);
        table.garbage.lock().extend(tombstones);
    }
    growth
}

/// By how much the memory grows, and whether there was no tombstone in this place.
fn replace<K: Ord, V: Payload>(
    map: &mut BTreeMap<K, Chain<V>>,
    key: K,
    csn: Csn,
    version: impl Logged<V>,
    key_bytes: impl Fn(&K) -> usize,
) -> (i64, bool) {
    match map.entry(key) {
        Entry::Occupied(mut slot) => {
            let chain = slot.get_mut();
            let (bytes, was_live) = (chain.value.heap_bytes() as i64, chain.value.is_live());
            version.replace(&mut chain.value);
            // A version that was here is older than all views, and so are those that it replaced.
            (chain.csn, chain.older) = (csn, None);
            (chain.value.heap_bytes() as i64 - bytes, was_live)
        }
        Entry::Vacant(slot) => {
            let chain = slot.insert_entry(Chain::new(csn, version.value()));
            (bytes_of::<K, V>(key_bytes(chain.key()), &chain.get().value), true)
        }
    }
}

fn bytes_of<K, V: Payload>(key_heap_bytes: usize, value: &V) -> i64 {
    (entry_bytes::<K, V>(key_heap_bytes) + value.heap_bytes()) as i64
}
