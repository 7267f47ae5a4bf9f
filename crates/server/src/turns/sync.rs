//! The primitives by which the turns' threads share state: parking_lot's, in unit tests those of a model checker for threads (shuttle).
//!
//! Nothing in `turns` may use others: the checker sees, and orders, only the steps of these.

#[cfg(not(test))]
pub(crate) use std::sync::atomic;

#[cfg(test)]
pub(crate) use shuttle::sync::atomic;

#[cfg(not(test))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(test)]
pub(crate) use checked::{Mutex, MutexGuard};

use std::time::Duration;

/// A condition variable whose waits take the guard and return it.
pub(crate) struct Condvar {
    #[cfg(not(test))]
    inner: parking_lot::Condvar,
    #[cfg(test)]
    inner: shuttle::sync::Condvar,
}

impl Condvar {
    pub fn new() -> Condvar {
        Condvar { inner: Default::default() }
    }

    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    #[cfg(test)]
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }

    /// Waits for a notification; true: none came for that long.
    #[cfg(not(test))]
    pub fn wait_for<'a, T>(&self, mut guard: MutexGuard<'a, T>, time: Duration) -> (MutexGuard<'a, T>, bool) {
        let timed_out = self.inner.wait_for(&mut guard, time).timed_out();
        (guard, timed_out)
    }

    /// Waits for a notification. The checker's time does not advance.
    #[cfg(test)]
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, _: Duration) -> (MutexGuard<'a, T>, bool) {
        (self.wait(guard), false)
    }

    /// Waits for a notification, or for `time`, which is finite for the checker too; true: none came in that time.
    #[cfg(not(test))]
    pub fn wait_briefly<'a, T>(&self, _: &'a Mutex<T>, guard: MutexGuard<'a, T>, time: Duration) -> (MutexGuard<'a, T>, bool) {
        self.wait_for(guard, time)
    }

    /// Waits while others do as much as the checker lets them; it chooses whether the time has passed.
    #[cfg(test)]
    pub fn wait_briefly<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>, _: Duration) -> (MutexGuard<'a, T>, bool) {
        drop(guard);
        shuttle::thread::yield_now();
        (mutex.lock(), super::model::random(2) == 0)
    }

    /// Waits for a notification.
    #[cfg(not(test))]
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.inner.wait(&mut guard);
        guard
    }

    #[cfg(test)]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.inner.wait(guard).expect("a panic ends the whole test")
    }
}

#[cfg(test)]
mod checked {
    pub(crate) use shuttle::sync::MutexGuard;

    #[derive(Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a panic ends the whole test")
        }
    }
}
