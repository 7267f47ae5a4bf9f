//! Writers pay for the background work that they cause: a commit with changes waits a little before it returns, the longer the
//! further flushes and merges lag behind, so that no writer ever has to stop until they catch up.
//!
//! The wait comes after publication, with no lock held. How far the work lags is a number from 0 (not at all) to 1; the rate that
//! it allows falls smoothly from unlimited to none: `RATE * (1 - lag) / lag`. On any machine the lag settles where writers and
//! background work are equally fast.

use std::time::Duration;

use melba_store::{Store, Tree};
use melba_threads::atomic::Ordering;

use crate::write_set::WriteSet;

/// Bytes a second that a writer may write when the lag is one half.
const RATE: f64 = (16 << 20) as f64;
/// The lag is taken to be at most this, so that no commit waits without end.
const LAG_MAX: f64 = 0.98;
/// Shorter waits are not worth a thread's sleep.
pub(crate) const WAIT_MIN: Duration = Duration::from_micros(100);
/// The longest wait of one commit.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(50);
/// The longest wait per this number of bytes: large changes take time anyway.
pub(crate) const WAIT_MAX_FOR_BYTES: u64 = 1 << 20;
/// Runs above the bottom may take this many tenths of the bottom's bytes before writers are slowed, and never more than the second.
const ABOVE_TENTHS: (u64, u64) = (2, 6);

/// How long the writer of these changes waits when they are committed. The row store is frozen at `row_store_max` bytes.
pub(crate) fn throttle(writes: &WriteSet, store: &Store, row_store_max: u64) -> Duration {
    if writes.bytes == 0 {
        return Duration::ZERO;
    }
    let flushed = writes.trees.iter().filter(|t| !t.is_empty() && t.tree.is_flushed());
    let flush_lag = flush_lag(store.row_store_bytes(), row_store_max.max(1));
    wait_for(writes.bytes as u64, flushed.map(|t| merge_lag(&t.tree, row_store_max)).fold(flush_lag, f64::max))
}

/// Whether merges of some tree lag so far behind that writers are slowed.
pub(crate) fn merges_lag(store: &Store, row_store_max: u64) -> bool {
    store.all_trees().iter().any(|tree| merge_lag(tree, row_store_max) > 0.0)
}

/// How far flushes lag: 0 while the row store is within its size, 1 when it is twice that.
fn flush_lag(bytes: u64, limit: u64) -> f64 {
    bytes.saturating_sub(limit) as f64 / limit as f64
}

/// How far merges of a tree lag.
fn merge_lag(tree: &Tree, row_store_max: u64) -> f64 {
    let bottom = tree.bottom_bytes.load(Ordering::Relaxed);
    let above = tree.above_bytes.load(Ordering::Relaxed);
    // The size of a few flushes is no lag, however small the tree.
    let floor = 2 * row_store_max;
    let low = (bottom * ABOVE_TENTHS.0 / 10).max(floor);
    let high = (bottom * ABOVE_TENTHS.1 / 10).max(2 * floor).max(low + 1);
    above.saturating_sub(low) as f64 / (high - low) as f64
}

/// The wait after `bytes` written at a lag.
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
    use super::*;

    #[test]
    fn waits_grow_with_the_lag_and_end() {
        assert_eq!(wait_for(1 << 20, 0.0), Duration::ZERO);
        assert_eq!(wait_for(1 << 10, 0.5), Duration::from_secs(1) / (16 << 10));
        let waits: Vec<Duration> = (0..=100).map(|lag| wait_for(20_000, f64::from(lag) / 50.0)).collect();
        assert!(waits.is_sorted());
        assert_eq!(waits[100], WAIT_MAX);
        assert!(wait_for(10 << 20, 5.0) <= WAIT_MAX * 11);
    }
}
