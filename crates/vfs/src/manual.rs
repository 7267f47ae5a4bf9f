//! Time and randomness under a test's control: the same for a seed everywhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Clock, Random};

/// A clock that moves only when it is told to. It begins at PostgreSQL's epoch.
#[derive(Default)]
pub struct ManualClock {
    micros: AtomicU64,
}

impl ManualClock {
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    pub fn advance(&self, by: Duration) {
        self.micros.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.micros.load(Ordering::SeqCst) as i64
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

/// A small generator (xorshift64*). Not for several threads at once: they would draw the same numbers.
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    /// A number below `n`, which is not 0.
    pub fn below(&self, n: usize) -> usize {
        (self.next_u64() >> 33) as usize % n
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut x = self.0.load(Ordering::Relaxed);
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.store(x, Ordering::Relaxed);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        let (a, b) = (SeededRandom::new(7), SeededRandom::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert!((0..1000).all(|_| a.below(10) < 10));
        let heads = (0..1000).filter(|_| a.chance(50)).count();
        assert!((400..600).contains(&heads), "{heads}");
    }

    #[test]
    fn the_clock_moves_when_it_is_moved() {
        let clock = ManualClock::new();
        clock.advance(Duration::from_millis(3));
        assert_eq!((clock.now_micros(), clock.monotonic()), (3000, Duration::from_millis(3)));
    }
}
