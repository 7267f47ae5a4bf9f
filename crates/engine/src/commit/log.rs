//! The log of commits and sequences, and when it is flushed: by the log writer for asynchronous commits, after commit_delay for
//! synchronous ones.
//!
//! The log writer flushes every `wal_writer_delay`, and at once when `wal_writer_flush_after` bytes wait. So a crash loses asynchronous
//! commits of at most one delay and the time of one flush; PostgreSQL promises three delays. Only the last commits are lost: the log has
//! them in order. Synchronous commits flush their own records: a flush by the log writer would make them wait for two.

use std::sync::Arc;
use std::time::Duration;

use melba_store::{EngineError, Result, SequenceId, SequenceState};
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, WaitCell};
use melba_types::{Csn, Lsn};
use melba_vfs::{Directory, SyncSwitch, sync_all};
use melba_wal::{Wal, WalOptions, WrittenBy};

use super::payload;
use crate::options::EngineOptions;
use crate::runtime::Runtime;

/// See the module.
pub(crate) struct Log {
    pub wal: Wal,
    directory: Arc<dyn Directory>,
    /// Whether syncs reach the disk, except for files that a crash may lose anyway.
    sync: SyncSwitch,
    pub writer: LogWriter,
    /// The end of the last record that no session waits for.
    unawaited: AtomicU64,
    runtime: Arc<Runtime>,
}

/// The log writer's settings, which may change while it runs, and its alarm.
pub(crate) struct LogWriter {
    delay_micros: AtomicU64,
    flush_after: AtomicU64,
    /// When `is_due` was answered with yes.
    flushed_at: Mutex<Duration>,
    /// How far the log was durable at the log writer's last check.
    durable_seen: AtomicU64,
    wake: WaitCell,
}

impl LogWriter {
    fn new(options: &EngineOptions) -> LogWriter {
        let writer = LogWriter {
            delay_micros: AtomicU64::default(),
            flush_after: AtomicU64::default(),
            flushed_at: Mutex::default(),
            durable_seen: AtomicU64::new(u64::MAX),
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

    /// An asynchronous commit has raised the unflushed bytes of the log to `waiting`.
    pub fn note_waiting(&self, waiting: u64) {
        if self.is_enough(waiting) && !is_planted(Plant::NoWake) {
            self.wake.notify();
        }
    }

    /// Ends the current wait.
    pub fn wake(&self) {
        self.wake.notify();
    }
}

/// Room in the log for a record that is not appended yet.
pub(crate) struct Reservation<'a> {
    wal: &'a Wal,
    bytes: Option<usize>,
}

impl Reservation<'_> {
    /// The record is in the log.
    pub fn keep(mut self) {
        self.bytes = None;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes {
            self.wal.unreserve(bytes);
        }
    }
}

impl Log {
    /// Of a folder, whose files are replayed or begun next.
    pub fn new(options: &EngineOptions, directory: Arc<dyn Directory>, sync: SyncSwitch, runtime: &Arc<Runtime>) -> Log {
        let wal_options = WalOptions { file_bytes: options.wal_file_bytes, sync: sync.clone(), ..WalOptions::default() };
        Log {
            wal: Wal::new(Arc::clone(&directory), wal_options),
            directory,
            sync,
            writer: LogWriter::new(options),
            unawaited: AtomicU64::new(0),
            runtime: Arc::clone(runtime),
        }
    }

    /// Bytes of the log that a crash would take.
    pub fn waiting_bytes(&self) -> u64 {
        self.wal.end().0.saturating_sub(self.wal.durable().0)
    }

    /// No session waits for the record that ends here: the log writer flushes it.
    pub fn note_unawaited(&self, end: Lsn) {
        self.unawaited.fetch_max(end.0, Ordering::Relaxed);
    }

    /// Whether the log writer has work: there are records that no session waits for, or the sessions that wait have not flushed
    /// for longer than its delay.
    pub fn has_work(&self) -> bool {
        let durable = self.wal.durable().0;
        let is_stuck = self.writer.durable_seen.swap(durable, Ordering::Relaxed) == durable;
        self.waiting_bytes() > 0 && (is_stuck || self.unawaited.load(Ordering::Relaxed) > durable)
    }

    /// Room for a record's payload.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation<'_>> {
        self.wal.reserve(bytes)?;
        Ok(Reservation { wal: &self.wal, bytes: Some(bytes) })
    }

    /// Makes everything in the log durable; a failure poisons the engine.
    pub fn flush(&self, by: WrittenBy) -> Result<()> {
        match self.wal.flush_to(self.wal.end(), by) {
            Ok(_) => Ok(()),
            Err(e) => Err(self.runtime.poison(e.into())),
        }
    }

    /// Whether waiting for company before a flush can pay.
    pub fn is_synced(&self) -> bool {
        self.sync.is_on()
    }

    /// Sleeps until the log writer's next step is due, or until it is woken.
    pub fn await_writer(&self) {
        self.writer.wake.wait_for(&*self.runtime.scheduler, self.writer.delay());
    }

    /// Whether the log writer's thread would have begun its next step by now.
    pub fn is_writer_due(&self) -> bool {
        let now = self.runtime.clock.monotonic();
        let mut flushed_at = self.writer.flushed_at.lock();
        let is_due = now >= *flushed_at + self.writer.delay() || self.writer.is_enough(self.waiting_bytes());
        let is_due = is_due && self.waiting_bytes() > 0;
        if is_due {
            *flushed_at = now;
        }
        is_due
    }

    /// Takes over settings; true when syncs were switched on, so that earlier writes must still be made durable.
    pub fn configure(&self, options: &EngineOptions) -> bool {
        self.writer.configure(options);
        let was_on = self.sync.set(options.fsync);
        options.fsync && !was_on
    }

    /// Makes the log's files durable that were written while syncs were off.
    pub fn sync_files(&self) -> Result<()> {
        sync_all(&*self.directory).map_err(|e| EngineError::io("sync the data directory", e))?;
        self.wal.note_all_synced();
        Ok(())
    }

    /// Runs `f`, which may log a sequence's state, with space for that reserved in the log.
    pub fn with_sequence<T>(
        &self,
        id: SequenceId,
        f: impl FnOnce(&mut dyn FnMut(SequenceState) -> Lsn) -> Result<T>,
    ) -> Result<T> {
        let mut reservation = Some(self.reserve(payload::SEQUENCE_STATE_BYTES)?);
        f(&mut |state| {
            reservation.take().into_iter().for_each(Reservation::keep);
            let mut payload = payload::encode_sequence_state(id, state);
            let crc = melba_wal::payload_crc(&payload);
            let (_, end) = self.wal.append(Csn(0), &mut payload, crc);
            self.note_unawaited(end);
            end
        })
    }
}
