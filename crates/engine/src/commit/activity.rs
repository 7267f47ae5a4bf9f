//! The time since the last commit: when there has been none for a while, more background work is worth doing.

use std::time::Duration;

use melba_threads::Mutex;
use melba_types::Csn;

/// After this long without a commit, background work is done that pays less.
const IDLE_AFTER: Duration = Duration::from_secs(3);

/// When the last commit was noticed.
#[derive(Default)]
pub(crate) struct Activity(Mutex<(Csn, Duration)>);

impl Activity {
    /// Whether `assigned`, the newest assigned CSN, has been that for a while.
    pub fn is_idle(&self, assigned: Csn, now: Duration) -> bool {
        let mut seen = self.0.lock();
        if seen.0 != assigned {
            *seen = (assigned, now);
        }
        now >= seen.1 + IDLE_AFTER
    }
}
