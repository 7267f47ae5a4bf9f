//! What is compared: a map of keys to values on disk, with transactions.

use std::path::Path;

pub const KEY_BYTES: usize = 16;
pub const VALUE_BYTES: usize = 100;
/// What each store may use for caches and buffers.
pub const MEMORY_BYTES: u64 = 512 << 20;

pub type Key = [u8; KEY_BYTES];
pub type Value = [u8; VALUE_BYTES];

/// When a transaction's changes are on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// When its commit returns.
    Now,
    /// Some time later.
    Later,
}

pub trait Store: Send + std::marker::Sync {
    /// What one thread works with.
    fn client(&self) -> Box<dyn Client + '_>;

    /// Puts what was written where it stays, so that reads meet the store as it is in the long run.
    fn wait_until_idle(&self);
}

pub trait Client {
    /// Puts all entries, new or known, in one transaction.
    fn put(&mut self, entries: &[(Key, Value)], sync: Sync);

    /// Hands a key's value to `each`; false: there is none.
    fn get(&mut self, key: &Key, each: &mut dyn FnMut(&[u8])) -> bool;

    /// Hands over all values in the order of their keys.
    fn scan(&mut self, each: &mut dyn FnMut(&[u8]));
}

/// A way to open a new store in an empty folder.
pub type Open = fn(&Path) -> Box<dyn Store>;
