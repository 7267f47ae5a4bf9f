//! Files, time and randomness behind traits, so that the simulator can drive the whole engine: the operating system's
//! (`OsDirectory`), one that forgets what was not synced (`MemoryDirectory`), and one that fails (`FaultyDirectory`). Above any
//! of them `PooledDirectory` bounds the number of open files, and `OverlayDirectory` keeps writes to itself.
//!
//! Invariants:
//! 1. Nothing above this crate opens a file, reads a clock or draws a random number by other means.
//! 2. `sync` and `sync_names` either make everything before them durable or fail. After a failure the state of the disk is
//!    unknown, and the caller must poison itself rather than retry.

#![allow(clippy::disallowed_methods, reason = "here they are put behind traits")]

pub mod counts;
mod faulty;
mod manual;
mod memory;
mod memory_objects;
mod os;
mod overlay;
mod pool;
mod switch;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use faulty::{Faults, FaultyDirectory, FileOperation};
pub use manual::{ManualClock, SeededRandom};
pub use memory::MemoryDirectory;
pub use memory_objects::{MemoryObjects, StoreFault};
pub use os::{OsClock, OsDirectory, OsRandom, raise_open_files_limit};
pub use overlay::OverlayDirectory;
pub use pool::PooledDirectory;
pub use switch::{SwitchedDirectory, SyncSwitch, sync_all};

/// An open file. All methods may be called from several threads at once.
#[expect(clippy::len_without_is_empty, reason = "a length that costs a system call is no collection's")]
pub trait File: Send + Sync {
    /// Reads exactly `buffer.len()` bytes at `offset`; `UnexpectedEof` when the file is shorter.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Says that these bytes will be read soon, in order. May do nothing.
    fn expect(&self, _range: Range<u64>) {}
    /// Writes all of `data` at `offset`.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file's data and length durable (not its name: see `Directory::sync_names`).
    fn sync(&self) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Asks the disk to begin writing these bytes, and waits until about all before them are written: so that a later sync is
    /// short and does not delay others. Makes nothing durable. May do nothing.
    fn write_back(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Reserves space so that later writes below `len` do not change the file's metadata. May do nothing.
    fn allocate(&self, len: u64) -> io::Result<()>;
}

/// A flat folder of files; names have no separators, except for the one level of `subdirectory`.
pub trait Directory: Send + Sync {
    /// Creates a file for reading and writing; an error when it exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for as long as it has this name; its handle may be closed and opened again between calls. A write
    /// that the disk refuses later may go unnoticed: for files that are only read, or need not be durable.
    fn open_on_demand(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.open(name)
    }
    /// Atomic replacement of `to` by `from`; durable after `sync_names`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync_names(&self) -> io::Result<()>;
    /// The folder `name` below this one, created when missing.
    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>>;
    /// The same where it exists.
    fn existing_subdirectory(&self, name: &str) -> io::Result<Option<Arc<dyn Directory>>> {
        self.subdirectory(name).map(Some)
    }
    /// When a file was last written to, in microseconds since 2000-01-01 00:00 UTC; where nobody knows: long ago.
    fn modified(&self, _name: &str) -> io::Result<i64> {
        Ok(i64::MIN)
    }
    /// Takes the folder for this process until the guard drops; an error of kind `WouldBlock` when another holds it.
    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>>;
}

/// The kind of errors that are one object's: it is not there, or has other bytes. All others are its store's.
pub const OF_OBJECT: io::ErrorKind = io::ErrorKind::AddrNotAvailable;

/// Objects of stores elsewhere, by URL. Every call may wait for a network, as long as its implementation allows; an interrupted
/// statement ends the wait.
pub trait Objects: Send + Sync {
    /// Writes an object of `bytes` bytes, which `read` gives piece by piece. It is there as a whole or not at all.
    fn put(&self, url: &str, bytes: u64, read: &mut dyn FnMut(Range<u64>) -> io::Result<Vec<u8>>) -> io::Result<()>;
    /// The bytes of a range, all of them.
    fn get(&self, url: &str, range: Range<u64>) -> io::Result<Vec<u8>>;
    /// Removes an object, if there is one.
    fn remove(&self, url: &str) -> io::Result<()>;
}

/// Wall and monotonic time.
pub trait Clock: Send + Sync {
    /// Microseconds since 2000-01-01 00:00 UTC, PostgreSQL's epoch.
    fn now_micros(&self) -> i64;
    /// Monotonic time since an arbitrary start.
    fn monotonic(&self) -> Duration;
    /// The processor time of the calling thread; `None`: unknown.
    fn thread_cpu(&self) -> Option<Duration> {
        None
    }
}

/// Random bits.
pub trait Random: Send + Sync {
    fn next_u64(&self) -> u64;

    /// Fills a buffer with unpredictable bits.
    ///
    /// # Errors
    /// The source's.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&self.next_u64().to_le_bytes()[..word.len()]));
        Ok(())
    }
}
