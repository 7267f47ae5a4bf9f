//! What is computed from a snapshot of the catalog, and kept for those who ask again.
//!
//! A scan that looks at all objects misses the processor's caches several times an object, and tools ask such questions again and
//! again while nothing changes. So what it computes is kept, a bounded number of bytes in a cluster, by the snapshot that it belongs
//! to.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

/// What all of a cluster may take, in bytes.
pub(crate) const BYTES_MAX: usize = 32 << 20;

/// What is computed of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// The values of a column of a system relation.
    Column(usize),
    /// The bounds of a table's partitions.
    Partitions,
}

/// Of a snapshot.
type Key = (u64, Oid, Derivation);

#[derive(Debug)]
struct Entry {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct Store {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    /// Counts the uses of entries.
    uses: u64,
}

impl Store {
    fn get(&mut self, key: Key) -> Option<Arc<dyn Any + Send + Sync>> {
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.uses;
        Some(entry.value.clone())
    }

    /// Keeps a value, in the place of those that nobody has used for longest.
    fn put(&mut self, key: Key, value: Arc<dyn Any + Send + Sync>, bytes: usize) {
        self.uses += 1;
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(key, Entry { value, bytes, used: self.uses }) {
            self.bytes -= old.bytes;
        }
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key)
            && let Some(entry) = self.entries.remove(&oldest)
        {
            self.bytes -= entry.bytes;
        }
    }
}

/// What is kept of a cluster's snapshots, and the number by which one of these is known.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    store: Arc<Mutex<Store>>,
    snapshots: Arc<AtomicU64>,
    snapshot: u64,
}

impl Derived {
    /// For a snapshot that differs from this one's.
    pub(crate) fn next(&self) -> Derived {
        let snapshot = self.snapshots.fetch_add(1, Ordering::Relaxed) + 1;
        Derived { store: self.store.clone(), snapshots: self.snapshots.clone(), snapshot }
    }

    pub fn get<T: Send + Sync + 'static>(&self, relation: Oid, what: Derivation) -> Option<Arc<T>> {
        self.store.lock().get((self.snapshot, relation, what))?.downcast().ok()
    }

    /// Keeps a value that takes so many bytes.
    pub fn put<T: Send + Sync + 'static>(&self, relation: Oid, what: Derivation, value: Arc<T>, bytes: usize) {
        self.store.lock().put((self.snapshot, relation, what), value, bytes);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.store.lock().bytes
    }
}
