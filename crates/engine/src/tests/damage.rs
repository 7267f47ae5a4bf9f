//! A flipped bit in any file: an error that names the file, and only users of that file are affected.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

pub(super) const TABLES: [TreeId; 2] = [TreeId(1), TreeId(2)];
pub(super) const INDEX: TreeId = TreeId(3);

fn open(directory: &Arc<MemoryDirectory>) -> Result<Arc<Engine>> {
    let options = EngineOptions { memory_bytes: 1 << 20, wal_file_bytes: 4096, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::new(OsClock::new()))
}

fn row(n: u64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8, Kind::Text]).encode_row(&[Datum::Int8(n as i64), Datum::text(format!("row {n}"))])
}

/// Two tables and an index of the first, each in two segments; clean or with the last changes in the log only.
pub(super) fn fill(clean: bool) -> Arc<MemoryDirectory> {
    let directory = MemoryDirectory::new();
    let engine = open(&directory).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for table in TABLES {
        assert_eq!(t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates"), table);
    }
    assert_eq!(t.create_index_tree(TABLES[0], Persistence::Logged).expect("creates"), INDEX);
    t.commit(Durability::Sync).expect("commits");
    for round in 0..3 {
        for n in round * 40..round * 40 + 40 {
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            let id = TABLES.map(|table| t.insert(table, &row(n)).expect("inserts"))[0];
            t.index(INDEX).insert(&n.to_be_bytes(), id).expect("inserts");
            t.commit(Durability::Sync).expect("commits");
        }
        if round < 2 {
            engine.checkpoint().expect("flushes");
        }
    }
    if clean {
        engine.shutdown().expect("stops");
    }
    directory
}

pub(super) type Rows = BTreeMap<RowId, i64>;

pub(super) fn table(engine: &Engine, tree: TreeId) -> Result<Rows> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    let mut scan = t.scan(t.statement_view(), tree, &[0, 1], &[], &[], None)?;
    let mut rows = Rows::new();
    while let Some(batch) = scan.next()? {
        rows.extend(batch.row_ids.iter().enumerate().map(|(i, id)| (*id, batch.columns[0].get(i).as_i64())));
    }
    Ok(rows)
}

pub(super) fn index(engine: &Engine) -> Result<Rows> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    let mut scan = t.index(INDEX).scan(t.statement_view(), Bound::Unbounded, Bound::Unbounded, false)?;
    let mut rows = Rows::new();
    while let Some((key, id)) = scan.next()? {
        rows.insert(id, u64::from_be_bytes(key.try_into().expect("8 bytes")) as i64);
    }
    Ok(rows)
}

pub(super) fn expected() -> Rows {
    (0..120).map(|n| (RowId(n + 1), n as i64)).collect()
}

#[track_caller]
fn names(e: &EngineError, file: &str) {
    let message = e.to_string();
    let place = ["block", "header", "footer", "tail", "offset"].iter().any(|place| message.contains(place));
    assert!(matches!(e, EngineError::Corrupt { .. }) && message.contains(file) && place, "{file}: {message}");
}

fn problems(directory: &Arc<MemoryDirectory>) -> Vec<String> {
    problems_of(&(Arc::clone(directory) as Arc<dyn Directory>))
}

pub(super) fn problems_of(directory: &Arc<dyn Directory>) -> Vec<String> {
    Engine::verify(directory).expect("reads").1
}

#[test]
fn a_damaged_segment_affects_its_tree_only() {
    let sound = fill(true);
    assert_eq!(problems(&sound), [] as [String; 0]);
    let folder = sound.subdirectory("segments").expect("there");
    let names_of_files = folder.list().expect("lists");
    assert_eq!(names_of_files.len(), 9);
    let mut unreadable = [0; 3];
    for (n, file) in names_of_files.iter().enumerate() {
        let bits = folder.open(file).and_then(|f| f.len()).expect("there") * 8;
        for bit in (0..bits).step_by(397) {
            let directory = sound.after_power_cut(&mut || true);
            directory.flip_bit_in("segments", n, bit).expect("flips");
            let found = problems(&directory);
            assert!(found.len() == 1 && found[0].contains(file.as_str()), "{file} {bit}: {found:?}");
            let engine = open(&directory).expect("a damaged segment does not keep the others from being read");
            let read = [table(&engine, TABLES[0]), table(&engine, TABLES[1]), index(&engine)];
            let failed: Vec<usize> = (0..3).filter(|i| read[*i].is_err()).collect();
            // A filter is not read by scans; `verify` has seen it.
            assert!(failed.len() <= 1, "{file} {bit}");
            for (i, result) in read.iter().enumerate() {
                match result {
                    Ok(rows) => assert_eq!(*rows, expected(), "{file} {bit}"),
                    Err(e) => {
                        unreadable[i] += 1;
                        names(e, file);
                    }
                }
            }
            // Merges skip it, a tree that cannot be read can be dropped, and none of its files is removed before.
            while engine.run_once() {}
            engine.checkpoint().expect("flushes");
            assert!(directory.subdirectory("segments").and_then(|d| d.open(file)).is_ok());
            if let Some(tree) = failed.first() {
                let t = engine.begin(Isolation::ReadCommitted).expect("begins");
                t.drop_tree([TABLES[0], TABLES[1], INDEX][*tree]).expect("drops");
                t.commit(Durability::Sync).expect("commits");
            }
            engine.shutdown().expect("stops");
        }
    }
    assert!(unreadable.iter().all(|n| *n > 10), "{unreadable:?}");
}

#[test]
fn a_missing_segment_affects_its_tree_only() {
    let directory = fill(true);
    let folder = directory.subdirectory("segments").expect("there");
    let file = folder.list().expect("lists")[0].clone();
    folder.remove(&file).expect("removes");
    assert!(problems(&directory)[0].contains(&file));
    let engine = open(&directory).expect("opens");
    let read = [table(&engine, TABLES[0]), table(&engine, TABLES[1]), index(&engine)];
    assert_eq!(read.iter().filter(|r| r.as_ref().is_ok_and(|rows| *rows == expected())).count(), 2);
}

#[test]
fn a_damaged_log_or_manifest_stops_the_start_and_is_named() {
    let sound = fill(false);
    let log = sound.subdirectory("wal").expect("there");
    let files: Vec<String> = log.list().expect("lists").into_iter().filter(|n| !n.starts_with("spare")).collect();
    assert_eq!(problems(&sound), [] as [String; 0]);
    let last = files.last().expect("a file").clone();
    let mut refused = 0;
    for (n, file) in log.list().expect("lists").iter().enumerate().filter(|(_, name)| files.contains(name)) {
        let bits = log.open(file).and_then(|f| f.len()).expect("there") * 8;
        for bit in (0..bits).step_by(1993) {
            let directory = sound.after_power_cut(&mut || true);
            directory.flip_bit_in("wal", n, bit).expect("flips");
            match open(&directory) {
                Err(e) => {
                    refused += 1;
                    names(&e, file);
                    assert!(problems(&directory).iter().any(|p| p.contains(file.as_str())));
                }
                // Beyond the end, or in the last batch, which cannot be told from a torn one.
                Ok(engine) => {
                    let rows = table(&engine, TABLES[0]).expect("reads");
                    assert!(rows == expected() || *file == last && rows.len() == 119, "{file} {bit}: {}", rows.len());
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
    let bits = sound.open("MANIFEST").and_then(|f| f.len()).expect("there") * 8;
    let mut refused = 0;
    for bit in (0..bits).step_by(211) {
        let directory = sound.after_power_cut(&mut || true);
        directory.flip_bit("MANIFEST", bit).expect("flips");
        match open(&directory) {
            Err(e) if e.to_string().contains("MANIFEST") => {
                refused += 1;
                names(&e, "MANIFEST");
            }
            // The last record may have been torn; then the log must still be there.
            Err(e) => names(&e, ".wal"),
            Ok(engine) => assert_eq!(table(&engine, TABLES[0]).expect("reads"), expected()),
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn an_index_that_lacks_an_entry_or_has_one_too_many_is_found() {
    let directory = fill(true);
    let engine = open(&directory).expect("opens");
    assert_eq!(engine.check_indexes(|_| true), [] as [String; 0]);
    let change = |f: &dyn Fn(&Arc<Transaction>)| {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        f(&t);
        t.commit(Durability::Sync).expect("commits");
    };
    change(&|t| t.index(INDEX).delete(&7u64.to_be_bytes(), RowId(8)).expect("deletes"));
    assert_eq!(engine.check_indexes(|_| true), [format!("tree {INDEX}: 1 rows have no entry, row 8 first")]);
    assert_eq!(engine.check_indexes(|_| false), [] as [String; 0], "the index may be a partial one");
    change(&|t| t.index(INDEX).insert(&7u64.to_be_bytes(), RowId(8)).expect("inserts"));
    change(&|t| t.delete(TABLES[0], RowId(8)).expect("deletes"));
    let expected = format!("tree {INDEX}: entries of 1 rows that are not in the table, row 8 first");
    assert_eq!(engine.check_indexes(|_| false), [expected]);
}
