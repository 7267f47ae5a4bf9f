//! What single operations cost: `cargo bench -p melba-engine [-- ROWS]`. With few rows it runs within `cargo test --benches`.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use melba_engine::*;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{OsClock, OsDirectory};

const KINDS: [Kind; 4] = [Kind::Int4, Kind::Int4, Kind::Int4, Kind::Text];

fn open(folder: &std::path::Path, memory_bytes: u64) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes, ..EngineOptions::default() };
    let directory = Arc::new(OsDirectory::open(folder).expect("a folder"));
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(id: i32) -> Vec<u8> {
    let filler = "f".repeat(84);
    RowLayout::new(KINDS.to_vec()).encode_row(&[Datum::Int4(id), Datum::Int4(1), Datum::Int4(0), Datum::text(filler)])
}

fn key(id: u64) -> [u8; 5] {
    let b = (id as u32 ^ 0x8000_0000).to_be_bytes();
    [1, b[0], b[1], b[2], b[3]]
}

fn report(what: &str, operations: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<44} {:>12.0} /s {:>9.0} ns", operations as f64 / seconds, seconds * 1e9 / operations as f64);
}

/// A table of `rows` rows with a unique index, in transactions of 1000.
fn load(engine: &Engine, rows: u64) -> (TreeId, TreeId) {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let encoded = row(1);
    let start = Instant::now();
    for first in (0..rows).step_by(1000) {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        for id in first..(first + 1000).min(rows) {
            let row = t.insert(table, &encoded).expect("inserts");
            t.index(index).insert(&key(id), row).expect("inserts");
        }
        t.commit(Durability::Async).expect("commits");
    }
    report("insert row and key, 1000 a transaction", rows, start);
    (table, index)
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 11
}

fn reads(engine: &Arc<Engine>, table: TreeId, index: TreeId, rows: u64, what: &str) {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    let mut random = 88_172_645_463_325_252;
    let n = rows.min(300_000);
    let start = Instant::now();
    for _ in 0..n {
        let id = RowId(1 + next(&mut random) % rows);
        assert!(t.get(view, table, id).expect("reads").is_some());
    }
    report(&format!("get by row id, {what}"), n, start);
    let start = Instant::now();
    for _ in 0..n {
        let key = key(next(&mut random) % rows);
        let mut scan = t.index(index).lookup(view, &key).expect("opens");
        assert!(scan.next().expect("scans").is_some());
    }
    report(&format!("index lookup, {what}"), n, start);
    let start = Instant::now();
    let mut found = 0;
    let mut scan = t.scan(view, table, &[0, 2], &[], &[], None).expect("opens");
    while let Some(batch) = scan.next().expect("scans") {
        found += batch.row_ids.len() as u64;
    }
    assert_eq!(found, rows);
    report(&format!("table scan, two columns, {what}"), found, start);
    let start = Instant::now();
    let mut found = 0;
    let mut scan = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    while scan.next().expect("scans").is_some() {
        found += 1;
    }
    assert_eq!(found, rows);
    report(&format!("index scan, {what}"), found, start);
}

/// The engine's part of a TPC-B transaction: three reads and updates by index, one insertion.
fn tpcb(
    engine: &Arc<Engine>,
    session: &Arc<EngineSession>,
    trees: (TreeId, TreeId),
    history: TreeId,
    rows: u64,
    random: &mut u64,
    durability: Durability,
) {
    const ENCODED: usize = 2;
    let t = engine.begin_in(session, Isolation::ReadCommitted).expect("begins");
    // Accounts, tellers, branches: disjoint, and always locked in this order, so that no deadlock is possible.
    let accounts = (rows / 2, rows / 2);
    for (part, (first, count)) in
        [accounts, (rows / 4, (rows / 1000).max(1)), (0, (rows / 10_000).max(1))].into_iter().enumerate()
    {
        let tag = LockTag::Relation { database: 1, relation: part as u32 };
        t.lock_relation(tag, RelationLockMode::RowExclusive, Wait::Block).expect("free");
        let view = t.statement_view();
        let id = first + next(random) % count;
        let mut scan = t.index(trees.1).lookup(view, &key(id)).expect("opens");
        let (_, id) = scan.next().expect("scans").expect("there");
        t.lock_row(trees.0, id, RowLockMode::ForNoKeyUpdate, Wait::Block).expect("waits");
        let latest = t.get_latest(trees.0, id).expect("reads").row.expect("there");
        let mut changed = latest.to_vec();
        changed[ENCODED + 9] = changed[ENCODED + 9].wrapping_add(1);
        t.update(trees.0, id, &changed).expect("updates");
    }
    t.insert(history, &row(1)[..40.min(row(1).len())]).expect("inserts");
    t.commit(durability).expect("commits");
}

fn writes(engine: &Arc<Engine>, trees: (TreeId, TreeId), rows: u64) {
    let (table, _) = trees;
    let n = rows.min(200_000);
    let session = engine.session().expect("free slot");
    let mut random = 77;
    let encoded = row(2);
    let start = Instant::now();
    for _ in 0..n {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        t.statement_view();
        t.commit(Durability::Sync).expect("commits");
    }
    report("empty transaction", n, start);
    let start = Instant::now();
    for _ in 0..n {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        let id = RowId(1 + next(&mut random) % rows);
        t.lock_row(table, id, RowLockMode::ForNoKeyUpdate, Wait::Block).expect("free");
        t.update(table, id, &encoded).expect("updates");
        t.commit(Durability::Async).expect("commits");
    }
    report("transaction of one update, async", n, start);
    let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
    let start = Instant::now();
    for _ in 0..n {
        let id = RowId(1 + next(&mut random) % rows);
        t.lock_row(table, id, RowLockMode::ForNoKeyUpdate, Wait::Block).expect("free");
        t.update(table, id, &encoded).expect("updates");
    }
    report("lock and update, in one transaction", n, start);
    let start = Instant::now();
    t.commit(Durability::Async).expect("commits");
    report("its commit, per row", n, start);
}

fn tpcb_runs(engine: &Arc<Engine>, trees: (TreeId, TreeId), rows: u64) {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let history = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    for (threads, durability, n) in [
        (1, Durability::Async, rows / 5),
        (4, Durability::Async, rows / 5),
        (1, Durability::Sync, 500),
        (16, Durability::Sync, 8000),
    ] {
        let n = n.min(rows);
        let syncs = engine.log_statistics().syncs();
        let start = Instant::now();
        std::thread::scope(|s| {
            for i in 0..threads {
                s.spawn(move || {
                    let session = engine.session().expect("free slot");
                    let mut random = 99 + i;
                    for _ in 0..n / threads {
                        tpcb(engine, &session, trees, history, rows, &mut random, durability);
                    }
                });
            }
        });
        report(&format!("TPC-B transaction, {threads} threads, {durability:?}"), n, start);
        println!("{:<44} {:>12} syncs", "", engine.log_statistics().syncs() - syncs);
    }
}

fn file_bytes(folder: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}

/// Every row updated, over and over, with a memory budget far below the table: flushes and merges keep up, space is bounded.
fn rounds(folder: &std::path::Path, rows: u64) {
    let engine = open(folder, 64 << 20);
    engine.start_background();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
    let mut ids = Vec::new();
    let noise = |i: u64| {
        let mut random = i + 1;
        let text: String = (0..200).map(|_| char::from(b'!' + (next(&mut random) % 90) as u8)).collect();
        let values = [Datum::Int4(i as i32), Datum::Int4(1), Datum::Int4(0), Datum::text(text)];
        RowLayout::new(KINDS.to_vec()).encode_row(&values)
    };
    (0..rows).for_each(|i| ids.push(t.insert(table, &noise(i)).expect("inserts")));
    t.commit(Durability::Async).expect("commits");
    engine.merge_all().expect("merges");
    let (mut most, mut slowest) = (0, std::time::Duration::ZERO);
    let start = Instant::now();
    for round in 0..5 {
        for (i, chunk) in ids.chunks(100).enumerate() {
            let encoded: Vec<Vec<u8>> = (0..chunk.len()).map(|n| noise(round * rows + (i * 100 + n) as u64)).collect();
            let one = Instant::now();
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            for (id, row) in chunk.iter().zip(&encoded) {
                t.lock_row(table, *id, RowLockMode::ForNoKeyUpdate, Wait::Block).expect("free");
                t.update(table, *id, row).expect("updates");
            }
            t.commit(Durability::Async).expect("commits");
            slowest = slowest.max(one.elapsed());
            if i % 200 == 0 {
                most = most.max(file_bytes(&folder.join("segments")));
            }
        }
    }
    report("update, 100 a transaction, over segments", rows * 5, start);
    let live = rows as f64 * 216.0;
    println!("{:<44} {:>12.2} of the live data", "most space of segments", most as f64 / live);
    println!("{:<44} {:>12.1} ms", "slowest transaction", slowest.as_secs_f64() * 1e3);
    engine.checkpoint().expect("flushes");
    std::thread::sleep(std::time::Duration::from_secs(5));
    let after = file_bytes(&folder.join("segments"));
    println!("{:<44} {:>12.2} of the live data", "space 5 s later", after as f64 / live);
    engine.shutdown().expect("stops");
}

fn main() {
    let rows: u64 = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(2000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    {
        let engine = open(folder.path(), 4 << 30);
        engine.start_background();
        let trees = load(&engine, rows);
        reads(&engine, trees.0, trees.1, rows, "memory");
        writes(&engine, trees, rows);
        tpcb_runs(&engine, trees, rows);
        engine.flush_log().expect("flushes");
        println!("{:<44} {:>12.1} MB", "log written", engine.log_statistics().bytes as f64 / 1e6);
    }
    let start = Instant::now();
    let engine = open(folder.path(), 4 << 30);
    println!("{:<44} {:>12.3} s", "recovery of that log", start.elapsed().as_secs_f64());
    let start = Instant::now();
    engine.checkpoint().expect("flushes");
    println!("{:<44} {:>12.3} s", "flush", start.elapsed().as_secs_f64());
    reads(&engine, TreeId(1), TreeId(2), rows, "segments");
    engine.shutdown().expect("stops");
    let folder = tempfile::tempdir().expect("a temporary folder");
    rounds(folder.path(), rows);
}
