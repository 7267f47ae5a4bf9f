//! Frames of large values: visible, durable and deleted with their transactions, whichever way they were written.

use std::sync::Arc;

use melba_toast::Method;
use melba_toast::frame::{self, Density};
use melba_types::{Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

const FRAME_BYTES: usize = 1 << 20;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn plain(id: RowId) -> Vec<u8> {
    (0..FRAME_BYTES as u64).map(|i| (i.wrapping_mul(id.0 + 1) >> 7) as u8).collect()
}

fn put(t: &Transaction, tree: TreeId, frames: u64) -> RowId {
    let first = t.frames(tree).reserve(frames, 0).expect("reserves");
    (first.0..first.0 + frames).for_each(|id| t.frames(tree).put(RowId(id), &[&plain(RowId(id))]).expect("puts"));
    first
}

fn is_there(t: &Transaction, view: ReadView, tree: TreeId, id: RowId) -> bool {
    match t.frames(tree).with(view, id, |bytes| bytes == plain(id)) {
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

    // The first ones are written to the log, the others to a segment.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.statement_view();
    let first = put(&t, tree, 20);
    let savepoint = t.savepoint();
    let undone = put(&t, tree, 20);
    t.rollback_to(savepoint);
    let view = t.statement_view();
    assert!((0..20).all(|i| is_there(&t, view, tree, RowId(first.0 + i))));
    assert!((0..20).all(|i| !is_there(&t, view, tree, RowId(undone.0 + i))));
    t.frames(tree).delete(RowId(first.0 + 6)..RowId(first.0 + 14)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");

    let reader = engine.begin(Isolation::RepeatableRead).expect("begins");
    let view = reader.statement_view();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let newer = put(&t, tree, 1);
    t.frames(tree).delete(first..RowId(first.0 + 2)).expect("deletes");
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
    assert!(matches!(t.frames(tree).reserve(1, 0), Err(EngineError::UnknownTree(_))));
}

/// A frame of a dense column: pages that share most of their bytes.
fn waiting(id: RowId) -> Vec<u8> {
    let mut page: Vec<u8> = (0..3000u64).flat_map(|i| format!("<td>{}</td>", (i * i) >> 5).into_bytes()).collect();
    page.extend_from_slice(format!("page {id}").as_bytes());
    let mut out = Vec::new();
    frame::encode(Some(Method::Dense), 0, &page, &mut out);
    out
}

#[test]
fn frames_become_dense_when_merges_come_to_them() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates");
    let tree = table.toast();
    let bytes = || -> u64 { engine.tree_bytes(tree) };
    t.commit(Durability::Sync).expect("commits");
    let check = |density: Density| {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        for id in (0..60).map(RowId) {
            let read = t.frames(tree).with(view, RowId(id.0 + 1), |row| {
                let mut copy = Vec::new();
                frame::copy_as_written(row, &mut copy);
                (frame::density(row), copy == waiting(RowId(id.0 + 1)))
            });
            match read {
                Ok(found) => assert_eq!(found, (density, true), "frame {id}"),
                Err(EngineError::Corrupt { .. }) => assert_eq!(id.0 % 6, 5, "frame {id}"),
                Err(e) => panic!("{e}"),
            }
        }
    };
    for part in 0..6 {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let first = t.frames(tree).reserve(10, 0).expect("reserves");
        assert_eq!(first, RowId(part * 10 + 1));
        (first.0..first.0 + 10).for_each(|id| t.frames(tree).put(RowId(id), &[&waiting(RowId(id))]).expect("puts"));
        (first.0..first.0 + 10)
            .filter(|id| id % 6 == 0)
            .for_each(|id| t.frames(tree).delete(RowId(id)..RowId(id + 1)).expect("deletes"));
        t.commit(Durability::Sync).expect("commits");
        engine.checkpoint().expect("flushes");
    }
    check(Density::Waiting);
    let before = bytes();
    engine.condense(table).expect("merges");
    check(Density::Dense);
    let after = bytes();
    assert!(after * 8 < before, "{before} bytes became {after}");
    // Once dense, a merge finds nothing to do.
    let written = directory.bytes_written();
    engine.merge_all().expect("merges");
    assert_eq!(directory.bytes_written(), written);
    // Deleted frames are removed.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.frames(tree).delete(RowId(4)..RowId(6)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");
    engine.condense(table).expect("merges");
    assert_eq!(count_frames(&engine, tree), 48);
}

/// A page of one of ten templates, which no other codec makes smaller.
fn near_copy(id: u64) -> Vec<u8> {
    // A step of splitmix64 for each byte.
    let byte = |n: u64| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (n >> 3)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
    let noise = |seed: u64, bytes: u64| (0..bytes).map(move |i| b'a' + (byte(seed << 20 | i) % 16) as u8);
    let page: Vec<u8> = noise(id * 7 % 10, 4000).chain(noise(id + 100, 100)).collect();
    let mut out = Vec::new();
    frame::encode(Some(Method::Dense), 0, &page, &mut out);
    out
}

/// A table of many sections has few references, so that readers find them in memory.
#[test]
fn segments_share_references_where_memory_is_small() {
    // A reference of a section's own has an eighth of the templates.
    let options = EngineOptions { memory_bytes: 1_500_000, ..EngineOptions::default() };
    let directory = MemoryDirectory::new();
    let engine = Engine::open(options, Arc::clone(&directory) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let (parts, frames) = (40, 50);
    for _ in 0..parts {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let first = t.frames(table.toast()).reserve(frames, 0).expect("reserves").0;
        let put = |id: u64| t.frames(table.toast()).put(RowId(id), &[&near_copy(id)]);
        (first..first + frames).for_each(|id| put(id).expect("puts"));
        t.commit(Durability::Sync).expect("commits");
        engine.checkpoint().expect("flushes");
    }
    engine.condense(table).expect("merges");
    let tree = engine.shared.store.tree(table.toast()).map(|tree| Arc::clone(&tree)).expect("it is there");
    let runs = Arc::clone(&tree.as_table().expect("a table").levels.read().runs);
    let names: Vec<_> = runs.iter().flat_map(|run| run.reader.sections()).filter_map(|section| section.reference_name).collect();
    let distinct: std::collections::HashSet<_> = names.iter().collect();
    assert!(names.len() >= 4 && distinct.len() < names.len(), "{} references of {} sections", distinct.len(), names.len());
}

fn count_frames(engine: &Arc<Engine>, tree: TreeId) -> usize {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = t.scan(t.statement_view(), tree, &[], &[], &[], None).expect("scans");
    let mut rows = 0;
    while let Some(batch) = scan.next().expect("reads") {
        rows += batch.row_ids.len();
    }
    rows
}

/// Frames are in a separate tree, which must be as durable as its table's: no reader would find a value that outlived its row's
/// table, and a reader would miss one that did not live as long.
#[test]
fn frames_last_as_long_as_their_table() {
    for persistence in [Persistence::Logged, Persistence::Unlogged, Persistence::Memory] {
        for clean in [true, false] {
            let case = format!("{persistence:?}, clean stop: {clean}");
            let disk = MemoryDirectory::new();
            let engine = open(&disk);
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            let table = t.create_table_tree(&[Kind::Int8, Kind::Text], persistence).expect("creates");
            let tree = table.toast();
            t.commit(Durability::Sync).expect("commits");
            engine.checkpoint().expect("flushes");

            let before = (engine.log_statistics().bytes, disk.bytes_written());
            // By the log, if at all, then by a segment, if they may be written there.
            let mut ids = Vec::new();
            for frames in [1, 20] {
                let t = engine.begin(Isolation::ReadCommitted).expect("begins");
                let first = put(&t, tree, frames);
                t.commit(Durability::Sync).expect("commits");
                ids.extend((0..frames).map(|i| RowId(first.0 + i)));
                let t = engine.begin(Isolation::ReadCommitted).expect("begins");
                let view = t.statement_view();
                assert!(ids.iter().all(|id| is_there(&t, view, tree, *id)), "{case}");
            }
            let logged = engine.log_statistics().bytes - before.0;
            assert_eq!(logged > 0, persistence == Persistence::Logged, "{case}: {logged} bytes of log");
            if persistence == Persistence::Memory {
                engine.checkpoint().expect("flushes");
                let written = disk.bytes_written() - before.1;
                assert!(written < FRAME_BYTES as u64, "{case}: {written} bytes written");
            }
            if clean {
                engine.shutdown().expect("stops");
            }

            let engine = open(&disk.after_power_cut(&mut || false));
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            let view = t.statement_view();
            let lasts = match persistence {
                Persistence::Logged => true,
                Persistence::Unlogged => clean,
                Persistence::Memory | Persistence::Temporary => false,
            };
            assert!(ids.iter().all(|id| is_there(&t, view, tree, *id) == lasts), "{case}");
            let first = put(&t, tree, 1);
            assert!(is_there(&t, t.statement_view(), tree, first), "{case}: usable at once");
        }
    }
}
