//! How fast the log is replayed, by how the changes lie: `cargo bench -p melba-engine --bench recovery [-- OPERATIONS NAME...]`. A million
//! operations on rows and keys a second of a processor is the least, whatever the keys. The row store holds about 800,000 of the
//! shapes below. With few operations it runs within `cargo test --benches`.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_engine::*;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{OsClock, OsDirectory};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TABLE: TreeId = TreeId(1);
const INDEX: TreeId = TreeId(2);
/// Rows there are, where many are changed.
const ROWS: u64 = 200_000;

fn open(folder: &Path) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes: 4 << 30, fsync: false, ..EngineOptions::default() };
    let directory = Arc::new(OsDirectory::open(folder).expect("a folder"));
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(n: u64, bytes: usize) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8, Kind::Text]).encode_row(&[Datum::Int8(n as i64), Datum::text("x".repeat(bytes))])
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 11
}

/// A way in which changes are spread.
struct Shape {
    name: &'static str,
    row_bytes: usize,
    /// Rows there are.
    rows: u64,
    /// Operations a transaction.
    batch: u64,
    /// One operation, the n-th.
    change: fn(&Arc<Transaction>, u64, u64, &[u8]),
}

fn update(t: &Arc<Transaction>, row: u64, bytes: &[u8]) {
    t.update(TABLE, RowId(row), bytes).expect("updates");
}

const SHAPES: [Shape; 10] = [
    Shape { name: "one hot row", row_bytes: 80, rows: 1, batch: 1, change: |t, _, _, bytes| update(t, 1, bytes) },
    Shape {
        name: "uniform rows, one a transaction",
        row_bytes: 80,
        rows: ROWS,
        batch: 1,
        change: |t, _, random, bytes| update(t, 1 + random % ROWS, bytes),
    },
    Shape {
        name: "uniform rows, 100 a transaction",
        row_bytes: 80,
        rows: ROWS,
        batch: 100,
        change: |t, _, random, bytes| update(t, 1 + random % ROWS, bytes),
    },
    Shape {
        name: "new rows, 100 a transaction",
        row_bytes: 80,
        rows: 1,
        batch: 100,
        change: |t, _, _, bytes| assert!(t.insert(TABLE, bytes).expect("inserts") > RowId(0)),
    },
    Shape {
        name: "rows of 2^40, few of which are met again",
        row_bytes: 80,
        rows: 1,
        batch: 10,
        change: |t, _, random, bytes| t.update(TABLE, RowId(1 + random % (1 << 40)), bytes).expect("updates"),
    },
    Shape {
        name: "wide rows",
        row_bytes: 1000,
        rows: ROWS / 10,
        batch: 10,
        change: |t, _, random, bytes| update(t, 1 + random % (ROWS / 10), bytes),
    },
    Shape {
        name: "a hot index entry",
        row_bytes: 8,
        rows: 1,
        batch: 1,
        change: |t, n, _, _| {
            let changed = if n % 2 == 0 { t.index(INDEX).insert(b"k", RowId(1)) } else { t.index(INDEX).delete(b"k", RowId(1)) };
            changed.expect("changes");
        },
    },
    Shape {
        name: "entries of one key",
        row_bytes: 8,
        rows: 1,
        batch: 10,
        change: |t, _, random, _| t.index(INDEX).insert(b"a hot key that is long", RowId(1 + random % ROWS)).expect("inserts"),
    },
    Shape {
        name: "new short keys, strewn",
        row_bytes: 8,
        rows: 1,
        batch: 10,
        change: |t, n, random, _| t.index(INDEX).insert(&random.to_be_bytes(), RowId(n)).expect("inserts"),
    },
    Shape {
        name: "new long keys, strewn",
        row_bytes: 8,
        rows: 1,
        batch: 10,
        change: |t, n, random, _| {
            let key = format!("a prefix that is the same, and {random:016x}");
            t.index(INDEX).insert(key.as_bytes(), RowId(n)).expect("inserts");
        },
    },
];

/// Writes a log; how long that took, and how long it is.
fn write(folder: &Path, shape: &Shape, operations: u64) -> (Duration, u64) {
    let engine = open(folder);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates"), TABLE);
    assert_eq!(t.create_index_tree(TABLE, Persistence::Logged).expect("creates"), INDEX);
    (0..shape.rows).for_each(|n| assert_eq!(t.insert(TABLE, &row(n, 1)).expect("inserts"), RowId(n + 1)));
    t.commit(Durability::Async).expect("commits");
    engine.checkpoint().expect("flushes");
    let session = engine.session().expect("a free slot");
    let bytes = row(7, shape.row_bytes);
    let begin = engine.replay_start();
    let mut random = 88_172_645_463_325_252;
    let start = Instant::now();
    for first in (0..operations).step_by(shape.batch as usize) {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        (first..first + shape.batch).for_each(|n| (shape.change)(&t, n, next(&mut random), &bytes));
        t.commit(Durability::Async).expect("commits");
    }
    engine.flush_log().expect("writes");
    assert_eq!(begin, engine.replay_start(), "so many operations fill the row store: what was flushed is not replayed");
    (start.elapsed(), engine.log_end().0 - engine.replay_start().0)
}

/// What this thread has had of a processor: on a busy machine the time on the wall is other programs' time, too.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

fn measure(shape: &Shape, operations: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (written, log) = write(folder.path(), shape, operations);
    let (start, processor) = (Instant::now(), processor_time());
    let engine = open(folder.path());
    let (recovered, processor) = (start.elapsed(), processor_time() - processor);
    println!(
        "{:<34} {:>6.1} MB of log, written in {:>6.2} s, recovered in {:>6.3} s, {:>6.3} s of a processor: {:>10.0} operations/s",
        shape.name,
        log as f64 / 1e6,
        written.as_secs_f64(),
        recovered.as_secs_f64(),
        processor.as_secs_f64(),
        operations as f64 / processor.as_secs_f64()
    );
    drop(engine);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let operations = arguments.iter().find_map(|a| a.parse().ok()).unwrap_or(1000);
    let names: Vec<&String> = arguments.iter().filter(|a| a.parse::<u64>().is_err()).collect();
    let chosen = SHAPES.iter().filter(|shape| names.is_empty() || names.iter().any(|name| shape.name.contains(name.as_str())));
    chosen.for_each(|shape| measure(shape, operations));
}
