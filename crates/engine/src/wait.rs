//! A place where one thread sleeps until others have news for it.

use std::cell::Cell;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};

thread_local! {
    static BEFORE_WAIT: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
    static BEFORE_THREAD: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Sets what this thread does before it waits for longer than a mutex is held, and before it starts another thread.
///
/// A scheduler that serves several sessions by one thread gives its other sessions away before the thread waits; true: it did
/// something that the thread may have been about to wait for. One that binds its threads to processors looses this one before
/// another inherits that.
pub fn set_thread_hooks(before_wait: fn() -> bool, before_thread: fn()) {
    BEFORE_WAIT.set(Some(before_wait));
    BEFORE_THREAD.set(Some(before_thread));
}

/// To be called before waiting for another transaction, the disk, the client or a clock, with no locks held that the hook
/// could want. True: look again before you wait.
pub fn about_to_wait() -> bool {
    BEFORE_WAIT.get().is_some_and(|hook| hook())
}

/// To be called before starting a thread.
pub fn about_to_start_thread() {
    if let Some(hook) = BEFORE_THREAD.get() {
        hook();
    }
}

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

    fn is_notified(&self) -> bool {
        *self.notified.lock()
    }

    /// Sleeps until notified.
    pub fn wait(&self) {
        while !self.is_notified() && about_to_wait() {}
        let mut notified = self.notified.lock();
        while !*notified {
            self.wake.wait(&mut notified);
        }
        *notified = false;
    }

    /// Sleeps until notified or for `timeout`; spurious returns are possible, callers look at their condition again.
    pub fn wait_for(&self, timeout: Duration) {
        while !self.is_notified() && about_to_wait() {}
        let mut notified = self.notified.lock();
        if !*notified {
            self.wake.wait_for(&mut notified, timeout);
        }
        *notified = false;
    }
}
