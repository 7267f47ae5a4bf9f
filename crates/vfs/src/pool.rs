//! A folder whose files that are opened on demand share a bounded number of open handles: there may be far more segments
//! than a process may have files open.
//!
//! Invariants:
//! 1. Handles that were not used lately are closed first, and none during a call through it. So there are at most as many as the
//!    pool's limit and the threads that are in such a call.
//! 2. A call that finds that the process or the machine cannot open more files closes handles of the pool and tries again; it is
//!    an error only when the pool has none.
//! 3. A handle is closed with its `File`: the pool does not keep the space of a removed file.
//!
//! A file must keep its name and content's identity for as long as it is open on demand: segments have names that are never used
//! twice, and are removed when no reader has them open.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::{Directory, File};

/// How many handles are closed when the system has no more.
const CLOSED_AT_ONCE: usize = 8;

/// The open handles of several folders.
struct Pool {
    handles_max: usize,
    state: Mutex<HandleState>,
}

#[derive(Default)]
struct HandleState {
    /// Slots with a handle, in the order in which they are visited; also some that have lost theirs since.
    queue: VecDeque<Weak<Slot>>,
    open: usize,
}

/// A place for a handle.
struct Slot {
    handle: RwLock<Option<Arc<dyn File>>>,
    /// Used since its last visit.
    used: AtomicBool,
}

impl Pool {
    /// Runs an operation that needs a handle of the system's, again after closing some if there is none.
    fn retried<T>(&self, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match open() {
                Err(e) if is_out_of_handles(&e) && self.close(CLOSED_AT_ONCE) > 0 => {}
                result => return result,
            }
        }
    }

    /// Notes that a slot gets a handle, for which there is room now.
    fn admit(&self, slot: &Arc<Slot>) {
        let over = {
            let mut state = self.state.lock();
            state.open += 1;
            state.queue.push_back(Arc::downgrade(slot));
            if state.queue.len() > 2 * state.open + CLOSED_AT_ONCE {
                state.queue.retain(|slot| slot.strong_count() > 0);
            }
            state.open.saturating_sub(self.handles_max)
        };
        self.close(over);
    }

    /// Closes up to `n` handles; returns how many.
    fn close(&self, n: usize) -> usize {
        let mut closed = Vec::new();
        let mut state = self.state.lock();
        // Each is passed over once at most for having been used.
        for _ in 0..2 * state.queue.len() {
            if closed.len() == n {
                break;
            }
            let Some(weak) = state.queue.pop_front() else { break };
            let Some(slot) = weak.upgrade() else { continue };
            // The holder of the lock is opening, or about to read.
            let Some(mut handle) = slot.handle.try_write() else {
                state.queue.push_back(weak);
                continue;
            };
            match &*handle {
                None => {}
                Some(_) if slot.used.swap(false, Ordering::Relaxed) => state.queue.push_back(weak),
                Some(_) => {
                    closed.extend(handle.take());
                    state.open -= 1;
                }
            }
        }
        drop(state);
        closed.len()
    }
}

/// The process (EMFILE) or the machine (ENFILE) has as many files open as it may.
fn is_out_of_handles(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// A folder over another one; folders below it share its pool.
pub struct PooledDirectory {
    inner: Arc<dyn Directory>,
    pool: Arc<Pool>,
}

impl PooledDirectory {
    /// Keeps up to `handles_max` handles of files that are opened on demand.
    pub fn new(inner: Arc<dyn Directory>, handles_max: usize) -> PooledDirectory {
        PooledDirectory { inner, pool: Arc::new(Pool { handles_max: handles_max.max(1), state: Mutex::default() }) }
    }
}

impl Directory for PooledDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.pool.retried(|| self.inner.create(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.pool.retried(|| self.inner.open(name))
    }

    fn open_on_demand(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = PooledFile {
            directory: Arc::clone(&self.inner),
            pool: Arc::clone(&self.pool),
            name: name.into(),
            slot: Arc::new(Slot { handle: RwLock::new(None), used: false.into() }),
        };
        // Checks now whether it exists.
        file.handle()?;
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.pool.retried(|| self.inner.list())
    }

    fn modified(&self, name: &str) -> io::Result<i64> {
        self.inner.modified(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.inner.sync_names()
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        let inner = self.pool.retried(|| self.inner.subdirectory(name))?;
        Ok(Arc::new(PooledDirectory { inner, pool: Arc::clone(&self.pool) }))
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.pool.retried(|| self.inner.lock(name))
    }
}

/// A file whose handle is opened and closed on demand.
struct PooledFile {
    directory: Arc<dyn Directory>,
    pool: Arc<Pool>,
    name: Box<str>,
    slot: Arc<Slot>,
}

impl PooledFile {
    /// The handle, for one call.
    fn handle(&self) -> io::Result<Arc<dyn File>> {
        let slot = &self.slot;
        if let Some(handle) = &*slot.handle.read() {
            slot.used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(handle));
        }
        let mut place = slot.handle.write();
        if let Some(handle) = &*place {
            return Ok(Arc::clone(handle));
        }
        // The slot is locked, so the pool passes it over.
        self.pool.admit(slot);
        match self.pool.retried(|| self.directory.open(&self.name)) {
            Ok(handle) => Ok(Arc::clone(place.insert(handle))),
            Err(e) => {
                self.pool.state.lock().open -= 1;
                Err(e)
            }
        }
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let handle = self.slot.handle.write().take();
        if handle.is_some() {
            self.pool.state.lock().open -= 1;
        }
    }
}

impl File for PooledFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle()?.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.handle()?.write_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.handle()?.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.handle()?.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.handle()?.set_len(len)
    }

    fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.handle()?.write_back(offset, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.handle()?.allocate(len)
    }
}

#[cfg(test)]
mod tests;
