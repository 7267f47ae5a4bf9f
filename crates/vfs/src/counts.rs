//! Counts of the blocks, temporary files and log records that a thread reads and writes.
//!
//! A thread counts for itself, in plain memory: a statement runs on one thread, whose counts before and after are compared, and which hands over
//! those that were not handed over yet. Threads that work for a statement end by handing theirs to its thread.

use std::cell::{Cell, RefCell};
use std::time::Instant;

/// What was read and written. Times are counted only where `measure_times` wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Blocks of segments that the cache had, and that were read from files.
    pub block_hits: u64,
    pub block_reads: u64,
    pub block_read_bytes: u64,
    pub block_read_nanos: u64,
    /// Blocks of new segments.
    pub block_writes: u64,
    pub block_write_bytes: u64,
    pub block_write_nanos: u64,
    /// Of temporary files.
    pub temp_read_bytes: u64,
    pub temp_read_nanos: u64,
    pub temp_write_bytes: u64,
    pub temp_write_nanos: u64,
    /// Of the log.
    pub log_records: u64,
    pub log_bytes: u64,
}

/// `$f` of each pair of counts: straight-line code, which a processor does several at a time.
macro_rules! each {
    ($own:ident, $other:ident, $f:ident, $($field:ident)*) => { $($own.$field = $own.$field.$f($other.$field);)* };
}

macro_rules! all_fields {
    ($own:ident, $other:ident, $f:ident) => {
        each!($own, $other, $f,
            block_hits block_reads block_read_bytes block_read_nanos block_writes block_write_bytes block_write_nanos
            temp_read_bytes temp_read_nanos temp_write_bytes temp_write_nanos log_records log_bytes)
    };
}

impl IoCounts {
    pub fn add(&mut self, other: &IoCounts) {
        all_fields!(self, other, wrapping_add);
    }

    /// The increase since earlier counts of the same thread, or of sums that only grow.
    pub fn since(mut self, before: &IoCounts) -> IoCounts {
        {
            let own = &mut self;
            all_fields!(own, before, wrapping_sub);
        }
        self
    }
}

/// The blocks of one owner, which is a number that the segment's reader was told; 0: nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnedCounts {
    pub owner: u64,
    pub hits: u64,
    pub reads: u64,
}

/// The newest owners that are searched before one that is found farther back changes its place with the last one.
const NEAR: usize = 4;

struct ThreadCounts {
    all: IoCounts,
    /// Those that were handed over.
    told: IoCounts,
    /// There are others.
    is_untold: bool,
    /// Not handed over yet.
    owned: Vec<OwnedCounts>,
}

impl ThreadCounts {
    #[inline]
    fn of(&mut self, owner: u64) -> &mut OwnedCounts {
        let last = self.owned.len().wrapping_sub(1);
        let at = match self.owned.iter().rposition(|owned| owned.owner == owner) {
            Some(at) if last - at > NEAR => {
                self.owned.swap(at, last);
                last
            }
            Some(at) => at,
            None => {
                self.owned.push(OwnedCounts { owner, ..OwnedCounts::default() });
                last.wrapping_add(1)
            }
        };
        &mut self.owned[at]
    }
}

thread_local! {
    static COUNTS: RefCell<ThreadCounts> = const {
        const NONE: IoCounts = IoCounts {
            block_hits: 0,
            block_reads: 0,
            block_read_bytes: 0,
            block_read_nanos: 0,
            block_writes: 0,
            block_write_bytes: 0,
            block_write_nanos: 0,
            temp_read_bytes: 0,
            temp_read_nanos: 0,
            temp_write_bytes: 0,
            temp_write_nanos: 0,
            log_records: 0,
            log_bytes: 0,
        };
        RefCell::new(ThreadCounts { all: NONE, told: NONE, is_untold: false, owned: Vec::new() })
    };
    static MEASURES: Cell<bool> = const { Cell::new(false) };
    /// Time of reads and writes of files that nobody has taken yet.
    static NANOS: Cell<u64> = const { Cell::new(0) };
}

/// A thread that ends counts no more.
#[inline]
fn count(f: impl FnOnce(&mut ThreadCounts)) {
    let _ = COUNTS.try_with(|counts| {
        let mut counts = counts.borrow_mut();
        counts.is_untold = true;
        f(&mut counts);
    });
}

/// A block was in the cache.
#[inline]
pub fn note_hit(owner: u64) {
    count(|counts| {
        counts.all.block_hits += 1;
        counts.of(owner).hits += 1;
    });
}

/// A block was read from its file.
pub fn note_read(owner: u64, bytes: usize) {
    count(|counts| {
        counts.all.block_reads += 1;
        counts.all.block_read_bytes += bytes as u64;
        counts.all.block_read_nanos += NANOS.take();
        counts.of(owner).reads += 1;
    });
}

/// A segment was written.
pub fn note_written(blocks: u64, bytes: u64) {
    count(|counts| {
        counts.all.block_writes += blocks;
        counts.all.block_write_bytes += bytes;
        counts.all.block_write_nanos += NANOS.take();
    });
}

/// A part of a temporary file was read.
pub fn note_temporary_read(bytes: u64) {
    count(|counts| {
        counts.all.temp_read_bytes += bytes;
        counts.all.temp_read_nanos += NANOS.take();
    });
}

/// The same, written.
pub fn note_temporary_written(bytes: u64) {
    count(|counts| {
        counts.all.temp_write_bytes += bytes;
        counts.all.temp_write_nanos += NANOS.take();
    });
}

/// A record was added to the log.
#[inline]
pub fn note_log_record(bytes: u64) {
    count(|counts| {
        counts.all.log_records += 1;
        counts.all.log_bytes += bytes;
    });
}

/// All that this thread has counted since it began.
pub fn counted() -> IoCounts {
    COUNTS.with_borrow(|counts| counts.all)
}

/// Whether there is something to hand over.
pub fn has_counted() -> bool {
    COUNTS.with_borrow(|counts| counts.is_untold)
}

/// Hands over what this thread has counted since it did so last. `f` must count nothing.
pub fn hand_over<R>(f: impl FnOnce(&IoCounts, &[OwnedCounts]) -> R) -> R {
    COUNTS.with_borrow_mut(|counts| {
        let result = f(&counts.all.since(&counts.told), &counts.owned);
        counts.told = counts.all;
        counts.is_untold = false;
        counts.owned.clear();
        result
    })
}

/// What was counted apart from the thread's own counts.
#[derive(Debug, Default)]
pub struct ApartCounts {
    pub all: IoCounts,
    owned: Vec<OwnedCounts>,
}

/// Takes over what another thread has counted for this one.
pub fn take_over(counted: &ApartCounts) {
    count(|counts| {
        counts.all.add(&counted.all);
        for other in &counted.owned {
            let own = counts.of(other.owner);
            own.hits += other.hits;
            own.reads += other.reads;
        }
    });
}

/// Runs `f`, whose counts are returned and not this thread's.
pub fn apart<R>(f: impl FnOnce() -> R) -> (R, ApartCounts) {
    let (before, is_untold, owned) =
        COUNTS.with_borrow_mut(|counts| (counts.all, counts.is_untold, std::mem::take(&mut counts.owned)));
    let result = f();
    let counted = COUNTS.with_borrow_mut(|counts| {
        counts.is_untold = is_untold;
        ApartCounts {
            all: std::mem::replace(&mut counts.all, before).since(&before),
            owned: std::mem::replace(&mut counts.owned, owned),
        }
    });
    (result, counted)
}

/// Whether this thread measures how long reads and writes take (track_io_timing).
pub fn measures_times() -> bool {
    MEASURES.get()
}

/// Measures from now on, or no more.
pub fn measure_times(on: bool) {
    MEASURES.set(on);
}

/// Runs a read or write of a file.
#[inline]
pub(crate) fn timed<R>(f: impl FnOnce() -> R) -> R {
    if !MEASURES.get() {
        return f();
    }
    let began = Instant::now();
    let result = f();
    NANOS.set(NANOS.get() + began.elapsed().as_nanos() as u64);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_handed_over_once_and_by_owner() {
        hand_over(|_, _| ());
        let before = counted();
        (1..=8).for_each(note_hit);
        note_read(1, 100);
        note_hit(1);
        note_log_record(30);
        assert!(has_counted());
        let (all, mut owned) = hand_over(|all, owned| (*all, owned.to_vec()));
        assert_eq!((all.block_hits, all.block_reads, all.block_read_bytes, all.log_bytes), (9, 1, 100, 30));
        assert_eq!(counted().since(&before), all);
        owned.sort_by_key(|owned| owned.owner);
        assert_eq!((owned.len(), owned[0]), (8, OwnedCounts { owner: 1, hits: 2, reads: 1 }));
        assert!(!has_counted());
        assert_eq!(hand_over(|all, owned| (*all, owned.len())), (IoCounts::default(), 0));
        take_over(&ApartCounts { all, owned });
        assert_eq!(hand_over(|all, owned| (all.block_hits, owned.len())), (9, 8));
    }

    #[test]
    fn what_runs_apart_is_not_counted_here() {
        hand_over(|_, _| ());
        note_hit(7);
        let ((), apart) = apart(|| note_read(7, 10));
        assert_eq!((apart.all.block_hits, apart.all.block_reads), (0, 1));
        assert_eq!(hand_over(|all, owned| (*all, owned.to_vec())).1, [OwnedCounts { owner: 7, hits: 1, reads: 0 }]);
    }

    #[test]
    fn time_is_measured_where_it_is_wanted() {
        timed(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        note_read(1, 1);
        let before = counted().block_read_nanos;
        measure_times(true);
        timed(|| std::thread::sleep(std::time::Duration::from_millis(1)));
        measure_times(false);
        note_read(1, 1);
        assert!(counted().block_read_nanos >= before + 1_000_000);
    }
}
