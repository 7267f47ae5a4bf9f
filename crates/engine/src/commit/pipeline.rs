//! The commit pipeline.
//!
//! 1. In one short step under `Pipeline::state`: the commit gets its CSN, its place in the log, and its place in the queue of
//!    commits in flight.
//! 2. Application to the row store, in parallel. When a commit and all before it are applied, its locks on rows and keys are
//!    released: the next holder will be behind it in the log. Only the views of such holders see it yet.
//! 3. The log's flush, shared: one of the waiting commits leads and flushes for all (group commit).
//! 4. Publication in CSN order: the visible CSN moves over all finished commits at the queue's front. A synchronous commit is
//!    finished when it is applied and durable, an asynchronous one when it is applied.
//!
//! A panic before step 1 aborts the transaction. From there to step 4 it poisons the engine: no later commit could be published,
//! because this one never will be. All waiting sessions are woken with the error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use melba_locks::{LockManager, ReleaseTurn};
use melba_store::{EngineError, Result};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, MutexGuard, WaitCell};
use melba_types::{Csn, Lsn};
use melba_wal::WrittenBy;

use super::activity::Activity;
use super::log::{Log, Reservation};
use crate::runtime::Runtime;
use crate::snapshot::Snapshots;
use crate::step::step;

/// When a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When its changes survive a crash.
    Sync,
    /// When its changes are visible; a crash may undo the last few such commits, in order.
    Async,
}

/// A commit that has its CSN and is not visible yet.
struct InFlight {
    applied: bool,
    /// Where its record begins; the greatest LSN when it has none.
    start: Lsn,
    /// The log must be durable up to here before it is published.
    needed: Lsn,
    waiter: Option<Arc<WaitCell>>,
    locks: Option<EarlyRelease>,
}

/// The session whose locks on rows and keys are released before the commit is published.
#[derive(Clone, Copy)]
pub(crate) struct EarlyRelease(pub u32);

/// A commit that has its CSN and is applied.
pub(crate) struct Started {
    pub csn: Csn,
    /// The log must be durable up to here before it is published.
    needed: Lsn,
    /// The log has no record of it.
    is_unlogged: bool,
    /// It has no place in the order: `csn` is another's, which it relies on.
    is_empty: bool,
}

/// The positions that must be durable, or visible, before a commit returns, beside its own record.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs {
    /// The log up to here, also when nothing was written (nextval).
    pub log: Lsn,
    /// The commits up to here: the transaction has seen them, or has taken locks after them.
    pub seen: Csn,
}

struct PipelineState {
    next_csn: u64,
    /// Commits in flight; the front has the CSN after the visible one.
    queue: VecDeque<InFlight>,
    /// So many at the queue's front are applied.
    applied: usize,
    /// A commit is flushing the log for all.
    has_leader: bool,
}

impl PipelineState {
    /// All sessions that wait for a publication that will not come.
    fn all_waiters(&mut self) -> Woken {
        if is_planted(Plant::KeepFailure) {
            return Woken::default();
        }
        Woken(self.queue.iter_mut().filter_map(|c| c.waiter.take()).collect())
    }
}

/// CSN order and the commits in flight.
pub(crate) struct Pipeline {
    state: Mutex<PipelineState>,
    pub log: Arc<Log>,
    snapshots: Arc<Snapshots>,
    locks: Arc<LockManager>,
    runtime: Arc<Runtime>,
    activity: Activity,
}

/// A session that sees its commit published.
pub(crate) struct Committer<'a> {
    pub slot: u32,
    /// commit_delay and commit_siblings.
    pub delay: &'a dyn Fn() -> (Duration, usize),
}

/// A commit as the pipeline sees it.
pub(crate) struct CommitRecord<'a> {
    /// Its payload in the log, for which there is room; empty: nothing of it is logged.
    pub payload: &'a mut Vec<u8>,
    pub reservation: Option<Reservation<'a>>,
    pub needs: Needs,
    pub is_sync: bool,
    pub locks: Option<EarlyRelease>,
}

/// Asynchronous commits wait for the disk when it lags behind by this much.
const PENDING_LOG_BYTES_MAX: u64 = 64 << 20;

/// Whom to wake; they are, when this is dropped.
#[derive(Default)]
struct Woken(Vec<Arc<WaitCell>>);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.iter().for_each(|cell| cell.notify());
    }
}

/// Held from a commit's place in the order to its publication.
struct InOrder<'a>(&'a Pipeline);

impl Drop for InOrder<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(PoisonOnPanic(&self.0.runtime));
            drop(self.0.publish(&mut self.0.state.lock()));
        }
    }
}

/// Held while a commit gets its place, under the pipeline's lock.
struct PoisonOnPanic<'a>(&'a Runtime);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(EngineError::Misuse("a commit panicked"));
        }
    }
}

#[cfg(test)]
impl Pipeline {
    /// Whether a commit is flushing the log, or waits for siblings first.
    pub fn has_leader(&self) -> bool {
        self.state.lock().has_leader
    }
}

/// One moment of the pipeline.
pub(crate) struct Floor {
    /// The newest assigned CSN.
    pub assigned: Csn,
    /// Every commit up to here is applied, and its record lies before `replay`; the records of all others do not.
    pub whole: Csn,
    pub replay: Lsn,
}

impl Pipeline {
    /// With everything up to the newest visible CSN behind it.
    pub fn new(log: &Arc<Log>, snapshots: &Arc<Snapshots>, locks: &Arc<LockManager>, runtime: &Arc<Runtime>) -> Pipeline {
        let next_csn = snapshots.visible().0 + 1;
        Pipeline {
            state: Mutex::new(PipelineState { next_csn, queue: VecDeque::new(), applied: 0, has_leader: false }),
            log: Arc::clone(log),
            snapshots: Arc::clone(snapshots),
            locks: Arc::clone(locks),
            runtime: Arc::clone(runtime),
            activity: Activity::default(),
        }
    }

    /// Whether there has been no commit for a while.
    pub fn is_idle(&self) -> bool {
        self.activity.is_idle(self.floor().assigned, self.runtime.clock.monotonic())
    }

    /// Where the pipeline is.
    pub fn floor(&self) -> Floor {
        let state = self.state.lock();
        let in_flight = state.queue.iter().map(|c| c.start).min().unwrap_or(Lsn(u64::MAX));
        Floor { assigned: Csn(state.next_csn - 1), whole: self.snapshots.visible(), replay: in_flight.min(self.log.wal.end()) }
    }

    /// A transaction that has changed nothing: it ends when the commits it relies on are durable and visible.
    pub fn commit_nothing(&self, needs: Needs, durability: Durability) -> Started {
        let needed = if durability == Durability::Sync { needs.log } else { Lsn(0) };
        Started { csn: self.snapshots.visible().max(needs.seen), needed, is_unlogged: true, is_empty: true }
    }

    /// Whether nothing is waited for any more.
    fn is_published(&self, started: &Started) -> bool {
        self.snapshots.visible() >= started.csn && self.log.wal.durable() >= started.needed
    }

    /// Steps 1 and 2; `apply` puts the changes into the row store. Nothing has changed after an error.
    pub fn commit(&self, mut record: CommitRecord<'_>, apply: impl FnOnce(Csn)) -> Result<Started> {
        let _in_order = InOrder(self);
        let (csn, needed, end) = self.put_in_order(&mut record)?;
        record.reservation.into_iter().for_each(Reservation::keep);
        step();
        apply(csn);
        step();
        self.note_one_applied(csn);
        Ok(Started { csn, needed, is_unlogged: end.0 == 0, is_empty: false })
    }

    /// Step 1: the commit's number, how far the log must be durable for it, and where its record ends. The only errors are that numbers
    /// are used up, and that a commit before it has panicked.
    fn put_in_order(&self, record: &mut CommitRecord<'_>) -> Result<(Csn, Lsn, Lsn)> {
        let crc = melba_wal::payload_crc(record.payload);
        let mut state = self.state.lock();
        // After a panic in here the order has a gap, or the log a record too many: no commit may follow.
        let _gap = PoisonOnPanic(&self.runtime);
        self.runtime.check_poison()?;
        if state.next_csn > melba_wal::CSN_MAX {
            return Err(EngineError::Limit("commit sequence numbers are used up"));
        }
        step();
        let csn = Csn(state.next_csn);
        state.next_csn += 1;
        step();
        let (start, end) = match record.payload.is_empty() {
            true => (Lsn(u64::MAX), Lsn(0)),
            false => self.log.wal.append(csn, record.payload, crc),
        };
        if !record.is_sync {
            self.log.note_unawaited(end);
        }
        step();
        let early = is_planted(Plant::PublishEarly);
        let needed = if record.is_sync && !early { end.max(record.needs.log) } else { Lsn(0) };
        state.queue.push_back(InFlight { applied: false, start, needed, waiter: None, locks: record.locks });
        step();
        Ok((csn, needed, end))
    }

    /// The end of step 2.
    fn note_one_applied(&self, csn: Csn) {
        let mut state = self.state.lock();
        let at = (csn.0 - self.snapshots.visible().0 - 1) as usize;
        state.queue[at].applied = true;
        step();
        let releases = self.note_applied(&mut state);
        step();
        let woken = self.publish(&mut state);
        drop(state);
        step();
        releases.iter().for_each(|r| r.release(&self.locks));
        step();
        drop(woken);
    }

    /// Steps 3 and 4, waiting for other commits, or leading them.
    pub fn wait_published(&self, committer: &Committer<'_>, started: &Started) -> Result<()> {
        if self.is_published(started) {
            return Ok(());
        }
        if started.is_empty {
            // All that it relies on is applied, and its record in the log.
            self.runtime.scheduler.before_wait();
            return self.flush_log(WrittenBy::Client);
        }
        self.finish_commit(committer, started.csn, started.needed)
    }

    /// The part of step 4 that needs no waiting: whether the commit is published now.
    pub fn try_publish(&self, started: &Started) -> Result<bool> {
        if self.snapshots.visible() < started.csn {
            drop(self.publish(&mut self.state.lock()));
        }
        match self.is_published(started) {
            true => Ok(true),
            false => self.runtime.check_poison().map(|()| false),
        }
    }

    /// The steps after publication.
    pub fn end_commit(&self, started: &Started, durability: Durability) -> Result<()> {
        self.snapshots.compute_oldest_after(started.csn);
        if durability == Durability::Async && !started.is_unlogged {
            let waiting = self.log.waiting_bytes();
            self.log.writer.note_waiting(waiting);
            if waiting > PENDING_LOG_BYTES_MAX {
                self.flush_log(WrittenBy::Client)?;
            }
        }
        Ok(())
    }

    /// Waits until an applied commit is published; leads a flush of the log if one is needed and no session leads one.
    fn finish_commit(&self, committer: &Committer<'_>, csn: Csn, needed: Lsn) -> Result<()> {
        let cell = &self.locks.sessions[committer.slot as usize].publish_cell;
        let _in_order = InOrder(self);
        let mut state = self.state.lock();
        loop {
            let woken = self.publish(&mut state);
            let published = self.snapshots.visible();
            if published >= csn {
                drop(state);
                drop(woken);
                return Ok(());
            }
            if let Err(e) = self.runtime.check_poison() {
                drop(state);
                drop(woken);
                return Err(e);
            }
            let lead = !state.has_leader && needed > self.log.wal.durable();
            if lead {
                state.has_leader = true;
            } else {
                let at = (csn.0 - published.0 - 1) as usize;
                state.queue[at].waiter = Some(Arc::clone(cell));
            }
            drop(state);
            drop(woken);
            step();
            let flushed = if lead {
                self.runtime.scheduler.before_wait();
                self.await_siblings(committer);
                step();
                self.log.flush(WrittenBy::Client)
            } else {
                cell.wait(&*self.runtime.scheduler);
                Ok(())
            };
            step();
            state = self.state.lock();
            if lead {
                state.has_leader = false;
            }
            if flushed.is_err() {
                let waiting = state.all_waiters();
                drop(state);
                drop(waiting);
                return flushed;
            }
        }
    }

    /// Moves the applied CSN as far as possible; returns the turns whose locks are now released.
    fn note_applied(&self, state: &mut PipelineState) -> Vec<ReleaseTurn<'_>> {
        let mut releases = Vec::new();
        while let Some(commit) = state.queue.get_mut(state.applied).filter(|c| c.applied) {
            // In their turn now, released once the pipeline is unlocked: the owner may be published meanwhile, and waits for it.
            releases.extend(commit.locks.take().map(|EarlyRelease(slot)| self.locks.begin_release(slot)));
            state.applied += 1;
        }
        self.snapshots.note_applied(Csn(self.snapshots.visible().0 + state.applied as u64));
        releases
    }

    /// Moves the visible CSN as far as possible; returns the sessions to wake: the published ones, and one to lead the next flush.
    fn publish(&self, state: &mut MutexGuard<'_, PipelineState>) -> Woken {
        if self.runtime.is_poisoned() {
            return state.all_waiters();
        }
        let mut woken = Woken::default();
        let durable = self.log.wal.durable();
        let mut published = self.snapshots.visible();
        while state.applied > 0 && state.queue.front().is_some_and(|c| c.needed <= durable) {
            woken.0.extend(state.queue.pop_front().and_then(|c| c.waiter));
            state.applied -= 1;
            published.0 += 1;
        }
        self.snapshots.publish(published);
        if !state.has_leader
            && let Some(next) = state.queue.iter_mut().find(|c| c.needed > durable && c.waiter.is_some())
        {
            woken.0.extend(next.waiter.take());
        }
        woken
    }

    /// commit_delay: the leader of a flush waits for company, if enough other transactions are at work to expect some.
    fn await_siblings(&self, committer: &Committer<'_>) {
        let (delay, siblings) = (committer.delay)();
        if !delay.is_zero() && self.log.is_synced() && self.locks.has_writers(committer.slot, siblings) {
            self.runtime.scheduler.pause(delay);
        }
    }

    /// Makes commits durable that were begun together, as the leader of a flush would.
    pub fn flush_log_for(&self, committer: &Committer<'_>) -> Result<()> {
        if self.log.waiting_bytes() > 0 {
            self.await_siblings(committer);
        }
        self.flush_log(WrittenBy::Client)
    }

    /// Makes everything in the log durable, and publishes the commits that waited for that.
    pub fn flush_log(&self, by: WrittenBy) -> Result<()> {
        let result = self.log.flush(by);
        drop(self.publish(&mut self.state.lock()));
        result
    }
}
