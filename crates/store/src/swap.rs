//! Values that are read very often and replaced rarely.
//!
//! A lock, even one for readers, and a reference count are memory that every reader writes: with two processors its cache line
//! moves from one to the other each time, which costs more than the read. Here readers write only memory of their own thread.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use melba_threads::{ArcSwap, Guard};
use melba_threads::{Mutex, MutexGuard};

/// A value that readers see as it was when they began, and that is replaced as a whole.
#[derive(Default)]
pub struct Swap<T> {
    current: ArcSwap<T>,
    writers: Mutex<()>,
}

/// The value as a reader found it. To be kept for a moment: a clone of the value's `Arc` may be kept without limit.
pub type Reading<T> = Guard<Arc<T>>;

/// A changed copy, which takes the value's place when this is dropped.
pub struct Writing<'a, T> {
    place: &'a ArcSwap<T>,
    copy: Option<T>,
    _writers: MutexGuard<'a, ()>,
}

impl<T> Swap<T> {
    pub fn new(value: T) -> Swap<T> {
        Swap::of(Arc::new(value))
    }

    pub fn of(value: Arc<T>) -> Swap<T> {
        Swap { current: ArcSwap::new(value), writers: Mutex::new(()) }
    }

    #[inline]
    pub fn read(&self) -> Reading<T> {
        self.current.load()
    }

    /// Replaces the value unconditionally.
    pub fn set(&self, value: Arc<T>) {
        let _writers = self.writers.lock();
        self.current.store(value);
    }
}

impl<T: Clone> Swap<T> {
    /// The value to be changed. Other writers wait; readers see it afterwards.
    pub fn write(&self) -> Writing<'_, T> {
        let writers = self.writers.lock();
        Writing { place: &self.current, copy: Some(T::clone(&self.current.load())), _writers: writers }
    }
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.copy.as_ref().expect("it is there until the end")
    }
}

impl<T> DerefMut for Writing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.copy.as_mut().expect("it is there until the end")
    }
}

impl<T> Drop for Writing<'_, T> {
    fn drop(&mut self) {
        if let Some(copy) = self.copy.take() {
            self.place.store(Arc::new(copy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_keeps_what_it_found() {
        let value = Swap::new(vec![1]);
        let before = value.read();
        value.write().push(2);
        assert_eq!((before.as_slice(), value.read().as_slice()), ([1].as_slice(), [1, 2].as_slice()));
        value.set(Arc::new(vec![3]));
        assert_eq!(value.read().as_slice(), [3]);
    }
}
