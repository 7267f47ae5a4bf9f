//! A full disk: a failed write has a separate error, acknowledged data is not lost, and work continues when there is space again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use melba_types::row::RowLayout;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, DbError, Kind, RowId, SqlState, TreeId};
use melba_vfs::{Clock, Directory, Faults, FaultyDirectory, ManualClock, MemoryDirectory, SeededRandom};

use crate::*;

const TABLE: TreeId = TreeId(1);

type Rows = BTreeMap<RowId, String>;

fn open(directory: Arc<dyn Directory>, clock: &Arc<ManualClock>) -> Result<Arc<Engine>> {
    let options = EngineOptions {
        memory_bytes: 60_000,
        wal_file_bytes: 4096,
        segment_bytes: 24_000,
        bulk_rows_min: 20,
        ..EngineOptions::default()
    };
    Engine::open(options, directory, Arc::clone(clock) as Arc<dyn Clock>)
}

fn text_of(column: &Column, at: usize) -> String {
    match column.get(at) {
        Datum::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

fn read(engine: &Engine) -> Rows {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let mut scan = t.scan(t.statement_view(), TABLE, &[0], &[], &[], None).expect("opens");
    let mut rows = Rows::new();
    while let Some(batch) = scan.next().expect("scans") {
        rows.extend(batch.row_ids.iter().enumerate().map(|(i, id)| (*id, text_of(&batch.columns[0], i))));
    }
    rows
}

/// One transaction: some changes, sometimes a bulk load.
fn change(engine: &Engine, random: &SeededRandom, rows: &mut Rows) -> Result<()> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    let mut after = rows.clone();
    let text = |n: usize| (0..n).map(|_| (b'a' + random.below(26) as u8) as char).collect::<String>();
    if random.chance(10) {
        let texts: Vec<String> = (0..25).map(|_| text(60)).collect();
        let mut bytes = ByteStrings::default();
        texts.iter().for_each(|t| bytes.push(t.as_bytes()));
        let ids = t.bulk(TABLE).insert(&Batch::new(vec![Column::new(ColumnData::Text(bytes))], 25))?;
        after.extend((ids.start.0..ids.end.0).map(RowId).zip(texts));
    }
    let layout = RowLayout::new(vec![Kind::Text]);
    for _ in 0..1 + random.below(4) {
        let victim = rows.keys().nth(random.below(rows.len() + 1)).filter(|id| after.contains_key(id));
        let text = text(1 + random.below(400));
        let encoded = layout.encode_row(&[Datum::text(text.as_str())]);
        match victim {
            Some(id) if random.chance(30) => {
                t.delete(TABLE, *id)?;
                after.remove(id);
            }
            Some(id) => {
                t.update(TABLE, *id, &encoded)?;
                after.insert(*id, text);
            }
            None => drop(after.insert(t.insert(TABLE, &encoded)?, text)),
        }
    }
    t.commit(if random.chance(50) { Durability::Sync } else { Durability::Async })?;
    *rows = after;
    Ok(())
}

#[test]
fn a_full_disk_loses_nothing_and_work_continues() {
    let mut refused = 0;
    for free in (0..30_000).step_by(613) {
        let (memory, faults, clock) = (MemoryDirectory::new(), Faults::new(), Arc::new(ManualClock::new()));
        let faulty = FaultyDirectory::new(Arc::clone(&memory) as Arc<dyn Directory>, Arc::clone(&faults));
        let engine = open(faulty, &clock).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        assert_eq!(t.create_table_tree(&[Kind::Text], Persistence::Logged).expect("creates"), TABLE);
        t.commit(Durability::Sync).expect("commits");
        let random = SeededRandom::new(free);
        let mut rows = Rows::new();
        for n in 0..200 {
            match n {
                20 => faults.set_free(Some(free)),
                150 => {
                    faults.set_free(None);
                    clock.advance(Duration::from_secs(2));
                    while engine.run_once() {}
                }
                _ => {}
            }
            if let Err(e) = change(&engine, &random, &mut rows) {
                assert!((20..150).contains(&n), "free {free}, {n}: {e}");
                assert_eq!(DbError::from(e.clone()).sqlstate(), SqlState::DISK_FULL, "free {free}, {n}: {e}");
                refused += 1;
            }
            assert_eq!(engine.failure(), None, "free {free}, {n}");
            if n % 3 == 0 {
                clock.advance(Duration::from_millis(300));
                engine.run_once();
            }
        }
        assert_eq!(read(&engine), rows, "free {free}");
        engine.flush_log().expect("writes");
        let after = memory.after_power_cut(&mut || false);
        assert_eq!(read(&open(after, &clock).expect("recovers")), rows, "free {free}, recovered");
        engine.shutdown().expect("stops");
    }
    assert!(refused > 500, "{refused}");
}

/// Files of the data directory, without the lock.
fn files(directory: &Arc<MemoryDirectory>) -> Vec<String> {
    directory.list().expect("lists")
}

#[test]
fn deletions_and_a_restart_succeed_on_a_full_disk() {
    let mut given_back = 0;
    for seed in 0..8 {
        let (memory, faults, clock) = (MemoryDirectory::new(), Faults::new(), Arc::new(ManualClock::new()));
        let faulty = FaultyDirectory::new(Arc::clone(&memory) as Arc<dyn Directory>, Arc::clone(&faults));
        let engine = open(faulty, &clock).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        assert_eq!(t.create_table_tree(&[Kind::Text], Persistence::Logged).expect("creates"), TABLE);
        let other = t.create_table_tree(&[Kind::Text], Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        let random = SeededRandom::new(seed);
        let mut rows = Rows::new();
        for _ in 0..30 {
            change(&engine, &random, &mut rows).expect("there is space");
        }
        engine.checkpoint().expect("flushes");
        while engine.run_step(BackgroundStep::LogFile) {}
        assert!(files(&memory).iter().any(|n| n == "reserve"), "space is kept");
        faults.set_free(Some(0));
        let is_refused = (0..200).any(|_| change(&engine, &random, &mut rows).is_err());
        assert!(is_refused, "seed {seed}: changes are refused");
        // Nor is there room for the smallest one.
        let tiny = RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text("t")]);
        while let Ok(id) = engine.begin(Isolation::ReadCommitted).and_then(|t| {
            let id = t.insert(TABLE, &tiny)?;
            t.commit(Durability::Sync).map(|_| id)
        }) {
            rows.insert(id, "t".to_owned());
        }
        let doomed: Vec<RowId> = rows.keys().step_by(2).take(10).copied().collect();
        for id in doomed {
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            t.delete(TABLE, id).expect("deletes");
            t.commit(Durability::Sync).unwrap_or_else(|e| panic!("seed {seed}: a deletion on a full disk: {e}"));
            rows.remove(&id);
        }
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        t.drop_tree(other).expect("drops");
        t.commit(Durability::Sync).unwrap_or_else(|e| panic!("seed {seed}: a drop on a full disk: {e}"));
        given_back += usize::from(!files(&memory).iter().any(|n| n == "reserve"));
        assert_eq!(read(&engine), rows, "seed {seed}");
        assert_eq!(engine.failure(), None);
        drop(engine);

        // A start with a full disk: reserved space is released, or the existing files have enough.
        let disk = memory.after_power_cut(&mut || true);
        let _ = disk.remove("reserve");
        let spare = disk.create("reserve").expect("is not there");
        spare.write_at(&[0; 20_000], 0).expect("writes");
        let faults = Faults::new();
        faults.set_free(Some(0));
        let full = FaultyDirectory::new(Arc::clone(&disk) as Arc<dyn Directory>, Arc::clone(&faults));
        let engine = open(full, &clock).unwrap_or_else(|e| panic!("seed {seed}: a start on a full disk: {e}"));
        assert_eq!(read(&engine), rows, "seed {seed}, after a start");
        faults.set_free(None);
        engine.shutdown().expect("stops");
    }
    assert!(given_back > 0, "the space was needed");
}
