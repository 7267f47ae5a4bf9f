//! Space and memory are freed in the background.

use std::sync::Arc;
use std::time::Duration;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Clock, Directory, ManualClock, MemoryDirectory, OsClock, SeededRandom};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>, memory_bytes: u64) -> Arc<Engine> {
    let options = EngineOptions { memory_bytes, wal_file_bytes: 16 << 10, segment_bytes: 50_000, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens")
}

fn create(engine: &Engine, persistence: Persistence) -> TreeId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Text], persistence).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    tree
}

/// A row that does not compress.
fn row(random: &SeededRandom) -> Vec<u8> {
    let text: String = (0..200).map(|_| (b'!' + random.below(90) as u8) as char).collect();
    RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text(text)])
}

fn segment_bytes(directory: &MemoryDirectory) -> u64 {
    let folder = directory.subdirectory("segments").expect("there");
    let names = folder.list().expect("lists");
    names.iter().map(|n| folder.open(n).and_then(|f| f.len()).expect("there")).sum()
}

/// Bytes of the segments and the log.
fn disk_bytes(directory: &MemoryDirectory) -> u64 {
    let folder = directory.subdirectory("wal").expect("there");
    let names = folder.list().expect("lists");
    segment_bytes(directory) + names.iter().map(|n| folder.open(n).and_then(|f| f.len()).expect("there")).sum::<u64>()
}

struct Updates {
    directory: Arc<MemoryDirectory>,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    tree: TreeId,
    random: SeededRandom,
    /// Bytes of all files once the rows were loaded and everything had settled.
    live: u64,
    /// The most that the files have taken, in percent of `live`.
    most_percent: u64,
}

const ROWS: u64 = 2000;

impl Updates {
    fn new() -> Updates {
        let (directory, clock) = (MemoryDirectory::new(), Arc::new(ManualClock::new()));
        let options =
            EngineOptions { memory_bytes: 300_000, wal_file_bytes: 16 << 10, segment_bytes: 80_000, ..EngineOptions::default() };
        let engine = Engine::open(options, Arc::clone(&directory) as Arc<dyn Directory>, Arc::clone(&clock) as Arc<dyn Clock>);
        let engine = engine.expect("opens");
        let tree = create(&engine, Persistence::Logged);
        let mut updates = Updates { directory, clock, engine, tree, random: SeededRandom::new(1), live: 0, most_percent: 0 };
        for _ in 0..ROWS / 50 {
            updates.commit(0..50, |t, _, random| assert!(t.insert(tree, &row(random)).is_ok()));
        }
        updates.settle();
        updates.live = disk_bytes(&updates.directory);
        assert!(updates.live >= ROWS * 200 && updates.live < ROWS * 260, "{}", updates.live);
        updates
    }

    fn note(&mut self) {
        self.most_percent = self.most_percent.max(self.percent());
    }

    /// All background work there is when nothing has happened for a while.
    fn settle(&mut self) {
        for _ in 0..2 {
            while self.engine.run_once() {
                self.note();
            }
            self.clock.advance(Duration::from_secs(10));
        }
    }

    /// Commits changes of some rows, and does one step of background work of each kind, no more.
    fn commit(&mut self, rows: impl Iterator<Item = u64>, change: impl Fn(&Transaction, RowId, &SeededRandom)) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        rows.for_each(|id| change(&t, RowId(id), &self.random));
        t.commit(Durability::Async).expect("commits");
        self.note();
        for step in [BackgroundStep::Log, BackgroundStep::Flush, BackgroundStep::Merge] {
            self.engine.run_step(step);
            self.note();
        }
    }

    fn percent(&self) -> u64 {
        // Nothing is live yet while rows are loaded.
        (disk_bytes(&self.directory) * 100).checked_div(self.live).unwrap_or(0)
    }
}

#[test]
fn updates_of_every_row_stay_within_the_bar_and_give_their_space_back() {
    for in_order in [true, false] {
        let mut updates = Updates::new();
        let tree = updates.tree;
        for round in 0..20 {
            for batch in 0..ROWS / 50 {
                // Every row once per round: in order, or spread.
                let id = |i: u64| if in_order { batch * 50 + i } else { (batch + i * (ROWS / 50) + round) % ROWS };
                updates.commit((0..50).map(|i| id(i) + 1), |t, id, random| t.update(tree, id, &row(random)).expect("updates"));
            }
        }
        assert!(updates.most_percent < 250, "in order {in_order}: {} %", updates.most_percent);
        updates.settle();
        assert!(updates.percent() < 130, "in order {in_order}: {} %", updates.percent());
        for batch in 0..ROWS / 50 {
            updates.commit((0..50).map(|i| batch * 50 + i + 1), |t, id, _| t.delete(tree, id).expect("deletes"));
        }
        updates.settle();
        let left = segment_bytes(&updates.directory);
        assert!(left < ROWS * 200 / 20, "in order {in_order}: {left}");
        let folder: Arc<dyn Directory> = Arc::clone(&updates.directory) as Arc<dyn Directory>;
        assert_eq!(Engine::verify(&folder).expect("reads").1, [] as [String; 0]);
    }
}

#[test]
fn an_old_snapshot_holds_its_visible_versions_only() {
    let mut updates = Updates::new();
    let tree = updates.tree;
    let old = updates.engine.begin(Isolation::RepeatableRead).expect("begins");
    let view = old.statement_view();
    let read = |old: &Arc<Transaction>| {
        let mut scan = old.scan(view, tree, &[0], &[], &[], None).expect("opens");
        let mut rows = std::collections::BTreeMap::new();
        while let Some(batch) = scan.next().expect("scans") {
            rows.extend(batch.row_ids.iter().enumerate().map(|(i, id)| (*id, format!("{:?}", batch.columns[0].get(i)))));
        }
        rows
    };
    let before = read(&old);
    for _ in 0..5 {
        for batch in 0..ROWS / 50 {
            updates
                .commit((0..50).map(|i| batch * 50 + i + 1), |t, id, random| t.update(tree, id, &row(random)).expect("updates"));
        }
    }
    updates.settle();
    assert!(updates.percent() < 240, "{} %: each row twice", updates.percent());
    assert_eq!(read(&old), before);
    old.rollback();
    drop(old);
    updates.settle();
    assert!(updates.percent() < 130, "{} %", updates.percent());
}

#[test]
fn rows_that_are_never_updated_are_not_rewritten_for_nothing() {
    let mut updates = Updates::new();
    let tree = updates.tree;
    let written = updates.directory.bytes_written();
    // New rows at the end, deletions of a few old ones here and there, as a tree of large values has them.
    for batch in 0..100 {
        updates.commit((0..20).map(|i| i * 97 + batch), |t, id, random| {
            t.insert(tree, &row(random)).expect("inserts");
            if id.0.is_multiple_of(60) {
                t.delete(tree, RowId(id.0 % ROWS + 1)).expect("deletes");
            }
        });
    }
    updates.settle();
    let written = updates.directory.bytes_written() - written;
    let inserted = 100 * 20 * 200;
    // New rows are written to the log and a segment; and all rows, once, from small segments to larger ones. Each flush would
    // rewrite the table otherwise.
    assert!(written < (inserted + updates.live) * 3, "{written} bytes for {inserted} beside {}", updates.live);
}

#[test]
fn a_queue_in_memory_stays_as_small_as_its_content() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 64 << 20);
    let tree = create(&engine, Persistence::Memory);
    let random = SeededRandom::new(2);
    let mut ids = std::collections::VecDeque::new();
    for _ in 0..5000 {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        ids.push_back(t.insert(tree, &row(&random)).expect("inserts"));
        if ids.len() > 10 {
            t.delete(tree, ids.pop_front().expect("not empty")).expect("deletes");
        }
        t.commit(Durability::Sync).expect("commits");
    }
    assert!(engine.tree_bytes(tree) < 50_000, "{}", engine.tree_bytes(tree));
    assert_eq!(engine.tree_rows_estimate(tree), 10);
}

#[test]
fn memory_tables_have_a_limit_and_deletions_make_room() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 200_000);
    let tree = create(&engine, Persistence::Memory);
    let random = SeededRandom::new(3);
    let fill = || {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let ids = (0..100).map(|_| t.insert(tree, &row(&random))).collect::<Result<Vec<RowId>>>()?;
        t.commit(Durability::Sync).map(|_| ids)
    };
    let mut all = Vec::new();
    let refused = loop {
        match fill() {
            Ok(ids) => all.extend(ids),
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, EngineError::OutOfMemory { .. }) && all.len() >= 100);
    // Rows that grow count too, also of one transaction alone.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let grown = RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text("x".repeat(100_000))]);
    assert!(matches!(t.update(tree, all[0], &grown), Err(EngineError::OutOfMemory { .. })));
    t.rollback();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    all.iter().for_each(|id| t.delete(tree, *id).expect("deletes"));
    t.commit(Durability::Sync).expect("deleting is always possible");
    fill().expect("there is room again");
}

#[test]
fn versions_that_nobody_sees_do_not_fill_memory_tables() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 200_000);
    let tree = create(&engine, Persistence::Memory);
    let random = SeededRandom::new(3);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let ids = (0..150).map(|_| t.insert(tree, &row(&random))).collect::<Result<Vec<RowId>>>().expect("there is room");
    t.commit(Durability::Sync).expect("commits");
    let update = || {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        ids.iter().try_for_each(|id| t.update(tree, *id, &row(&random)))?;
        t.commit(Durability::Sync)
    };
    let reader = engine.begin(Isolation::RepeatableRead).expect("begins");
    let view = reader.statement_view();
    let before = reader.get(view, tree, ids[0]).expect("reads");
    let refused = (0..100).find_map(|_| update().err());
    assert!(matches!(refused, Some(EngineError::OutOfMemory { .. })), "the reader keeps all versions that it may need");
    assert_eq!(reader.get(view, tree, ids[0]).expect("reads"), before);
    drop(reader);
    for _ in 0..100 {
        update().expect("there is room for two versions of each row");
    }
}
