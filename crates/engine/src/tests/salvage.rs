//! A salvaged database: it opens, every undamaged row is there, and the losses are named.

use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, Datum, Kind, RowId};
use melba_vfs::{Directory, MemoryDirectory, OverlayDirectory};

use super::damage::{INDEX, Rows, TABLES, expected, fill, index, problems_of, table};
use crate::*;

/// A salvaged copy, opened, and its losses.
fn salvage(damaged: &Arc<MemoryDirectory>) -> (Arc<Engine>, Vec<String>) {
    let overlay = OverlayDirectory::new(Arc::clone(damaged) as Arc<dyn Directory>) as Arc<dyn Directory>;
    let losses = Engine::salvage(&overlay).expect("the manifest is whole");
    assert_eq!(problems_of(&overlay), [] as [String; 0], "{losses:?}");
    let options = EngineOptions { memory_bytes: 1 << 20, wal_file_bytes: 4096, ..EngineOptions::default() };
    let engine = Engine::open(options, overlay, Arc::new(melba_vfs::OsClock::new())).expect("opens");
    engine.drop_dangling_entries().expect("works");
    assert!(engine.check_indexes(|_| false).is_empty());
    (engine, losses)
}

fn rows(engine: &Engine) -> [Rows; 3] {
    [table(engine, TABLES[0]), table(engine, TABLES[1]), index(engine)].map(|rows| rows.expect("can be read"))
}

fn is_part(part: &Rows, whole: &Rows) -> bool {
    part.iter().all(|(id, value)| whole.get(id) == Some(value))
}

#[test]
fn a_sound_database_loses_nothing() {
    for clean in [true, false] {
        let (engine, losses) = salvage(&fill(clean));
        assert!(losses.is_empty(), "{losses:?}");
        assert!(rows(&engine).iter().all(|rows| *rows == expected()));
    }
}

#[test]
fn salvage_of_a_damaged_segment_loses_unreadable_rows_only() {
    let sound = fill(true);
    let folder = sound.subdirectory("segments").expect("there");
    let mut most = 0;
    for (n, file) in folder.list().expect("lists").iter().enumerate() {
        let bits = folder.open(file).and_then(|f| f.len()).expect("there") * 8;
        for bit in (0..bits).step_by(397) {
            let damaged = sound.after_power_cut(&mut || true);
            damaged.flip_bit_in("segments", n, bit).expect("flips");
            let (engine, losses) = salvage(&damaged);
            assert!(losses.len() == 1 && losses[0].contains(file.as_str()), "{file} {bit}: {losses:?}");
            let found = rows(&engine);
            let whole = found.iter().filter(|rows| **rows == expected()).count();
            assert!(found.iter().all(|rows| is_part(rows, &expected())), "{file} {bit}");
            // Index entries are lost with the rows of the first table.
            assert!(whole >= 1 && found[1..].iter().any(|rows| *rows == expected()), "{file} {bit}: {losses:?}");
            assert!(found.iter().all(|rows| rows.len() >= 80), "{file} {bit}: one of three segments at most");
            most = most.max(found.iter().map(Rows::len).min().unwrap_or(0));
        }
    }
    assert!(most > 80, "rows beside a damaged block are read");
}

#[test]
fn a_missing_segment_costs_its_rows() {
    let sound = fill(true);
    for name in sound.subdirectory("segments").and_then(|d| d.list()).expect("lists") {
        let damaged = sound.after_power_cut(&mut || true);
        damaged.subdirectory("segments").and_then(|d| d.remove(&name)).expect("removes");
        let (engine, losses) = salvage(&damaged);
        assert!(losses.len() == 1 && losses[0].contains(&name), "{losses:?}");
        assert_eq!(rows(&engine).iter().map(Rows::len).min(), Some(80));
    }
}

#[test]
fn salvage_of_a_damaged_segment_linked_by_the_log_loses_unreadable_rows_only() {
    let sound = MemoryDirectory::new();
    let options = EngineOptions { wal_file_bytes: 4096, bulk_rows_min: 10, ..EngineOptions::default() };
    let clock = Arc::new(melba_vfs::OsClock::new());
    let engine = Engine::open(options, Arc::clone(&sound) as Arc<dyn Directory>, clock).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates"), TABLES[0]);
    let numbers = Column::new(ColumnData::Int8((0..5000).collect()));
    let mut texts = Column::with_capacity(Kind::Text, 0);
    (0..5000).for_each(|n| texts.push(Datum::text(format!("row {n}"))));
    t.bulk(TABLES[0]).insert(&Batch::new(vec![numbers, texts], 5000)).expect("loads");
    t.commit(Durability::Sync).expect("commits");
    let folder = sound.subdirectory("segments").expect("there");
    let [name] = folder.list().expect("lists").try_into().expect("one segment");
    let bits = folder.open(&name).and_then(|f| f.len()).expect("there") * 8;
    for bit in (0..bits).step_by(4001).map(Some).chain([None]) {
        let damaged = sound.after_power_cut(&mut || true);
        match bit {
            Some(bit) => damaged.flip_bit_in("segments", 0, bit).expect("flips"),
            None => damaged.subdirectory("segments").and_then(|d| d.remove(&name)).expect("removes"),
        }
        let (engine, losses) = salvage(&damaged);
        let found = table(&engine, TABLES[0]).expect("can be read");
        assert!(losses.len() == 1 && losses[0].contains(&name) && found.len() < 5000, "{bit:?}: {losses:?}");
        assert!(found.iter().all(|(id, n)| id.0 as i64 == n + 1), "{bit:?}");
    }
}

#[test]
fn a_damaged_log_costs_the_commits_behind_the_damage() {
    let sound = fill(false);
    let folder = sound.subdirectory("wal").expect("there");
    let names = folder.list().expect("lists");
    let mut counts = std::collections::BTreeSet::new();
    for (n, name) in names.iter().enumerate() {
        let bits = folder.open(name).and_then(|f| f.len()).expect("there") * 8;
        for bit in (0..bits).step_by(997) {
            let damaged = sound.after_power_cut(&mut || true);
            damaged.flip_bit_in("wal", n, bit).expect("flips");
            let (engine, _) = salvage(&damaged);
            let found = rows(&engine);
            assert!(found.iter().all(|rows| is_part(rows, &expected()) && rows.len() >= 80), "{name} {bit}");
            assert!(found.iter().all(|rows| *rows == found[0]), "{name} {bit}: commits are there as a whole");
            counts.insert(found[0].len());
        }
    }
    assert!(counts.contains(&80) && counts.contains(&120) && counts.len() > 5, "{counts:?}");
    // A salvaged database keeps working.
    let (engine, _) = salvage(&sound);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.index(INDEX).insert(b"12345678", RowId(1)).expect("inserts");
    t.commit(Durability::Sync).expect("commits");
    engine.shutdown().expect("stops");
}
