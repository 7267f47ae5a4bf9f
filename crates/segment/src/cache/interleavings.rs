//! The cache under a model checker for threads: `cargo test -p melba-segment --features shuttle interleavings`.

use std::sync::Weak;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use super::*;

/// Orders that each of two schedulers tries.
const ORDERS: usize = 5000;
const BLOCKS: usize = 5;

fn bytes_of(number: usize) -> usize {
    100 + number
}

/// Finds each block of a segment or puts it there, and says which it has put.
fn pass(of: &SegmentBlocks, step: usize) -> Vec<Weak<Block>> {
    let mut made = Vec::new();
    for i in 0..BLOCKS {
        let number = (i * step + step) % BLOCKS;
        match of.get(number as u32) {
            Some(found) => assert!(matches!(&*found, Block::Filter(bytes) if bytes.len() == bytes_of(number))),
            None => {
                let block = Arc::new(Block::Filter(vec![0; bytes_of(number)]));
                made.push(Arc::downgrade(&block));
                of.insert(number as u32, &block);
            }
        }
    }
    made
}

/// Two threads read a segment, a third one another that it closes, and there is not room for all blocks.
fn readers_meet_replacement_and_closing() {
    let cache = BlockCache::new(SHARDS * 3 * (bytes_of(BLOCKS) + ENTRY_OVERHEAD_BYTES + 100));
    let (kept, closed) = (Arc::new(SegmentBlocks::new(&cache, BLOCKS)), SegmentBlocks::new(&cache, BLOCKS));
    let readers = [1, 2].map(|step| {
        let kept = Arc::clone(&kept);
        shuttle::thread::spawn(move || pass(&kept, step))
    });
    let closing = shuttle::thread::spawn(move || pass(&closed, 1));
    let mut made = Vec::new();
    for thread in readers.into_iter().chain([closing]) {
        made.extend(thread.join().expect("a panic ends the whole test"));
    }
    let found = (0..BLOCKS).filter(|number| kept.get(*number as u32).is_some()).count();
    let statistics = cache.statistics();
    assert_eq!(found, statistics.blocks, "what is in a ring is in its slot, and the reverse");
    assert!(statistics.bytes <= cache.capacity_bytes());
    drop(kept);
    assert_eq!(cache.statistics(), CacheStatistics { bytes: 0, blocks: 0 });
    assert!(made.iter().all(|block| block.strong_count() == 0), "a block has outlived its segment and its readers");
}

/// Segments with the same reference open, read it and close, each in a thread.
fn sharers_of_a_reference_come_and_go() {
    let cache = BlockCache::new(SHARDS * 3 * (bytes_of(0) + ENTRY_OVERHEAD_BYTES));
    let name = ReferenceName::of(b"shared");
    let threads = [1, 2, 2].map(|times| {
        let cache = Arc::clone(&cache);
        shuttle::thread::spawn(move || (0..times).flat_map(|_| pass(&cache.reference(name), 1)).collect::<Vec<_>>())
    });
    let made: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("a panic ends the whole test")).collect();
    assert_eq!(cache.statistics(), CacheStatistics { bytes: 0, blocks: 0 });
    assert!(made.iter().all(|block| block.strong_count() == 0), "a reference has outlived its segments and its readers");
}

/// Runs threads in random orders, and in those in which PCT finds faults of a depth.
fn explore(depth: usize, threads: fn()) {
    let mut config = Config::new();
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new(ORDERS), config.clone()).run(threads);
    Runner::new(PctScheduler::new(depth, ORDERS), config).run(threads);
}

#[test]
fn sharers_find_one_place() {
    explore(3, sharers_of_a_reference_come_and_go);
}

#[test]
fn slots_and_rings_agree_beside_replacement_and_closing() {
    explore(4, readers_meet_replacement_and_closing);
}
