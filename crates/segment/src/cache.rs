//! The block cache: verified, decompressed blocks shared by all readers of a process.
//!
//! Invariants:
//! 1. The cached bytes stay at or under the capacity, except for single blocks larger than a shard's share, which are
//!    returned to their reader and not kept.
//! 2. A cached block is never changed; evicting it frees nothing that a reader still holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::block::Block;

const SHARDS: usize = 16;
/// Charged for each entry beside its block.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// A segment's id (see `BlockCache::next_segment`) and the number of its block.
type Key = (u64, u32);

/// A size-bounded cache of blocks, replaced by the clock algorithm.
pub struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes: usize,
    next_segment: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Counters of a cache since its creation, and what it holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatistics {
    pub hits: u64,
    pub misses: u64,
    pub bytes: usize,
    pub blocks: usize,
}

struct Shard {
    slots: HashMap<Key, usize>,
    ring: Vec<Option<Entry>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
}

struct Entry {
    key: Key,
    block: Arc<Block>,
    bytes: usize,
    used: AtomicBool,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub fn new(bytes: usize) -> Arc<BlockCache> {
        let shard = || Shard { slots: HashMap::new(), ring: Vec::new(), free: Vec::new(), hand: 0, bytes: 0 };
        Arc::new(BlockCache {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            shard_bytes: bytes / SHARDS,
            next_segment: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// Most bytes that are kept.
    pub fn capacity_bytes(&self) -> usize {
        self.shard_bytes * SHARDS
    }

    pub fn statistics(&self) -> CacheStatistics {
        let (mut bytes, mut blocks) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            bytes += shard.bytes;
            blocks += shard.slots.len();
        }
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheStatistics { hits, misses, bytes, blocks }
    }

    /// An id that no segment opened with this cache has.
    pub(crate) fn next_segment(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        let hash = crate::hash::hash_word(key.0 << 32 ^ u64::from(key.1));
        &self.shards[hash as usize % SHARDS]
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<Block>> {
        let shard = self.shard(key).lock();
        let found = shard.slots.get(&key).and_then(|&slot| shard.ring[slot].as_ref());
        let Some(entry) = found else {
            drop(shard);
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        entry.used.store(true, Ordering::Relaxed);
        let block = Arc::clone(&entry.block);
        drop(shard);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    pub(crate) fn insert(&self, key: Key, block: Arc<Block>) {
        let bytes = block.memory_bytes() + ENTRY_OVERHEAD_BYTES;
        if bytes > self.shard_bytes {
            return;
        }
        self.shard(key).lock().insert(Entry { key, block, bytes, used: AtomicBool::new(false) }, self.shard_bytes);
    }

    /// Forgets a segment's blocks. Called when its reader drops; blocks that readers hold live on.
    pub(crate) fn remove_segment(&self, segment: u64) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            for slot in 0..shard.ring.len() {
                if shard.ring[slot].as_ref().is_some_and(|e| e.key.0 == segment) {
                    shard.remove(slot);
                }
            }
        }
    }
}

impl Shard {
    fn insert(&mut self, entry: Entry, bytes_max: usize) {
        if self.slots.contains_key(&entry.key) {
            return;
        }
        while self.bytes + entry.bytes > bytes_max {
            self.evict_one();
        }
        self.bytes += entry.bytes;
        let key = entry.key;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.ring[slot] = Some(entry);
                slot
            }
            None => {
                self.ring.push(Some(entry));
                self.ring.len() - 1
            }
        };
        self.slots.insert(key, slot);
    }

    /// Removes the first entry from the hand on that was not used since the hand last passed. Requires one to exist.
    fn evict_one(&mut self) {
        loop {
            self.hand = (self.hand + 1) % self.ring.len();
            if let Some(entry) = &self.ring[self.hand]
                && !entry.used.swap(false, Ordering::Relaxed)
            {
                self.remove(self.hand);
                return;
            }
        }
    }

    fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.ring[slot].take() {
            self.bytes -= entry.bytes;
            self.slots.remove(&entry.key);
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Arc<Block> {
        Arc::new(Block::Filter(vec![0; bytes]))
    }

    #[test]
    fn stays_within_its_capacity_and_keeps_what_is_used() {
        let cache = BlockCache::new(16 * 10_000);
        let hot = (0, 7);
        cache.insert(hot, block(1000));
        for i in 0..2000 {
            cache.insert((1, i), block(500));
            assert!(cache.get(hot).is_some(), "evicted while in use after {i}");
        }
        let statistics = cache.statistics();
        assert!(statistics.bytes <= cache.capacity_bytes());
        assert!(statistics.blocks > 100 && statistics.blocks < 320);
        cache.remove_segment(1);
        assert_eq!(cache.statistics().blocks, 1);
        cache.insert((2, 0), block(20_000));
        assert!(cache.get((2, 0)).is_none());
    }
}
