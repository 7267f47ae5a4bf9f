//! Frames of large values: visible, durable and gone with their transactions, whichever way they were written.

use std::sync::Arc;

use melba_types::{Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

const FRAME_BYTES: usize = 1 << 20;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn frame(id: RowId) -> Vec<u8> {
    (0..FRAME_BYTES as u64).map(|i| (i.wrapping_mul(id.0 + 1) >> 7) as u8).collect()
}

fn put(t: &Transaction, tree: TreeId, frames: u64) -> RowId {
    let first = t.reserve_frames(tree, frames).expect("reserves");
    (first.0..first.0 + frames).for_each(|id| t.put_frame(tree, RowId(id), &frame(RowId(id))).expect("puts"));
    first
}

fn is_there(t: &Transaction, view: ReadView, tree: TreeId, id: RowId) -> bool {
    match t.with_frame(view, tree, id, |bytes| bytes == frame(id)) {
        Ok(same) => same,
        Err(EngineError::Corrupt { .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn frames_come_and_go_with_their_transactions() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates");
    let tree = table.toast();
    t.commit(Durability::Sync).expect("commits");

    // The first ones go through the log, the others into a segment.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.statement_view();
    let first = put(&t, tree, 20);
    let savepoint = t.savepoint();
    let undone = put(&t, tree, 20);
    t.rollback_to(savepoint);
    let view = t.statement_view();
    assert!((0..20).all(|i| is_there(&t, view, tree, RowId(first.0 + i))));
    assert!((0..20).all(|i| !is_there(&t, view, tree, RowId(undone.0 + i))));
    t.delete_frames(tree, RowId(first.0 + 6)..RowId(first.0 + 14)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");

    let reader = engine.begin(Isolation::RepeatableRead).expect("begins");
    let view = reader.statement_view();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let newer = put(&t, tree, 1);
    t.delete_frames(tree, first..RowId(first.0 + 2)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");
    assert!(is_there(&reader, view, tree, first), "an older view sees what it saw");
    assert!(is_there(&reader, view, tree, newer), "a newer version of a row leads to newer frames");
    drop(reader);
    drop(engine);

    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    for i in 0..20 {
        assert_eq!(is_there(&t, view, tree, RowId(first.0 + i)), (2..6).contains(&i) || i >= 14, "frame {i}");
    }
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.drop_tree(table).expect("drops");
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert!(matches!(t.reserve_frames(tree, 1), Err(EngineError::UnknownTree(_))));
}
