//! A place where one thread sleeps until others have news for it.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A one-thread parking place. A notification that comes before the wait is not lost.
#[derive(Default)]
pub(crate) struct WaitCell {
    notified: Mutex<bool>,
    wake: Condvar,
}

impl WaitCell {
    /// Wakes the sleeper, or lets its next wait return at once.
    pub fn notify(&self) {
        let mut notified = self.notified.lock();
        if !*notified {
            *notified = true;
            self.wake.notify_one();
        }
    }

    /// Sleeps until notified.
    pub fn wait(&self) {
        let mut notified = self.notified.lock();
        while !*notified {
            self.wake.wait(&mut notified);
        }
        *notified = false;
    }

    /// Sleeps until notified or for `timeout`; spurious returns are possible, callers look at their condition again.
    pub fn wait_for(&self, timeout: Duration) {
        let mut notified = self.notified.lock();
        if !*notified {
            self.wake.wait_for(&mut notified, timeout);
        }
        *notified = false;
    }
}
