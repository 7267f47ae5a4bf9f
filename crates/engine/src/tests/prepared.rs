//! Transactions that outlive the engine as bytes.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(n: i32) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4]).encode_row(&[Datum::Int4(n)])
}

fn restored(engine: &Engine, bytes: &[u8], lists_keys: bool) -> Arc<Transaction> {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.two_phase().restore(PreparedBytes { bytes, lists_keys, reopened: true }).expect("is restored");
    t
}

fn is_claimed(engine: &Engine, index: TreeId, key: &[u8]) -> bool {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.session().set_lock_timeout(Some(std::time::Duration::from_millis(1)));
    match t.index(index).claim_key(key, None) {
        Ok(found) => found.is_some(),
        Err(EngineError::LockTimeout) => true,
        Err(other) => panic!("{other:?}"),
    }
}

fn numbers(engine: &Engine, tree: TreeId) -> Vec<i32> {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = t.scan(t.statement_view(), tree, &[0], &[Datum::Null], &[], None).expect("opens");
    let mut all = Vec::new();
    while let Some(batch) = scan.next().expect("scans") {
        all.extend((0..batch.row_ids.len()).map(|i| match batch.columns[0].get(i) {
            Datum::Int4(n) => n,
            other => panic!("{other:?} is no number"),
        }));
    }
    all.sort_unstable();
    all
}

#[test]
fn a_restored_transaction_has_its_changes_and_its_locks() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    let ids: Vec<_> = (1..4).map(|n| t.insert(table, &row(n)).expect("inserts")).collect();
    t.commit(Durability::Sync).expect("commits");

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tag = LockTag::Relation { database: 5, relation: 16384 };
    t.lock_relation(tag, RelationLockMode::RowExclusive, Wait::Block).expect("locks");
    t.lock_row_to_change(table, ids[0], RowLockMode::ForUpdate).expect("locks");
    t.delete(table, ids[0]).expect("deletes");
    t.lock_row_to_change(table, ids[1], RowLockMode::ForNoKeyUpdate).expect("locks");
    t.update(table, ids[1], &row(20)).expect("updates");
    let added = t.insert(table, &row(4)).expect("inserts");
    assert_eq!(t.index(index).claim_key(b"four", None).expect("claims"), None);
    t.index(index).insert(b"four", added).expect("inserts");
    let made = t.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates");
    t.insert(made, &row(7)).expect("inserts");
    let bytes = t.two_phase().to_bytes().expect("is one");
    drop((t, engine));

    let engine = open(&directory);
    let t = restored(&engine, &bytes, true);
    assert_eq!(numbers(&engine, table), [1, 2, 3], "nothing of it is there yet");
    let other = engine.begin(Isolation::ReadCommitted).expect("begins");
    for id in &ids[..2] {
        let locked = other.lock_row(table, *id, RowLockMode::ForNoKeyUpdate, Wait::NoWait).expect("is asked");
        assert_eq!(locked, RowLockResult::WouldBlock);
    }
    assert!(!other.lock_relation(tag, RelationLockMode::AccessExclusive, Wait::NoWait).expect("is asked"));
    other.session().set_lock_timeout(Some(std::time::Duration::from_millis(1)));
    assert!(matches!(other.index(index).claim_key(b"four", None), Err(EngineError::LockTimeout)));
    assert_ne!(other.insert(table, &row(5)).expect("inserts"), added, "its rows keep their ids");
    let later = other.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates");
    assert_ne!(later, made);
    other.commit(Durability::Sync).expect("commits");
    t.commit(Durability::Sync).expect("commits");
    drop((t, other, engine));
    let engine = open(&directory);
    assert_eq!(numbers(&engine, table), [3, 4, 5, 20]);
    assert_eq!(numbers(&engine, made), [7]);
}

#[test]
fn bytes_that_are_none_are_told() {
    let engine = open(&MemoryDirectory::new());
    for bytes in [&[][..], &[1], &[1, 9, 0], &[0, 99], &[1, 4, 1, 1, 200]] {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let from = PreparedBytes { bytes, lists_keys: true, reopened: true };
        assert!(matches!(t.two_phase().restore(from), Err(EngineError::Corrupt { .. })), "{bytes:?}");
    }
    let t = engine.begin(Isolation::Serializable).expect("begins");
    assert!(matches!(t.two_phase().to_bytes(), Err(EngineError::Unsupported(_))));
}

/// One entry each of a plain index, of which several rows may have the same value, and one of a unique one.
#[test]
fn only_values_that_were_locked_are_locked_again() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates");
    let plain = t.create_index_tree(table, Persistence::Logged).expect("creates");
    let unique = t.create_index_tree(table, Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let prepared = |n: i32, key: &[u8]| {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let id = t.insert(table, &row(n)).expect("inserts");
        t.index(plain).insert(b"same", id).expect("inserts");
        assert_eq!(t.index(unique).claim_key(key, None).expect("claims"), None);
        t.index(unique).insert(key, id).expect("inserts");
        t.two_phase().to_bytes().expect("is one")
    };
    let all = [prepared(1, b"one"), prepared(2, b"two")];
    drop((t, engine));
    for lists_keys in [true, false] {
        let engine = open(&directory);
        let transactions = all.each_ref().map(|bytes| restored(&engine, bytes, lists_keys));
        assert!(is_claimed(&engine, unique, b"one") && is_claimed(&engine, unique, b"two"));
        assert!(!is_claimed(&engine, unique, b"three"));
        assert_eq!(is_claimed(&engine, plain, b"same"), !lists_keys);
        drop(transactions);
        assert!(!is_claimed(&engine, unique, b"one"));
    }
}

#[test]
fn a_restart_takes_the_changes_of_the_tables_that_it_empties() {
    for is_clean in [true, false] {
        let directory = MemoryDirectory::new();
        let engine = open(&directory);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let kinds = [Persistence::Logged, Persistence::Unlogged, Persistence::Memory];
        let trees = kinds.map(|kind| t.create_table_tree(&[Kind::Int4], kind).expect("creates"));
        let ids = trees.map(|tree| t.insert(tree, &row(1)).expect("inserts"));
        t.commit(Durability::Sync).expect("commits");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        for (tree, id) in trees.into_iter().zip(ids) {
            t.update(tree, id, &row(2)).expect("updates");
            t.insert(tree, &row(3)).expect("inserts");
        }
        let bytes = t.two_phase().to_bytes().expect("is one");
        drop(t);
        let here = engine.begin(Isolation::ReadCommitted).expect("begins");
        let left_out = here.two_phase().restore(PreparedBytes { bytes: &bytes, lists_keys: true, reopened: false });
        assert_eq!(left_out.ok(), Some(false));
        drop(here);
        if is_clean {
            engine.shutdown().expect("stops");
        }
        drop(engine);
        let engine = open(&directory);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let left_out = t.two_phase().restore(PreparedBytes { bytes: &bytes, lists_keys: true, reopened: true });
        assert_eq!(left_out.ok(), Some(true), "what was in the memory table");
        let again = t.two_phase().to_bytes().expect("is one");
        drop((t, engine));
        // The second restart is a crash, of a server whose unlogged table nobody has filled again.
        let engine = open(&directory);
        restored(&engine, &again, true).commit(Durability::Sync).expect("commits");
        assert_eq!(numbers(&engine, trees[0]), [2, 3]);
        assert!(numbers(&engine, trees[1]).is_empty() && numbers(&engine, trees[2]).is_empty());
        drop(engine);
    }
    // After a clean stop, the unlogged table has them.
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int4], Persistence::Unlogged).expect("creates");
    let id = t.insert(tree, &row(1)).expect("inserts");
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.update(tree, id, &row(2)).expect("updates");
    let bytes = t.two_phase().to_bytes().expect("is one");
    drop(t);
    engine.shutdown().expect("stops");
    drop(engine);
    let engine = open(&directory);
    restored(&engine, &bytes, true).commit(Durability::Sync).expect("commits");
    assert_eq!(numbers(&engine, tree), [2]);
}
