//! The committed versions of a tree that are in memory, by key.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_threads::{Mutex, RwLock};
use melba_types::Csn;

use crate::chain::{Chain, Payload};

/// The keys of one memory table, each with its versions.
pub struct MemTable<K, V> {
    pub map: RwLock<BTreeMap<K, Chain<V>>>,
    /// Estimate of the memory in use.
    pub bytes: AtomicU64,
    /// Keys that a commit made tombstones, oldest first: they are dropped when no snapshot is older (a queue's table would fill
    /// with them otherwise).
    pub garbage: Mutex<VecDeque<(Csn, K)>>,
    /// There has been a key: false lets readers leave the lock alone.
    has_keys: AtomicBool,
}

/// The cost of an entry beside its parts, in a B-tree node that is two thirds full and in the allocator.
const ENTRY_OVERHEAD_BYTES: usize = 24;

/// The size of a key with one version, without the version's heap bytes.
pub fn entry_bytes<K, V>(key_heap_bytes: usize) -> usize {
    size_of::<Chain<V>>() + size_of::<K>() + key_heap_bytes + ENTRY_OVERHEAD_BYTES
}

impl<K: Ord, V: Payload> MemTable<K, V> {
    pub fn new() -> Arc<MemTable<K, V>> {
        Arc::new(MemTable {
            map: RwLock::default(),
            bytes: AtomicU64::new(0),
            garbage: Mutex::default(),
            has_keys: AtomicBool::new(false),
        })
    }

    /// Whether there has never been a key. A reader knows of commits before its view began.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.has_keys.load(Ordering::Acquire)
    }

    /// To be called before keys are added.
    pub fn note_keys(&self) {
        if self.is_empty() {
            self.has_keys.store(true, Ordering::Release);
        }
    }

    /// The version of a key that a snapshot at `csn` sees.
    #[inline]
    pub fn version<Q>(&self, key: &Q, csn: Csn) -> Option<(Csn, V)>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if self.is_empty() {
            return None;
        }
        let map = self.map.read();
        map.get(key).and_then(|chain| chain.visible(csn)).map(|v| (v.csn, v.value.clone()))
    }
}
