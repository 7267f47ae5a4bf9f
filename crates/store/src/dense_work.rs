//! Whether merges continue with a tree's dense values (docs/design/dense.md).
//!
//! The governor compares the bytes that a merge has saved with its time. Below a minimum rate merges leave the tree's waiting
//! values as they are, until a VACUUM measures a better rate.

use std::time::Duration;

use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};

/// Merges of less say nothing about the next one.
const JUDGED_BYTES_MIN: u64 = 1 << 20;

/// The results of merges for a tree's dense values since the start.
#[derive(Default)]
pub struct DenseWork {
    micros: AtomicU64,
    is_stopped: AtomicBool,
}

impl DenseWork {
    /// A merge has made `waiting_bytes` dense in `time`, and shrunk its inputs from `from` bytes to `to` bytes.
    pub fn note(&self, waiting_bytes: u64, from: u64, to: u64, time: Duration, gain_min: u64) {
        self.micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        if waiting_bytes >= JUDGED_BYTES_MIN && !time.is_zero() {
            let gain = from.saturating_sub(to) as f64 / time.as_secs_f64();
            self.is_stopped.store(gain < gain_min as f64, Ordering::Relaxed);
        }
    }

    /// How long merges have taken.
    pub fn time(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// Whether it does not pay.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_too_little_is_stopped_and_what_pays_goes_on() {
        let work = DenseWork::default();
        let second = Duration::from_secs(1);
        work.note(4 << 20, 5 << 20, 1 << 20, second, 1 << 20);
        assert!(!work.is_stopped());
        work.note(4 << 20, 5 << 20, (5 << 20) - 1000, second, 1 << 20);
        assert!(work.is_stopped());
        work.note(1000, 1000, 100, second, 1 << 20);
        assert!(work.is_stopped(), "too little to judge by");
        work.note(4 << 20, 5 << 20, 1 << 20, Duration::ZERO, 1 << 20);
        assert!(work.is_stopped(), "a clock that stands still says nothing");
        work.note(4 << 20, 5 << 20, 1 << 20, second, 1 << 20);
        assert!(!work.is_stopped());
        assert_eq!(work.micros.load(Ordering::Relaxed), 4_000_000);
    }
}
