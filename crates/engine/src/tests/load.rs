//! Bulk loads into indexes that others use: which session owns a key?

use std::sync::Arc;
use std::time::Duration;

use melba_types::{Kind, RowId, TreeId};

use crate::tests::basic::memory_engine;
use crate::*;

fn begin(engine: &Engine) -> Arc<Transaction> {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.session().set_lock_timeout(Some(Duration::ZERO));
    t
}

/// A unique index of a logged table.
fn index(engine: &Engine) -> TreeId {
    let t = begin(engine);
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    index
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Loads numbers under row ids from `first` on.
fn load(t: &Arc<Transaction>, index: TreeId, first: u64, numbers: impl Iterator<Item = u64>) -> Result<Option<Duplicate>> {
    t.statement_view();
    let mut load = IndexLoad::begin(t, index, true).expect("begins");
    for (n, row) in numbers.zip(first..) {
        load.add(&key(n), RowId(row), false).expect("adds");
    }
    load.finish()
}

fn duplicate(n: u64, rows: (u64, u64)) -> Option<Duplicate> {
    Some(Duplicate { key: key(n).to_vec(), rows: (RowId(rows.0), RowId(rows.1)) })
}

/// Claims the key of the row with number `n`; an error when that must wait.
fn claim(t: &Arc<Transaction>, index: TreeId, n: u64) -> Result<Option<RowId>> {
    t.index(index).claim_key(&key(n), None)
}

fn is_blocked<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(EngineError::LockTimeout)), "{result:?}");
}

#[test]
fn the_first_row_whose_key_is_taken_is_named() {
    let engine = memory_engine();
    let index = index(&engine);
    let t = begin(&engine);
    // In segments, in memory, in this transaction's segments and in its memory.
    assert_eq!(load(&t, index, 1, (0..1000).map(|n| n * 10)).expect("loads"), None);
    t.commit(Durability::Sync).expect("commits");
    let t = begin(&engine);
    t.index(index).insert(&key(5005), RowId(2000)).expect("inserts");
    t.index(index).delete(&key(70), RowId(8)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");
    let t = begin(&engine);
    assert_eq!(load(&t, index, 3000, (0..1000).map(|n| 20_000 - n)).expect("loads"), None);
    t.statement_view();
    t.index(index).insert(&key(5006), RowId(5000)).expect("inserts");

    let fresh = || (1..9).chain(30_000..31_000);
    assert_eq!(load(&t, index, 6000, fresh().chain([4990, 11])).expect("answers"), duplicate(4990, (500, 7008)));
    assert_eq!(load(&t, index, 6000, fresh().chain([5005])).expect("answers"), duplicate(5005, (2000, 7008)));
    assert_eq!(load(&t, index, 6000, fresh().chain([19_500])).expect("answers"), duplicate(19_500, (3500, 7008)));
    assert_eq!(load(&t, index, 6000, fresh().chain([5006])).expect("answers"), duplicate(5006, (5000, 7008)));
    // Of two, the one that a row by row insertion would have found.
    assert_eq!(load(&t, index, 6000, fresh().chain([7, 4990])).expect("answers"), duplicate(7, (6006, 7008)));
    assert_eq!(load(&t, index, 6000, fresh().chain([4990, 7])).expect("answers"), duplicate(4990, (500, 7008)));
    assert_eq!(load(&t, index, 6000, fresh().chain([15, 8, 15, 1])).expect("answers"), duplicate(8, (6007, 7009)));
    // All are taken.
    assert_eq!(load(&t, index, 6000, (0..3000).map(|n| 29_990 - n * 10)).expect("answers"), duplicate(20_000, (3000, 6999)));
    assert_eq!(load(&t, index, 6000, fresh().chain([70])).expect("was given up"), None);
    t.commit(Durability::Sync).expect("commits");
    assert_eq!(claim(&begin(&engine), index, 70).expect("free"), Some(RowId(7008)));
}

#[test]
fn keys_with_nulls_repeat() {
    let engine = memory_engine();
    let index = index(&engine);
    for first in [1, 1000] {
        let t = begin(&engine);
        t.statement_view();
        let mut load = IndexLoad::begin(&t, index, true).expect("begins");
        for row in first..first + 500 {
            load.add(b"null", RowId(row), true).expect("adds");
            load.add(&key(row), RowId(row), false).expect("adds");
        }
        assert_eq!(load.finish().expect("loads"), None);
        let view = t.statement_view();
        let mut scan = t.index(index).lookup(view, b"null").expect("opens");
        let mut rows = Vec::new();
        while scan.next_rows(1000, &mut rows).expect("scans") {}
        assert_eq!(rows.len(), if first == 1 { 500 } else { 1000 });
        t.commit(Durability::Sync).expect("commits");
    }
}

#[test]
fn others_wait_for_the_keys_of_a_load() {
    let engine = memory_engine();
    let index = index(&engine);
    let (a, b) = (begin(&engine), begin(&engine));
    let savepoint = a.savepoint();
    assert_eq!(load(&a, index, 1, 0..1000).expect("loads"), None);
    is_blocked(claim(&b, index, 500));
    is_blocked(claim(&b, index, 500));
    assert_eq!(claim(&b, index, 1000).expect("another"), None);
    is_blocked(load(&b, index, 2000, 999..1010));
    assert_eq!(claim(&a, index, 7).expect("its own"), Some(RowId(8)));
    a.rollback_to(savepoint);
    assert_eq!(claim(&b, index, 500).expect("free again"), None);
    // A key that another session has locked blocks the next load, which holds none of its other keys.
    is_blocked(load(&a, index, 1, 0..1000));
    assert_eq!(claim(&b, index, 501).expect("free"), None);
    b.rollback();
    assert_eq!(load(&a, index, 1, 0..1000).expect("loads"), None);
    is_blocked(claim(&begin(&engine), index, 500));
    a.commit(Durability::Sync).expect("commits");
    let c = begin(&engine);
    assert_eq!(claim(&c, index, 500).expect("there"), Some(RowId(501)));
    assert_eq!(load(&c, index, 2000, 999..1010).expect("answers"), duplicate(999, (1000, 2000)));
    drop((a, b, c));
    assert!(engine.locks().is_empty());
}

#[test]
fn loads_meet_sets_of_locks() {
    let engine = memory_engine();
    let index = index(&engine);
    let (a, b) = (begin(&engine), begin(&engine));
    for n in 0..6000 {
        assert_eq!(claim(&a, index, n).expect("free"), None);
    }
    is_blocked(load(&b, index, 1, 5990..6100));
    assert_eq!(load(&b, index, 1, 6000..6100).expect("loads"), None);
    // A session with sets puts no lock into them that it may have to release early.
    is_blocked(claim(&a, index, 6050));
    assert_eq!(claim(&a, index, 6200).expect("free"), None);
    b.rollback();
    assert_eq!(claim(&a, index, 6050).expect("free"), None);
    is_blocked(load(&begin(&engine), index, 1, 6040..6060));
    a.rollback();
    assert_eq!(load(&begin(&engine), index, 1, 5990..6100).expect("loads"), None);
}

#[test]
fn a_load_that_waits_holds_none_of_its_other_keys() {
    let engine = memory_engine();
    let index = index(&engine);
    let b = begin(&engine);
    assert_eq!(claim(&b, index, 20).expect("free"), None);
    let a = engine.begin(Isolation::ReadCommitted).expect("begins");
    let loading = std::thread::spawn(move || (load(&a, index, 1, 0..1000), a));
    // Until it waits: then it has requested the lock.
    while !engine.locks().iter().any(|lock| !lock.granted) {
        std::thread::yield_now();
    }
    assert_eq!(claim(&b, index, 10).expect("is not waited for"), None);
    b.index(index).insert(&key(10), RowId(5000)).expect("inserts");
    b.commit(Durability::Sync).expect("commits");
    let (result, a) = loading.join().expect("ends");
    assert_eq!(result.expect("answers"), duplicate(10, (5000, 11)));
    a.rollback();
    assert!(engine.locks().is_empty());
}
