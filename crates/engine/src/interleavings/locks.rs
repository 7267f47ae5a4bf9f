//! Locks: hand-over and early release, waiters that are interrupted, deadlocks, weak and strong locks of a relation.

use melba_threads::atomic::{AtomicI32, Ordering};

use super::*;

/// A row that several change under its lock, with commits that release it before they are durable.
#[test]
fn a_counter_under_a_row_lock_loses_nothing() {
    check(|| {
        let f = Fixture::new(1);
        let threads = [Some(Durability::Sync), Some(Durability::Async), None].map(|end| {
            let f = Arc::clone(&f);
            spawn(move || {
                for _ in 0..2 {
                    let t = f.begin();
                    f.change(&t, 0, |n| n + 1).expect("changes");
                    match end {
                        Some(durability) => drop(t.commit(durability).expect("commits")),
                        None => t.rollback(),
                    }
                }
            })
        });
        join(threads);
        let t = f.begin();
        assert_eq!(f.read(&t, t.statement_view(), 0), 4);
        assert!(f.engine.locks().is_empty(), "{:?}", f.engine.locks());
    });
}

/// Two sessions lock two rows in opposite order, a third one of them.
#[test]
fn a_deadlock_fails_one_session_and_the_others_continue() {
    check(|| {
        let f = Fixture::new(2);
        let threads = [[0, 1], [1, 0], [0, 0]].map(|rows| {
            let f = Arc::clone(&f);
            spawn(move || {
                let t = f.begin();
                t.session().set_deadlock_timeout(std::time::Duration::ZERO);
                let result = rows.iter().try_for_each(|row| f.change(&t, *row, |n| n + 1));
                match result {
                    Ok(()) => t.commit(Durability::Async).map(|_| true).expect("commits"),
                    Err(EngineError::Deadlock { .. }) => {
                        t.rollback();
                        false
                    }
                    Err(e) => panic!("{e:?}"),
                }
            })
        });
        let done = join(threads);
        assert!(done[2] && (done[0] || done[1]), "{done:?}");
        let t = f.begin();
        let (view, both) = (t.statement_view(), i64::from(done[0]) + i64::from(done[1]));
        assert_eq!((f.read(&t, view, 0), f.read(&t, view, 1)), (both + 2, both));
        drop(t);
        assert!(f.engine.locks().is_empty(), "{:?}", f.engine.locks());
    });
}

/// A waiter is interrupted while the lock is handed over: it has the lock or the error, and leaves nothing behind.
#[test]
fn an_interrupted_waiter_leaves_the_queue() {
    check(|| {
        let f = Fixture::new(1);
        let holder = f.begin();
        f.change(&holder, 0, |n| n + 1).expect("changes");
        let waiting = f.begin();
        let interrupt = waiting.session().interrupt();
        let waiter = spawn({
            let f = Arc::clone(&f);
            move || match f.change(&waiting, 0, |n| n + 1) {
                Ok(()) => waiting.commit(Durability::Sync).map(|_| 1).expect("commits"),
                Err(EngineError::Interrupted(_)) => {
                    waiting.rollback();
                    0
                }
                Err(e) => panic!("{e:?}"),
            }
        });
        let canceller = spawn(move || interrupt.raise(InterruptReason::Cancel));
        let next = spawn({
            let f = Arc::clone(&f);
            move || {
                let t = f.begin();
                f.change(&t, 0, |n| n + 1).expect("changes");
                t.commit(Durability::Async).expect("commits");
            }
        });
        holder.commit(Durability::Sync).expect("commits");
        let waited = join([waiter])[0];
        join([canceller, next]);
        let t = f.begin();
        assert_eq!(f.read(&t, t.statement_view(), 0), 2 + waited);
        drop(t);
        assert!(f.engine.locks().is_empty(), "{:?}", f.engine.locks());
    });
}

/// Who waits for a change of a row learns that there will be none, also while another session waits for the row itself.
#[test]
fn a_change_that_is_given_up_is_not_waited_for() {
    check(|| {
        let f = Fixture::new(1);
        let holder = f.begin();
        holder.lock_row_to_change(f.table, f.rows[0], RowLockMode::ForUpdate).expect("locks");
        let changing = spawn({
            let f = Arc::clone(&f);
            move || {
                let t = f.begin();
                f.change(&t, 0, |n| n + 1).expect("changes");
                t.commit(Durability::Async).expect("commits");
            }
        });
        let asking = spawn({
            let f = Arc::clone(&f);
            move || {
                let t = f.begin();
                assert!(t.await_change(f.table, f.rows[0], Wait::Block).expect("waits"));
            }
        });
        holder.give_up_change(f.table, f.rows[0], true).expect("gives up");
        join([asking]);
        assert_eq!(f.read(&holder, holder.statement_view(), 0), 0, "the row is locked still");
        holder.rollback();
        join([changing]);
        let t = f.begin();
        assert_eq!(f.read(&t, t.statement_view(), 0), 1);
        drop(t);
        assert!(f.engine.locks().is_empty(), "{:?}", f.engine.locks());
    });
}

/// Weak locks stand in no table until a session wants a strong one.
#[test]
fn a_strong_lock_excludes_weak_ones() {
    check(|| {
        let f = Fixture::new(1);
        let (weak, strong) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
        let tag = LockTag::Relation { database: 1, relation: 5 };
        let modes = [RelationLockMode::RowExclusive, RelationLockMode::AccessShare, RelationLockMode::AccessExclusive];
        let threads = modes.map(|mode| {
            let (f, weak, strong) = (Arc::clone(&f), Arc::clone(&weak), Arc::clone(&strong));
            spawn(move || {
                for _ in 0..2 {
                    let t = f.begin();
                    assert!(t.lock_relation(tag, mode, Wait::Block).expect("locks"));
                    let own = if mode == RelationLockMode::AccessExclusive { &strong } else { &weak };
                    own.fetch_add(1, Ordering::SeqCst);
                    shuttle::thread::yield_now();
                    let (weak, strong) = (weak.load(Ordering::SeqCst), strong.load(Ordering::SeqCst));
                    assert!(strong == 0 || weak == 0, "{weak} weak and {strong} strong ones at once");
                    own.fetch_sub(1, Ordering::SeqCst);
                    t.rollback();
                }
            })
        });
        join(threads);
        assert!(f.engine.locks().is_empty(), "{:?}", f.engine.locks());
    });
}
