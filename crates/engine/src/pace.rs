//! Writers pay for the background work that they cause: a commit that wrote waits a little before it returns, the longer the
//! further flushes and merges lag behind, so that nothing ever has to stop and wait for them.
//!
//! The waiting comes after publication, with no lock held. How far the work lags is a number from 0 (not at all) to 1; the rate
//! that it allows falls smoothly from any rate to none: `RATE * (1 - lag) / lag`. Whatever the machine can do, the lag settles where
//! writers and background work are equally fast.
//!
//! Also here: since when there has been no commit, which is when more work is worth doing.

use std::time::Duration;

use melba_types::Csn;

use crate::engine::{BackgroundStep, Shared};
use crate::merge::Eagerness;
use crate::session::Session;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use crate::txn::WriteSet;

/// Bytes a second that a writer may write when the lag is one half.
const RATE: f64 = (16 << 20) as f64;
/// The lag is taken to be at most this, so that no commit waits without end.
const LAG_MAX: f64 = 0.98;
/// Shorter waits are not worth a thread's sleep.
const WAIT_MIN: Duration = Duration::from_micros(100);
/// The longest wait of one commit.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// The longest wait for so many bytes: what is large takes its time anyway.
pub(crate) const WAIT_MAX_FOR_BYTES: u64 = 1 << 20;
/// Runs above the bottom may take this many tenths of the bottom's bytes before writers are slowed, and never more than the second.
const ABOVE_TENTHS: (u64, u64) = (2, 6);
/// After this long without a commit, background work is done that pays less.
const IDLE_AFTER: Duration = Duration::from_secs(3);

/// When the last commit was seen, by those who look.
#[derive(Default)]
pub(crate) struct Activity(Mutex<(Csn, Duration)>);

impl Shared {
    /// Whether there has been no commit for a while.
    pub fn is_idle(&self) -> bool {
        let assigned = self.floor().assigned;
        let now = self.clock().monotonic();
        let mut seen = self.activity.0.lock();
        if seen.0 != assigned {
            *seen = (assigned, now);
        }
        now >= seen.1 + IDLE_AFTER
    }

    /// How eager merges are now.
    pub fn eagerness(&self) -> Eagerness {
        if self.is_idle() { Eagerness::Idle } else { Eagerness::Busy }
    }

    /// How far flushes lag: 0 while the row store is within its size, 1 when it is twice that.
    fn flush_lag(&self) -> f64 {
        let limit = self.options.row_store_bytes().max(1);
        let over = self.row_store_bytes.load(Ordering::Relaxed).saturating_sub(limit);
        over as f64 / limit as f64
    }

    /// How far merges of a tree lag.
    fn merge_lag(&self, tree: &Tree) -> f64 {
        let bottom = tree.bottom_bytes.load(Ordering::Relaxed);
        let above = tree.above_bytes.load(Ordering::Relaxed);
        // A few flushes' worth is no lag, however small the tree.
        let floor = 2 * self.options.row_store_bytes();
        let low = (bottom * ABOVE_TENTHS.0 / 10).max(floor);
        let high = (bottom * ABOVE_TENTHS.1 / 10).max(2 * floor).max(low + 1);
        above.saturating_sub(low) as f64 / (high - low) as f64
    }

    /// How long the writer of these changes waits when they are committed.
    pub fn wait_for(&self, writes: &WriteSet) -> Duration {
        if writes.bytes == 0 {
            return Duration::ZERO;
        }
        let flushed = writes.trees.iter().filter(|t| !t.is_empty() && t.tree.is_flushed());
        let lag = flushed.map(|t| self.merge_lag(&t.tree)).fold(self.flush_lag(), f64::max);
        wait_for(writes.bytes as u64, lag)
    }

    /// Lets a session pay before its next transaction: for a commit whose thread has others to serve. What passes until then
    /// is waiting, too.
    pub fn owe(&self, session: &Session, wait: Duration) {
        if wait >= WAIT_MIN {
            let until = self.clock().monotonic() + wait;
            session.owes_until.store(until.as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// Pays what a session owes; nothing is locked by it yet. Without threads, whoever calls the steps sees to it that they keep up.
    pub fn pay_debt(&self, session: &Session) {
        if session.owes_until.load(Ordering::Relaxed) != 0 {
            let until = Duration::from_micros(session.owes_until.swap(0, Ordering::Relaxed));
            if self.has_threads() {
                self.pay(until.saturating_sub(self.clock().monotonic()));
            }
        }
    }

    /// Lets a writer wait, or work when nobody else does.
    pub fn pay(&self, wait: Duration) {
        if wait < WAIT_MIN || self.is_poisoned() {
            return;
        }
        if self.has_threads() {
            while crate::wait::about_to_wait() {}
            std::thread::sleep(wait);
        } else if !self.run_step(BackgroundStep::Flush) {
            self.run_step(BackgroundStep::Merge);
        }
    }
}

/// The wait for so many bytes at a lag.
fn wait_for(bytes: u64, lag: f64) -> Duration {
    if lag <= 0.0 {
        return Duration::ZERO;
    }
    let lag = lag.min(LAG_MAX);
    let seconds = bytes as f64 * lag / ((1.0 - lag) * RATE);
    let most = WAIT_MAX * (bytes / WAIT_MAX_FOR_BYTES + 1).min(u64::from(u32::MAX)) as u32;
    Duration::from_secs_f64(seconds).min(most)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use melba_types::row::RowLayout;
    use melba_types::{Datum, Kind};
    use melba_vfs::{Clock, ManualClock, MemoryDirectory};

    use super::*;
    use crate::{Committing, Durability, Engine, EngineOptions, Isolation, Persistence};

    #[test]
    fn waits_grow_with_the_lag_and_end() {
        assert_eq!(wait_for(1 << 20, 0.0), Duration::ZERO);
        assert_eq!(wait_for(1 << 10, 0.5), Duration::from_secs(1) / (16 << 10));
        let waits: Vec<Duration> = (0..=100).map(|lag| wait_for(20_000, f64::from(lag) / 50.0)).collect();
        assert!(waits.is_sorted());
        assert_eq!(waits[100], WAIT_MAX);
        assert!(wait_for(10 << 20, 5.0) <= WAIT_MAX * 11);
    }

    #[test]
    fn a_commit_that_does_not_wait_itself_leaves_that_to_the_next_transaction() {
        let clock = Arc::new(ManualClock::new());
        let options = EngineOptions { memory_bytes: 60_000, ..EngineOptions::default() };
        let engine = Engine::open(options, MemoryDirectory::new(), Arc::clone(&clock) as Arc<dyn Clock>).expect("opens");
        let session = engine.session().expect("opens");
        let owed = || Duration::from_micros(session.owes_until.load(Ordering::Relaxed));
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        let tree = t.create_table_tree(&[Kind::Text], Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        let row = RowLayout::new(vec![Kind::Text]).encode_row(&[Datum::text("x".repeat(2000))]);
        for n in 0.. {
            assert!(n < 100, "the row store fills up and nobody waits");
            let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
            assert!(owed().is_zero());
            t.insert(tree, &row).expect("inserts");
            t.start_commit(Durability::Async, None).and_then(Committing::wait).expect("commits");
            if !owed().is_zero() {
                break;
            }
        }
        let wait = owed() - clock.monotonic();
        assert!(wait >= WAIT_MIN && wait <= WAIT_MAX, "{wait:?}");
    }
}
