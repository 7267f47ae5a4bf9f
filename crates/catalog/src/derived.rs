//! Data computed from a snapshot of the catalog, and kept for later requests.
//!
//! A scan of all objects misses the processor's caches several times an object, and tools repeat such scans while nothing
//! changes. So results are kept, a bounded number of bytes per cluster, by their snapshot, or by the state of a table's
//! partitions (`families`).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

/// The most bytes for all of a cluster.
pub(crate) const BYTES_MAX: usize = 32 << 20;
/// The size of an entry beside its value, at most.
const ENTRY_BYTES: usize = 1 << 10;

/// The kinds of data computed for a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// The values of a column of a system relation.
    Column(usize),
    /// The bounds of a table's partitions.
    Partitions,
}

/// Of a snapshot, or of a state of a table's partitions.
type Key = (u64, Oid, Derivation);

#[derive(Debug)]
struct DerivedEntry {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    used: u64,
}

#[derive(Debug, Default)]
struct Store {
    entries: HashMap<Key, DerivedEntry>,
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

    fn put(&mut self, key: Key, value: Arc<dyn Any + Send + Sync>, bytes: usize) {
        self.uses += 1;
        let bytes = bytes + ENTRY_BYTES;
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(key, DerivedEntry { value, bytes, used: self.uses }) {
            self.bytes -= old.bytes;
        }
        if self.bytes > BYTES_MAX {
            self.evict();
        }
    }

    /// Forgets the least recently used entries: a quarter at once, so that putting n values takes n log n.
    fn evict(&mut self) {
        let mut oldest: Vec<(u64, Key)> = self.entries.iter().map(|(key, entry)| (entry.used, *key)).collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in oldest {
            if self.bytes <= BYTES_MAX / 4 * 3 {
                break;
            }
            self.bytes -= self.entries.remove(&key).map_or(0, |entry| entry.bytes);
        }
    }
}

/// The data kept for a cluster's snapshots, and the number that identifies one of these. States of partitions have such numbers too.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    store: Arc<Mutex<Store>>,
    /// Counts the numbers given.
    snapshots: Arc<AtomicU64>,
    snapshot: u64,
}

impl Derived {
    /// A number that no snapshot or state of the cluster has.
    pub(crate) fn number(&self) -> u64 {
        self.snapshots.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// For a snapshot that differs from this one's.
    pub(crate) fn next(&self) -> Derived {
        self.at(self.number())
    }

    /// For the state of a table's partitions that has the number.
    pub fn at(&self, number: u64) -> Derived {
        Derived { store: self.store.clone(), snapshots: self.snapshots.clone(), snapshot: number }
    }

    pub fn get<T: Send + Sync + 'static>(&self, relation: Oid, what: Derivation) -> Option<Arc<T>> {
        self.store.lock().get((self.snapshot, relation, what))?.downcast().ok()
    }

    /// Keeps a value of `bytes` bytes.
    pub fn put<T: Send + Sync + 'static>(&self, relation: Oid, what: Derivation, value: Arc<T>, bytes: usize) {
        self.store.lock().put((self.snapshot, relation, what), value, bytes);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.store.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_used_entry_is_evicted() {
        let derived = Derived::default();
        let put = |relation: u32| derived.put(Oid(relation), Derivation::Partitions, Arc::new(relation), 1 << 20);
        let get = |relation: u32| derived.get::<u32>(Oid(relation), Derivation::Partitions);
        for relation in 0..100 {
            put(relation);
            assert_eq!(get(0).as_deref(), Some(&0));
            assert_eq!(get(relation).as_deref(), Some(&relation));
            assert!(derived.bytes() <= BYTES_MAX);
        }
        assert_eq!(get(1), None);
    }

    #[test]
    fn values_without_bytes_take_room_too() {
        let derived = Derived::default();
        for relation in 0..100_000 {
            derived.put(Oid(relation), Derivation::Partitions, Arc::new(()), 0);
        }
        assert!(derived.store.lock().entries.len() <= BYTES_MAX / ENTRY_BYTES);
    }

    #[test]
    fn snapshots_do_not_see_each_others_values() {
        let derived = Derived::default();
        derived.put(Oid(1), Derivation::Column(0), Arc::new(1u32), 1);
        let (a, b) = (derived.next(), derived.next());
        assert_eq!(a.get::<u32>(Oid(1), Derivation::Column(0)), None);
        a.put(Oid(1), Derivation::Column(0), Arc::new(2u32), 1);
        assert_eq!(b.get::<u32>(Oid(1), Derivation::Column(0)), None);
        assert_eq!(derived.clone().get::<u32>(Oid(1), Derivation::Column(0)).as_deref(), Some(&1));
    }
}
