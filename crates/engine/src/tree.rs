//! A tree: the committed state of one table or index.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use melba_types::row::RowLayout;
use melba_types::{Csn, Kind, RowId, TreeId};
use parking_lot::RwLock;

use crate::RowBytes;
use crate::chain::{Chain, Payload};
use crate::key::KeyBytes;

/// What a restart leaves of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Persistence {
    /// Everything that was committed.
    Logged = 0,
    /// Everything after a clean stop, nothing after a crash.
    Unlogged = 1,
    /// Nothing; rows never touch the disk. The tree itself stays.
    Memory = 2,
    /// Not even the tree.
    Temporary = 3,
}

/// The keys of one memory table, each with its versions.
pub(crate) struct MemTable<K, V> {
    pub map: RwLock<BTreeMap<K, Chain<V>>>,
    /// Estimate of the memory in use.
    pub bytes: AtomicU64,
}

impl<K: Ord, V: Payload> MemTable<K, V> {
    pub fn new() -> MemTable<K, V> {
        MemTable { map: RwLock::new(BTreeMap::new()), bytes: AtomicU64::new(0) }
    }
}

/// Where a tree's committed versions are, newest first.
pub(crate) struct Levels<K, V> {
    pub active: Arc<MemTable<K, V>>,
}

impl<K: Ord, V: Payload> Levels<K, V> {
    fn new() -> Levels<K, V> {
        Levels { active: Arc::new(MemTable::new()) }
    }
}

impl<K, V> Clone for Levels<K, V> {
    fn clone(&self) -> Levels<K, V> {
        Levels { active: Arc::clone(&self.active) }
    }
}

pub(crate) type TableLevels = Levels<RowId, Option<RowBytes>>;
pub(crate) type IndexLevels = Levels<KeyBytes, bool>;

/// The rows of a table.
pub(crate) struct TableTree {
    pub layout: RwLock<Arc<RowLayout>>,
    pub levels: RwLock<TableLevels>,
    pub next_row: AtomicU64,
}

/// The entries of an index.
pub(crate) struct IndexTree {
    pub levels: RwLock<IndexLevels>,
}

pub(crate) enum TreeData {
    Table(TableTree),
    Index(IndexTree),
}

/// One tree.
pub(crate) struct Tree {
    pub id: TreeId,
    /// The table of an index; itself for a table.
    pub table: TreeId,
    pub persistence: Persistence,
    pub data: TreeData,
    /// The creating transaction has committed.
    pub committed: AtomicBool,
    pub live_entries: AtomicU64,
}

impl Tree {
    pub fn table(id: TreeId, kinds: &[Kind], persistence: Persistence) -> Tree {
        let data = TreeData::Table(TableTree {
            layout: RwLock::new(Arc::new(RowLayout::new(kinds.to_vec()))),
            levels: RwLock::new(Levels::new()),
            next_row: AtomicU64::new(1),
        });
        Tree { id, table: id, persistence, data, committed: AtomicBool::new(false), live_entries: AtomicU64::new(0) }
    }

    pub fn index(id: TreeId, table: TreeId, persistence: Persistence) -> Tree {
        let data = TreeData::Index(IndexTree { levels: RwLock::new(Levels::new()) });
        Tree { id, table, persistence, data, committed: AtomicBool::new(false), live_entries: AtomicU64::new(0) }
    }

    pub fn as_table(&self) -> Option<&TableTree> {
        match &self.data {
            TreeData::Table(t) => Some(t),
            TreeData::Index(_) => None,
        }
    }

    pub fn as_index(&self) -> Option<&IndexTree> {
        match &self.data {
            TreeData::Index(t) => Some(t),
            TreeData::Table(_) => None,
        }
    }

    /// Estimate of the memory that the tree's versions take.
    pub fn memory_bytes(&self) -> u64 {
        match &self.data {
            TreeData::Table(t) => t.levels.read().active.bytes.load(Ordering::Relaxed),
            TreeData::Index(t) => t.levels.read().active.bytes.load(Ordering::Relaxed),
        }
    }
}

impl<K, V: Payload> Levels<K, V> {
    /// The version of a key that a snapshot at `csn` sees; a tombstone counts.
    #[inline]
    pub fn version<Q>(&self, key: &Q, csn: Csn) -> Option<(Csn, V)>
    where
        K: std::borrow::Borrow<Q> + Ord,
        Q: Ord + ?Sized,
    {
        let map = self.active.map.read();
        map.get(key).and_then(|chain| chain.visible(csn)).map(|v| (v.csn, v.value.clone()))
    }
}
