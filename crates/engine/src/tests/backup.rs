//! Copies of a running database, and the databases made from them.

use std::sync::Arc;

use melba_store::segment_name;
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, ColumnData, Datum, Kind, Lsn, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

const KINDS: [Kind; 1] = [Kind::Int4];

fn engine(directory: Arc<dyn Directory>) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes: 1 << 20, wal_file_bytes: 4096, ..EngineOptions::default() };
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

fn table(engine: &Engine, persistence: Persistence) -> TreeId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&KINDS, persistence).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    tree
}

/// One row a transaction; where the log ends then.
fn insert(engine: &Engine, tree: TreeId, numbers: std::ops::Range<i32>) -> Lsn {
    for number in numbers {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        t.insert(tree, &RowLayout::new(KINDS.to_vec()).encode_row(&[Datum::Int4(number)])).expect("inserts");
        t.commit(Durability::Sync).expect("commits");
    }
    engine.log_end()
}

fn numbers(engine: &Engine, tree: TreeId) -> Vec<i32> {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = t.scan(t.statement_view(), tree, &[0], &[], &[], None).expect("opens");
    let mut out = Vec::new();
    while let Some(batch) = scan.next().expect("scans") {
        out.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i32()));
    }
    out.sort_unstable();
    out
}

/// The log from where replay begins, in pieces that cut records.
fn log(backup: &OnlineBackup) -> Vec<Vec<u8>> {
    let (mut pieces, mut at) = (Vec::new(), backup.state.replay);
    while at < backup.end {
        let piece = backup.read_log(at, 1000.min((backup.end.0 - at.0) as usize)).expect("reads");
        assert!(!piece.is_empty(), "the log goes up to the backup's end");
        at = Lsn(at.0 + piece.len() as u64);
        pieces.push(piece);
    }
    pieces
}

/// A folder with the segments of a backup.
fn copy_segments(backup: &OnlineBackup) -> Arc<dyn Directory> {
    let copy: Arc<dyn Directory> = MemoryDirectory::new();
    let folder = copy.subdirectory("segments").expect("makes");
    for segment in &backup.segments {
        let (file, mut offset) = (folder.create(&segment_name(segment.file)).expect("creates"), 0);
        while offset < segment.bytes {
            let piece = backup.read_segment(segment.file, offset, 777).expect("reads");
            file.write_at(&piece, offset).expect("writes");
            offset += piece.len() as u64;
        }
    }
    copy
}

fn restored(backup: &OnlineBackup, log: &[Vec<u8>], until: Option<Lsn>) -> melba_store::Result<(Arc<Engine>, Restored)> {
    let copy = copy_segments(backup);
    let state = ManifestState::from_bytes(&backup.state.to_bytes()).expect("its own bytes");
    let found = restore(&copy, state, &mut log.iter().cloned().map(Ok), (backup.end, until), 77)?;
    Ok((engine(copy), found))
}

#[test]
fn a_backup_holds_the_state_at_its_beginning() {
    let directory: Arc<dyn Directory> = MemoryDirectory::new();
    let engine = engine(Arc::clone(&directory));
    let files = |folder: &str| directory.subdirectory(folder).and_then(|d| d.list()).expect("lists");
    let (tree, unlogged) = (table(&engine, Persistence::Logged), table(&engine, Persistence::Unlogged));
    insert(&engine, unlogged, 0..10);
    insert(&engine, tree, 0..300);
    engine.checkpoint().expect("flushes");
    insert(&engine, tree, 300..400);
    let backup = engine.begin_backup().expect("begins");
    // Segments and log that it needs are replaced and superfluous now.
    insert(&engine, tree, 400..900);
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    engine.checkpoint().expect("flushes");
    let (copy, found) = restored(&backup, &log(&backup), None).expect("restores");
    assert_eq!(found.end, backup.end);
    assert_eq!(numbers(&copy, tree), Vec::from_iter(0..400));
    assert_eq!(numbers(&copy, unlogged), []);
    // It is a database like any other.
    insert(&copy, tree, 400..410);
    copy.shutdown().expect("stops");
    assert_eq!(numbers(&engine, tree), Vec::from_iter(0..900));
    // Nor is it touched when the table is dropped.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.drop_tree(tree).expect("drops");
    t.commit(Durability::Sync).expect("commits");
    let copied: Vec<String> = backup.segments.iter().map(|s| segment_name(s.file)).collect();
    let left = || {
        engine.checkpoint().and_then(|()| engine.merge_all()).expect("works");
        copied.iter().filter(|name| files("segments").contains(name)).count()
    };
    let log_files = files("wal").len();
    assert_eq!(left(), copied.len());
    drop(backup);
    insert(&engine, table(&engine, Persistence::Logged), 0..10);
    assert_eq!(left(), 0);
    assert!(files("wal").len() < log_files, "{} log files are left of {log_files}", files("wal").len());
}

#[test]
fn a_backup_that_advances_ends_at_any_transaction() {
    let engine = engine(MemoryDirectory::new());
    let tree = table(&engine, Persistence::Logged);
    insert(&engine, tree, 0..50);
    let mut backup = engine.begin_backup().expect("begins");
    let least = backup.end;
    let ends: Vec<Lsn> = (50..90).map(|n| insert(&engine, tree, n..n + 1)).collect();
    engine.checkpoint().expect("flushes");
    backup.advance().expect("advances");
    let log = log(&backup);
    backup.end = least;
    for (n, end) in (50..).zip(&ends).step_by(13) {
        let (copy, found) = restored(&backup, &log, Some(*end)).expect("restores");
        assert_eq!((found.end, numbers(&copy, tree)), (*end, Vec::from_iter(0..n + 1)));
        // A position within a transaction is before it.
        let (copy, _) = restored(&backup, &log, Some(Lsn(end.0 - 1))).expect("restores");
        assert_eq!(numbers(&copy, tree), Vec::from_iter(0..n));
    }
    let too_early = restored(&backup, &log, Some(Lsn(least.0 - 1))).map(|_| ());
    assert!(matches!(too_early, Err(EngineError::Corrupt { .. })), "{too_early:?}");
    let cut = restored(&backup, &log[..1], None).map(|_| ());
    assert!(matches!(cut, Err(EngineError::Corrupt { .. })), "{cut:?}");
}

#[test]
fn segments_that_a_load_links_are_part_of_the_backup() {
    let engine = engine(MemoryDirectory::new());
    let tree = table(&engine, Persistence::Logged);
    let mut backup = engine.begin_backup().expect("begins");
    let known = backup.segments.len();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for _ in 0..15 {
        let rows = Column::new(ColumnData::Int4(vec![7; 4000]));
        t.bulk(tree).insert(&Batch::new(vec![rows], 4000)).expect("loads");
    }
    t.commit(Durability::Sync).expect("commits");
    assert!(backup.advance().expect("advances") > 0, "the load has segments of its own");
    assert!(backup.segments.len() > known);
    engine.merge_all().expect("merges");
    let (copy, _) = restored(&backup, &log(&backup), None).expect("restores");
    assert_eq!(numbers(&copy, tree).len(), 60_000);
    // Begun after the load, before a flush: the log alone names its segments.
    let late = engine.begin_backup().expect("begins");
    let (copy, _) = restored(&late, &log(&late), None).expect("restores");
    assert_eq!(numbers(&copy, tree).len(), 60_000);
}
