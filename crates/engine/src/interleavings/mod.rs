//! The engine's own code under a model checker for threads (shuttle): what threads share without a plain lock, in thousands of
//! orders, and any order that fails can be repeated (`SHUTTLE_*`, printed with the failure).
//!
//!     cargo test -p melba-engine --features shuttle,planted interleavings
//!
//! A scenario opens an engine over memory, without threads of its own, and runs a few of the checker's. That all of them end is part
//! of each: a lost wake-up is a deadlock to the checker. What it takes as given is in `sync`. Only these tests run with the feature:
//! outside of the checker its primitives do not work.

mod commits;
mod locks;
mod parts;
mod readers;
mod serializable;

use std::sync::Arc;

use melba_store::planted::{Plant, plant, unplant};
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, Faults, FaultyDirectory, ManualClock, MemoryDirectory};
use shuttle::rand::{RngCore, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::*;

/// How many orders of each scenario are tried, by each of two schedulers; `INTERLEAVINGS` for more.
const ORDERS: usize = 80;
/// The same ones each time, as far as they do not depend on hashes.
const SEED: u64 = 1;
/// The second one changes its mind about who goes first so many times.
const CHANGES: usize = 4;
/// Opening an engine takes more than the checker's default.
const STACK_BYTES: usize = 1 << 19;

/// A planted bug is one of the whole process.
static ONE_AT_A_TIME: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

fn run(scenario: &Arc<dyn Fn() + Send + Sync>, orders: usize) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.silence_warnings = true;
    let (random, changing) = (Arc::clone(scenario), Arc::clone(scenario));
    Runner::new(RandomScheduler::new_from_seed(SEED, orders), config.clone()).run(move || random());
    Runner::new(PctScheduler::new_from_seed(SEED, CHANGES, orders), config).run(move || changing());
}

/// Runs a scenario in many orders.
fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let orders = std::env::var("INTERLEAVINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(ORDERS);
    let _alone = ONE_AT_A_TIME.lock();
    run(&(Arc::new(scenario) as Arc<dyn Fn() + Send + Sync>), orders);
}

/// That the checker finds a bug on purpose by a scenario.
fn check_finds(bug: Plant, scenario: impl Fn() + Send + Sync + 'static) {
    if !cfg!(feature = "planted") {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    plant(bug);
    let scenario = Arc::new(scenario) as Arc<dyn Fn() + Send + Sync>;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&scenario, 100 * ORDERS)));
    unplant();
    assert!(found.is_err(), "{bug:?} was not found");
}

/// One of several, as the checker wants it.
fn choose<T: Copy>(choices: &[T]) -> T {
    choices[thread_rng().next_u32() as usize % choices.len()]
}

fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> shuttle::thread::JoinHandle<T> {
    shuttle::thread::spawn(body)
}

fn join<T>(threads: impl IntoIterator<Item = shuttle::thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("a panic ends the whole test")).collect()
}

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
    engine: Arc<Engine>,
    table: TreeId,
    rows: Vec<RowId>,
}

fn open(directory: Arc<dyn Directory>) -> Arc<Engine> {
    // Files are filled before they are used, and there are thousands of engines.
    let options = EngineOptions { wal_file_bytes: 4096, ..EngineOptions::default() };
    Engine::open(options, directory, Arc::new(ManualClock::new())).expect("opens")
}

impl Fixture {
    fn new(rows: usize) -> Arc<Fixture> {
        let (disk, faults) = (MemoryDirectory::new(), Faults::new());
        let folder = FaultyDirectory::new(Arc::clone(&disk) as Arc<dyn Directory>, Arc::clone(&faults));
        let engine = open(folder);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
        let rows = (0..rows).map(|_| t.insert(table, &bytes(0)).expect("inserts")).collect();
        t.commit(Durability::Sync).expect("commits");
        Arc::new(Fixture { disk, faults, engine, table, rows })
    }

    fn begin(&self) -> Arc<Transaction> {
        self.engine.begin(Isolation::ReadCommitted).expect("begins")
    }

    fn read(&self, t: &Transaction, view: ReadView, row: usize) -> i64 {
        number(&t.get(view, self.table, self.rows[row]).expect("reads").expect("is there"))
    }

    /// Locks a row, and changes what it says by then.
    fn change(&self, t: &Transaction, row: usize, change: impl FnOnce(i64) -> i64) -> Result<(), EngineError> {
        t.lock_row(self.table, self.rows[row], RowLockMode::ForUpdate, Wait::Block)?;
        let before = t.get_latest(self.table, self.rows[row])?.row.expect("is there");
        t.update(self.table, self.rows[row], &bytes(change(number(&before))))
    }

    /// What a new life of the engine finds after a power cut that takes all that was not synced.
    fn after_power_cut(&self) -> Vec<i64> {
        let engine = open(self.disk.after_power_cut(&mut || false));
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        (0..self.rows.len())
            .map(|row| number(&t.get(view, self.table, self.rows[row]).expect("reads").expect("is there")))
            .collect()
    }
}
