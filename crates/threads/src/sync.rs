//! parking_lot's locks, arc-swap, and the standard library's atomic numbers. With the feature `shuttle` these are a model
//! checker's, which chooses at each of them the thread that continues (`interleavings` of the crates above).
//!
//! The engine, its locks and store, the log and the block cache share state only by these. The files below use others: to the
//! checker each of their calls is one step.

#[cfg(not(feature = "shuttle"))]
pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};
#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::Condvar;
#[cfg(not(feature = "shuttle"))]
pub use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic;

#[cfg(feature = "shuttle")]
pub(crate) use checked::Condvar;
#[cfg(feature = "shuttle")]
pub use checked::{ArcSwap, ArcSwapOption, Guard, Mutex, MutexGuard, RwLock};
#[cfg(feature = "shuttle")]
pub use shuttle::sync::atomic;

/// Sleeps; under the checker that lets other threads run.
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::thread::sleep;

/// Sleeps; under the checker that lets other threads run.
#[cfg(feature = "shuttle")]
pub(crate) fn sleep(_: std::time::Duration) {
    shuttle::thread::yield_now();
}

/// `production`, or, where the checker runs thousands of engines or caches, `checked`.
pub const fn sized(production: usize, checked: usize) -> usize {
    if cfg!(feature = "shuttle") { checked } else { production }
}

/// The checker's primitives in the form of those that they stand for.
#[cfg(feature = "shuttle")]
mod checked {
    use std::ops::{Deref, DerefMut};
    use std::sync::Arc;
    use std::time::Duration;

    use shuttle::sync;

    /// A wait of this length is a wait for a notification.
    const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

    const POISONED: &str = "a panic ends the whole test";

    #[derive(Default)]
    pub struct Mutex<T>(sync::Mutex<T>);

    /// With its mutex. It is empty only within `Condvar::wait`.
    pub struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>, &'a sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Mutex<T> {
            Mutex(sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect(POISONED)), &self.0)
        }

        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard), &self.0))
        }

        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect(POISONED)
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("nobody waits with it")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("nobody waits with it")
        }
    }

    #[derive(Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            guard.0 = guard.0.take().map(|g| self.0.wait(g).expect(POISONED));
        }

        /// The time passes while others do as much as the checker lets them; a time as long as `NEVER` does not.
        pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) {
            if time >= NEVER {
                return self.wait(guard);
            }
            guard.0 = None;
            shuttle::thread::yield_now();
            guard.0 = Some(guard.1.lock().expect(POISONED));
        }
    }

    #[derive(Default)]
    pub struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub fn new(value: T) -> RwLock<T> {
            RwLock(sync::RwLock::new(value))
        }

        pub fn read(&self) -> sync::RwLockReadGuard<'_, T> {
            self.0.read().expect(POISONED)
        }

        pub fn write(&self) -> sync::RwLockWriteGuard<'_, T> {
            self.0.write().expect(POISONED)
        }
    }

    /// arc-swap's guarantee: a load returns the whole value that was stored last.
    #[derive(Default)]
    pub struct ArcSwap<T>(Mutex<Arc<T>>);

    /// The same, of a value that may be missing.
    pub struct ArcSwapOption<T>(Mutex<Option<Arc<T>>>);

    pub struct Guard<T>(T);

    impl<T> ArcSwap<T> {
        pub fn new(value: Arc<T>) -> ArcSwap<T> {
            ArcSwap(Mutex::new(value))
        }

        pub fn load(&self) -> Guard<Arc<T>> {
            Guard(Arc::clone(&self.0.lock()))
        }

        pub fn store(&self, value: Arc<T>) {
            let _before = std::mem::replace(&mut *self.0.lock(), value);
        }
    }

    impl<T> Default for ArcSwapOption<T> {
        fn default() -> ArcSwapOption<T> {
            ArcSwapOption(Mutex::new(None))
        }
    }

    impl<T> ArcSwapOption<T> {
        pub fn load(&self) -> Guard<Option<Arc<T>>> {
            Guard(self.0.lock().clone())
        }

        pub fn store(&self, value: Option<Arc<T>>) {
            let _before = std::mem::replace(&mut *self.0.lock(), value);
        }
    }

    impl<T> Guard<T> {
        pub fn from_inner(value: T) -> Guard<T> {
            Guard(value)
        }

        pub fn into_inner(guard: Guard<T>) -> T {
            guard.0
        }
    }

    impl<T> Deref for Guard<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }
}
