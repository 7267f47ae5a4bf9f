//! Calls of functions and the time that they take (track_functions, pg_stat_user_functions).
//!
//! 1. A session counts for itself; its counts are added to the server's when its transaction ends, by a rollback too. So a call
//!    writes no memory that other sessions write.
//! 2. A function has counts as long as the committed catalog has the function: nobody has to remove those of one that is dropped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use melba_catalog::ClusterCatalog;
use melba_types::{Oid, RarelyUsed};
use parking_lot::Mutex;

/// The functions that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    None,
    /// Those in procedural languages.
    Procedural,
    All,
}

impl Tracked {
    /// The value of track_functions.
    pub fn of(setting: &str) -> Tracked {
        match setting {
            "pl" => Tracked::Procedural,
            "all" => Tracked::All,
            _ => Tracked::None,
        }
    }
}

/// Calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallCounts {
    pub calls: u64,
    /// With the functions that it calls.
    pub total: Duration,
    /// Without them.
    pub own: Duration,
}

impl CallCounts {
    fn add(&mut self, other: CallCounts) {
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
    }
}

/// A session's counts since its last transaction ended.
#[derive(Default)]
pub struct LocalCalls {
    counted: RarelyUsed<Counted>,
    tracked: KnownSetting,
}

#[derive(Default)]
struct Counted {
    by_function: HashMap<Oid, CallCounts>,
    /// Time that counted calls have taken, those within others once.
    elapsed: Duration,
    /// Of transactions that have ended.
    transactions: u64,
}

/// The setting as it is in a version of the settings, which is shifted by `SETTING_BITS`.
struct KnownSetting(AtomicU64);

const SETTING_BITS: u32 = 2;
const SETTING_MASK: u64 = (1 << SETTING_BITS) - 1;

impl Default for KnownSetting {
    fn default() -> KnownSetting {
        KnownSetting(AtomicU64::new(u64::MAX))
    }
}

/// A call that runs.
pub struct RunningCall {
    function: Oid,
    start: Duration,
    /// `Counted`'s at its start.
    elapsed: Duration,
    transactions: u64,
    /// The function's total at its start: the time of a call within itself counts once.
    total: Duration,
}

impl LocalCalls {
    /// What is counted; `read` is called when the settings' version is not the one of the last call.
    pub fn tracked(&self, settings_version: u64, read: impl FnOnce() -> Tracked) -> Tracked {
        let version = settings_version << SETTING_BITS;
        let known = self.tracked.0.load(Ordering::Relaxed);
        match (known & !SETTING_MASK == version, known & SETTING_MASK) {
            (true, 0) => Tracked::None,
            (true, 1) => Tracked::Procedural,
            (true, _) => Tracked::All,
            (false, _) => {
                let tracked = read();
                self.tracked.0.store(version | tracked as u64, Ordering::Relaxed);
                tracked
            }
        }
    }

    /// A call begins. Times are those of a clock.
    pub fn begin(&self, function: Oid, now: Duration) -> RunningCall {
        let mut counted = self.counted.lock();
        let total = counted.by_function.entry(function).or_default().total;
        RunningCall { function, start: now, elapsed: counted.elapsed, transactions: counted.transactions, total }
    }

    /// The call, or a part of it, has ended.
    pub fn end(&self, call: &RunningCall, now: Duration, is_whole: bool) {
        let time = now.saturating_sub(call.start);
        let mut counted = self.counted.lock();
        let of_others = counted.elapsed.saturating_sub(call.elapsed);
        counted.elapsed = call.elapsed + time;
        let is_same_transaction = counted.transactions == call.transactions;
        let counts = counted.by_function.entry(call.function).or_default();
        counts.calls += u64::from(is_whole);
        // A procedure may have ended the transaction in which it was called.
        counts.total = if is_same_transaction { call.total } else { counts.total } + time;
        counts.own += time.saturating_sub(of_others);
    }

    /// A call ended without taking more time.
    pub fn count(&self, function: Oid) {
        self.counted.lock().by_function.entry(function).or_default().calls += 1;
    }

    /// Those of a function in the open transaction.
    pub fn of_function(&self, function: Oid) -> Option<CallCounts> {
        self.counted.used()?.by_function.get(&function).copied()
    }
}

/// The server's counts.
#[derive(Default)]
pub struct FunctionCounts(Mutex<SharedCalls>);

#[derive(Default)]
struct SharedCalls {
    /// By database and function.
    by_function: HashMap<(Oid, Oid), CallCounts>,
    /// How many functions there may be before those that no longer exist are removed.
    room: usize,
}

/// The least `SharedCalls::room`.
const ROOM_MIN: usize = 256;

impl FunctionCounts {
    /// A transaction of a session in the database has ended: its counts become the server's.
    pub fn gather(&self, session: &LocalCalls, database: Oid, catalogs: impl FnOnce() -> std::sync::Arc<ClusterCatalog>) {
        let Some(mut counted) = session.counted.used() else { return };
        if counted.by_function.is_empty() {
            return;
        }
        counted.transactions += 1;
        let catalogs = catalogs();
        let exists = |(database, function): &(Oid, Oid)| {
            catalogs.database(*database).is_some_and(|catalog| catalog.function(*function).is_some())
        };
        let mut shared = self.0.lock();
        for (function, counts) in counted.by_function.drain().filter(|(function, _)| exists(&(database, *function))) {
            shared.by_function.entry((database, function)).or_default().add(counts);
        }
        if shared.by_function.len() > shared.room.max(ROOM_MIN) {
            shared.by_function.retain(|key, _| exists(key));
            shared.room = 2 * shared.by_function.len();
        }
    }

    /// Those of a function of a database.
    pub fn of_function(&self, database: Oid, function: Oid) -> Option<CallCounts> {
        self.0.lock().by_function.get(&(database, function)).copied()
    }

    /// Those of all functions of a database.
    pub fn of_database(&self, database: Oid) -> HashMap<Oid, CallCounts> {
        let shared = self.0.lock();
        let own = shared.by_function.iter().filter(|(key, _)| key.0 == database);
        own.map(|(key, counts)| (key.1, *counts)).collect()
    }

    /// Sets the counts of a function of a database to 0; of all its functions without one.
    pub fn reset(&self, database: Oid, function: Option<Oid>) {
        let mut shared = self.0.lock();
        let meant = shared.by_function.iter_mut().filter(|(key, _)| key.0 == database && function.is_none_or(|f| f == key.1));
        meant.for_each(|(_, counts)| *counts = CallCounts::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn own_time_is_without_callees_and_recursion_counts_once() {
        let (local, outer, inner) = (LocalCalls::default(), Oid(1), Oid(2));
        // outer 0..100 calls inner 10..30 and itself 40..90, which calls inner 50..60.
        let first = local.begin(outer, at(0));
        let one = local.begin(inner, at(10));
        local.end(&one, at(30), true);
        let second = local.begin(outer, at(40));
        let two = local.begin(inner, at(50));
        local.end(&two, at(60), true);
        local.end(&second, at(90), true);
        local.end(&first, at(100), true);
        assert_eq!(local.of_function(outer), Some(CallCounts { calls: 2, total: at(100), own: at(70) }));
        assert_eq!(local.of_function(inner), Some(CallCounts { calls: 2, total: at(30), own: at(30) }));
    }

    #[test]
    fn a_failed_call_takes_no_time_from_the_next() {
        let local = LocalCalls::default();
        local.begin(Oid(1), at(0));
        let next = local.begin(Oid(2), at(50));
        local.end(&next, at(60), true);
        assert_eq!(local.of_function(Oid(1)), Some(CallCounts::default()));
        assert_eq!(local.of_function(Oid(2)), Some(CallCounts { calls: 1, total: at(10), own: at(10) }));
    }

    #[test]
    fn the_setting_is_read_once_for_each_version() {
        let local = LocalCalls::default();
        assert_eq!(local.tracked(0, || Tracked::All), Tracked::All);
        assert_eq!(local.tracked(0, || Tracked::None), Tracked::All);
        assert_eq!(local.tracked(1, || Tracked::Procedural), Tracked::Procedural);
        assert_eq!(local.tracked(1, || Tracked::None), Tracked::Procedural);
        assert_eq!(local.tracked(2, || Tracked::None), Tracked::None);
    }
}
