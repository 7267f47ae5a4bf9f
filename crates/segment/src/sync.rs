//! What the block cache's threads share state by. With the feature `shuttle` it is a model checker's, which chooses at each of these
//! which thread goes on; `melba_engine` has the same.

#[cfg(not(feature = "shuttle"))]
pub(crate) use arc_swap::{ArcSwapOption, Guard};
#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic;

#[cfg(feature = "shuttle")]
pub(crate) use checked::{ArcSwapOption, Guard, Mutex};
#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic;

/// `production`, or, where the checker runs thousands of caches, `checked`.
pub(crate) const fn sized(production: usize, checked: usize) -> usize {
    if cfg!(feature = "shuttle") { checked } else { production }
}

/// The checker's primitives in the form of those that they stand for.
#[cfg(feature = "shuttle")]
mod checked {
    use std::ops::Deref;
    use std::sync::Arc;

    use shuttle::sync;

    const POISONED: &str = "a panic ends the whole test";

    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Mutex<T> {
            Mutex(sync::Mutex::new(value))
        }

        pub fn lock(&self) -> sync::MutexGuard<'_, T> {
            self.0.lock().expect(POISONED)
        }
    }

    /// What arc-swap promises: a load gives the whole value that was stored last.
    pub(crate) struct ArcSwapOption<T>(sync::Mutex<Option<Arc<T>>>);

    pub(crate) struct Guard<T>(T);

    impl<T> Default for ArcSwapOption<T> {
        fn default() -> ArcSwapOption<T> {
            ArcSwapOption(sync::Mutex::new(None))
        }
    }

    impl<T> ArcSwapOption<T> {
        pub fn load(&self) -> Guard<Option<Arc<T>>> {
            Guard(self.0.lock().expect(POISONED).clone())
        }

        pub fn store(&self, value: Option<Arc<T>>) {
            let _before = std::mem::replace(&mut *self.0.lock().expect(POISONED), value);
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
