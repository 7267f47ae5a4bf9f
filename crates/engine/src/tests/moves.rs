//! Rows that a concurrent transaction moves to another tree.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn begin(engine: &Arc<Engine>) -> Arc<Transaction> {
    engine.begin(Isolation::ReadCommitted).expect("begins")
}

fn row(n: i32) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4]).encode_row(&[Datum::Int4(n)])
}

/// Two trees, the first with rows.
fn filled(engine: &Arc<Engine>, rows: i32) -> ([TreeId; 2], Vec<RowId>) {
    let t = begin(engine);
    let trees = [0, 1].map(|_| t.create_table_tree(&[Kind::Int4], Persistence::Logged).expect("creates"));
    let ids = (0..rows).map(|n| t.insert(trees[0], &row(n)).expect("inserts")).collect();
    t.commit(Durability::Sync).expect("commits");
    (trees, ids)
}

fn lock(t: &Transaction, tree: TreeId, id: RowId) {
    t.lock_row_to_change(tree, id, RowLockMode::ForUpdate).expect("locks");
}

fn move_row(t: &Transaction, [from, to]: [TreeId; 2], id: RowId) {
    lock(t, from, id);
    t.delete_to_move(from, id).expect("deletes");
    t.insert(to, &row(1)).expect("inserts");
}

fn has_moved(t: &Transaction, tree: TreeId, id: RowId) -> bool {
    let latest = t.get_latest(tree, id).expect("reads");
    t.has_moved(tree, id, &latest)
}

#[test]
fn a_moved_row_is_told_from_a_deleted_one_after_flushes_and_merges() {
    let engine = open(&MemoryDirectory::new());
    let (trees, ids) = filled(&engine, 3);
    let seeing = begin(&engine);
    let view = seeing.statement_view();
    let t = begin(&engine);
    move_row(&t, trees, ids[0]);
    lock(&t, trees[0], ids[1]);
    t.delete(trees[0], ids[1]).expect("deletes");
    assert!(!has_moved(&seeing, trees[0], ids[0]), "not yet");
    t.commit(Durability::Sync).expect("commits");
    for _ in 0..2 {
        assert!(seeing.get(view, trees[0], ids[0]).expect("reads").is_some());
        assert!(has_moved(&seeing, trees[0], ids[0]));
        assert!(!has_moved(&seeing, trees[0], ids[1]) && !has_moved(&seeing, trees[0], ids[2]));
        engine.checkpoint().expect("flushes");
        engine.merge_all().expect("merges");
    }
    seeing.end_statement();
    for n in 0..9 {
        let t = begin(&engine);
        t.insert(trees[1], &row(n)).expect("inserts");
        t.commit(Durability::Sync).expect("commits");
    }
    assert!(!has_moved(&seeing, trees[0], ids[0]), "no view can ask for it any more");
}

#[test]
fn moves_that_are_rolled_back_leave_no_note() {
    let engine = open(&MemoryDirectory::new());
    let (trees, ids) = filled(&engine, 3);
    let seeing = begin(&engine);
    seeing.statement_view();
    let t = begin(&engine);
    move_row(&t, trees, ids[0]);
    t.rollback();
    let t = begin(&engine);
    move_row(&t, trees, ids[1]);
    let savepoint = t.savepoint();
    move_row(&t, trees, ids[0]);
    t.rollback_to(savepoint);
    lock(&t, trees[0], ids[0]);
    t.delete(trees[0], ids[0]).expect("deletes");
    t.commit(Durability::Sync).expect("commits");
    assert!(has_moved(&seeing, trees[0], ids[1]));
    assert!(!has_moved(&seeing, trees[0], ids[0]), "it was deleted");
}

#[test]
fn a_restored_transaction_notes_its_moves() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let (trees, ids) = filled(&engine, 2);
    let t = begin(&engine);
    move_row(&t, trees, ids[0]);
    lock(&t, trees[0], ids[1]);
    t.delete(trees[0], ids[1]).expect("deletes");
    let bytes = t.two_phase().to_bytes().expect("is one");
    drop((t, engine));

    let engine = open(&directory);
    let t = begin(&engine);
    t.two_phase().restore(PreparedBytes { bytes: &bytes, lists_keys: true, reopened: true }).expect("is restored");
    let seeing = begin(&engine);
    let view = seeing.statement_view();
    assert!(seeing.get(view, trees[0], ids[0]).expect("reads").is_some());
    t.commit(Durability::Sync).expect("commits");
    assert!(has_moved(&seeing, trees[0], ids[0]) && !has_moved(&seeing, trees[0], ids[1]));
}
