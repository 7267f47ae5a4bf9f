//! Single parts of the engine: the pipeline beside the log writer's thread, waits of writers, locks in sets.

use std::time::Duration;

use melba_locks::{HoldDuration, LockKey, LockManager, TABLE_LOCKS_MAX, WaitPolicy};
use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_threads::{OwnThreads, WaitQueue};
use melba_types::Csn;

use super::*;
use crate::commit::tests::Parts;

/// The log writer is woken when many bytes wait, and stops when told to, whatever it sleeps for.
#[test]
fn the_log_writer_flushes_waiting_commits_and_stops() {
    check(|| {
        let parts = Parts::new();
        let options = EngineOptions { wal_writer_flush_after_bytes: 0, ..EngineOptions::default() };
        parts.pipeline.log.configure(&options);
        let writer = spawn({
            let parts = Arc::clone(&parts);
            move || {
                while !parts.runtime.is_stopping() {
                    parts.pipeline.log.await_writer();
                    if parts.pipeline.log.waiting_bytes() > 0 {
                        parts.pipeline.flush_log(melba_wal::WrittenBy::Background).expect("flushes");
                    }
                }
            }
        });
        let committers = [Durability::Async, Durability::Sync].map(|durability| {
            let parts = Arc::clone(&parts);
            spawn(move || {
                for _ in 0..2 {
                    let applied = AtomicU64::new(0);
                    let started = parts.start(durability, None, |csn| applied.store(csn.0, Ordering::SeqCst)).expect("starts");
                    let slot = if durability == Durability::Async { 0 } else { 1 };
                    parts.wait(slot, &started).expect("is published");
                    parts.pipeline.end_commit(&started, durability).expect("ends");
                    assert!(parts.snapshots.visible() >= started.csn && applied.load(Ordering::SeqCst) == started.csn.0);
                }
            })
        });
        join(committers);
        parts.runtime.stop();
        parts.pipeline.log.writer.wake();
        join([writer]);
        assert_eq!((parts.snapshots.visible(), parts.pipeline.floor().assigned), (Csn(4), Csn(4)));
    });
}

/// A thread that waits for a change, and checks again after each wait, ends.
#[test]
fn writers_that_wait_for_a_flush_go_on_after_it() {
    check(|| {
        let (queue, is_done) = (Arc::new(WaitQueue::default()), Arc::new(AtomicBool::new(false)));
        let waiting = [0, 1].map(|_| {
            let (queue, is_done) = (Arc::clone(&queue), Arc::clone(&is_done));
            spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    queue.wait_for(&OwnThreads, Duration::from_millis(10));
                }
            })
        });
        is_done.store(true, Ordering::SeqCst);
        queue.notify_all();
        join(waiting);
    });
}

/// A session with locks in sets; others want one of those, and one that is free.
#[test]
fn a_lock_in_a_set_excludes_others_until_it_is_released() {
    check(|| {
        let locks = Arc::new(LockManager::new(Arc::new(OwnThreads), Arc::new(ManualClock::new())));
        (0..3).for_each(|slot| locks.attach(slot));
        let holders = Arc::new(AtomicU64::new(0));
        let take = |locks: &LockManager, slot, row| {
            let interrupt = Interrupt::new();
            let policy = WaitPolicy {
                block: true,
                interrupt: &interrupt,
                lock_timeout: None,
                deadlock_timeout: Duration::from_secs(1000),
                watch: None,
            };
            let key = LockKey::Row(TreeId(1), RowId(row));
            locks.lock(slot, key, RowLockMode::ForUpdate.into(), HoldDuration::Transaction, &policy).expect("granted in the end")
        };
        let wide = spawn({
            let (locks, holders) = (Arc::clone(&locks), Arc::clone(&holders));
            move || {
                (0..=TABLE_LOCKS_MAX as u64).for_each(|row| assert!(take(&locks, 0, 100 + row)));
                take(&locks, 0, 1);
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                shuttle::thread::yield_now();
                holders.fetch_sub(1, Ordering::SeqCst);
                locks.release_transaction(0);
            }
        });
        let others = [1, 2].map(|slot| {
            let (locks, holders) = (Arc::clone(&locks), Arc::clone(&holders));
            spawn(move || {
                for _ in 0..2 {
                    take(&locks, slot, 1);
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold one lock");
                    shuttle::thread::yield_now();
                    holders.fetch_sub(1, Ordering::SeqCst);
                    locks.release_transaction(slot);
                }
            })
        });
        join([wide]);
        join(others);
        assert!(locks.list().is_empty(), "{:?}", locks.list());
    });
}
