//! The block cache: verified, decompressed blocks shared by all readers of a process.
//!
//! A segment's cached blocks stand in a table by their number, so that a block is found by index without a search. The cache
//! knows the content of all those tables, and replaces the blocks that were not used of late.
//!
//! Finding a cached block writes to no memory that other threads write to: a cache line that two processors write costs each
//! about as much as the rest of the search. Instead of incrementing a count, a reader notes the block among a few places of its
//! thread (`arc_swap`), which a thread that takes the block out of its slot checks.
//!
//! Invariants:
//! 1. The cached bytes stay at or under the capacity, except for single blocks larger than a shard's share, which are returned to
//!    their reader but not kept.
//! 2. A cached block is never changed; evicting it frees nothing that a reader still holds.
//! 3. A slot holds a block exactly while the ring of its shard has an entry for it. Slots change under their ring's lock only.
//! 4. Segments that have the same reference share one slot for it, which lives as long as one of them is open.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use crate::block::{Block, ReferenceName};
use melba_threads::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use melba_threads::{ArcSwapOption, Guard, Mutex, sized};
use melba_vfs::counts;

const SHARDS: usize = sized(16, 2);
/// Charged for each entry beside its block.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// A size-bounded cache of blocks, replaced by the clock algorithm.
pub struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes: usize,
    /// The shard of the next segment's first block.
    next_shard: AtomicUsize,
    /// The slots of references that open segments have.
    references: Mutex<HashMap<ReferenceName, Weak<SegmentBlocks>>>,
}

/// Counts of a cache's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatistics {
    pub bytes: usize,
    pub blocks: usize,
}

/// The cached blocks of one segment, or a reference that several have.
pub(crate) struct SegmentBlocks {
    cache: Arc<BlockCache>,
    /// The shard of its first block.
    shard: usize,
    /// How many blocks the segment has.
    count: usize,
    /// For whom its blocks are counted (`melba_vfs::counts`).
    owner: AtomicU64,
    /// Made for the first block that is kept.
    slots: OnceLock<Slots>,
}

type Slots = Arc<[Slot]>;

/// A block that is being read. It is for short use, because a thread has eight places to note blocks at (further ones are
/// counted); a block that is kept longer becomes an `Arc`.
pub(crate) struct BlockRef(Guard<Option<Arc<Block>>>);

/// The place of one block.
#[derive(Default)]
struct Slot {
    /// Not dropped: its slots outlive the entry of each block, so it is empty by then (3), and dropping one would check the
    /// places of every thread all the same.
    block: ManuallyDrop<ArcSwapOption<Block>>,
    /// Since the clock's hand last passed.
    used: AtomicBool,
}

struct Shard {
    ring: Vec<Option<CacheEntry>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
}

/// A block in its slot.
struct CacheEntry {
    slots: Slots,
    number: u32,
    bytes: usize,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub fn new(bytes: usize) -> Arc<BlockCache> {
        let shard = || Shard { ring: Vec::new(), free: Vec::new(), hand: 0, bytes: 0 };
        Arc::new(BlockCache {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            shard_bytes: bytes / SHARDS,
            next_shard: AtomicUsize::new(0),
            references: Mutex::new(HashMap::new()),
        })
    }

    /// Most bytes that are kept.
    pub fn capacity_bytes(&self) -> usize {
        self.shard_bytes * SHARDS
    }

    /// The place of a reference, as its block 0, which all segments share that have it.
    pub(crate) fn reference(self: &Arc<BlockCache>, name: ReferenceName) -> Arc<SegmentBlocks> {
        let mut references = self.references.lock();
        if let Some(shared) = references.get(&name).and_then(Weak::upgrade) {
            return shared;
        }
        references.retain(|_, shared| shared.strong_count() > 0);
        let shared = Arc::new(SegmentBlocks::new(self, 1));
        references.insert(name, Arc::downgrade(&shared));
        shared
    }

    pub fn statistics(&self) -> CacheStatistics {
        let (mut bytes, mut blocks) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            bytes += shard.bytes;
            blocks += shard.ring.len() - shard.free.len();
        }
        CacheStatistics { bytes, blocks }
    }
}

impl SegmentBlocks {
    /// Of a segment with `count` blocks; none is cached.
    pub fn new(cache: &Arc<BlockCache>, count: usize) -> SegmentBlocks {
        let shard = cache.next_shard.fetch_add(1, Ordering::Relaxed);
        SegmentBlocks { cache: Arc::clone(cache), shard, count, owner: AtomicU64::new(0), slots: OnceLock::new() }
    }

    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    pub fn set_owner(&self, owner: u64) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    /// Counts a block that was read from its file.
    pub fn note_read(&self, bytes: usize) {
        counts::note_read(self.owner.load(Ordering::Relaxed), bytes);
    }

    fn shard(&self, number: u32) -> &Mutex<Shard> {
        &self.cache.shards[self.shard.wrapping_add(number as usize) % SHARDS]
    }

    #[inline]
    pub fn get(&self, number: u32) -> Option<BlockRef> {
        let slot = self.slots.get()?.get(number as usize)?;
        let block = slot.block.load();
        if block.is_none() {
            return None;
        }
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        counts::note_hit(self.owner.load(Ordering::Relaxed));
        Some(BlockRef(block))
    }

    pub fn insert(&self, number: u32, block: &Arc<Block>) {
        let bytes = block.memory_bytes() + ENTRY_OVERHEAD_BYTES;
        if bytes > self.cache.shard_bytes || number as usize >= self.count {
            return;
        }
        let slots = self.slots.get_or_init(|| (0..self.count).map(|_| Slot::default()).collect());
        let entry = CacheEntry { slots: Arc::clone(slots), number, bytes };
        self.shard(number).lock().insert(entry, block, self.cache.shard_bytes);
    }
}

impl BlockRef {
    pub fn into_arc(self) -> Arc<Block> {
        Guard::into_inner(self.0).expect("made of a block")
    }
}

/// A block that its reader has read itself.
impl From<Arc<Block>> for BlockRef {
    fn from(block: Arc<Block>) -> BlockRef {
        BlockRef(Guard::from_inner(Some(block)))
    }
}

impl Deref for BlockRef {
    type Target = Block;

    #[inline]
    fn deref(&self) -> &Block {
        self.0.as_deref().expect("made of a block")
    }
}

/// The segment is closed. Blocks that readers hold live on.
impl Drop for SegmentBlocks {
    fn drop(&mut self) {
        let Some(slots) = self.slots.get() else { return };
        for shard in &self.cache.shards {
            let mut shard = shard.lock();
            for at in 0..shard.ring.len() {
                if shard.ring[at].as_ref().is_some_and(|e| Arc::ptr_eq(&e.slots, slots)) {
                    shard.remove(at);
                }
            }
        }
    }
}

impl CacheEntry {
    fn slot(&self) -> &Slot {
        &self.slots[self.number as usize]
    }
}

impl Shard {
    fn insert(&mut self, entry: CacheEntry, block: &Arc<Block>, bytes_max: usize) {
        if entry.slot().block.load().is_some() {
            return;
        }
        while self.bytes + entry.bytes > bytes_max {
            self.evict_one();
        }
        self.bytes += entry.bytes;
        entry.slot().used.store(false, Ordering::Relaxed);
        entry.slot().block.store(Some(Arc::clone(block)));
        match self.free.pop() {
            Some(at) => self.ring[at] = Some(entry),
            None => self.ring.push(Some(entry)),
        }
    }

    /// Removes the first entry from the hand on that was not used since the hand last passed. Requires one to exist.
    fn evict_one(&mut self) {
        loop {
            self.hand = (self.hand + 1) % self.ring.len();
            if let Some(entry) = &self.ring[self.hand]
                && !entry.slot().used.swap(false, Ordering::Relaxed)
            {
                self.remove(self.hand);
                return;
            }
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(entry) = self.ring[at].take() {
            self.bytes -= entry.bytes;
            entry.slot().block.store(None);
            self.free.push(at);
        }
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Arc<Block> {
        Arc::new(Block::Filter(vec![0; bytes]))
    }

    #[test]
    fn a_discarded_block_lives_as_long_as_its_readers() {
        let cache = BlockCache::new(1 << 20);
        let of = SegmentBlocks::new(&cache, 20);
        let weak: Vec<_> = (0..20)
            .map(|i| {
                let block = block(i + 1);
                of.insert(i as u32, &block);
                Arc::downgrade(&block)
            })
            .collect();
        // More than a thread has places for.
        let mut held: Vec<BlockRef> = (0..20).filter_map(|i| of.get(i)).collect();
        assert_eq!(held.len(), 20);
        let kept = held.pop().map(BlockRef::into_arc);
        drop(of);
        assert_eq!(cache.statistics(), CacheStatistics { bytes: 0, blocks: 0 });
        for (i, held) in held.iter().enumerate() {
            assert!(matches!(&**held, Block::Filter(bytes) if bytes.len() == i + 1));
        }
        drop(held);
        let alive: Vec<bool> = weak.iter().map(|weak| weak.strong_count() > 0).collect();
        assert_eq!(alive, [vec![false; 19], vec![true]].concat(), "freed with the last reader");
        drop(kept);
        assert_eq!(weak[19].strong_count(), 0);
    }

    #[test]
    fn readers_beside_replacement_find_the_right_block_or_none() {
        let cache = BlockCache::new(16 * 2_000);
        let of = SegmentBlocks::new(&cache, 256);
        let pass = |seed: usize| {
            for i in 0..20_000 {
                let number = (i * (2 * seed + 1) + seed) % 256;
                match of.get(number as u32) {
                    Some(found) => assert!(matches!(&*found, Block::Filter(bytes) if bytes.len() == 300 + number)),
                    None => of.insert(number as u32, &block(300 + number)),
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|seed| drop(scope.spawn(move || pass(seed)))));
        let found = (0..256).filter(|&i| of.get(i).is_some()).count();
        assert_eq!(found, cache.statistics().blocks);
        assert!(cache.statistics().bytes <= cache.capacity_bytes());
    }

    #[test]
    fn a_reference_has_one_place_for_all_who_share_it() {
        let cache = BlockCache::new(1 << 20);
        let (name, other) = (ReferenceName::of(b"shared"), ReferenceName::of(b"another"));
        let (first, second) = (cache.reference(name), cache.reference(name));
        first.insert(0, &block(1000));
        assert!(second.get(0).is_some() && cache.reference(other).get(0).is_none());
        second.insert(0, &block(1000));
        assert_eq!(cache.statistics().blocks, 1);
        drop(first);
        assert!(second.get(0).is_some());
        drop(second);
        assert_eq!(cache.statistics(), CacheStatistics { bytes: 0, blocks: 0 }, "it ends with its last segment");
        assert!(cache.reference(name).get(0).is_none());
        assert_eq!(cache.references.lock().len(), 1, "places that nobody has are forgotten");
    }

    #[test]
    fn the_cache_stays_within_its_capacity_and_keeps_used_blocks() {
        let cache = BlockCache::new(16 * 10_000);
        let hot = SegmentBlocks::new(&cache, 8);
        let cold = SegmentBlocks::new(&cache, 2000);
        hot.insert(7, &block(1000));
        for i in 0..2000 {
            cold.insert(i, &block(500));
            assert!(hot.get(7).is_some(), "evicted while in use after {i}");
        }
        let statistics = cache.statistics();
        assert!(statistics.bytes <= cache.capacity_bytes());
        assert!(statistics.blocks > 100 && statistics.blocks < 320);
        let found = (0..2000).filter(|&i| cold.get(i).is_some()).count();
        assert_eq!(found + 1, statistics.blocks, "what is in a ring is in its slot, and the reverse");
        drop(cold);
        assert_eq!(cache.statistics().blocks, 1);
        hot.insert(0, &block(20_000));
        assert!(hot.get(0).is_none());
        hot.insert(8, &block(1));
        assert!(hot.get(8).is_none(), "a block that the segment does not have");
    }
}
