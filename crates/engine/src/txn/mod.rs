//! Transactions: views, commands, savepoints, locks, and the operations on trees.

pub(crate) mod announce;
mod bulk;
mod claims;
mod commit;
pub(crate) mod entries;
mod fetch;
mod frames;
mod lent;
mod log_size;
mod own;
mod pins;
mod prepare;
mod rows;
mod schema;
mod spill;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use melba_locks::{HoldDuration, LockKey, LockTag, Mode, RelationLockMode, RowLockMode, Wait};
use melba_store::{EngineError, Held, Interrupt, Result, RowBytes, TreeRef};
use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_threads::{Mutex, Scheduler};
use melba_types::{Csn, RowId, TreeId, TxnId};
use melba_wal::WrittenBy;

use crate::commit::throttle;
use crate::commit::{Durability, EarlyRelease, Needs, Started, WAIT_MAX_FOR_BYTES};
use crate::serializable::{Safety, Tracking};
use crate::session::EngineSession;
use crate::shared::Shared;
use crate::step::step;
use crate::view::{Isolation, ReadView};
use crate::write_set::{BulkWriter, Epoch, LazyWriteSet};
pub use lent::{BulkRows, ClaimedValues, IndexAccess, ToastFrames, TwoPhase};
pub use log_size::log_bytes;
pub(crate) use own::OwnView;
pub use pins::{ExportedSnapshot, ViewPin};
pub use prepare::PreparedBytes;

/// A point to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    command: u32,
    /// Locks held when it was set, in the table and in sets.
    locks: usize,
    wide_locks: usize,
    /// Claims made when it was set.
    claims: usize,
}

/// Whether a row lock was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLockResult {
    Granted,
    /// Others hold it, and the request was not to wait.
    WouldBlock,
}

/// The newest state of a row.
#[derive(Clone, Debug)]
pub struct Latest {
    /// Our own newest change if there is one, else the newest committed state; `None`: deleted, or never there.
    pub row: Option<RowBytes>,
    /// The commit that made the newest committed state; 0 when there is none.
    pub csn: Csn,
    /// The command of our own newest change.
    pub own_command: Option<u32>,
}

/// A transaction. Operations may be called from several threads at once; commit and rollback from one.
pub struct Transaction {
    id: TxnId,
    isolation: Isolation,
    session: Arc<EngineSession>,
    state: Mutex<TransactionState>,
    /// False lets readers skip `state`.
    has_writes: AtomicBool,
    /// The newest commit that it has seen, or taken locks after, before that was visible: its views show that, and it does not
    /// end before that is durable.
    seen: AtomicU64,
    /// SERIALIZABLE only.
    pub(crate) tracking: Option<Box<Tracking>>,
}

/// The last command's number, which changes nothing; `u32::MAX` sees all of them.
const COMMAND_MAX: u32 = u32::MAX - 1;

/// Runs after a commit's changes are visible and before its locks are released.
pub type OnPublish = Box<dyn FnOnce(Csn) + Send>;

/// A commit that has its place in the order and is not published. `poll` or `wait` must follow.
pub struct Committing {
    txn: Arc<Transaction>,
    writes: LazyWriteSet,
    started: Started,
    durability: Durability,
    on_publish: Option<OnPublish>,
}

pub(crate) struct TransactionState {
    pub writes: LazyWriteSet,
    /// The number of the running command; its changes carry it.
    pub command: u32,
    /// REPEATABLE READ's snapshot, once taken.
    pub snapshot: Option<Csn>,
    /// The log must be durable up to here before a synchronous commit returns, also when nothing was written (nextval).
    pub log_needed: melba_types::Lsn,
    pub finished: bool,
    /// Commands of savepoints that may be rolled back to, ascending.
    pub savepoints: Vec<u32>,
    /// Memory of queries that the write set holds.
    pub held: Option<Held>,
    /// Bytes of rows and keys at the last check of the write set's memory.
    pub looked_at_bytes: usize,
    /// State that open scans share, if there have been any since changes were last moved.
    epoch: Option<Arc<Epoch>>,
    /// Segments that the running command writes.
    pub bulk: Vec<BulkWriter>,
    /// A bulk segment could not be finished: nothing but a rollback is possible.
    pub failure: Option<EngineError>,
}

/// The lock of commits that must take turns: no tree has this number.
const COMMIT_TURN: LockKey = LockKey::Key(TreeId(0), 0);

impl Transaction {
    pub(crate) fn begin(session: &Arc<EngineSession>, isolation: Isolation) -> Arc<Transaction> {
        let (id, writes) = {
            let mut next = session.next.lock();
            let id = next.ids.next().unwrap_or_else(|| {
                next.ids = session.shared.take_transaction_ids();
                next.ids.next().expect("some were taken")
            });
            (TxnId(id), LazyWriteSet::new(next.writes.take()))
        };
        session.shared.locks.set_transaction(session.slot, id);
        Arc::new(Transaction {
            id,
            isolation,
            session: Arc::clone(session),
            state: Mutex::new(TransactionState {
                writes,
                command: 0,
                snapshot: None,
                log_needed: melba_types::Lsn(0),
                finished: false,
                savepoints: Vec::new(),
                held: None,
                looked_at_bytes: 0,
                epoch: None,
                bulk: Vec::new(),
                failure: None,
            }),
            has_writes: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            tracking: announce::new_tracking(isolation),
        })
    }

    /// The transaction's number, unique within one life of the server.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// The isolation level it was begun with.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Arc<EngineSession> {
        &self.session
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.session.shared
    }

    /// The view of a new statement: READ COMMITTED takes the newest state, the others keep their first. Starts a new command.
    ///
    /// The view stays usable until the next call, `end_statement`, or the end of the transaction; a `pin_view` keeps it longer.
    pub fn statement_view(&self) -> ReadView {
        let mut state = self.state.lock();
        state.seal();
        state.next_command();
        let csn = match state.snapshot {
            Some(csn) => csn,
            None => {
                let mut pins = self.session.pins.lock();
                let least = self.least_view();
                let acquire = || self.shared().snapshots.acquire(self.session.slot, pins.oldest_held(), least);
                let csn = announce::register_snapshot(self, acquire);
                pins.current = Some(csn);
                if self.isolation != Isolation::ReadCommitted {
                    state.snapshot = Some(csn);
                    self.announce_snapshot(Some(csn));
                }
                csn
            }
        };
        ReadView { csn, command: state.command }
    }

    /// The running statement's view, for code that it calls without passing its view. Valid during the statement.
    pub fn active_view(&self) -> ReadView {
        let state = self.state.lock();
        let mut pins = self.session.pins.lock();
        let csn = state.snapshot.or(pins.current).unwrap_or_else(|| {
            let csn = self.shared().snapshots.acquire(self.session.slot, pins.oldest_held(), self.least_view());
            pins.current = Some(csn);
            csn
        });
        ReadView { csn, command: state.command }
    }

    /// The CSN that a new view must show beyond the visible one.
    ///
    /// A transaction that took a lock which a commit released early relies on that commit. A READ COMMITTED transaction with
    /// changes sees everything applied: it will be behind that in the log, and rows that have just been changed need not be read
    /// again.
    fn least_view(&self) -> Csn {
        let keeps_snapshot = self.isolation != Isolation::ReadCommitted;
        match self.has_writes() {
            _ if keeps_snapshot => Csn(0),
            true => self.note_applied(),
            false => Csn(self.seen.load(Ordering::Relaxed)),
        }
    }

    /// From now on the transaction relies on everything applied so far.
    fn note_applied(&self) -> Csn {
        let snapshots = &self.shared().snapshots;
        let applied = snapshots.applied();
        if applied > snapshots.visible() {
            self.seen.fetch_max(applied.0, Ordering::Relaxed);
        }
        applied
    }

    /// Takes the snapshot of a transaction that keeps one.
    pub(crate) fn take_snapshot(&self) {
        self.statement_view();
    }

    pub(crate) fn has_snapshot(&self) -> bool {
        self.state.lock().snapshot.is_some()
    }

    /// The snapshot that the transaction keeps to its end, once taken; none of READ COMMITTED.
    pub fn kept_snapshot(&self) -> Option<Csn> {
        if self.isolation == Isolation::ReadCommitted { None } else { self.state.lock().snapshot }
    }

    /// Others may wait for the end of a transaction with such a snapshot; `None`: it keeps none any more.
    fn announce_snapshot(&self, csn: Option<Csn>) {
        self.shared().locks.keep_snapshot(self.session.slot, csn);
    }

    /// Drops a snapshot with which nothing has been read.
    pub(crate) fn drop_snapshot(&self) {
        self.state.lock().snapshot = None;
        self.announce_snapshot(None);
        let mut pins = self.session.pins.lock();
        pins.current = None;
        self.shared().snapshots.hold(self.session.slot, pins.oldest());
    }

    /// The same commits as `view`, and everything this transaction has written so far. Starts a new command.
    pub fn current_view(&self, view: ReadView) -> ReadView {
        let mut state = self.state.lock();
        state.seal();
        state.next_command();
        ReadView { csn: view.csn, command: state.command }
    }

    /// The number of the running command.
    pub fn command(&self) -> u32 {
        self.state.lock().command
    }

    /// Tells that no statement runs: a READ COMMITTED transaction that idles must not keep old versions alive.
    pub fn end_statement(&self) {
        if self.isolation == Isolation::ReadCommitted {
            let mut pins = self.session.pins.lock();
            pins.current = None;
            self.shared().snapshots.hold(self.session.slot, pins.oldest());
        }
    }

    /// Keeps a view of this transaction usable until the pin is dropped.
    pub fn pin_view(&self, view: ReadView) -> ViewPin {
        self.session.pins.lock().held.push(view);
        ViewPin { session: Arc::clone(&self.session), view }
    }

    /// The newest committed state with all own changes, kept readable while the pin lives: constraint checks use it, whatever the
    /// statement's view.
    pub fn latest_view(&self) -> (ReadView, ViewPin) {
        let mut pins = self.session.pins.lock();
        let csn = self.shared().snapshots.acquire(self.session.slot, pins.oldest(), self.note_applied());
        let view = ReadView { csn, command: ReadView::LATEST_COMMAND };
        pins.held.push(view);
        (view, ViewPin { session: Arc::clone(&self.session), view })
    }

    /// Lets other transactions use the running statement's view of others' commits: its own changes are not part of it.
    pub fn export_snapshot(&self) -> Result<ExportedSnapshot> {
        let mut pins = self.session.pins.lock();
        let csn = pins.current.ok_or(EngineError::Misuse("no statement runs whose snapshot could be exported"))?;
        self.shared().snapshots.export(csn);
        // It shows none of this transaction's own changes.
        let view = ReadView { csn, command: 0 };
        pins.held.push(view);
        Ok(ExportedSnapshot { pin: ViewPin { session: Arc::clone(&self.session), view } })
    }

    /// Takes an exported snapshot as this transaction's own, before it has taken another: false when it is not exported any more.
    /// A READ COMMITTED transaction keeps no snapshot.
    pub fn adopt_snapshot(&self, csn: Csn) -> Result<bool> {
        self.with_state(|state| {
            if self.isolation == Isolation::ReadCommitted || state.snapshot.is_some() {
                return Err(EngineError::Misuse("a snapshot is adopted by a transaction that needs one and has none"));
            }
            let mut pins = self.session.pins.lock();
            // Views that the session keeps from earlier transactions may be older still; the slot protects the oldest.
            let adopted = self.shared().snapshots.adopt(self.session.slot, csn, pins.oldest());
            if adopted {
                pins.current = Some(csn);
                state.snapshot = Some(csn);
                self.announce_snapshot(Some(csn));
                self.seen.fetch_max(csn.0, Ordering::Relaxed);
            }
            Ok(adopted)
        })
    }

    /// Declares whether the transaction may write, and whether it would rather wait than be tracked. Counts when the snapshot
    /// is taken, and only for SERIALIZABLE. The caller keeps a READ ONLY transaction from writing.
    pub fn set_access(&self, read_only: bool, deferrable: bool) {
        if let Some(tracking) = &self.tracking {
            tracking.read_only.store(read_only, Ordering::Relaxed);
            tracking.deferrable.store(deferrable, Ordering::Relaxed);
        }
    }

    /// Before the first `statement_view` of a SERIALIZABLE READ ONLY DEFERRABLE transaction: waits for a snapshot that no
    /// running transaction can make unsafe. Does nothing for others.
    ///
    /// # Errors
    /// `Interrupted` while it waits.
    pub fn await_safe_snapshot(&self) -> Result<()> {
        let Some(tracking) = &self.tracking else { return Ok(()) };
        if !(tracking.read_only.load(Ordering::Relaxed) && tracking.deferrable.load(Ordering::Relaxed)) || self.has_snapshot() {
            return Ok(());
        }
        loop {
            self.take_snapshot();
            let Some((id, _)) = tracking.registered() else { return Ok(()) };
            let waited = announce::wait_for_safety(self, id);
            let safe = matches!(waited, Ok(Safety::Safe));
            announce::stop(self);
            if safe {
                return Ok(());
            }
            self.drop_snapshot();
            waited?;
        }
    }

    /// Whether anything was changed: an idle or read-only transaction has no xid in PostgreSQL.
    pub fn has_writes(&self) -> bool {
        self.has_writes.load(Ordering::Acquire)
    }

    /// Bytes of rows and keys waiting for the commit.
    pub fn write_bytes(&self) -> usize {
        self.state.lock().writes.bytes
    }

    /// The number of the running command, and `write_bytes`.
    pub fn progress(&self) -> (u32, usize) {
        let state = self.state.lock();
        (state.command, state.writes.bytes)
    }

    /// A point to roll back to.
    pub fn savepoint(&self) -> Savepoint {
        let mut state = self.state.lock();
        state.seal();
        state.next_command();
        let command = state.command;
        state.savepoints.push(command);
        let locks = &self.shared().locks;
        let slot = self.session.slot;
        Savepoint { command, locks: locks.held(slot), wide_locks: locks.wide_mark(slot), claims: locks.claims.held(slot) }
    }

    /// Undoes every change since the savepoint, which stays usable, and releases the row, key and advisory locks taken since
    /// (relation locks stay until the end).
    pub fn rollback_to(&self, savepoint: Savepoint) {
        let mut state = self.state.lock();
        state.seal();
        let shared = self.shared();
        state.writes.roll_back_to(savepoint.command, |what| shared.undo(what));
        let kept = state.savepoints.partition_point(|command| *command <= savepoint.command);
        state.savepoints.truncate(kept);
        // A later rollback to an older savepoint with an equal number must not cut the changes that come next.
        state.next_command();
        drop(state);
        shared.locks.claims.forget(self.session.slot, savepoint.claims);
        shared.locks.release_wide_since(self.session.slot, savepoint.wide_locks);
        shared.locks.release_since(self.session.slot, savepoint.locks);
    }

    /// Forgets a savepoint; its changes stay.
    pub fn release(&self, savepoint: Savepoint) {
        let mut state = self.state.lock();
        let kept = state.savepoints.partition_point(|command| *command < savepoint.command);
        state.savepoints.truncate(kept);
    }

    pub(crate) fn state(&self) -> melba_threads::MutexGuard<'_, TransactionState> {
        self.state.lock()
    }

    /// Runs `f` on the state of a transaction that is still open.
    pub(crate) fn with_state<T>(&self, f: impl FnOnce(&mut TransactionState) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock();
        if state.finished {
            return Err(EngineError::Misuse("the transaction has ended"));
        }
        state.check_failure()?;
        f(&mut state)
    }

    /// Sets the number of the running command, to test its end.
    #[cfg(test)]
    pub(crate) fn set_command(&self, command: u32) {
        self.state.lock().command = command;
    }

    /// Like `with_state`, for changes.
    pub(crate) fn change<T>(&self, f: impl FnOnce(&mut TransactionState) -> Result<T>) -> Result<T> {
        self.with_state(|state| {
            // Further commands could not be distinguished. (So many changes do not fit in memory, but their numbers end there, too.)
            if state.command >= COMMAND_MAX || state.writes.changes.len() >= COMMAND_MAX as usize {
                return Err(EngineError::Limit("cannot have more than 2^32-2 commands in a transaction"));
            }
            if !self.has_writes() {
                self.has_writes.store(true, Ordering::Release);
                self.shared().locks.sessions[self.session.slot as usize].writing.store(true, Ordering::Relaxed);
            }
            f(state)
        })
    }

    /// The failure of a bulk load, for readers.
    pub(crate) fn check_failure(&self) -> Result<()> {
        if self.has_writes() { self.state.lock().check_failure() } else { Ok(()) }
    }

    /// A tree to read or write.
    pub(crate) fn tree(&self, tree: TreeId) -> Result<TreeRef> {
        let tree = self.shared().store.tree(tree)?;
        tree.check_damage()?;
        Ok(tree)
    }

    /// Runs `f` with the newest applied CSN, protected meanwhile like a view.
    pub(crate) fn with_newest<T>(&self, f: impl FnOnce(Csn) -> T) -> T {
        let snapshots = &self.shared().snapshots;
        let applied = self.note_applied();
        let csn = snapshots.acquire(self.session.slot, self.session.pins.lock().oldest(), applied);
        let result = f(csn);
        snapshots.hold(self.session.slot, self.session.pins.lock().oldest());
        result
    }

    /// How many threads may do one statement's work: elsewhere than in a server everything happens in the caller's order.
    pub fn threads(&self) -> usize {
        self.shared().runtime.statement_threads()
    }

    /// The scheduler to notify of waits.
    pub fn scheduler(&self) -> &dyn Scheduler {
        &*self.shared().runtime.scheduler
    }

    /// Whether the bulk path is open to a tree's rows or entries: those of memory tables are never on disk.
    pub fn has_segments(&self, tree: TreeId) -> Result<bool> {
        Ok(self.tree(tree)?.is_flushed())
    }

    /// How many rows of one command and table are many.
    pub fn bulk_rows_min(&self) -> usize {
        self.shared().options.bulk_rows_min
    }

    // What it lends: its methods about one thing.

    /// The entries of an index.
    pub fn index(self: &Arc<Self>, tree: TreeId) -> IndexAccess<'_> {
        IndexAccess { txn: self, tree }
    }

    /// The frames in a toast tree.
    pub fn frames(&self, tree: TreeId) -> ToastFrames<'_> {
        ToastFrames { txn: self, tree }
    }

    /// The rows that a statement adds to a table.
    pub fn bulk(&self, tree: TreeId) -> BulkRows<'_> {
        BulkRows { txn: self, tree }
    }

    /// The claims in the index of an exclusion constraint.
    pub fn claims(&self, tree: TreeId) -> ClaimedValues<'_> {
        ClaimedValues { txn: self, tree }
    }

    /// Two-phase commit.
    pub fn two_phase(&self) -> TwoPhase<'_> {
        TwoPhase { txn: self }
    }

    // Locks, held to the end of the transaction. Those on rows and keys may come from a commit that is not durable yet.

    pub(crate) fn lock_key(&self, key: LockKey, mode: Mode, wait: Wait) -> Result<bool> {
        let granted = self.session.lock_key(key, mode, HoldDuration::Transaction, wait)?;
        if granted {
            self.note_applied();
        }
        Ok(granted)
    }

    /// Locks a row. After a wait the caller compares `get_latest().csn` with its view: a newer one means that the row changed;
    /// READ COMMITTED checks the row again, REPEATABLE READ raises `SerializationFailure`.
    pub fn lock_row(&self, tree: TreeId, row: RowId, mode: RowLockMode, wait: Wait) -> Result<RowLockResult> {
        let granted = self.lock_key(LockKey::Row(tree, row), mode.into(), wait)?;
        Ok(if granted { RowLockResult::Granted } else { RowLockResult::WouldBlock })
    }

    /// The same for a row that will be changed at once: others can distinguish it from a row that is only locked.
    pub fn lock_row_to_change(&self, tree: TreeId, row: RowId, mode: RowLockMode) -> Result<()> {
        self.lock_key(LockKey::Row(tree, row), Mode::of_change(mode), Wait::Block).map(drop)
    }

    /// The row that was locked to be changed is not changed after all: others need not wait for a change. It stays locked if `keep`. Does
    /// nothing when the transaction has changed the row.
    pub fn give_up_change(&self, tree: TreeId, row: RowId, keep: bool) -> Result<()> {
        if self.get_latest(tree, row)?.own_command.is_none() {
            self.shared().locks.give_up_change(self.session.slot, LockKey::Row(tree, row), keep);
        }
        Ok(())
    }

    /// Waits until no other transaction is changing a row of a table; false: one is, and we may not wait.
    pub fn await_change(&self, table: TreeId, row: RowId, wait: Wait) -> Result<bool> {
        self.await_holder(LockKey::Row(table, row), wait)
    }

    /// Waits until no other transaction holds a lock for a change; false: one does, and we may not wait.
    fn await_holder(&self, lock: LockKey, wait: Wait) -> Result<bool> {
        let free = self.lock_key(lock, Mode::AWAIT_CHANGE, wait)?;
        if free {
            self.shared().locks.release_newest(self.session.slot, lock, Mode::AWAIT_CHANGE);
        }
        Ok(free)
    }

    /// Waits for the commits of all transactions that came here before: transactions commit, and become visible, in the order of
    /// these calls. To be called when only the commit is left to do. The turn passes on as locks of rows do, when the commit has
    /// its place in the log, so that their writes of the log are shared.
    ///
    /// # Errors
    /// Those of a wait for a lock.
    pub fn take_commit_turn(&self) -> Result<()> {
        self.lock_key(COMMIT_TURN, Mode::KEY, Wait::Block).map(drop)
    }

    /// Locks a relation; false: would block.
    pub fn lock_relation(&self, tag: LockTag, mode: RelationLockMode, wait: Wait) -> Result<bool> {
        self.session.lock_key(LockKey::Tag(tag), mode.into(), HoldDuration::Transaction, wait)
    }

    /// Locks any object for the transaction (DDL on non-relations, pg_advisory_xact_lock); false: would block.
    pub fn lock_object(&self, tag: LockTag, mode: RelationLockMode, wait: Wait) -> Result<bool> {
        self.lock_relation(tag, mode, wait)
    }

    /// The flag that interrupts this transaction's waits; shared with its session.
    pub fn set_interrupt(&self, interrupt: Arc<Interrupt>) {
        self.session.set_interrupt(interrupt);
    }

    // The end.

    /// Makes every change visible at once, with the requested durability: starts the commit and waits for it.
    ///
    /// On an error nothing was changed, unless the error is `Poisoned`: then a restart shows whether it committed.
    pub fn commit(self: &Arc<Self>, durability: Durability) -> Result<Csn> {
        let committing = self.start_commit(durability, None)?;
        let published = self.wait_published(&committing.started);
        let (result, wait) = committing.end(published);
        self.shared().background.throttle(wait);
        result
    }

    /// Fixes the commit's place in the order without waiting for its publication. The errors are those of `commit`.
    ///
    /// Others may take its locks on rows and keys as soon as the changes are applied, unless `on_publish` is given.
    pub fn start_commit(self: &Arc<Self>, durability: Durability, on_publish: Option<OnPublish>) -> Result<Committing> {
        announce::prepare(self)?;
        let (mut writes, log) = self.with_state(|state| {
            state.seal();
            match state.failure.take() {
                Some(e) => Err(e),
                None => {
                    state.finished = true;
                    state.held = None;
                    Ok((std::mem::take(&mut state.writes), state.log_needed))
                }
            }
        })?;
        let needs = Needs { log, seen: Csn(self.seen.load(Ordering::Relaxed)) };
        // SERIALIZABLE transactions learn of a commit when it is published; segments and trees show their changes then.
        let is_plain = on_publish.is_none() && self.tracking.is_none() && writes.is_rows_only();
        let locks = is_plain.then_some(EarlyRelease(self.session.slot));
        // A panic must not leave its locks behind: the engine continues, or waiters must learn that it does not.
        let start = AssertUnwindSafe(|| commit::start_commit(self.shared(), &mut writes, needs, durability, locks));
        let started = catch_unwind(start).unwrap_or_else(|panic| {
            self.finish(std::mem::take(&mut writes), true);
            resume_unwind(panic)
        });
        match started {
            Ok(started) => Ok(Committing { txn: Arc::clone(self), writes, started, durability, on_publish }),
            Err(e) => {
                self.finish(writes, true);
                Err(e)
            }
        }
    }

    fn wait_published(&self, started: &Started) -> Result<()> {
        self.session.as_committer(|committer| self.shared().pipeline.wait_published(committer, started))
    }

    /// Whether its commit may have to wait for longer than a small one's.
    pub fn is_large(&self) -> bool {
        self.state.lock().writes.bytes as u64 > WAIT_MAX_FOR_BYTES
    }

    /// Drops every change. Everything it has seen is durable on return, as after a commit: a reader must never have seen a state
    /// that a crash then loses.
    pub fn rollback(&self) {
        let mut state = self.state.lock();
        if state.finished {
            return;
        }
        state.finished = true;
        state.bulk.clear();
        state.held = None;
        let writes = std::mem::take(&mut state.writes);
        drop(state);
        if self.has_writes() {
            writes.trees.iter().for_each(|written| written.tree.changed.add(written.changed));
        }
        self.finish(writes, true);
        if Csn(self.seen.load(Ordering::Relaxed)) > self.shared().snapshots.visible() {
            self.shared().runtime.scheduler.before_wait();
            // A failure ends the engine, which is reported to all sessions.
            let _ = self.shared().pipeline.flush_log(WrittenBy::Client);
        }
    }

    fn finish(&self, mut writes: LazyWriteSet, undo: bool) {
        if undo && !writes.is_empty() {
            let shared = self.shared();
            writes.roll_back_to(0, |what| shared.undo(what));
        }
        if self.has_writes() {
            self.shared().locks.sessions[self.session.slot as usize].writing.store(false, Ordering::Relaxed);
            writes.clear();
        }
        self.session.next.lock().writes = writes.into_inner();
        announce::stop(self);
        if self.isolation != Isolation::ReadCommitted {
            self.announce_snapshot(None);
        }
        {
            let mut pins = self.session.pins.lock();
            pins.current = None;
            self.shared().snapshots.hold(self.session.slot, pins.oldest());
        }
        self.shared().locks.release_transaction(self.session.slot);
    }
}

impl TransactionState {
    /// The failure of a bulk load: later reads would lack rows.
    fn check_failure(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Begins another command; at the end of the numbers, where nothing can be changed any more, it stays the last.
    fn next_command(&mut self) {
        self.command = (self.command + 1).min(COMMAND_MAX);
    }
}

impl Committing {
    /// The commit's number, if it succeeds.
    pub fn csn(&self) -> Csn {
        self.started.csn
    }

    /// The commit's outcome as `wait` would return it; itself as long as it is not published: a synchronous one waits for the log
    /// (`EngineSession::flush_log`), and each for those before it.
    pub fn poll(self) -> std::result::Result<Result<Csn>, Committing> {
        match self.txn.shared().pipeline.try_publish(&self.started) {
            Ok(false) => Err(self),
            published => Ok(self.end_throttled(published.map(drop))),
        }
    }

    /// Waits for the commit's outcome.
    pub fn wait(self) -> Result<Csn> {
        let published = self.txn.wait_published(&self.started);
        self.end_throttled(published)
    }

    /// The session's next transaction waits for this one.
    fn end_throttled(self, published: Result<()>) -> Result<Csn> {
        let txn = Arc::clone(&self.txn);
        let (result, wait) = self.end(published);
        txn.session.throttle_next(wait);
        result
    }

    /// The outcome, and how long the writer should wait now.
    fn end(self, published: Result<()>) -> (Result<Csn>, std::time::Duration) {
        let Committing { txn, mut writes, started, durability, on_publish } = self;
        let end = AssertUnwindSafe(|| {
            let result = published.and_then(|()| txn.shared().pipeline.end_commit(&started, durability)).map(|()| started.csn);
            if let Ok(csn) = &result {
                step();
                if let Some(on_publish) = on_publish {
                    on_publish(*csn);
                }
                step();
                announce::commit(&txn, *csn);
            }
            result
        });
        let result = catch_unwind(end);
        let result = result.unwrap_or_else(|panic| {
            // It is durable and visible, but the steps after it did not run: others would continue with half of it.
            txn.shared().runtime.poison(EngineError::Misuse("the end of a commit panicked"));
            txn.finish(std::mem::take(&mut writes), false);
            resume_unwind(panic)
        });
        let shared = txn.shared();
        shared.moves.forget(&shared.snapshots);
        let wait = throttle(&writes, &shared.store, shared.options.row_store_bytes());
        txn.finish(writes, result.is_err());
        (result, wait)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.rollback();
    }
}
