//! Places where threads sleep until others have news for them.

use std::time::Duration;

use crate::Scheduler;
use crate::sync::{Condvar, Mutex};

/// A parking place for one thread. A notification that comes before the wait is not lost.
#[derive(Default)]
pub struct WaitCell {
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

    fn is_notified(&self) -> bool {
        *self.notified.lock()
    }

    /// Sleeps until notified.
    pub fn wait(&self, scheduler: &dyn Scheduler) {
        while !self.is_notified() && scheduler.before_wait() {}
        let mut notified = self.notified.lock();
        while !*notified {
            self.wake.wait(&mut notified);
        }
        *notified = false;
    }

    /// Sleeps until notified or for `timeout`; spurious returns are possible, callers check their condition again.
    pub fn wait_for(&self, scheduler: &dyn Scheduler, timeout: Duration) {
        while !self.is_notified() && scheduler.before_wait() {}
        let mut notified = self.notified.lock();
        if !*notified {
            self.wake.wait_for(&mut notified, timeout);
        }
        *notified = false;
    }
}

/// Where any number of threads sleep for a while, or until a change for all of them.
#[derive(Default)]
pub struct WaitQueue {
    lock: Mutex<()>,
    changed: Condvar,
}

impl WaitQueue {
    /// Wakes all sleeping threads. A thread that checked the condition before and sleeps afterwards is not woken: waits have a timeout.
    pub fn notify_all(&self) {
        self.changed.notify_all();
    }

    /// Sleeps until notified or for `timeout`; callers check their condition again.
    pub fn wait_for(&self, scheduler: &dyn Scheduler, timeout: Duration) {
        while scheduler.before_wait() {}
        let mut guard = self.lock.lock();
        self.changed.wait_for(&mut guard, timeout);
    }
}
