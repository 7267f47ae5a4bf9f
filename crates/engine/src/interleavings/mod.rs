//! The engine's code under a model checker for threads (shuttle, `melba_threads::checker`).
//!
//!     cargo test -p melba-engine --features shuttle,planted interleavings
//!
//! A scenario opens an engine over memory, without threads, and runs a few of the checker's threads. Each scenario checks that
//! all of them end. `melba_threads` documents the checker's assumptions. Only these tests run with the feature.

mod commits;
mod locks;
mod log_writer;
mod memory;
mod moves;
mod pace;
mod parts;
mod readers;
mod serializable;

use std::sync::Arc;

use melba_threads::checker::{check, check_finds, choose, comes, join, spawn};
use melba_threads::planted::Plant;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Clock, Directory, Faults, FaultyDirectory, ManualClock, MemoryDirectory};

use crate::*;

fn bytes(n: i64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n)])
}

fn number(row: &[u8]) -> i64 {
    RowLayout::new(vec![Kind::Int8]).view(row).expect("is whole").datum(0, &Datum::Null).as_i64()
}

/// An engine with one table of rows that are numbers, 0 at first.
struct Fixture {
    disk: Arc<MemoryDirectory>,
    faults: Arc<Faults>,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    table: TreeId,
    rows: Vec<RowId>,
}

/// Files are filled before they are used, and there are thousands of engines.
fn options() -> EngineOptions {
    EngineOptions { wal_file_bytes: 4096, ..EngineOptions::default() }
}

impl Fixture {
    fn new(rows: usize) -> Arc<Fixture> {
        Fixture::with(options(), rows)
    }

    fn with(options: EngineOptions, rows: usize) -> Arc<Fixture> {
        let (disk, faults, clock) = (MemoryDirectory::new(), Faults::new(), Arc::new(ManualClock::new()));
        let folder = FaultyDirectory::new(Arc::clone(&disk) as Arc<dyn Directory>, Arc::clone(&faults));
        let engine = Engine::open(options, folder, Arc::clone(&clock) as Arc<dyn Clock>).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
        let rows = (0..rows).map(|_| t.insert(table, &bytes(0)).expect("inserts")).collect();
        t.commit(Durability::Sync).expect("commits");
        Arc::new(Fixture { disk, faults, clock, engine, table, rows })
    }

    /// A thread as the engine starts it for one kind of background work.
    fn work(self: &Arc<Fixture>, step: BackgroundStep) -> shuttle::thread::JoinHandle<()> {
        self.engine.shared.runtime.set_threads(true);
        let f = Arc::clone(self);
        spawn(move || f.engine.shared.background.work_until_stopped(step))
    }

    /// Tells the background to stop, as the engine does.
    fn stop(&self) {
        self.engine.shared.runtime.stop();
        self.engine.shared.pipeline.log.writer.wake();
    }

    fn begin(&self) -> Arc<Transaction> {
        self.engine.begin(Isolation::ReadCommitted).expect("begins")
    }

    fn read(&self, t: &Transaction, view: ReadView, row: usize) -> i64 {
        number(&t.get(view, self.table, self.rows[row]).expect("reads").expect("is there"))
    }

    /// Locks a row, and changes the value that it has by then.
    fn change(&self, t: &Transaction, row: usize, change: impl FnOnce(i64) -> i64) -> Result<(), EngineError> {
        t.lock_row(self.table, self.rows[row], RowLockMode::ForUpdate, Wait::Block)?;
        let before = t.get_latest(self.table, self.rows[row])?.row.expect("is there");
        t.update(self.table, self.rows[row], &bytes(change(number(&before))))
    }

    /// The rows that a reopened engine finds after a power cut that loses everything not synced.
    fn after_power_cut(&self) -> Vec<i64> {
        let disk = self.disk.after_power_cut(&mut || false);
        let engine = Engine::open(options(), disk, Arc::new(ManualClock::new())).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        (0..self.rows.len())
            .map(|row| number(&t.get(view, self.table, self.rows[row]).expect("reads").expect("is there")))
            .collect()
    }
}
