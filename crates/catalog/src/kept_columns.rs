//! Columns of system relations that are kept for the next scan.
//!
//! A scan that looks at all objects misses the processor's caches several times an object, and tools ask such questions again and
//! again while nothing changes. So the columns that it computes are kept, a bounded number of bytes in a cluster, by the snapshot of
//! the catalog that they belong to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use melba_types::{Column, Oid};
use parking_lot::Mutex;

/// What all kept columns of a cluster may take, in bytes.
pub(crate) const BYTES_MAX: usize = 32 << 20;

/// A column of a relation as of a snapshot.
type Key = (u64, Oid, usize);

#[derive(Debug)]
struct Entry {
    column: Arc<Column>,
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
    fn get(&mut self, key: Key) -> Option<Arc<Column>> {
        self.uses += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.uses;
        Some(entry.column.clone())
    }

    /// Keeps a column, in the place of those that nobody has used for longest.
    fn put(&mut self, key: Key, column: Arc<Column>) {
        self.uses += 1;
        let bytes = column.memory_bytes();
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(key, Entry { column, bytes, used: self.uses }) {
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

/// The kept columns of a cluster, and the number by which those of one snapshot are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptColumns {
    store: Arc<Mutex<Store>>,
    snapshots: Arc<AtomicU64>,
    snapshot: u64,
}

impl KeptColumns {
    /// For a snapshot that differs from this one's.
    pub fn next(&self) -> KeptColumns {
        let snapshot = self.snapshots.fetch_add(1, Ordering::Relaxed) + 1;
        KeptColumns { store: self.store.clone(), snapshots: self.snapshots.clone(), snapshot }
    }

    /// Columns of a relation, as far as they are kept.
    pub fn get(&self, relation: Oid, columns: &[usize]) -> Vec<Option<Arc<Column>>> {
        let mut store = self.store.lock();
        columns.iter().map(|column| store.get((self.snapshot, relation, *column))).collect()
    }

    pub fn put(&self, relation: Oid, columns: impl Iterator<Item = (usize, Arc<Column>)>) {
        let mut store = self.store.lock();
        columns.for_each(|(number, column)| store.put((self.snapshot, relation, number), column));
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.store.lock().bytes
    }
}
