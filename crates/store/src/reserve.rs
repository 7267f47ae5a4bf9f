//! Disk space that is reserved for operations that free space.
//!
//! A full disk refuses commits. So that DELETE, DROP and TRUNCATE, the flush and the merge that follow them, and the next start
//! still find room, a file without content reserves space: when one of these meets a full disk, the file is removed and the
//! operation tries again. The background creates it again when there is space; until then only operations that free space are
//! committed, or others would take the reserved space.

use std::sync::Arc;
use std::time::Duration;

use melba_vfs::Directory;

use crate::error::{EngineError, Result};
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicBool, Ordering};

const NAME: &str = "reserve";
/// Zeros written at a time.
const FILL_BYTES: u64 = 64 << 10;
/// While the disk is full the file is not created again sooner: others need the little space there is.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The file.
pub struct Reserve {
    directory: Arc<dyn Directory>,
    bytes: u64,
    state: Mutex<ReserveState>,
    /// It was released, and has not been created again.
    spent: AtomicBool,
}

#[derive(Default)]
struct ReserveState {
    is_there: bool,
    /// When it was released, or could not be created.
    gone_at: Option<Duration>,
}

impl Reserve {
    /// Of a data directory, in which it may be.
    pub fn new(directory: &Arc<dyn Directory>, bytes: u64) -> Reserve {
        let len = directory.open(NAME).and_then(|file| file.len()).unwrap_or(0);
        let state = ReserveState { is_there: len >= bytes, gone_at: None };
        Reserve { directory: Arc::clone(directory), bytes, state: Mutex::new(state), spent: AtomicBool::new(false) }
    }

    /// The same in its present state.
    pub fn again(&self) -> Reserve {
        Reserve::new(&self.directory, self.bytes)
    }

    /// Makes the file if it is not there and there is space; whether it did.
    pub fn prepare(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        if state.is_there || state.gone_at.is_some_and(|at| now < at + RETRY_AFTER) {
            return false;
        }
        let made = self.make();
        if made.is_err() {
            // A partial file must not take the space of a full disk.
            let _ = self.directory.remove(NAME);
        }
        *state = ReserveState { is_there: made.is_ok(), gone_at: made.is_err().then_some(now) };
        if made.is_ok() {
            self.spent.store(false, Ordering::SeqCst);
        }
        state.is_there
    }

    fn make(&self) -> std::io::Result<()> {
        let file = match self.directory.create(NAME) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => self.directory.open(NAME)?,
            created => created?,
        };
        let zeros = vec![0; FILL_BYTES.min(self.bytes) as usize];
        for at in (0..self.bytes).step_by(zeros.len().max(1)) {
            let n = (self.bytes - at).min(zeros.len() as u64);
            file.write_at(&zeros[..n as usize], at)?;
        }
        Ok(())
    }

    /// Frees the space; whether there was any.
    pub fn give_back(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        let given = std::mem::take(&mut state.is_there) && self.directory.remove(NAME).is_ok();
        state.gone_at = Some(now);
        if given {
            self.spent.store(true, Ordering::SeqCst);
        }
        given
    }

    /// The error for operations that do not free space, while the reserve is in use.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.spent.load(Ordering::Relaxed) {
            true => Err(EngineError::io("write the log", std::io::ErrorKind::StorageFull.into())),
            false => Ok(()),
        }
    }

    /// Runs `f`; when the disk is full, again with the space that was kept.
    pub fn with<T>(&self, now: Duration, mut f: impl FnMut() -> Result<T>) -> Result<T> {
        match f() {
            Err(e) if e.is_full_disk() && self.give_back(now) => f(),
            result => result,
        }
    }
}

/// The same before there is an engine, for a file of any size.
pub fn with_space_of<T>(directory: &dyn Directory, mut f: impl FnMut() -> Result<T>) -> Result<T> {
    match f() {
        Err(e) if e.is_full_disk() => match directory.remove(NAME) {
            Ok(()) => f(),
            Err(_) => Err(e),
        },
        result => result,
    }
}
