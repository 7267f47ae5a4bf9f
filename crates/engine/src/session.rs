//! One client's context in the engine: its slot, its locks, its interrupts and timeouts.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use melba_locks::{HoldDuration, LockKey, LockTag, Mode, RelationLockMode, Wait, WaitPolicy, WaitWatch};
use melba_store::{EngineError, Interrupt, QueryMemory, Result, TempFile, TempUsage, TempWatch};
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_types::{Csn, TreeId};
use melba_vfs::counts::{self, IoCounts};

use crate::commit::{Committer, WAIT_MIN};
use crate::scan_counts::{ScanCounts, SessionScans};
use crate::shared::Shared;
use crate::view::ReadView;
use crate::write_set::WriteSet;

/// A session. It runs one transaction at a time; advisory locks may outlive those. Dropping it releases them.
pub struct EngineSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) slot: u32,
    settings: Mutex<Settings>,
    /// Views that cursors hold beyond their statement.
    pub(crate) pins: Mutex<Pins>,
    /// The options with which the next transaction begins.
    pub(crate) next: Mutex<Next>,
    temp: Arc<TempUsage>,
    scans: Arc<SessionScans>,
    /// The next transaction begins at this time of the clock, in microseconds, at the earliest (`commit::pace`); 0: at any.
    throttled_until: AtomicU64,
}

#[derive(Clone)]
struct Settings {
    interrupt: Arc<Interrupt>,
    lock_timeout: Option<Duration>,
    deadlock_timeout: Duration,
    wait_watch: Option<Arc<WaitWatch>>,
    commit_delay: Duration,
    commit_siblings: usize,
}

/// Options with which a session's next transaction begins.
#[derive(Default)]
pub(crate) struct Next {
    /// The buffers of the last one.
    pub writes: Option<Box<WriteSet>>,
    /// Numbers for transactions, of which a session takes many at once: all sessions count with the same counter.
    pub ids: Range<u64>,
}

/// The views that keep a session's snapshot slot occupied.
#[derive(Default)]
pub(crate) struct Pins {
    /// The running statement's view, or the whole transaction's.
    pub current: Option<Csn>,
    pub held: Vec<ReadView>,
}

impl Pins {
    pub fn oldest_held(&self) -> Option<Csn> {
        self.held.iter().map(|v| v.csn).min()
    }

    pub fn oldest(&self) -> Option<Csn> {
        self.current.into_iter().chain(self.oldest_held()).min()
    }
}

impl EngineSession {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Arc<EngineSession>> {
        let settings = Settings {
            interrupt: Interrupt::new(),
            lock_timeout: None,
            deadlock_timeout: Duration::from_secs(1),
            wait_watch: None,
            commit_delay: Duration::ZERO,
            commit_siblings: 0,
        };
        EngineSession::open_with(shared, settings, Arc::default())
    }

    fn open_with(shared: &Arc<Shared>, settings: Settings, temp: Arc<TempUsage>) -> Result<Arc<EngineSession>> {
        let slot = shared.snapshots.take_slot().ok_or(EngineError::TooManySessions)?;
        shared.locks.attach(slot);
        Ok(Arc::new(EngineSession {
            shared: Arc::clone(shared),
            slot,
            settings: Mutex::new(settings),
            pins: Mutex::default(),
            next: Mutex::default(),
            temp,
            scans: shared.queries.scans.new_session(),
            throttled_until: AtomicU64::new(0),
        }))
    }

    /// A session that replaces this one, whose transaction stays with it until its end; `None`: this session holds session locks.
    pub fn successor(&self) -> Result<Option<Arc<EngineSession>>> {
        if self.shared.locks.has_session_locks(self.slot) {
            return Ok(None);
        }
        EngineSession::open_with(&self.shared, self.settings.lock().clone(), Arc::clone(&self.temp)).map(Some)
    }

    /// Is the session of a process from now on, as another one was.
    pub fn take_place_of(&self, other: &EngineSession) {
        self.set_pid(self.shared.locks.pid(other.slot));
        other.set_pid(0);
    }

    /// The process id that pg_locks and deadlock messages show.
    pub fn set_pid(&self, pid: i32) {
        self.shared.locks.set_pid(self.slot, pid);
    }

    /// The flag that interrupts this session's waits.
    pub fn set_interrupt(&self, interrupt: Arc<Interrupt>) {
        self.settings.lock().interrupt = interrupt;
    }

    /// The flag that interrupts this session's waits.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.settings.lock().interrupt)
    }

    /// lock_timeout; `None` waits without limit.
    pub fn set_lock_timeout(&self, timeout: Option<Duration>) {
        self.settings.lock().lock_timeout = timeout;
    }

    /// Counts scans of a tree, and the rows or entries that they returned.
    #[inline]
    pub fn note_scans(&self, tree: TreeId, counts: ScanCounts) {
        if self.scans.note(tree, counts) {
            self.shared.queries.scans.fold(&self.scans);
        }
    }

    /// Counts what this thread has read and written since it told so last, and returns it.
    pub fn note_io(&self) -> IoCounts {
        let (all, is_full) = counts::hand_over(|all, owned| (*all, !owned.is_empty() && self.scans.note_blocks(owned)));
        if is_full {
            self.shared.queries.scans.fold(&self.scans);
        }
        all
    }

    /// Sets the watch to notify of lock waits longer than deadlock_timeout.
    pub fn set_wait_watch(&self, watch: Option<Arc<WaitWatch>>) {
        self.settings.lock().wait_watch = watch;
    }

    /// Sets the watch to notify of removed temporary files: their names and sizes.
    pub fn set_temp_watch(&self, watch: Box<TempWatch>) {
        self.temp.set_watch(watch);
    }

    /// deadlock_timeout; one second at first.
    pub fn set_deadlock_timeout(&self, timeout: Duration) {
        self.settings.lock().deadlock_timeout = timeout;
    }

    /// commit_delay and commit_siblings: how long a synchronous commit waits before it flushes the log for all, when at least
    /// `siblings` other transactions with changes are open and wait for no lock. No delay at first.
    pub fn set_commit_delay(&self, delay: Duration, siblings: usize) {
        let mut settings = self.settings.lock();
        (settings.commit_delay, settings.commit_siblings) = (delay, siblings);
    }

    /// Makes every commit so far durable, after this session's commit_delay: for commits that were begun without waiting.
    pub fn flush_log(&self) -> Result<()> {
        self.as_committer(|committer| self.shared.pipeline.flush_log_for(committer))
    }

    /// Runs `f` with the pipeline's view of the session.
    pub(crate) fn as_committer<T>(&self, f: impl FnOnce(&Committer<'_>) -> T) -> T {
        f(&Committer { slot: self.slot, delay: &|| self.commit_delay() })
    }

    /// Waits as long as its last commit requires (`commit::pace`); otherwise the next transaction would wait. The session holds
    /// no lock yet. Without threads, the caller of the background steps must run them often enough.
    pub fn throttle(&self) {
        if self.throttled_until.load(Ordering::Relaxed) != 0 {
            let until = Duration::from_micros(self.throttled_until.swap(0, Ordering::Relaxed));
            if self.shared.runtime.has_threads() {
                self.shared.background.throttle(until.saturating_sub(self.shared.runtime.clock.monotonic()));
            }
        }
    }

    /// Lets the session wait before its next transaction: for a commit whose thread has others to serve. The time until then
    /// counts.
    pub(crate) fn throttle_next(&self, wait: Duration) {
        if wait >= WAIT_MIN {
            let until = self.shared.runtime.clock.monotonic() + wait;
            self.throttled_until.store(until.as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// How long the next transaction is to wait, by the clock; zero: not at all.
    #[cfg(test)]
    pub(crate) fn throttled_until(&self) -> Duration {
        Duration::from_micros(self.throttled_until.load(Ordering::Relaxed))
    }

    fn commit_delay(&self) -> (Duration, usize) {
        let settings = self.settings.lock();
        (settings.commit_delay, settings.commit_siblings)
    }

    /// Takes a session-level lock (pg_advisory_lock); taken n times it must be released n times. False: would block.
    pub fn lock(&self, tag: LockTag, mode: RelationLockMode, wait: Wait) -> Result<bool> {
        self.lock_key(LockKey::Tag(tag), mode.into(), HoldDuration::Session, wait)
    }

    /// Releases one taking of a session-level lock; false when it was not held.
    pub fn unlock(&self, tag: LockTag, mode: RelationLockMode) -> bool {
        self.shared.locks.unlock_session(self.slot, LockKey::Tag(tag), mode.into())
    }

    /// Releases every session-level lock (pg_advisory_unlock_all).
    pub fn unlock_all(&self) {
        self.shared.locks.unlock_session_all(self.slot);
    }

    /// A statement's share of the memory that queries may hold.
    pub fn query_memory(&self) -> Arc<QueryMemory> {
        QueryMemory::new(&self.shared.queries.memory)
    }

    /// A new temporary file; `limit` is the most that the session's temporary files may take in all.
    pub fn temp_file(&self, limit: Option<u64>) -> Result<TempFile> {
        self.shared.queries.temp.create(&self.temp, limit)
    }

    /// Waits for the transactions of other sessions that hold a lock on a relation now that conflicts with a mode; the session's
    /// transaction may hold one itself.
    pub fn await_holders(&self, relation: LockTag, mode: RelationLockMode) -> Result<()> {
        self.waiting(|policy| self.shared.locks.await_holders(self.slot, LockKey::Tag(relation), mode.into(), policy))
    }

    /// Waits for the other transactions that keep a snapshot which does not show more than the newest one of now.
    pub fn await_older_snapshots(&self) -> Result<()> {
        let newest = self.shared.snapshots.visible();
        self.waiting(|policy| self.shared.locks.await_snapshots(self.slot, newest, policy))
    }

    pub(crate) fn lock_key(&self, key: LockKey, mode: Mode, duration: HoldDuration, wait: Wait) -> Result<bool> {
        // Most locks are granted at once; only a wait needs the settings' copies.
        let free = melba_store::NEVER.with(|never| {
            let policy =
                WaitPolicy { block: false, interrupt: never, lock_timeout: None, deadlock_timeout: Duration::MAX, watch: None };
            self.shared.locks.lock(self.slot, key, mode, duration, &policy)
        })?;
        if free || wait != Wait::Block {
            return Ok(free);
        }
        self.waiting(|policy| self.shared.locks.lock(self.slot, key, mode, duration, policy))
    }

    /// Locks a relation for the transaction. Later requests wait behind this one for at most `limit`; false: others still hold the lock.
    pub fn lock_relation_within(&self, tag: LockTag, mode: RelationLockMode, limit: Duration) -> Result<bool> {
        let locked = self.waiting(|policy| {
            let policy = WaitPolicy { lock_timeout: Some(limit), ..*policy };
            self.shared.locks.lock(self.slot, LockKey::Tag(tag), mode.into(), HoldDuration::Transaction, &policy)
        });
        match locked {
            Err(EngineError::LockTimeout) => Ok(false),
            locked => locked,
        }
    }

    /// Requests locks that may have to be waited for, as the session's settings say.
    fn waiting<T>(&self, request: impl FnOnce(&WaitPolicy<'_>) -> Result<T>) -> Result<T> {
        let settings = self.settings.lock().clone();
        request(&WaitPolicy {
            block: true,
            interrupt: &settings.interrupt,
            lock_timeout: settings.lock_timeout,
            deadlock_timeout: settings.deadlock_timeout,
            watch: settings.wait_watch.as_deref(),
        })
    }
}

impl Drop for EngineSession {
    fn drop(&mut self) {
        self.shared.queries.scans.fold(&self.scans);
        self.shared.locks.release_transaction(self.slot);
        self.shared.locks.unlock_session_all(self.slot);
        self.shared.locks.set_pid(self.slot, 0);
        self.shared.snapshots.free_slot(self.slot);
    }
}
