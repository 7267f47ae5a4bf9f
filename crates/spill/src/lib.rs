//! Rows that do not fit: operators use this crate when they would hold more than work_mem, or than the server has left.
//!
//! Every operator that keeps rows counts them in a `Held` of its query. When that would exceed the operator's target (work_mem,
//! for hash tables times hash_mem_multiplier), or the budget of all queries, the rows go to a temporary file. If work_mem was not
//! set, an operator holds more than its target as long as half of that budget is left for others (`Resources::holds`).
//! - `Sorter` writes sorted runs and merges them,
//! - `Partitions` splits rows by the hash of a key, so that each part can be handled alone,
//! - `Store` keeps rows in their order of arrival, to be read again from any place.
//!
//! Invariants:
//! 1. All of them write `Run`s of batches in one format (`codec`), which only this module reads.
//! 2. An operator's result does not depend on whether it spilled, except for the order of rows without an ORDER BY.
//! 3. Rows that were split but fit the target after all stay in memory if the operator asks for that (`Partitions::in_memory`).
//! 4. Buffers of readers and writers are bounded by the operator's target and are not counted.

mod codec;
mod merge;
mod order;
mod packing;
mod partition;
pub mod quicksort;
mod run;
mod sorter;
mod store;

use std::sync::Arc;

use melba_engine::{Held, QueryMemory, TempFile};
use melba_fmgr::Session;
use melba_types::Result;

pub use order::{Alone, Threads};
pub use partition::Partitions;
pub use run::{Run, RunReader};
pub use sorter::{Sorted, Sorter};
pub use store::{Place, Store};

/// The most that one operator holds in memory, whatever the settings: positions in columns are 32 bits wide.
const TARGET_BYTES_MAX: usize = 1 << 30;
/// An operator that holds more than its target leaves 1/SPARE_SHARE of the budget of all queries to others.
const SPARE_SHARE: u64 = 2;
/// An operator gets at least this much: the size of a few batches.
const TARGET_BYTES_MIN: usize = 64 << 10;

/// The resources that a statement's operators may use.
pub struct Resources {
    memory: Arc<QueryMemory>,
    session: Arc<melba_engine::EngineSession>,
    temp_limit: Option<u64>,
    /// As `Limit` has it.
    spare: Option<u64>,
    /// Target of sorts and materialised rows.
    pub work_bytes: usize,
    /// Target of hash tables.
    pub hash_bytes: usize,
}

/// How much an operator may hold in memory.
#[derive(Clone, Copy)]
struct Limit {
    target: usize,
    /// The part of the budget that must be left for an operator to hold more than its target; `None`: it never does.
    spare: Option<u64>,
}

impl Limit {
    /// Whether an account may hold `bytes` of `all` that the operator's accounts hold; if so, it then holds them.
    fn holds(self, held: &mut Held, bytes: usize, all: usize) -> bool {
        match self.spare {
            _ if all <= self.target => held.try_set(bytes),
            Some(spare) if all <= TARGET_BYTES_MAX => held.try_set_sparing(bytes, spare),
            _ => false,
        }
    }
}

impl Resources {
    /// By the session's settings as they are now.
    pub fn new(session: &dyn Session, engine: &Arc<melba_engine::EngineSession>) -> Resources {
        let number = |name: &str| session.setting_number(name);
        let work = number("work_mem").unwrap_or(4096.0) * 1024.0;
        let hash = work * number("hash_mem_multiplier").unwrap_or(2.0);
        let target = |bytes: f64| (bytes as usize).clamp(TARGET_BYTES_MIN, TARGET_BYTES_MAX);
        let limit = number("temp_file_limit").filter(|kilobytes| *kilobytes >= 0.0);
        let memory = engine.query_memory();
        let is_given = session.setting_is_given("work_mem") || session.setting_is_given("hash_mem_multiplier");
        Resources {
            spare: (!is_given).then(|| memory.limit() / SPARE_SHARE),
            memory,
            session: Arc::clone(engine),
            temp_limit: limit.map(|kilobytes| (kilobytes as u64) << 10),
            work_bytes: target(work),
            hash_bytes: target(hash),
        }
    }

    /// An account for an operator's rows.
    pub fn held(&self) -> Held {
        Held::new(&self.memory)
    }

    /// Whether an operator with this target may hold `bytes`; if so, it then holds them.
    #[must_use]
    pub fn holds(&self, held: &mut Held, bytes: usize, target: usize) -> bool {
        self.holds_part(held, bytes, bytes, target)
    }

    /// The same where several accounts are one operator's, which holds `all`.
    #[must_use]
    pub fn holds_part(&self, held: &mut Held, bytes: usize, all: usize, target: usize) -> bool {
        self.limit(target).holds(held, bytes, all)
    }

    fn limit(&self, target: usize) -> Limit {
        Limit { target, spare: self.spare }
    }

    pub fn file(&self) -> Result<Arc<TempFile>> {
        Ok(Arc::new(self.session.temp_file(self.temp_limit)?))
    }
}

/// Raw bytes of a block of a run, for an operator with this target: a merge holds one of each run.
fn block_bytes(target: usize) -> usize {
    (target / 64).clamp(4 << 10, 256 << 10)
}
