//! Much of one thing: `cargo bench -p melba-engine --bench shapes [-- N]` does each N and 4 N times, and fails where the second takes
//! more processor time than n log n would. With small numbers it runs within `cargo test --benches`, without that judgement.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use melba_engine::*;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{OsClock, OsDirectory};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TABLE: TreeId = TreeId(1);
const INDEX: TreeId = TreeId(2);
/// Below this the clock is too coarse for a ratio.
const JUDGED: Duration = Duration::from_millis(50);
/// What four times as much may take: 4 and a little for n log n, the rest for caches that are too small and a busy machine.
const RATIO_MAX: f64 = 8.0;

fn open(folder: &Path) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes: 1 << 30, fsync: false, ..EngineOptions::default() };
    let directory = Arc::new(OsDirectory::open(folder).expect("a folder"));
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(n: u64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n as i64)])
}

/// A table with `rows` rows, whose ids begin at 1, and an index of it.
fn create(engine: &Engine, rows: u64) {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates"), TABLE);
    assert_eq!(t.create_index_tree(TABLE, Persistence::Logged).expect("creates"), INDEX);
    for n in 0..rows {
        t.insert(TABLE, &row(n)).expect("inserts");
    }
    t.commit(Durability::Async).expect("commits");
}

/// A transaction for every `of` of the numbers up to `n`.
fn in_transactions(engine: &Engine, n: u64, of: u64, each: impl Fn(&Arc<Transaction>, u64)) {
    let session = engine.session().expect("a free slot");
    for first in (0..n).step_by(of as usize) {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        (first..n.min(first + of)).for_each(|i| each(&t, i));
        t.commit(Durability::Async).expect("commits");
        while engine.run_once() {}
    }
}

/// Versions of one row under an old snapshot, which reads it now and then.
fn versions(folder: &Path, n: u64) {
    let engine = open(folder);
    create(&engine, 1);
    let old = engine.begin(Isolation::RepeatableRead).expect("begins");
    let view = old.statement_view();
    in_transactions(&engine, n, 1, |t, i| {
        t.update(TABLE, RowId(1), &row(i)).expect("updates");
        if i % 100 == 0 {
            assert!(old.get(view, TABLE, RowId(1)).expect("reads").is_some());
        }
    });
    engine.checkpoint().expect("flushes");
    assert!(old.get(view, TABLE, RowId(1)).expect("reads").is_some());
}

/// Rows with one index key: entered, found by it, and removed.
fn one_key(folder: &Path, n: u64) {
    let engine = open(folder);
    create(&engine, 0);
    let count = |key: &[u8]| {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let mut scan = t.index(INDEX).lookup(t.statement_view(), key).expect("opens");
        let mut found = 0;
        while scan.next().expect("scans").is_some() {
            found += 1;
        }
        found
    };
    in_transactions(&engine, n, 100, |t, i| t.index(INDEX).insert(b"one", RowId(i)).expect("inserts"));
    assert_eq!(count(b"one"), n);
    engine.checkpoint().expect("flushes");
    assert_eq!(count(b"one"), n);
    in_transactions(&engine, n, 100, |t, i| t.index(INDEX).delete(b"one", RowId(i)).expect("deletes"));
    assert_eq!(count(b"one"), 0);
}

/// Savepoints in one transaction, each with a row of its own: all stay, or each is rolled back to.
fn savepoints(folder: &Path, n: u64) {
    let engine = open(folder);
    create(&engine, n);
    for undo in [false, true] {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        for id in (1..=n).map(RowId) {
            let savepoint = t.savepoint();
            t.lock_row(TABLE, id, RowLockMode::ForNoKeyUpdate, Wait::NoWait).expect("locks");
            t.update(TABLE, id, &row(7)).expect("updates");
            assert!(t.get(t.statement_view(), TABLE, id).expect("reads").is_some());
            if undo {
                t.rollback_to(savepoint);
            }
        }
        t.commit(Durability::Async).expect("commits");
    }
}

/// Row locks of one transaction, all of which another one wants.
fn row_locks(folder: &Path, n: u64) {
    let engine = open(folder);
    create(&engine, 0);
    let lock = |t: &Arc<Transaction>, id| t.lock_row(TABLE, RowId(id), RowLockMode::ForUpdate, Wait::NoWait).expect("answers");
    let (holder, other) = (engine.begin(Isolation::ReadCommitted), engine.begin(Isolation::ReadCommitted));
    let (holder, other) = (holder.expect("begins"), other.expect("begins"));
    (0..n).for_each(|id| assert_eq!(lock(&holder, id), RowLockResult::Granted));
    (0..n).for_each(|id| assert_eq!(lock(&holder, id), RowLockResult::Granted));
    (0..n).for_each(|id| assert_eq!(lock(&other, id), RowLockResult::WouldBlock));
    holder.rollback();
    (0..n).for_each(|id| assert_eq!(lock(&other, id), RowLockResult::Granted));
}

/// Tables: made, written, flushed, opened again, locked by one transaction, dropped.
fn tables(folder: &Path, n: u64) {
    let engine = open(folder);
    in_transactions(&engine, n, 100, |t, i| {
        let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
        t.insert(table, &row(i)).expect("inserts");
    });
    engine.flush_log().expect("writes");
    drop(engine);
    let engine = open(folder);
    engine.checkpoint().expect("flushes");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for i in 0..n {
        let tag = LockTag::Relation { database: 1, relation: i as u32 };
        assert!(t.lock_relation(tag, RelationLockMode::RowExclusive, Wait::NoWait).expect("answers"));
        t.insert(TreeId(1 + i), &row(1)).expect("inserts");
    }
    t.commit(Durability::Async).expect("commits");
    in_transactions(&engine, n, 100, |t, i| t.drop_tree(TreeId(1 + i)).expect("drops"));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert!(t.index(TreeId(1)).scan(t.statement_view(), Bound::Unbounded, Bound::Unbounded, false).is_err());
}

/// What the process has had of a processor, without the operating system's part: that of a file that is made depends on what the file
/// system has been through. In hundredths of a second (proc_pid_stat(5)).
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = text.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse().ok());
    Duration::from_millis(10 * ticks.unwrap_or(0))
}

/// The processor time that a shape takes.
fn measure(shape: fn(&Path, u64), n: u64) -> Duration {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let begin = processor_time();
    shape(folder.path(), n);
    processor_time() - begin
}

type Shape = (&'static str, u64, fn(&Path, u64));

fn main() {
    let n: Option<u64> = std::env::args().skip(1).find_map(|a| a.parse().ok());
    // The second figure: the shape has only this part of N.
    let shapes: [Shape; 5] = [
        ("versions of a row", 1, versions),
        ("rows with one key", 1, one_key),
        ("savepoints", 10, savepoints),
        ("row locks", 1, row_locks),
        ("tables", 10, tables),
    ];
    for (name, part, shape) in shapes {
        let small = n.unwrap_or(1000) / part;
        let times = [small, 4 * small].map(|n| measure(shape, n));
        let ratio = times[1].as_secs_f64() / times[0].as_secs_f64();
        println!(
            "{name:<20} {small:>8}: {:>8.3} s, four times as many: {:>8.3} s, {ratio:>5.1} times",
            times[0].as_secs_f64(),
            times[1].as_secs_f64()
        );
        assert!(n.is_none() || times[0] < JUDGED || ratio < RATIO_MAX, "{name}: worse than n log n");
    }
}
