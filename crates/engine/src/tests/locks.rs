//! Locks between sessions.

use std::sync::Arc;
use std::time::Duration;

use melba_locks::{HoldDuration, LockKey, Mode};
use melba_types::{RowId, TreeId};

use super::basic::memory_engine;

use crate::*;

const RELATION: LockTag = LockTag::Relation { database: 1, relation: 5 };

fn begin(engine: &Engine) -> Arc<Transaction> {
    engine.begin(Isolation::ReadCommitted).expect("begins")
}

#[test]
fn weak_relation_locks_yield_to_the_strong_rules() {
    let engine = memory_engine();
    let (a, b) = (begin(&engine), begin(&engine));
    assert!(a.lock_relation(RELATION, RelationLockMode::RowExclusive, Wait::Block).expect("free"));
    assert!(b.lock_relation(RELATION, RelationLockMode::AccessShare, Wait::Block).expect("free"));
    assert!(!b.lock_relation(RELATION, RelationLockMode::Share, Wait::NoWait).expect("answers"));
    assert_eq!(engine.locks().len(), 2);
    a.rollback();
    assert!(b.lock_relation(RELATION, RelationLockMode::AccessExclusive, Wait::NoWait).expect("answers"));
    assert!(b.lock_relation(RELATION, RelationLockMode::AccessExclusive, Wait::NoWait).expect("answers"));
    let c = begin(&engine);
    assert!(!c.lock_relation(RELATION, RelationLockMode::AccessShare, Wait::NoWait).expect("answers"));
    b.commit(Durability::Sync).expect("commits");
    assert!(c.lock_relation(RELATION, RelationLockMode::AccessShare, Wait::NoWait).expect("answers"));
    drop(c);
    assert!(engine.locks().is_empty());
}

#[test]
fn session_locks_count_and_outlive_transactions() {
    let engine = memory_engine();
    let tag = LockTag::Advisory { database: 1, key: 7, two_keys: false };
    let session = engine.session().expect("free slot");
    for _ in 0..2 {
        assert!(session.lock(tag, RelationLockMode::Exclusive, Wait::Block).expect("free"));
    }
    let own = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
    assert!(own.lock_object(tag, RelationLockMode::Exclusive, Wait::NoWait).expect("never conflicts with itself"));
    own.rollback();
    let other = begin(&engine);
    assert!(session.unlock(tag, RelationLockMode::Exclusive));
    assert!(!other.lock_object(tag, RelationLockMode::Share, Wait::NoWait).expect("answers"));
    assert!(session.unlock(tag, RelationLockMode::Exclusive));
    assert!(!session.unlock(tag, RelationLockMode::Exclusive));
    assert!(other.lock_object(tag, RelationLockMode::Share, Wait::NoWait).expect("answers"));
}

#[test]
fn a_cycle_of_waits_ends_in_one_deadlock_error() {
    let engine = memory_engine();
    let (a, b) = (begin(&engine), begin(&engine));
    for t in [&a, &b] {
        t.session().set_deadlock_timeout(Duration::from_millis(1));
    }
    let lock = |t: &Transaction, row| t.lock_row(TreeId(1), RowId(row), RowLockMode::ForUpdate, Wait::Block);
    lock(&a, 1).expect("free");
    lock(&b, 2).expect("free");
    let results = std::thread::scope(|s| {
        let first = s.spawn(|| {
            let result = lock(&a, 2);
            a.rollback();
            result
        });
        let second = s.spawn(|| {
            let result = lock(&b, 1);
            b.rollback();
            result
        });
        [first.join().expect("no panic"), second.join().expect("no panic")]
    });
    let deadlocks = results.iter().filter(|r| matches!(r, Err(EngineError::Deadlock { .. }))).count();
    assert_eq!(deadlocks, 1, "{results:?}");
    assert!(engine.locks().is_empty());
}

#[test]
fn the_ends_of_present_holders_are_waited_for() {
    let engine = memory_engine();
    let (weak, strong, waiting) = (begin(&engine), begin(&engine), begin(&engine));
    weak.lock_relation(RELATION, RelationLockMode::AccessShare, Wait::Block).expect("free");
    strong.lock_relation(RELATION, RelationLockMode::ShareUpdateExclusive, Wait::Block).expect("free");
    waiting.session().set_lock_timeout(Some(Duration::from_millis(1)));
    let wait = || waiting.session().await_holders(RELATION, RelationLockMode::AccessExclusive);
    assert!(matches!(wait(), Err(EngineError::LockTimeout)));
    let patient = begin(&engine);
    let within = |mode| patient.session().lock_relation_within(RELATION, mode, Duration::from_millis(1)).expect("no error");
    assert!(!within(RelationLockMode::Share), "the strong one conflicts with it");
    strong.rollback();
    waiting.session().await_holders(RELATION, RelationLockMode::Share).expect("readers do not conflict");
    assert!(within(RelationLockMode::Share));
    patient.rollback();
    assert!(matches!(wait(), Err(EngineError::LockTimeout)));
    waiting.session().set_lock_timeout(None);
    std::thread::scope(|s| {
        let waiting = s.spawn(wait);
        while engine.locks().iter().all(|l| l.granted) {
            std::thread::yield_now();
        }
        let later = begin(&engine);
        assert!(later.lock_relation(RELATION, RelationLockMode::RowExclusive, Wait::NoWait).expect("nobody is queued before it"));
        weak.commit(Durability::Sync).expect("commits");
        waiting.join().expect("no panic").expect("the later one does not matter");
    });
    drop(waiting);
    assert!(engine.locks().is_empty());
}

#[test]
fn kept_snapshots_are_waited_for() {
    let engine = memory_engine();
    let (keeps, waiting) = (engine.begin(Isolation::RepeatableRead).expect("begins"), begin(&engine));
    waiting.session().set_lock_timeout(Some(Duration::from_millis(1)));
    let wait = || waiting.session().await_older_snapshots();
    begin(&engine).statement_view();
    wait().expect("READ COMMITTED keeps none, and none is taken yet");
    keeps.statement_view();
    assert!(matches!(wait(), Err(EngineError::LockTimeout)));
    keeps.rollback();
    wait().expect("it has ended");
}

#[test]
fn waits_end_by_interrupt_timeout_or_grant_and_leave_nothing_behind() {
    let engine = memory_engine();
    let (a, b) = (begin(&engine), begin(&engine));
    let lock = |t: &Transaction, wait| t.lock_row(TreeId(1), RowId(1), RowLockMode::ForNoKeyUpdate, wait);
    lock(&a, Wait::Block).expect("free");
    assert_eq!(lock(&b, Wait::SkipLocked).expect("answers"), RowLockResult::WouldBlock);
    b.session().set_lock_timeout(Some(Duration::from_millis(1)));
    assert!(matches!(lock(&b, Wait::Block), Err(EngineError::LockTimeout)));
    b.session().set_lock_timeout(None);
    let interrupt = b.session().interrupt();
    std::thread::scope(|s| {
        let waiting = s.spawn(|| lock(&b, Wait::Block));
        while engine.locks().iter().all(|l| l.granted) {
            std::thread::yield_now();
        }
        interrupt.raise(InterruptReason::Cancel);
        assert!(matches!(waiting.join().expect("no panic"), Err(EngineError::Interrupted(InterruptReason::Cancel))));
        interrupt.clear();
        let waiting = s.spawn(|| lock(&b, Wait::Block));
        while engine.locks().iter().all(|l| l.granted) {
            std::thread::yield_now();
        }
        a.rollback();
        assert_eq!(waiting.join().expect("no panic").expect("granted"), RowLockResult::Granted);
    });
    drop(b);
    assert!(engine.locks().is_empty());
}

#[test]
fn very_many_locks_are_sets_with_the_same_rules() {
    const ROWS: u64 = 50_000;
    let engine = memory_engine();
    let table = TreeId(9);
    let (a, b) = (begin(&engine), begin(&engine));
    let key = |t: &Transaction, n: u64| {
        let key = LockKey::Key(TreeId(9), n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        t.session().lock_key(key, Mode::KEY, HoldDuration::Transaction, Wait::Block).expect("free in the end")
    };
    let lock = |t: &Transaction, row, mode, wait| t.lock_row(table, RowId(row), mode, wait).expect("answers");
    assert_eq!(lock(&b, 40_000, RowLockMode::ForKeyShare, Wait::Block), RowLockResult::Granted);
    for row in 0..ROWS {
        assert_eq!(lock(&a, row, RowLockMode::ForNoKeyUpdate, Wait::Block), RowLockResult::Granted);
        assert!(key(&a, row));
    }
    assert!(engine.locks().len() < 5_000, "most of them are in sets");
    for row in [1, 5_000, 40_000, 49_999] {
        assert_eq!(lock(&a, row, RowLockMode::ForShare, Wait::NoWait), RowLockResult::Granted, "its own");
        assert_eq!(lock(&b, row, RowLockMode::ForShare, Wait::NoWait), RowLockResult::WouldBlock);
        assert_eq!(lock(&b, row, RowLockMode::ForKeyShare, Wait::NoWait), RowLockResult::Granted, "weak enough");
        let blocked = lock(&a, row, RowLockMode::ForUpdate, Wait::NoWait);
        assert_eq!(blocked, RowLockResult::WouldBlock, "b has row {row} now too");
    }
    let savepoint = a.savepoint();
    assert_eq!(lock(&a, 60_000, RowLockMode::ForUpdate, Wait::NoWait), RowLockResult::Granted);
    assert_eq!(lock(&a, 60_001, RowLockMode::ForUpdate, Wait::NoWait), RowLockResult::Granted);
    assert_eq!(lock(&b, 60_001, RowLockMode::ForUpdate, Wait::SkipLocked), RowLockResult::WouldBlock);
    for _ in 0..2 {
        a.rollback_to(savepoint);
        assert_eq!(lock(&b, 60_000, RowLockMode::ForKeyShare, Wait::NoWait), RowLockResult::Granted);
        assert_eq!(lock(&b, 49_998, RowLockMode::ForShare, Wait::NoWait), RowLockResult::WouldBlock, "older than the savepoint");
        assert_eq!(lock(&a, 60_002, RowLockMode::ForUpdate, Wait::NoWait), RowLockResult::Granted);
    }
    let waiter = {
        let b = Arc::clone(&b);
        std::thread::spawn(move || {
            assert!(key(&b, 7_777), "granted in the end");
            b.lock_row(TreeId(9), RowId(30_000), RowLockMode::ForUpdate, Wait::Block).expect("granted in the end")
        })
    };
    std::thread::sleep(Duration::from_millis(20));
    a.rollback();
    assert_eq!(waiter.join().expect("no panic"), RowLockResult::Granted);
    b.rollback();
    drop((a, b));
    assert!(engine.locks().is_empty());
}

#[test]
fn locks_in_sets_go_with_their_savepoints() {
    let engine = memory_engine();
    let (a, b) = (begin(&engine), begin(&engine));
    let lock = |t: &Transaction, row| {
        t.lock_row(TreeId(1), RowId(row), RowLockMode::ForUpdate, Wait::NoWait).expect("answers") == RowLockResult::Granted
    };
    let many = 2 * melba_locks::TABLE_LOCKS_MAX as u64;
    assert!((0..many).all(|row| lock(&a, row)));
    let first = a.savepoint();
    assert!((many..many + 10).all(|row| lock(&a, row)));
    let second = a.savepoint();
    let third = a.savepoint();
    assert!((many + 10..many + 20).all(|row| lock(&a, row)));
    assert!([1, many - 1, many + 5, many + 15].into_iter().all(|row| !lock(&b, row)), "others are told by the table");
    a.rollback_to(third);
    assert!(lock(&b, many + 15) && !lock(&b, many + 5) && !lock(&b, many - 1));
    assert!(lock(&a, many + 16));
    a.rollback_to(second);
    assert!(lock(&b, many + 16) && !lock(&b, many + 5));
    a.rollback_to(first);
    assert!(lock(&b, many + 5) && !lock(&b, many - 1) && !lock(&b, 1));
    a.rollback();
    assert!(lock(&b, many - 1) && lock(&b, 1));
    b.rollback();
    assert!(engine.locks().is_empty());
}

#[test]
fn weak_locks_on_very_many_relations_are_locks_like_others() {
    let engine = memory_engine();
    let (a, b) = (begin(&engine), begin(&engine));
    let lock = |t: &Transaction, relation, mode| {
        t.lock_relation(LockTag::Relation { database: 1, relation }, mode, Wait::NoWait).expect("answers")
    };
    assert!((0..1000).all(|relation| lock(&a, relation, RelationLockMode::AccessShare)));
    assert!((0..1000).all(|relation| lock(&b, relation, RelationLockMode::RowExclusive)));
    assert!((0..1000).all(|relation| !lock(&b, relation, RelationLockMode::AccessExclusive)));
    a.rollback();
    assert!((0..1000).all(|relation| lock(&b, relation, RelationLockMode::AccessExclusive)));
    b.rollback();
    assert!(engine.locks().is_empty());
}
