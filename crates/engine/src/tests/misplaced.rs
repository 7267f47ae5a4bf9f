//! Files that are missing, renamed, cut, another database's or older ones: refused by name, or not needed. Only committed data is
//! ever read.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind};
use melba_vfs::{Clock, Directory, ManualClock, MemoryDirectory, SeededRandom};

use super::damage::{Rows, TABLES, table as read};
use crate::*;

const FOLDERS: [&str; 3] = ["", "segments", "wal"];

fn open(directory: &Arc<MemoryDirectory>, clock: &Arc<ManualClock>) -> Result<Arc<Engine>> {
    let options = EngineOptions { memory_bytes: 1 << 20, wal_file_bytes: 1500, segment_bytes: 4000, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::clone(clock) as Arc<dyn Clock>)
}

fn row(n: i64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8, Kind::Text]).encode_row(&[Datum::Int8(n), Datum::text("x".repeat(40))])
}

fn folder(directory: &Arc<MemoryDirectory>, name: &str) -> Arc<dyn Directory> {
    match name {
        "" => Arc::clone(directory) as Arc<dyn Directory>,
        name => directory.subdirectory(name).expect("there"),
    }
}

fn copy(directory: &Arc<MemoryDirectory>) -> Arc<MemoryDirectory> {
    directory.after_power_cut(&mut || true)
}

fn bytes(folder: &dyn Directory, name: &str) -> Option<Vec<u8>> {
    let file = folder.open(name).ok()?;
    let mut bytes = vec![0; file.len().expect("answers") as usize];
    file.read_at(&mut bytes, 0).expect("reads");
    Some(bytes)
}

/// A database that was killed, and as it was some time before: every row is acknowledged.
struct Past {
    now: Arc<MemoryDirectory>,
    before: Vec<Arc<MemoryDirectory>>,
    rows: [Rows; 2],
}

fn live(seed: u64) -> Past {
    let clock = Arc::new(ManualClock::new());
    clock.advance(std::time::Duration::from_secs(seed));
    let random = SeededRandom::new(seed);
    live_with(&random, &clock)
}

fn live_with(random: &SeededRandom, clock: &Arc<ManualClock>) -> Past {
    let mut now = MemoryDirectory::new();
    let mut engine = open(&now, clock).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for table in TABLES {
        assert_eq!(t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates"), table);
    }
    t.commit(Durability::Sync).expect("commits");
    let (mut rows, mut before) = ([Rows::new(), Rows::new()], Vec::new());
    for n in 0..120 {
        let which = random.below(2);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let old = rows[which].keys().nth(random.below(rows[which].len().max(1))).copied();
        match old.filter(|_| random.chance(50)) {
            Some(id) => {
                t.update(TABLES[which], id, &row(n)).expect("updates");
                rows[which].insert(id, n);
            }
            None => drop(rows[which].insert(t.insert(TABLES[which], &row(n)).expect("inserts"), n)),
        }
        t.commit(Durability::Sync).expect("commits");
        match n {
            // An older copy is of a time before the manifest's last record, which is written here at the latest.
            110 => engine.checkpoint().expect("flushes"),
            20 | 50 | 80 => before.push(copy(&now)),
            _ if random.chance(6) => engine.checkpoint().expect("flushes"),
            _ if random.chance(4) => engine.merge_all().expect("merges"),
            _ if random.chance(4) => {
                if random.chance(50) {
                    engine.shutdown().expect("stops");
                }
                drop(engine);
                now = copy(&now);
                engine = open(&now, clock).expect("opens");
            }
            _ => {}
        }
    }
    drop(engine);
    Past { now: copy(&now), before, rows }
}

/// An engine that opens returns the committed data; otherwise the error names the problem and a file.
fn judge(past: &Past, damaged: &Arc<MemoryDirectory>, what: &str) -> bool {
    let names_a_file = |e: &EngineError| {
        let text = e.to_string();
        assert!(
            matches!(e, EngineError::Corrupt { .. }) || text.contains("No such file") || text.contains("not found"),
            "{what}: {text}"
        );
        assert!([".wal", ".seg", "MANIFEST"].iter().any(|kind| text.contains(kind)), "{what}: {text}");
    };
    let clock = Arc::new(ManualClock::new());
    let verified = Engine::verify(&(Arc::clone(damaged) as Arc<dyn Directory>));
    let engine = match open(damaged, &clock) {
        Ok(engine) => engine,
        Err(e) => {
            names_a_file(&e);
            assert!(verified.map_or(true, |(_, problems)| !problems.is_empty()), "{what}: check finds nothing");
            return true;
        }
    };
    let mut refused = false;
    for (table, rows) in TABLES.iter().zip(&past.rows) {
        match read(&engine, *table) {
            Ok(found) => assert_eq!(found, *rows, "{what}, table {table}"),
            Err(e) => {
                names_a_file(&e);
                refused = true;
            }
        }
    }
    assert!(!refused || verified.is_ok_and(|(_, problems)| !problems.is_empty()), "{what}: check finds nothing");
    refused
}

#[test]
fn a_missing_renamed_cut_foreign_or_older_file_is_refused_or_not_needed() {
    let mut refused = BTreeMap::<String, usize>::new();
    let mut count = |past: &Past, damaged: &Arc<MemoryDirectory>, what: &str, name: &str| {
        let kind = format!("{what} {}", name.rsplit('.').next().unwrap_or(name));
        *refused.entry(kind).or_default() += usize::from(judge(past, damaged, &format!("{what} {name}")));
    };
    for seed in 1..5 {
        let past = live(seed);
        let foreign = live(seed + 100);
        assert!(!judge(&past, &copy(&past.now), "nothing"), "what is not damaged is read");
        for place in FOLDERS {
            let names = folder(&past.now, place).list().expect("lists");
            for (i, name) in names.iter().enumerate().filter(|(_, n)| *n != "engine.lock") {
                let damaged = copy(&past.now);
                folder(&damaged, place).remove(name).expect("removes");
                count(&past, &damaged, "missing", name);

                let damaged = copy(&past.now);
                let other = names.get(i + 1).map_or("another", |other| other);
                folder(&damaged, place).rename(name, other).expect("renames");
                count(&past, &damaged, "renamed", name);

                let damaged = copy(&past.now);
                let file = folder(&damaged, place).open(name).expect("there");
                // Most of a manifest is reserved space.
                file.set_len(if name == "MANIFEST" { 20 } else { file.len().expect("answers") / 2 }).expect("cuts");
                count(&past, &damaged, "cut", name);

                for source in past.before.iter().chain([&foreign.now]) {
                    let damaged = copy(&past.now);
                    let is_foreign = Arc::ptr_eq(source, &foreign.now);
                    // Another database has hardly a log file of the same name: any of its files then.
                    let kind = name.rsplit('.').next().unwrap_or(name);
                    let others = folder(source, place).list().expect("lists");
                    let like = others.iter().find(|n| *n == name || is_foreign && n.ends_with(kind)).unwrap_or(name);
                    let Some(bytes) = bytes(&*folder(source, place), like) else { continue };
                    let folder = folder(&damaged, place);
                    folder.remove(name).expect("removes");
                    folder.create(name).and_then(|f| f.write_at(&bytes, 0)).expect("writes");
                    count(&past, &damaged, if is_foreign { "foreign" } else { "older" }, name);
                }
            }
        }
    }
    for what in ["missing", "renamed", "cut"] {
        for kind in ["wal", "seg", "MANIFEST"] {
            assert!(refused.get(&format!("{what} {kind}")).is_some_and(|n| *n > 0), "{what} {kind}: {refused:?}");
        }
    }
    for kind in ["foreign wal", "foreign seg", "foreign MANIFEST", "older MANIFEST"] {
        assert!(refused.get(kind).is_some_and(|n| *n > 0), "{kind}: {refused:?}");
    }
}
