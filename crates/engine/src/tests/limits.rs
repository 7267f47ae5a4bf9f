//! Counters near their ends: an error, never a wrap. docs/design/recovery.md lists them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_store::{Edit, Manifest};
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, ColumnData, Csn, Datum, DbError, Kind, Lsn, RowId, SqlState, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

fn row() -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4]).encode_row(&[Datum::Int4(7)])
}

/// An engine whose manifest states these numbers of commits and of log bytes.
fn open_at(replay: Lsn, csn: Csn) -> (Arc<Engine>, TreeId) {
    let directory = MemoryDirectory::new();
    let as_directory = Arc::clone(&directory) as Arc<dyn Directory>;
    let mut manifest = Manifest::open(Arc::clone(&as_directory), 1).expect("opens").0;
    let edits = [Edit::Checkpoint { replay, csn, next_tree: 1, next_file: 1 }];
    manifest.reserve(&edits, 0).and_then(|()| manifest.install(&edits)).expect("installs");
    drop(manifest);
    let engine = Engine::open(EngineOptions::default(), as_directory, Arc::new(OsClock::new())).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    (engine, tree)
}

fn insert(engine: &Engine, tree: TreeId) -> Result<Csn> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    t.insert(tree, &row())?;
    t.commit(Durability::Sync)
}

fn count(engine: &Engine, tree: TreeId) -> usize {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = t.scan(t.statement_view(), tree, &[0], &[], &[], None).expect("opens");
    std::iter::from_fn(|| scan.next().expect("scans")).map(|b| b.row_ids.len()).sum()
}

#[track_caller]
fn is_limit(e: EngineError) {
    assert_eq!(DbError::from(e).sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
}

#[test]
fn commits_end_with_their_numbers_and_reads_go_on() {
    let (engine, tree) = open_at(Lsn(0), Csn(melba_wal::CSN_MAX - 3));
    assert_eq!(insert(&engine, tree).expect("the last but one"), Csn(melba_wal::CSN_MAX - 1));
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    assert_eq!(insert(&engine, tree).expect("the last"), Csn(melba_wal::CSN_MAX));
    is_limit(insert(&engine, tree).expect_err("there is none left"));
    assert_eq!((count(&engine, tree), engine.failure()), (2, None));
    engine.shutdown().expect("stops");
}

#[test]
fn commits_end_with_the_positions_of_the_log() {
    let (engine, tree) = open_at(Lsn(u64::MAX - 300), Csn(1));
    let mut done = 0;
    let refused = loop {
        match insert(&engine, tree) {
            Ok(_) => done += 1,
            Err(e) => break e,
        }
    };
    is_limit(refused);
    assert!(done > 0 && count(&engine, tree) == done);
    assert_eq!(engine.failure(), None);
}

#[test]
fn a_table_ends_with_its_row_numbers() {
    let (engine, tree) = open_at(Lsn(0), Csn(1));
    let table = engine.shared.store.tree(tree).expect("there");
    table.as_table().expect("a table").next_row.store(i64::MAX as u64 - 3, Ordering::SeqCst);
    insert(&engine, tree).and_then(|_| insert(&engine, tree)).expect("the last two");
    is_limit(insert(&engine, tree).expect_err("there is none left"));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for id in [i64::MAX as u64 - 1, u64::MAX] {
        is_limit(t.insert_at(tree, RowId(id), &row()).expect_err("beyond the last"));
        let batch = Batch::new(vec![Column::new(ColumnData::Int4(vec![7]))], 1);
        is_limit(t.bulk(tree).insert_at(&[RowId(id)], &batch).expect_err("beyond the last"));
    }
    t.rollback();
    engine.checkpoint().expect("flushes");
    assert_eq!(count(&engine, tree), 2);
}

#[test]
fn a_transaction_ends_with_its_command_numbers() {
    let (engine, tree) = open_at(Lsn(0), Csn(1));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.set_command(u32::MAX - 4);
    t.statement_view();
    t.insert(tree, &row()).expect("inserts");
    t.statement_view();
    t.insert(tree, &row()).expect("the last command");
    let view = t.statement_view();
    is_limit(t.insert(tree, &row()).expect_err("there is none left"));
    let mut scan = t.scan(view, tree, &[0], &[], &[], None).expect("opens");
    assert_eq!(scan.next().expect("scans").expect("rows").row_ids.len(), 2);
    drop(scan);
    t.commit(Durability::Sync).expect("commits what was written");
    assert_eq!(count(&engine, tree), 2);
}
