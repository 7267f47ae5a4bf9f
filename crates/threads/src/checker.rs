//! Scenarios under the model checker: threads that share state without a plain lock run in thousands of orders, and any order
//! that fails can be repeated (`SHUTTLE_*`, printed with the failure).
//!
//! Each scenario checks that all its threads end: a lost wake-up is a deadlock to the checker. Outside of a scenario the
//! checker's primitives do not work.

use std::sync::Arc;

use shuttle::rand::{RngCore, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::planted::{Plant, plant, unplant};

/// How many orders of each scenario are tried, by each of two schedulers; `INTERLEAVINGS` for more.
const ORDERS: usize = 80;
/// The same ones each time, as far as they do not depend on hashes.
const SEED: u64 = 1;
/// How often the second scheduler changes its preference among threads.
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
pub fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let orders = std::env::var("INTERLEAVINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(ORDERS);
    let _alone = ONE_AT_A_TIME.lock();
    run(&(Arc::new(scenario) as Arc<dyn Fn() + Send + Sync>), orders);
}

/// That the checker finds a bug on purpose by a scenario.
pub fn check_finds(bug: Plant, scenario: impl Fn() + Send + Sync + 'static) {
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
pub fn choose<T: Copy>(choices: &[T]) -> T {
    choices[thread_rng().next_u32() as usize % choices.len()]
}

pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> shuttle::thread::JoinHandle<T> {
    shuttle::thread::spawn(body)
}

pub fn join<T>(threads: impl IntoIterator<Item = shuttle::thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("a panic ends the whole test")).collect()
}

/// Checks until a condition holds, while others run; false when it does not for as long as any of them may take.
pub fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        shuttle::thread::yield_now();
        is_so()
    })
}

/// Others have many more turns than they need meanwhile.
const LOOKS: usize = 20000;
