//! When the log is written out: the log writer for asynchronous commits, commit_delay for synchronous ones.
//!
//! The log writer flushes every `wal_writer_delay`, and at once when `wal_writer_flush_after` bytes wait. So a crash takes
//! asynchronous commits of at most one delay and the time of one flush; PostgreSQL promises three delays. Commits are lost from the end only: the log has them in order.

use std::time::Duration;

use melba_vfs::sync_all;
use melba_wal::{WalStatistics, WrittenBy};

use crate::engine::{Engine, EngineOptions, Shared};
use crate::error::{EngineError, Result};
use crate::session::Session;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wait::WaitCell;

/// The log writer's settings, which may change while it runs, and its alarm.
pub(crate) struct LogWriter {
    delay_micros: AtomicU64,
    flush_after: AtomicU64,
    /// When `run_log_step_if_due` found something.
    flushed_at: Mutex<Duration>,
    wake: WaitCell,
}

impl LogWriter {
    pub fn new(options: &EngineOptions) -> LogWriter {
        let writer = LogWriter {
            delay_micros: AtomicU64::default(),
            flush_after: AtomicU64::default(),
            flushed_at: Mutex::default(),
            wake: WaitCell::default(),
        };
        writer.configure(options);
        writer
    }

    fn configure(&self, options: &EngineOptions) {
        self.delay_micros.store(options.wal_writer_delay.as_micros() as u64, Ordering::Relaxed);
        self.flush_after.store(options.wal_writer_flush_after_bytes, Ordering::Relaxed);
        self.wake.notify();
    }

    fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_micros.load(Ordering::Relaxed))
    }

    fn is_enough(&self, waiting: u64) -> bool {
        waiting > 0 && waiting >= self.flush_after.load(Ordering::Relaxed)
    }

    /// An asynchronous commit has left so many bytes of the log waiting.
    pub fn leave(&self, waiting: u64) {
        if self.is_enough(waiting) {
            self.wake.notify();
        }
    }

    /// Ends the current wait.
    pub fn wake(&self) {
        self.wake.notify();
    }
}

impl Shared {
    /// Bytes of the log that a crash would take.
    pub(crate) fn waiting_log_bytes(&self) -> u64 {
        self.wal.end().0.saturating_sub(self.wal.durable().0)
    }

    /// The log writer's thread: a step after each wait.
    pub(crate) fn write_log_until_stopped(&self) {
        while !self.is_stopping() {
            self.log_writer.wake.wait_for(self.log_writer.delay());
            self.run_log_step();
        }
    }

    /// Flushes the log if anything waits.
    pub(crate) fn run_log_step(&self) -> bool {
        self.guarded(|| self.waiting_log_bytes() > 0 && self.flush_log(WrittenBy::Background).is_ok())
    }

    /// What the thread would have done by now.
    pub(crate) fn run_log_step_if_due(&self) -> bool {
        let writer = &self.log_writer;
        let now = self.clock.monotonic();
        let mut flushed_at = writer.flushed_at.lock();
        let is_due = now >= *flushed_at + writer.delay() || writer.is_enough(self.waiting_log_bytes());
        if !is_due || !self.run_log_step() {
            return false;
        }
        *flushed_at = now;
        true
    }

    /// commit_delay: the leader of a flush waits for company, if enough other transactions are at work to expect some.
    pub(crate) fn await_siblings(&self, session: &Session) {
        let (delay, siblings) = session.commit_delay();
        if !delay.is_zero() && self.sync.is_on() && self.locks.has_writers(session.slot, siblings) {
            std::thread::sleep(delay);
        }
    }

    /// Makes commits durable that were begun together, as the leader of a flush would.
    pub(crate) fn flush_log_for(&self, session: &Session) -> Result<()> {
        if self.waiting_log_bytes() > 0 {
            self.await_siblings(session);
        }
        self.flush_log(WrittenBy::Client)
    }

    /// Makes everything durable that was written while syncs were off.
    fn sync_everything(&self) -> Result<()> {
        let io = |e| EngineError::io("sync the data directory", e);
        self.flush_log(WrittenBy::Background)?;
        for folder in [&*self.files.directory, &*self.log_directory] {
            sync_all(folder).map_err(io)?;
        }
        self.wal.note_all_synced();
        // Last: it names the others.
        let _manifest = self.manifest.lock();
        sync_all(&*self.directory).map_err(io)
    }
}

impl Engine {
    /// Takes over what may change while the engine runs: `fsync`, `wal_writer_delay` and `wal_writer_flush_after_bytes`. When
    /// syncs are switched on, everything so far is durable on return.
    pub fn reconfigure(&self, options: &EngineOptions) -> Result<()> {
        let shared = &self.shared;
        shared.log_writer.configure(options);
        let was_on = shared.sync.set(options.fsync);
        if options.fsync && !was_on {
            shared.check_poison()?;
            shared.sync_everything().map_err(|e| shared.poison(e))?;
        }
        Ok(())
    }

    /// What happened to the log since the engine was opened.
    pub fn log_statistics(&self) -> WalStatistics {
        self.shared.wal.statistics()
    }
}
