//! The costs of statements, by identity (pg_stat_statements).
//!
//! 1. A session counts for itself; its counts are added to the server's when it ends, when they are requested, or when it has
//!    counted `LOCAL_MAX` different statements. So a statement writes no memory that other sessions write.
//! 2. A statement is known to the server before a session counts it, with its text. At most pg_stat_statements.max are known: beyond
//!    that the twentieth part that is used least is forgotten.
//! 3. The server's lock is taken before a session's.

pub mod counts;
pub mod identity;
pub mod rows;
pub mod tracking;

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

use counts::Counts;

/// Statements that a session counts before it hands over.
const LOCAL_MAX: usize = 512;
/// How much of its weight a statement keeps when some are forgotten, as PostgreSQL's USAGE_DECREASE_FACTOR.
const USAGE_KEPT: f64 = 0.99;
/// The share that is forgotten at once, in percent, and the least number.
const FORGOTTEN_PERCENT: usize = 5;
const FORGOTTEN_MIN: usize = 10;

/// The key under which executions are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub user: Oid,
    pub database: Oid,
    pub query: i64,
    pub top_level: bool,
}

/// A session's counts.
#[derive(Default)]
pub struct LocalCounts {
    by_key: Mutex<HashMap<Key, Counts>>,
}

struct Known {
    /// Without constants.
    text: Arc<str>,
    counts: Counts,
    /// Decides which statements are forgotten.
    usage: f64,
    /// Microseconds since 2000-01-01.
    since: i64,
    minmax_since: i64,
}

#[derive(Default)]
struct SharedCounts {
    known: HashMap<Key, Known>,
    sessions: Vec<Weak<LocalCounts>>,
    /// How often statements were forgotten for lack of room.
    deallocations: i64,
    /// When all were reset last; 0: at the start.
    reset: i64,
}

/// The server's statements.
#[derive(Default)]
pub struct StatementCounts {
    shared: Mutex<SharedCounts>,
}

impl SharedCounts {
    /// Adds the sessions' counts.
    fn gather(&mut self) {
        let sessions = std::mem::take(&mut self.sessions);
        for session in sessions.iter().filter_map(Weak::upgrade) {
            self.take(&session);
        }
        self.sessions = sessions;
        self.sessions.retain(|session| session.strong_count() > 0);
    }

    fn take(&mut self, session: &LocalCounts) {
        for (key, counts) in session.by_key.lock().drain() {
            // One that was forgotten meanwhile is counted from its next execution on.
            if let Some(known) = self.known.get_mut(&key) {
                known.usage += counts.execution.count as f64;
                known.counts.add(&counts);
            }
        }
    }

    /// Makes room.
    fn forget_least_used(&mut self) {
        self.gather();
        let mut by_usage: Vec<(f64, Key)> = self.known.iter().map(|(key, known)| (known.usage, *key)).collect();
        by_usage.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.known.values_mut().for_each(|known| known.usage *= USAGE_KEPT);
        let count = FORGOTTEN_MIN.max(by_usage.len() * FORGOTTEN_PERCENT / 100).min(by_usage.len());
        for (_, key) in &by_usage[..count] {
            self.known.remove(key);
        }
        self.deallocations += 1;
    }
}

impl StatementCounts {
    /// A session begins.
    pub fn join(&self) -> Arc<LocalCounts> {
        let session = Arc::default();
        self.shared.lock().sessions.push(Arc::downgrade(&session));
        session
    }

    /// A session ends.
    pub fn detach(&self, session: &Arc<LocalCounts>) {
        let mut shared = self.shared.lock();
        shared.take(session);
        shared.sessions.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(session)));
    }

    /// Counts an execution. `text` is called when the statement is not known; `max`: how many may be.
    pub fn count(&self, session: &LocalCounts, key: Key, counts: &Counts, max: usize, now: i64, text: impl FnOnce() -> String) {
        let is_full = {
            let mut by_key = session.by_key.lock();
            if let Some(own) = by_key.get_mut(&key) {
                return own.add(counts);
            }
            by_key.len() >= LOCAL_MAX
        };
        let mut shared = self.shared.lock();
        if is_full {
            shared.take(session);
        }
        if !shared.known.contains_key(&key) {
            if shared.known.len() >= max {
                shared.forget_least_used();
            }
            let known = Known { text: text().into(), counts: Counts::default(), usage: 0.0, since: now, minmax_since: now };
            shared.known.insert(key, known);
        }
        session.by_key.lock().entry(key).or_default().add(counts);
    }

    /// Counts more of an execution that the session has counted.
    pub fn count_more(&self, session: &LocalCounts, key: Key, counts: &Counts) {
        let mut by_key = session.by_key.lock();
        match by_key.get_mut(&key) {
            Some(own) => own.add(counts),
            // Another session has asked for the counts meanwhile.
            None => _ = by_key.insert(key, *counts),
        }
    }

    /// Forgets the statements that `is_meant` selects; all when `is_all`. `minmax_only`: they keep their counts except the least
    /// and greatest times.
    pub fn reset(&self, is_meant: impl Fn(&Key) -> bool, is_all: bool, minmax_only: bool, now: i64) {
        let mut shared = self.shared.lock();
        shared.gather();
        if minmax_only {
            for (_, known) in shared.known.iter_mut().filter(|(key, _)| is_meant(key)) {
                known.counts.reset_extremes();
                known.minmax_since = now;
            }
            return;
        }
        shared.known.retain(|key, _| !is_meant(key));
        if is_all {
            (shared.deallocations, shared.reset) = (0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use melba_engine::IoCounts;

    use super::*;

    fn key(query: i64) -> Key {
        Key { user: Oid(10), database: Oid(5), query, top_level: true }
    }

    fn calls(all: &StatementCounts, query: i64) -> Option<u64> {
        let mut shared = all.shared.lock();
        shared.gather();
        shared.known.get(&key(query)).map(|known| known.counts.execution.count)
    }

    fn run(all: &StatementCounts, session: &LocalCounts, query: i64) {
        all.count(session, key(query), &Counts::one(1000, 1, None, IoCounts::default()), 100, 7, || format!("statement {query}"));
    }

    #[test]
    fn sessions_are_added_up_and_outlived() {
        let all = StatementCounts::default();
        let (one, other) = (all.join(), all.join());
        run(&all, &one, 1);
        run(&all, &one, 1);
        run(&all, &other, 1);
        assert_eq!(calls(&all, 1), Some(3));
        run(&all, &other, 1);
        all.detach(&other);
        drop(other);
        assert_eq!(calls(&all, 1), Some(4));
        assert_eq!(all.shared.lock().sessions.len(), 1);
    }

    #[test]
    fn a_session_hands_over_before_it_knows_too_much() {
        let all = StatementCounts::default();
        let session = all.join();
        for query in 0..2 * LOCAL_MAX as i64 {
            all.count(&session, key(query), &Counts::one(1, 0, None, IoCounts::default()), usize::MAX, 0, String::new);
            assert!(session.by_key.lock().len() <= LOCAL_MAX);
        }
        assert_eq!(all.shared.lock().known.len(), 2 * LOCAL_MAX);
    }

    #[test]
    fn the_least_used_entry_is_evicted() {
        let all = StatementCounts::default();
        let session = all.join();
        for query in 0..100 {
            run(&all, &session, query);
            if query != 42 {
                run(&all, &session, query);
            }
        }
        run(&all, &session, 100);
        let shared = all.shared.lock();
        assert_eq!((shared.known.len(), shared.deallocations), (91, 1));
        assert!(!shared.known.contains_key(&key(42)) && shared.known.contains_key(&key(100)));
    }

    #[test]
    fn a_reset_forgets_or_only_extremes() {
        let all = StatementCounts::default();
        let session = all.join();
        run(&all, &session, 1);
        run(&all, &session, 2);
        all.reset(|key| key.query == 1, false, true, 9);
        assert_eq!(calls(&all, 1), Some(1));
        assert_eq!(all.shared.lock().known[&key(1)].minmax_since, 9);
        all.reset(|key| key.query == 1, false, false, 10);
        assert_eq!((calls(&all, 1), calls(&all, 2)), (None, Some(1)));
        all.reset(|_| true, true, false, 11);
        assert_eq!((calls(&all, 2), all.shared.lock().reset), (None, 11));
        run(&all, &session, 1);
        assert_eq!(calls(&all, 1), Some(1));
    }
}
