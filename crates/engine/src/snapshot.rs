//! The snapshots in use, which decide which versions must be kept.
//!
//! Invariant: a slot holds the CSN of the oldest view its session uses, and a view is never used before its slot says so.
//! `acquire` stores a CSN and looks again whether it is still the newest, so that a computation of the oldest snapshot from the
//! newest CSN and the slots (in that order) cannot miss it. An exported snapshot is adopted, forgotten and counted under one
//! lock: it is protected by the list, by the slot of a session that adopted it before it was forgotten, or by both.

use crossbeam_utils::CachePadded;
use melba_locks::SLOTS;
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU64, AtomicUsize, Ordering};
use melba_types::Csn;

/// "No view in use".
const IDLE: u64 = u64::MAX;

/// The slots of all sessions and the newest visible CSN.
pub(crate) struct Snapshots {
    visible: AtomicU64,
    /// The newest CSN up to which all commits are applied: at or after the visible one.
    applied: AtomicU64,
    slots: Box<[CachePadded<AtomicU64>]>,
    /// Slots at or above this were never taken.
    high_water: AtomicUsize,
    free: Mutex<Vec<u32>>,
    /// Snapshots that other transactions may adopt; the same one as often as it was exported.
    exports: Mutex<Vec<Csn>>,
    /// The last computed `oldest`; may lag.
    oldest: AtomicU64,
}

impl Snapshots {
    pub fn new(visible: Csn) -> Snapshots {
        Snapshots {
            visible: AtomicU64::new(visible.0),
            applied: AtomicU64::new(visible.0),
            slots: (0..SLOTS).map(|_| CachePadded::new(AtomicU64::new(IDLE))).collect(),
            high_water: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            exports: Mutex::default(),
            oldest: AtomicU64::new(visible.0),
        }
    }

    /// Takes a slot for a session; `None` when all are taken.
    pub fn take_slot(&self) -> Option<u32> {
        let mut free = self.free.lock();
        if let Some(slot) = free.pop() {
            return Some(slot);
        }
        let next = self.high_water.load(Ordering::Relaxed);
        if next == SLOTS {
            return None;
        }
        self.high_water.store(next + 1, Ordering::SeqCst);
        Some(next as u32)
    }

    /// Frees a slot.
    pub fn free_slot(&self, slot: u32) {
        self.slots[slot as usize].store(IDLE, Ordering::SeqCst);
        self.free.lock().push(slot);
    }

    /// Slots that were ever taken.
    pub fn slots_used(&self) -> usize {
        self.high_water.load(Ordering::SeqCst)
    }

    /// The newest CSN that a new view sees.
    #[inline]
    pub fn visible(&self) -> Csn {
        Csn(self.visible.load(Ordering::SeqCst))
    }

    /// The newest CSN seen by a transaction that writes, or that holds locks which others released early.
    #[inline]
    pub fn applied(&self) -> Csn {
        Csn(self.applied.load(Ordering::SeqCst))
    }

    /// Everything up to `csn` is applied; called in CSN order, before it is published.
    pub fn note_applied(&self, csn: Csn) {
        self.applied.store(csn.0, Ordering::SeqCst);
    }

    /// Publishes everything up to `csn`; called in CSN order.
    pub fn publish(&self, csn: Csn) {
        self.visible.store(csn.0, Ordering::SeqCst);
    }

    /// A view of the newest visible state, protected by the slot. `pinned` is an older CSN that the slot must keep protecting;
    /// `least` is an applied CSN that the view must show, visible or not.
    pub fn acquire(&self, slot: u32, pinned: Option<Csn>, least: Csn) -> Csn {
        let place = &self.slots[slot as usize];
        loop {
            let visible = self.visible();
            let csn = visible.max(least);
            place.store(pinned.map_or(csn.0, |p| p.0.min(csn.0)), Ordering::SeqCst);
            if self.visible() == visible {
                return csn;
            }
        }
    }

    /// Protects only `pinned` from now on.
    pub fn hold(&self, slot: u32, pinned: Option<Csn>) {
        self.slots[slot as usize].store(pinned.map_or(IDLE, |p| p.0), Ordering::SeqCst);
    }

    /// Lets other transactions adopt a snapshot that its caller's slot protects.
    pub fn export(&self, csn: Csn) {
        self.exports.lock().push(csn);
    }

    /// Takes an export back.
    pub fn forget_export(&self, csn: Csn) {
        let mut exports = self.exports.lock();
        if let Some(at) = exports.iter().position(|c| *c == csn) {
            exports.swap_remove(at);
        }
    }

    /// Protects an exported snapshot by a slot, which keeps protecting `pinned`; false when it is not exported (any more).
    pub fn adopt(&self, slot: u32, csn: Csn, pinned: Option<Csn>) -> bool {
        let exports = self.exports.lock();
        let exported = exports.contains(&csn);
        if exported {
            self.hold(slot, Some(pinned.map_or(csn, |p| p.min(csn))));
        }
        exported
    }

    /// The oldest CSN that a view in use, or any later one, may have: versions replaced at or before it are dead.
    pub fn compute_oldest(&self) -> Csn {
        let mut oldest = self.visible.load(Ordering::SeqCst);
        let exports = self.exports.lock();
        oldest = exports.iter().fold(oldest, |oldest, csn| oldest.min(csn.0));
        for slot in &self.slots[..self.slots_used()] {
            oldest = oldest.min(slot.load(Ordering::SeqCst));
        }
        self.oldest.fetch_max(oldest, Ordering::SeqCst);
        Csn(oldest)
    }

    /// `compute_oldest` for some of the commits. Each session's slot is a cache line of its own: with many sessions fewer commits look
    /// at them, so that no more than a few belong to each.
    pub fn compute_oldest_after(&self, commit: Csn) {
        const COMMITS: u64 = 8;
        const SLOTS_A_COMMIT: u64 = 16;
        if commit.0.is_multiple_of(COMMITS.max(self.slots_used() as u64 / SLOTS_A_COMMIT)) {
            self.compute_oldest();
        }
    }

    /// `compute_oldest` as of a while ago: never too new.
    #[inline]
    pub fn oldest_lagging(&self) -> Csn {
        Csn(self.oldest.load(Ordering::Relaxed))
    }

    /// All CSNs that views in use or later ones may have, ascending, the newest visible one included.
    pub fn in_use(&self) -> Vec<Csn> {
        let visible = self.visible.load(Ordering::SeqCst);
        let mut all: Vec<Csn> = vec![Csn(visible)];
        let exports = self.exports.lock();
        all.extend(exports.iter());
        for slot in &self.slots[..self.slots_used()] {
            let csn = slot.load(Ordering::SeqCst);
            if csn < visible {
                all.push(Csn(csn));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_is_the_oldest_of_the_slots() {
        let s = Snapshots::new(Csn(10));
        let (a, b) = (s.take_slot().expect("free"), s.take_slot().expect("free"));
        assert_eq!(s.acquire(a, None, Csn(0)), Csn(10));
        s.publish(Csn(20));
        assert_eq!(s.acquire(b, None, Csn(0)), Csn(20));
        assert_eq!(s.compute_oldest(), Csn(10));
        assert_eq!(s.in_use(), [Csn(10), Csn(20)]);
        assert_eq!(s.acquire(a, Some(Csn(10)), Csn(0)), Csn(20));
        assert_eq!(s.compute_oldest(), Csn(10));
        assert_eq!(s.acquire(b, None, Csn(25)), Csn(25), "what is applied and not visible yet");
        s.publish(Csn(30));
        assert_eq!(s.in_use(), [Csn(10), Csn(25), Csn(30)]);
        s.hold(b, None);
        s.hold(a, None);
        assert_eq!(s.compute_oldest(), Csn(30));
        s.free_slot(a);
        assert_eq!(s.take_slot(), Some(a));
    }

    #[test]
    fn with_many_sessions_fewer_commits_look_at_their_slots() {
        let looks = |sessions: usize| {
            let s = Snapshots::new(Csn(0));
            (0..sessions).for_each(|_| assert!(s.take_slot().is_some()));
            let commits = 1..=640;
            commits
                .filter(|csn| {
                    let before = s.oldest_lagging();
                    s.publish(Csn(*csn));
                    s.compute_oldest_after(Csn(*csn));
                    s.oldest_lagging() > before
                })
                .count()
        };
        assert_eq!([1, 128, 320, 1024].map(looks), [80, 80, 32, 10]);
    }

    #[test]
    fn an_exported_snapshot_lasts_until_it_is_removed_and_released() {
        let s = Snapshots::new(Csn(10));
        let adopter = s.take_slot().expect("free");
        s.export(Csn(10));
        s.publish(Csn(20));
        assert_eq!((s.compute_oldest(), s.in_use()), (Csn(10), vec![Csn(10), Csn(20)]));
        assert!(!s.adopt(adopter, Csn(11), None));
        assert!(s.adopt(adopter, Csn(10), None));
        s.forget_export(Csn(10));
        assert!(!s.adopt(adopter, Csn(10), None));
        assert_eq!(s.compute_oldest(), Csn(10));
        s.hold(adopter, None);
        assert_eq!((s.compute_oldest(), s.in_use()), (Csn(20), vec![Csn(20)]));
    }
}
