//! Counts the waits for the disk; what a crash may lose of asynchronous commits, and of unlogged and memory tables.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use melba_types::row::RowLayout;
use melba_types::{Batch, Column, ColumnData, Datum, Kind, RowId, TreeId};
use melba_vfs::{Clock, Directory, ManualClock, MemoryDirectory, SeededRandom};

use crate::*;

const DELAY: Duration = Duration::from_millis(200);

struct Fixture {
    disk: Arc<MemoryDirectory>,
    clock: Arc<ManualClock>,
    options: EngineOptions,
    engine: Arc<Engine>,
}

fn options() -> EngineOptions {
    EngineOptions { wal_writer_delay: DELAY, bulk_rows_min: 50, ..EngineOptions::default() }
}

impl Fixture {
    fn new(options: EngineOptions) -> Fixture {
        Fixture::over(MemoryDirectory::new(), options)
    }

    fn over(disk: Arc<MemoryDirectory>, options: EngineOptions) -> Fixture {
        let clock = Arc::new(ManualClock::default());
        let engine = Engine::open(options.clone(), Arc::clone(&disk) as Arc<dyn Directory>, Arc::clone(&clock) as Arc<dyn Clock>);
        Fixture { disk, clock, options, engine: engine.expect("opens") }
    }

    fn create(&self, persistence: Persistence) -> (TreeId, TreeId) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int8], persistence).expect("creates");
        let index = t.create_index_tree(table, persistence).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        (table, index)
    }

    /// The cost of `f`: syncs of any file, bytes of the log.
    fn cost(&self, f: impl FnOnce()) -> (u64, u64) {
        let before = (self.disk.syncs(), self.engine.log_statistics().bytes);
        f();
        (self.disk.syncs() - before.0, self.engine.log_statistics().bytes - before.1)
    }

    fn insert(&self, (table, index): (TreeId, TreeId), n: i64, durability: Durability) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        put(&t, (table, index), n);
        t.commit(durability).expect("commits");
    }

    fn settle(&self) {
        while self.engine.run_once() {}
    }

    fn rows(&self, (table, index): (TreeId, TreeId)) -> Vec<i64> {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        let mut rows = Vec::new();
        let mut scan = t.scan(view, table, &[0], &[], &[], None).expect("opens");
        while let Some(batch) = scan.next().expect("scans") {
            rows.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()));
        }
        let mut entries = Vec::new();
        let mut scan = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
        while let Some((key, _)) = scan.next().expect("scans") {
            entries.push(i64::from_be_bytes(key.try_into().expect("8 bytes")));
        }
        rows.sort_unstable();
        assert_eq!(rows, entries, "the index disagrees with the table");
        rows
    }
}

fn put(t: &Arc<Transaction>, (table, index): (TreeId, TreeId), n: i64) {
    let id = t.insert(table, &RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n)])).expect("inserts");
    t.index(index).insert(&n.to_be_bytes(), id).expect("inserts");
}

/// Enough rows for a separate segment.
fn load(t: &Arc<Transaction>, (table, index): (TreeId, TreeId), from: i64) {
    let batch = Batch::new(vec![Column::new(ColumnData::Int8((from..from + 100).collect()))], 100);
    let ids = t.bulk(table).insert(&batch).expect("inserts");
    let mut builder = IndexBuilder::begin(t, index, false).expect("begins");
    for (n, id) in (from..).zip((ids.start.0..ids.end.0).map(RowId)) {
        builder.add(&n.to_be_bytes(), id, false).expect("adds");
    }
    builder.finish().expect("finishes");
}

#[test]
fn each_mode_syncs_as_often_as_it_must() {
    let f = Fixture::new(options());
    let [logged, unlogged, memory] = [Persistence::Logged, Persistence::Unlogged, Persistence::Memory].map(|p| f.create(p));
    f.settle();
    let (syncs, bytes) = f.cost(|| (0..10).for_each(|n| f.insert(logged, n, Durability::Sync)));
    assert!(syncs == 10 && bytes > 0, "one sync a commit, {syncs} for 10");
    let (syncs, bytes) = f.cost(|| (10..20).for_each(|n| f.insert(logged, n, Durability::Async)));
    assert!(syncs == 0 && bytes > 0, "{syncs} syncs of asynchronous commits");
    for durability in [Durability::Sync, Durability::Async] {
        for table in [unlogged, memory] {
            assert_eq!(f.cost(|| (0..10).for_each(|n| f.insert(table, n, durability))), (0, 0));
        }
    }
    let mixed = f.cost(|| {
        let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
        [logged, unlogged, memory].into_iter().for_each(|table| put(&t, table, 100));
        t.commit(Durability::Sync).expect("commits");
    });
    let alone = f.cost(|| f.insert(logged, 101, Durability::Sync));
    assert_eq!(mixed, alone, "of a mixed transaction the log has the logged part");
}

#[test]
fn loads_flushes_and_merges_of_unlogged_tables_sync_nothing_of_theirs() {
    let f = Fixture::new(options());
    let tables = [Persistence::Unlogged, Persistence::Logged].map(|p| f.create(p));
    let [unlogged, logged] = tables.map(|table| {
        f.cost(|| {
            let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
            load(&t, table, 1000);
            t.commit(Durability::Sync).expect("commits");
        })
    });
    assert_eq!(unlogged, (0, 0));
    assert!(logged.0 > 0 && logged.1 > 0);
    // The manifest alone is synced, and the names in the folder, once.
    f.insert(tables[0], 1, Durability::Sync);
    let (flush, _) = f.cost(|| f.engine.checkpoint().expect("flushes"));
    f.insert(tables[1], 1, Durability::Sync);
    let (logged_flush, _) = f.cost(|| f.engine.checkpoint().expect("flushes"));
    assert_eq!(logged_flush - flush, 2, "a segment of the table and one of the index");
}

#[test]
fn the_log_writer_follows_its_settings_also_when_they_change() {
    let mut f = Fixture::new(options());
    let table = f.create(Persistence::Logged);
    f.clock.advance(DELAY);
    f.settle();
    f.insert(table, 1, Durability::Async);
    f.clock.advance(DELAY);
    assert_eq!(f.cost(|| f.settle()).0, 1, "the delay has passed");
    f.insert(table, 2, Durability::Async);
    f.clock.advance(DELAY / 2);
    assert_eq!(f.cost(|| f.settle()).0, 0, "too early");
    f.options.wal_writer_delay = DELAY / 4;
    f.engine.reconfigure(&f.options).expect("succeeds");
    assert_eq!(f.cost(|| f.settle()).0, 1, "not too early any more");
    // wal_writer_flush_after: so much log does not wait for the delay.
    f.options.wal_writer_flush_after_bytes = 1000;
    f.engine.reconfigure(&f.options).expect("succeeds");
    let (_, record) = f.cost(|| f.insert(table, 3, Durability::Async));
    assert_eq!(f.cost(|| f.settle()).0, 0);
    (0..1000 / record as i64).for_each(|n| f.insert(table, 10 + n, Durability::Async));
    assert_eq!(f.cost(|| f.settle()).0, 1, "enough waits");
    f.options.wal_writer_flush_after_bytes = 0;
    f.engine.reconfigure(&f.options).expect("succeeds");
    f.insert(table, 4, Durability::Async);
    assert_eq!(f.cost(|| f.settle()).0, 1, "nothing waits");
    let statistics = f.engine.log_statistics();
    assert_eq!((statistics.by_clients.syncs, statistics.in_background.syncs), (1, 4), "CREATE TABLE was synchronous");
}

#[test]
fn without_fsync_nothing_is_synced_and_switching_it_on_makes_everything_durable() {
    let mut f = Fixture::new(EngineOptions { fsync: false, ..options() });
    let table = f.create(Persistence::Logged);
    (0..10).for_each(|n| f.insert(table, n, Durability::Sync));
    f.engine.checkpoint().expect("flushes");
    f.insert(table, 10, Durability::Sync);
    assert_eq!((f.disk.syncs(), f.engine.log_statistics().syncs()), (0, 0));
    f.options.fsync = true;
    f.engine.reconfigure(&f.options).expect("syncs");
    let after = Fixture::over(f.disk.after_power_cut(&mut || false), options());
    assert_eq!(after.rows(table), (0..=10).collect::<Vec<i64>>());
    assert_eq!(f.cost(|| f.insert(table, 11, Durability::Sync)).0, 1);
    f.options.fsync = false;
    f.engine.reconfigure(&f.options).expect("succeeds");
    assert_eq!(f.cost(|| f.insert(table, 12, Durability::Sync)).0, 0);
}

#[test]
fn a_commit_waits_for_siblings_if_there_are_enough_and_shares_its_sync() {
    const EVER: Duration = Duration::from_secs(3600);
    let f = Fixture::new(options());
    let table = f.create(Persistence::Logged);
    let session = f.engine.session().expect("opens");
    let commit = |session: &Arc<EngineSession>, n| {
        let t = f.engine.begin_in(session, Isolation::ReadCommitted).expect("begins");
        put(&t, table, n);
        t.commit(Durability::Sync).expect("commits");
    };
    session.set_commit_delay(EVER, 1);
    commit(&session, 1);
    let idle = f.engine.begin(Isolation::ReadCommitted).expect("begins");
    idle.statement_view();
    commit(&session, 2);
    // A transaction with changes is a sibling, one that waits for a lock is not.
    let writer = f.engine.begin(Isolation::ReadCommitted).expect("begins");
    put(&writer, table, 3);
    session.set_commit_delay(EVER, 2);
    commit(&session, 4);
    let delay = Duration::from_millis(500);
    session.set_commit_delay(delay, 1);
    let (syncs, _) = f.cost(|| {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let start = std::time::Instant::now();
                commit(&session, 5);
                assert!(start.elapsed() >= delay);
            });
            while !f.engine.shared.pipeline.has_leader() && !waiting.is_finished() {
                std::thread::yield_now();
            }
            writer.commit(Durability::Sync).expect("commits");
        });
    });
    assert_eq!(syncs, 1, "both commits with one sync");
    // Without syncs there is nothing to share.
    let writer = f.engine.begin(Isolation::ReadCommitted).expect("begins");
    put(&writer, table, 6);
    session.set_commit_delay(EVER, 0);
    f.engine.reconfigure(&EngineOptions { fsync: false, ..f.options.clone() }).expect("succeeds");
    commit(&session, 7);
}

/// Asynchronous commits until the power fails at a sync; all but the youngest are left, in order.
#[test]
fn a_crash_takes_asynchronous_commits_of_three_delays_at_most() {
    let run = |cut: Option<u64>| {
        let f = Fixture::new(EngineOptions { memory_bytes: 60_000, wal_file_bytes: 4096, ..options() });
        let table = f.create(Persistence::Logged);
        if let Some(cut) = cut {
            f.disk.cut_power_at_sync(f.disk.syncs() + cut);
        }
        let first = f.disk.syncs();
        let random = SeededRandom::new(7);
        let mut committed = Vec::new();
        for n in 0..150i64 {
            let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
            put(&t, table, n);
            if t.commit(Durability::Async).is_err() {
                break;
            }
            committed.push(f.clock.monotonic());
            f.clock.advance(DELAY * random.below(50) as u32 / 100);
            f.settle();
        }
        let now = f.clock.monotonic();
        let keep = [0, 50, 100][cut.unwrap_or(0) as usize % 3];
        let after = Fixture::over(f.disk.after_power_cut(&mut || random.chance(keep)), options());
        let rows = after.rows(table);
        assert_eq!(rows, (0..rows.len() as i64).collect::<Vec<i64>>(), "commits are lost from the end only");
        let due = committed.iter().filter(|at| **at + DELAY * 3 <= now).count();
        assert!(rows.len() >= due, "cut {cut:?}: {} of {} commits, {due} are old enough", rows.len(), committed.len());
        f.disk.syncs() - first
    };
    let syncs = run(None);
    assert!(syncs > 30, "{syncs}");
    (0..syncs).for_each(|cut| {
        run(Some(cut));
    });
}

#[test]
fn unlogged_trees_are_empty_and_usable_after_a_crash_and_whole_after_a_clean_stop() {
    for (clean, keep) in [(true, 0), (false, 0), (false, 50), (false, 100)] {
        let f = Fixture::new(options());
        let [logged, unlogged, memory] = [Persistence::Logged, Persistence::Unlogged, Persistence::Memory].map(|p| f.create(p));
        let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
        let definition = SequenceDefinition { increment: 1, min: 1, max: i64::MAX, cycle: false };
        let start = SequenceState { last_value: 1, is_called: false };
        let sequence = t.create_sequence(definition, start, Persistence::Unlogged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        let (syncs, bytes) = f.cost(|| {
            let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
            assert_eq!(t.nextval(sequence).expect("advances"), 1);
            t.commit(Durability::Sync).expect("commits");
        });
        assert_eq!((syncs, bytes), (0, 0), "an unlogged sequence");
        let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
        load(&t, unlogged, 1000);
        [logged, unlogged, memory].into_iter().for_each(|table| put(&t, table, 1));
        t.commit(Durability::Sync).expect("commits");
        f.engine.checkpoint().expect("flushes");
        // One transaction over all of them: the logged part is whole, whatever happens to the others.
        let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
        [logged, unlogged, memory].into_iter().for_each(|table| put(&t, table, 2));
        t.commit(Durability::Sync).expect("commits");
        if clean {
            f.engine.shutdown().expect("stops");
        }
        let random = SeededRandom::new(9);
        let disk = f.disk.after_power_cut(&mut || random.chance(keep));
        let folder = Arc::clone(&disk) as Arc<dyn Directory>;
        assert_eq!(Engine::verify(&folder).expect("reads").1, [] as [String; 0], "keep {keep}");
        let f = Fixture::over(disk, options());
        let mut expected: Vec<i64> = if clean { [1, 2].into_iter().chain(1000..1100).collect() } else { Vec::new() };
        assert_eq!((f.rows(logged), f.rows(memory)), (vec![1, 2], vec![]));
        assert_eq!(f.rows(unlogged), expected);
        f.insert(unlogged, 5000, Durability::Sync);
        f.insert(memory, 5000, Durability::Sync);
        expected.push(5000);
        assert_eq!((f.rows(unlogged), f.rows(memory)), (expected, vec![5000]));
        let t = f.engine.begin(Isolation::ReadCommitted).expect("begins");
        assert_eq!(t.nextval(sequence).expect("advances"), if clean { 2 } else { 1 });
    }
}

#[test]
fn rows_of_memory_tables_never_touch_the_disk() {
    let f = Fixture::new(EngineOptions { memory_bytes: 1 << 20, ..options() });
    let table = f.create(Persistence::Memory);
    f.engine.checkpoint().expect("flushes");
    f.settle();
    let before = f.disk.bytes_written();
    (0..1000).for_each(|n| f.insert(table, n, Durability::Sync));
    f.settle();
    assert_eq!(f.disk.bytes_written(), before);
    assert_eq!(f.rows(table).len(), 1000);
}
