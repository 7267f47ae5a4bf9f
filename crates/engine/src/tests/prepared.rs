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
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.two_phase().restore(&bytes).expect("is restored");
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
        assert!(matches!(t.two_phase().restore(bytes), Err(EngineError::Corrupt { .. })), "{bytes:?}");
    }
    let t = engine.begin(Isolation::Serializable).expect("begins");
    assert!(matches!(t.two_phase().to_bytes(), Err(EngineError::Unsupported(_))));
}
