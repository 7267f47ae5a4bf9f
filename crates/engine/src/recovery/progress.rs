//! The progress of recovery, for clients that wait for it.

use melba_threads::atomic::{AtomicU64, Ordering};
use melba_types::Lsn;

/// The progress of the log's replay that `Engine::open_in_server` reports.
#[derive(Debug, Default)]
pub struct RecoveryProgress {
    begin: AtomicU64,
    at: AtomicU64,
    end: AtomicU64,
}

impl RecoveryProgress {
    /// Bytes of the log that have been replayed, and how many there are at most. Both are 0 before replay begins.
    pub fn replayed(&self) -> (u64, u64) {
        let value = |position: &AtomicU64| position.load(Ordering::Relaxed);
        let begin = value(&self.begin);
        (value(&self.at).saturating_sub(begin), value(&self.end).saturating_sub(begin))
    }

    pub(crate) fn begin(&self, from: Lsn, end: Lsn) {
        self.begin.store(from.0, Ordering::Relaxed);
        self.at.store(from.0, Ordering::Relaxed);
        self.end.store(end.0, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, to: Lsn) {
        self.at.store(to.0, Ordering::Relaxed);
    }
}
