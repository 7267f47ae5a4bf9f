//! Values behind a lock that most statements do not use.
//!
//! Taking and releasing a free lock costs as much as dozens of plain instructions, and statements check several places that are
//! nearly always empty: notices, catalog changes, large objects, deferred checks. Here the check for emptiness is a single load.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// A value that is `T::default()` until it is first locked.
#[derive(Debug, Default)]
pub struct RarelyUsed<T> {
    used: AtomicBool,
    value: Mutex<T>,
}

impl<T: Default> RarelyUsed<T> {
    /// The value, to change it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let value = self.value.lock();
        self.used.store(true, Ordering::Release);
        value
    }

    /// The value, if it was locked since it was new or taken.
    pub fn used(&self) -> Option<MutexGuard<'_, T>> {
        self.used.load(Ordering::Acquire).then(|| self.value.lock())
    }

    /// Takes the value out, and leaves the default.
    pub fn take(&self) -> T {
        match self.used() {
            Some(mut value) => {
                self.used.store(false, Ordering::Release);
                std::mem::take(&mut value)
            }
            None => T::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_used_from_the_first_lock_until_it_is_taken() {
        let list = RarelyUsed::<Vec<i32>>::default();
        assert!(list.used().is_none() && list.take().is_empty());
        list.lock().push(1);
        list.lock().push(2);
        assert_eq!(list.used().map(|l| l.len()), Some(2));
        assert_eq!(list.take(), [1, 2]);
        assert!(list.used().is_none());
    }
}
