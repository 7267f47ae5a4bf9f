//! Space and memory come back by themselves.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock, SeededRandom};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>, memory_bytes: u64) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes, wal_file_bytes: 16 << 10, segment_bytes: 50_000, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens")
}

fn create(engine: &Engine, persistence: Persistence) -> TreeId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Text], persistence).expect("creates");
    t.commit(Durability::Sync, |_| {}).expect("commits");
    tree
}

/// A row that does not compress.
fn row(random: &SeededRandom) -> Vec<u8> {
    let text: String = (0..200).map(|_| (b'!' + random.below(90) as u8) as char).collect();
    RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text(text)])
}

fn segment_bytes(directory: &MemoryDirectory) -> u64 {
    let folder = directory.subdirectory("segments").expect("there");
    let names = folder.list().expect("lists");
    names.iter().map(|n| folder.open(n).and_then(|f| f.len()).expect("there")).sum()
}

#[test]
fn updates_and_deletions_give_their_space_back() {
    const ROWS: u64 = 1500;
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 300_000);
    let tree = create(&engine, Persistence::Logged);
    let random = SeededRandom::new(1);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    (0..ROWS).for_each(|_| assert!(t.insert(tree, &row(&random)).is_ok()));
    t.commit(Durability::Async, |_| {}).expect("commits");
    let live = ROWS * 200;
    for _ in 0..20 {
        for first in (1..=ROWS).step_by(100) {
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            (first..first + 100).for_each(|id| t.update(tree, RowId(id), &row(&random)).expect("updates"));
            t.commit(Durability::Async, |_| {}).expect("commits");
            while engine.run_once() {}
            assert!(segment_bytes(&directory) < live * 2, "{} of {live}", segment_bytes(&directory));
        }
    }
    engine.checkpoint().expect("flushes");
    while engine.run_once() {}
    assert!(segment_bytes(&directory) < live * 13 / 10, "{} of {live}", segment_bytes(&directory));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    (1..=ROWS).for_each(|id| t.delete(tree, RowId(id)).expect("deletes"));
    t.commit(Durability::Async, |_| {}).expect("commits");
    engine.checkpoint().expect("flushes");
    while engine.run_once() {}
    assert!(segment_bytes(&directory) < live / 20, "{}", segment_bytes(&directory));
    let folder: Arc<dyn Directory> = Arc::clone(&directory) as Arc<dyn Directory>;
    assert_eq!(Engine::verify(&folder).expect("reads").1, [] as [String; 0]);
}

#[test]
fn a_queue_in_memory_stays_as_small_as_what_is_in_it() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 64 << 20);
    let tree = create(&engine, Persistence::Memory);
    let random = SeededRandom::new(2);
    let mut ids = std::collections::VecDeque::new();
    for _ in 0..5000 {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        ids.push_back(t.insert(tree, &row(&random)).expect("inserts"));
        if ids.len() > 10 {
            t.delete(tree, ids.pop_front().expect("not empty")).expect("deletes");
        }
        t.commit(Durability::Sync, |_| {}).expect("commits");
    }
    assert!(engine.tree_bytes(tree) < 50_000, "{}", engine.tree_bytes(tree));
    assert_eq!(engine.tree_rows_estimate(tree), 10);
}

#[test]
fn memory_tables_have_a_limit_and_deletions_make_room() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 200_000);
    let tree = create(&engine, Persistence::Memory);
    let random = SeededRandom::new(3);
    let fill = || {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let ids: Vec<RowId> = (0..100).map(|_| t.insert(tree, &row(&random)).expect("inserts")).collect();
        t.commit(Durability::Sync, |_| {}).map(|_| ids)
    };
    let mut all = Vec::new();
    let refused = loop {
        match fill() {
            Ok(ids) => all.extend(ids),
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, EngineError::OutOfMemory { .. }) && all.len() >= 100);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    all.iter().for_each(|id| t.delete(tree, *id).expect("deletes"));
    t.commit(Durability::Sync, |_| {}).expect("deleting is always possible");
    // Each commit removes some of what is dead; an update of nothing is enough to go on.
    for _ in 0..20 {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        t.delete(tree, all[0]).expect("deletes");
        t.commit(Durability::Sync, |_| {}).expect("commits");
    }
    fill().expect("there is room again");
}

#[test]
fn damage_is_found_and_named() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 1 << 20);
    let tree = create(&engine, Persistence::Logged);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let random = SeededRandom::new(4);
    (0..100).for_each(|_| assert!(t.insert(tree, &row(&random)).is_ok()));
    t.commit(Durability::Sync, |_| {}).expect("commits");
    engine.shutdown().expect("stops");
    let folder = Arc::clone(&directory) as Arc<dyn Directory>;
    assert_eq!(Engine::verify(&folder).expect("reads"), (1, Vec::new()));
    directory.flip_bit_in("segments", 0, 1000 * 8).expect("flips");
    let (_, problems) = Engine::verify(&folder).expect("reads");
    assert!(problems.len() == 1 && problems[0].contains("block"), "{problems:?}");
    let engine = open(&directory, 1 << 20);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    let read = t.scan(view, tree, &[0], &[], &[], None).expect("opens").next();
    assert!(matches!(read, Err(EngineError::Corrupt { .. })));
}
