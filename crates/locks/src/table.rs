//! The lock table: the holders and waiters of each lock.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use hashbrown::{DefaultHashBuilder, HashMap};
use melba_types::TxnId;

use crate::SLOTS;
use crate::claims::Claims;
use crate::modes::{Mode, ModeSet};
use crate::tag::{LockKey, LockedObject};
use crate::waits::{LongWait, WaitPhase, WaitPolicy};
use crate::wide::{TABLE_LOCKS_MAX, WideLocks};
use melba_store::{EngineError, Result};
use melba_threads::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use melba_threads::{Mutex, MutexGuard, Scheduler, WaitCell};
use melba_vfs::Clock;

const SHARDS: usize = melba_threads::sized(64, 2);
const STRONG_BUCKETS: usize = melba_threads::sized(1024, 2);

/// Weak relation locks of a session that are searched one by one; further ones are put into the table.
const FAST_MAX: usize = 64;

/// The holder or waiter: the session's slot.
pub(crate) type Owner = u32;

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldDuration {
    Transaction,
    Session,
}

/// The modes one session holds on a key.
pub(crate) struct Holder {
    pub owner: Owner,
    transaction: ModeSet,
    session: ModeSet,
}

impl Holder {
    pub fn modes(&self) -> ModeSet {
        self.transaction.union(self.session)
    }

    /// Takes a transaction's mode away.
    pub fn release(&mut self, mode: Mode) {
        self.transaction.remove(mode);
    }

    fn of(&mut self, duration: HoldDuration) -> &mut ModeSet {
        match duration {
            HoldDuration::Transaction => &mut self.transaction,
            HoldDuration::Session => &mut self.session,
        }
    }
}

pub(crate) struct Waiter {
    pub owner: Owner,
    pub mode: Mode,
    duration: HoldDuration,
}

/// One locked key. Most have one holder and no waiter, and then no allocation.
#[derive(Default)]
pub(crate) struct LockEntry {
    first: Option<Holder>,
    others: Vec<Holder>,
    pub waiters: VecDeque<Waiter>,
}

impl LockEntry {
    pub fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.first.iter().chain(&self.others)
    }

    fn holder(&mut self, owner: Owner) -> Option<&mut Holder> {
        self.first.iter_mut().chain(&mut self.others).find(|h| h.owner == owner)
    }

    fn conflicts_with_holders(&self, owner: Owner, mode: Mode) -> bool {
        self.holders().any(|h| h.owner != owner && h.modes().intersects(mode.conflicts()))
    }

    pub fn grant(&mut self, owner: Owner, mode: Mode, duration: HoldDuration) {
        if let Some(holder) = self.holder(owner) {
            holder.of(duration).insert(mode);
            return;
        }
        let mut holder = Holder { owner, transaction: ModeSet::default(), session: ModeSet::default() };
        holder.of(duration).insert(mode);
        if self.first.is_none() {
            self.first = Some(holder);
        } else {
            self.others.push(holder);
        }
    }

    /// Takes modes away from a session, and its place among the holders when it has none left.
    fn release(&mut self, owner: Owner, change: impl FnOnce(&mut Holder)) {
        let Some(holder) = self.holder(owner) else { return };
        change(holder);
        if !holder.modes().is_empty() {
            return;
        }
        if self.first.as_ref().is_some_and(|h| h.owner == owner) {
            self.first = self.others.pop();
        } else {
            self.others.retain(|h| h.owner != owner);
        }
    }

    /// Grants requests in queue order as far as possible; adds the sessions to wake to `woken`.
    pub(crate) fn wake_waiters(&mut self, woken: &mut Vec<Owner>) {
        let mut i = 0;
        let mut passed = ModeSet::default();
        while i < self.waiters.len() {
            let Waiter { owner, mode, duration } = self.waiters[i];
            let upgrade = self.holders().any(|h| h.owner == owner);
            // Those who wait for changes need not wait for those who only want to make some.
            let passes = upgrade || mode == Mode::AWAIT_CHANGE;
            let blocked_by_queue = !passes && passed.intersects(mode.conflicts());
            if blocked_by_queue || self.conflicts_with_holders(owner, mode) {
                passed.insert(mode);
                i += 1;
            } else {
                self.grant(owner, mode, duration);
                self.waiters.remove(i);
                woken.push(owner);
            }
        }
    }

    /// Whether some waiter waits for a lock of `owner`, while `owner` is about to wait for a lock of that waiter.
    fn is_certain_deadlock(&self, owner: Owner, mode: Mode) -> bool {
        let held_by = |owner: Owner| self.holders().find(|h| h.owner == owner).map(Holder::modes).unwrap_or_default();
        let mine = held_by(owner);
        let crossed = |w: &Waiter| w.mode.conflicts().intersects(mine) && mode.conflicts().intersects(held_by(w.owner));
        !mine.is_empty() && self.waiters.iter().any(crossed)
    }

    fn is_unused(&self) -> bool {
        self.first.is_none() && self.waiters.is_empty()
    }
}

pub(crate) type Shard = HashMap<LockKey, LockEntry>;

/// Takes a session's request out of a queue; adds the sessions to wake to `woken`. False when it is not in the queue, or granted.
pub(crate) fn remove_from_queue(shard: &mut Shard, key: &LockKey, owner: Owner, woken: &mut Vec<Owner>) -> bool {
    let Some(entry) = shard.get_mut(key) else { return false };
    let Some(at) = entry.waiters.iter().position(|w| w.owner == owner) else { return false };
    entry.waiters.remove(at);
    entry.wake_waiters(woken);
    if entry.is_unused() {
        shard.remove(key);
    }
    true
}

/// The locks of a session: for release, for the fast path, and for the detector's messages.
#[derive(Default)]
pub(crate) struct HeldLocks {
    /// Weak relation locks that are in no shard (invariant 3).
    pub fast: Vec<(LockKey, ModeSet)>,
    /// Transaction locks in the table, in the order in which they were granted. May repeat.
    pub transaction: Vec<(LockKey, Mode)>,
    /// Keys in the table with session locks, once for each time they were taken.
    session: Vec<(LockKey, Mode)>,
}

/// The lock state of one session.
#[derive(Default)]
pub struct SessionLocks {
    pub(crate) held: Mutex<HeldLocks>,
    pub cell: Arc<WaitCell>,
    /// Where a commit waits for its turn to be published.
    pub publish_cell: Arc<WaitCell>,
    /// The lock that the session waits for, while it waits.
    pub(crate) waiting: Mutex<Option<(LockKey, Mode)>>,
    pub(crate) pid: melba_threads::atomic::AtomicI32,
    /// The session's transaction, for the detector's messages.
    transaction: AtomicU64,
    /// It holds enough locks for further ones to be put into sets.
    wide: AtomicBool,
    /// The session's transaction has changes.
    pub writing: AtomicBool,
    /// One more than the snapshot that the session's transaction keeps to its end; 0: none.
    pub(crate) snapshot: AtomicU64,
    /// Held by the thread that releases the session's locks.
    releasing: Mutex<()>,
}

/// The right to release a session's locks on rows and keys from another thread: the session itself waits for that at its
/// transaction's end.
pub struct ReleaseTurn<'a> {
    owner: Owner,
    _turn: MutexGuard<'a, ()>,
}

impl ReleaseTurn<'_> {
    pub fn release(&self, locks: &LockManager) {
        locks.release_rows(self.owner);
    }
}

impl SessionLocks {
    /// The next transaction reuses the buffer.
    fn keep_buffer(&self, keys: Vec<(LockKey, Mode)>) {
        if keys.capacity() <= 1024 {
            let mut held = self.held.lock();
            if held.transaction.is_empty() {
                held.transaction = keys;
            }
        }
    }
}

/// All locks of an engine.
pub struct LockManager {
    scheduler: Arc<dyn Scheduler>,
    clock: Arc<dyn Clock>,
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    /// By bucket of a relation's tag: strong locks held or wanted.
    strong: Box<[AtomicU32]>,
    pub sessions: Box<[CachePadded<SessionLocks>]>,
    /// Sessions at or above this never took a lock.
    sessions_used: AtomicU32,
    pub(crate) wide: WideLocks,
    pub claims: Claims,
}

impl LockManager {
    /// `scheduler` is notified of waits, `clock` measures them.
    pub fn new(scheduler: Arc<dyn Scheduler>, clock: Arc<dyn Clock>) -> LockManager {
        LockManager {
            scheduler,
            clock,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            strong: (0..STRONG_BUCKETS).map(|_| AtomicU32::new(0)).collect(),
            sessions: (0..SLOTS).map(|_| CachePadded::default()).collect(),
            sessions_used: AtomicU32::new(0),
            wide: WideLocks::default(),
            claims: Claims::default(),
        }
    }

    fn hash(&self, key: &LockKey) -> usize {
        self.hasher.hash_one(key) as usize
    }

    pub(crate) fn shard(&self, key: &LockKey) -> MutexGuard<'_, Shard> {
        self.shards[self.hash(key) >> 20 & (SHARDS - 1)].lock()
    }

    fn strong_count(&self, key: &LockKey) -> &AtomicU32 {
        &self.strong[self.hash(key) >> 30 & (STRONG_BUCKETS - 1)]
    }

    pub(crate) fn shards(&self) -> &[Mutex<Shard>] {
        &self.shards
    }

    /// All shards, for the detector.
    pub(crate) fn all_shards(&self) -> Vec<MutexGuard<'_, Shard>> {
        self.shards.iter().map(|s| s.lock()).collect()
    }

    /// Must come before a session's first lock.
    pub fn attach(&self, owner: u32) {
        self.sessions_used.fetch_max(owner + 1, Ordering::SeqCst);
    }

    pub(crate) fn used_sessions(&self) -> impl Iterator<Item = (Owner, &SessionLocks)> {
        (0..self.sessions_used.load(Ordering::SeqCst)).zip(self.sessions.iter().map(|session| &**session))
    }

    pub fn set_pid(&self, owner: u32, pid: i32) {
        self.sessions[owner as usize].pid.store(pid, Ordering::Relaxed);
    }

    /// The process id that a session has announced.
    pub fn pid(&self, owner: u32) -> i32 {
        self.sessions[owner as usize].pid.load(Ordering::Relaxed)
    }

    /// Announces the session's transaction.
    pub fn set_transaction(&self, owner: u32, id: TxnId) {
        self.sessions[owner as usize].transaction.store(id.0, Ordering::Relaxed);
    }

    pub(crate) fn transaction(&self, owner: u32) -> TxnId {
        TxnId(self.sessions[owner as usize].transaction.load(Ordering::Relaxed))
    }

    /// The session that has announced a process id.
    pub fn slot(&self, pid: i32) -> Option<u32> {
        self.used_sessions().find(|(_, s)| s.pid.load(Ordering::Relaxed) == pid).map(|(owner, _)| owner)
    }

    /// Whether at least `count` other sessions have changes and wait for no lock.
    pub fn has_writers(&self, own: u32, count: usize) -> bool {
        let is_writer = |(owner, session): &(Owner, &SessionLocks)| {
            *owner != own && session.writing.load(Ordering::Relaxed) && session.waiting.lock().is_none()
        };
        count == 0 || self.used_sessions().filter(is_writer).nth(count - 1).is_some()
    }

    /// A hash for `LockKey::Key`.
    pub fn hash_key(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Takes a lock; `Ok(false)` when it would have to wait and may not.
    pub fn lock(&self, owner: u32, key: LockKey, mode: Mode, duration: HoldDuration, wait: &WaitPolicy<'_>) -> Result<bool> {
        let is_relation = matches!(key, LockKey::Tag(crate::LockTag::Relation { .. }));
        if is_relation && duration == HoldDuration::Transaction {
            if mode.is_weak() && self.lock_fast(owner, key, mode) {
                return Ok(true);
            }
            if mode.conflicts_with_weak() {
                return self.lock_strong(owner, key, mode, wait);
            }
        }
        self.lock_in_table(owner, key, mode, duration, wait)
    }

    /// Invariant 3: a weak lock without touching the table.
    fn lock_fast(&self, owner: Owner, key: LockKey, mode: Mode) -> bool {
        let mut held = self.sessions[owner as usize].held.lock();
        if let Some((_, modes)) = held.fast.iter_mut().find(|(k, _)| *k == key) {
            // Held in some weak mode: no session has a conflicting lock unless the bucket says so.
            if modes.contains(mode) {
                return true;
            }
            if self.strong_count(&key).load(Ordering::SeqCst) == 0 {
                modes.insert(mode);
                return true;
            }
            return false;
        }
        if held.fast.len() == FAST_MAX || self.strong_count(&key).load(Ordering::SeqCst) != 0 {
            return false;
        }
        held.fast.push((key, ModeSet::of(mode)));
        true
    }

    /// Announces a strong lock, moves the weak ones of others into the table, then queues as usual.
    fn lock_strong(&self, owner: Owner, key: LockKey, mode: Mode, wait: &WaitPolicy<'_>) -> Result<bool> {
        let count = self.strong_count(&key);
        count.fetch_add(1, Ordering::SeqCst);
        for (other, session) in self.used_sessions() {
            let mut held = session.held.lock();
            let Some(at) = held.fast.iter().position(|(k, _)| *k == key) else { continue };
            let (_, modes) = held.fast.swap_remove(at);
            let mut shard = self.shard(&key);
            let entry = shard.entry(key).or_default();
            for mode in modes.iter() {
                held.transaction.push((key, mode));
                entry.grant(other, mode, HoldDuration::Transaction);
            }
        }
        let result = self.lock_in_table(owner, key, mode, HoldDuration::Transaction, wait);
        if !matches!(result, Ok(true)) {
            count.fetch_sub(1, Ordering::SeqCst);
        }
        result
    }

    fn lock_in_table(
        &self,
        owner: Owner,
        key: LockKey,
        mode: Mode,
        duration: HoldDuration,
        wait: &WaitPolicy<'_>,
    ) -> Result<bool> {
        let certain_deadlock = {
            let mut shard = self.shard(&key);
            if duration == HoldDuration::Transaction && WideLocks::holds(&key) && self.lock_wide(&mut shard, owner, key, mode) {
                return Ok(true);
            }
            let entry = shard.entry(key).or_default();
            let mine = entry.holders().find(|h| h.owner == owner);
            let (known, fresh) = match mine {
                Some(h) => {
                    let same = if duration == HoldDuration::Transaction { h.transaction } else { h.session };
                    (same.covers(mode), false)
                }
                None => (false, true),
            };
            if known {
                drop(shard);
                self.note_repeat(owner, key, mode, duration);
                return Ok(true);
            }
            let queue_blocks =
                fresh && !matches!(key, LockKey::Row(..)) && entry.waiters.iter().any(|w| w.mode.conflicts().contains(mode));
            if !queue_blocks && !entry.conflicts_with_holders(owner, mode) {
                entry.grant(owner, mode, duration);
                drop(shard);
                self.note_granted(owner, key, mode, duration);
                return Ok(true);
            }
            if !wait.block {
                if entry.is_unused() {
                    shard.remove(&key);
                }
                return Ok(false);
            }
            let certain = entry.is_certain_deadlock(owner, mode);
            entry.waiters.push_back(Waiter { owner, mode, duration });
            certain
        };
        // No need to wait before searching for a deadlock that already exists.
        let deadlock_timeout = if certain_deadlock { Duration::ZERO } else { wait.deadlock_timeout };
        self.wait_for_grant(owner, key, mode, &WaitPolicy { deadlock_timeout, ..*wait })?;
        self.note_granted(owner, key, mode, duration);
        Ok(true)
    }

    /// Releases the newest lock that the session has taken, in one mode.
    pub fn release_newest(&self, owner: u32, key: LockKey, mode: Mode) {
        {
            let mut held = self.sessions[owner as usize].held.lock();
            if held.transaction.last() == Some(&(key, mode)) {
                held.transaction.pop();
            }
        }
        self.release_in_table(owner, &key, |holder| holder.release(mode));
    }

    /// A session that has locked a row to change it does not change it: it only keeps the row locked, or (`keep` is false) as it had it
    /// locked before. A lock that is held in a set stays as it is.
    pub fn give_up_change(&self, owner: u32, key: LockKey, keep: bool) {
        self.sessions[owner as usize].held.lock().transaction.retain_mut(|(of, mode)| match mode.without_change() {
            Some(plain) if *of == key => {
                *mode = plain;
                keep
            }
            _ => true,
        });
        self.release_in_table(owner, &key, |holder| {
            for mode in holder.transaction.iter() {
                let Some(plain) = mode.without_change() else { continue };
                holder.release(mode);
                if keep {
                    holder.transaction.insert(plain);
                }
            }
        });
    }

    /// Enters into the table the locks on a key that others hold in sets; true when the session has the lock in sets then, or before.
    fn lock_wide(&self, shard: &mut Shard, owner: Owner, key: LockKey, mode: Mode) -> bool {
        if self.wide.any() {
            self.wide
                .enter(&key, owner, |other, mode| shard.entry(key).or_default().grant(other, mode, HoldDuration::Transaction));
            if self.wide.modes(owner, &key).covers(mode) {
                return true;
            }
        }
        // A lock that is only waited for is released at once, as the newest one in the table.
        let goes_into_set = self.sessions[owner as usize].wide.load(Ordering::Relaxed) && mode != Mode::AWAIT_CHANGE;
        // It may have to be released for a load (`loaded`).
        if !goes_into_set || shard.contains_key(&key) || self.wide.has_loads(owner, &key) {
            return false;
        }
        self.wide.insert(owner, &key, mode);
        true
    }

    /// From now on the session's locks are put into sets.
    pub(crate) fn note_wide(&self, owner: Owner) {
        self.sessions[owner as usize].wide.store(true, Ordering::Relaxed);
    }

    /// A mark in the locks that a session holds in sets, for `release_wide_since`.
    pub fn wide_mark(&self, owner: u32) -> usize {
        if self.sessions[owner as usize].wide.load(Ordering::Relaxed) { self.wide.mark(owner) } else { 0 }
    }

    /// Releases the session's locks in sets since a mark, 0 for everything.
    pub fn release_wide_since(&self, owner: u32, mark: usize) {
        if self.sessions[owner as usize].wide.load(Ordering::Relaxed) {
            for (key, mode) in self.wide.forget(owner, mark) {
                self.release_in_table(owner, &key, |holder| holder.release(mode));
            }
        }
    }

    fn note_granted(&self, owner: Owner, key: LockKey, mode: Mode, duration: HoldDuration) {
        let mut held = self.sessions[owner as usize].held.lock();
        match duration {
            HoldDuration::Transaction => {
                held.transaction.push((key, mode));
                if held.transaction.len() == TABLE_LOCKS_MAX {
                    self.note_wide(owner);
                }
            }
            HoldDuration::Session => held.session.push((key, mode)),
        }
    }

    /// Session locks count; a strong transaction lock taken again must not count twice in its bucket.
    fn note_repeat(&self, owner: Owner, key: LockKey, mode: Mode, duration: HoldDuration) {
        match duration {
            HoldDuration::Session => self.sessions[owner as usize].held.lock().session.push((key, mode)),
            HoldDuration::Transaction
                if mode.conflicts_with_weak() && matches!(key, LockKey::Tag(crate::LockTag::Relation { .. })) =>
            {
                self.strong_count(&key).fetch_sub(1, Ordering::SeqCst);
            }
            HoldDuration::Transaction => {}
        }
    }

    /// Sleeps until a releaser has granted the lock; on any error the request is out of the queue.
    fn wait_for_grant(&self, owner: Owner, key: LockKey, mode: Mode, wait: &WaitPolicy<'_>) -> Result<()> {
        let session = &self.sessions[owner as usize];
        *session.waiting.lock() = Some((key, mode));
        wait.interrupt.set_sleeper(Some(Arc::clone(&session.cell)));
        let result = self.sleep_until_granted(owner, key, mode, wait);
        wait.interrupt.set_sleeper(None);
        *session.waiting.lock() = None;
        result
    }

    fn sleep_until_granted(&self, owner: Owner, key: LockKey, mode: Mode, wait: &WaitPolicy<'_>) -> Result<()> {
        let start = self.clock.monotonic();
        let mut told = None;
        let result = self.sleep(owner, (&key, mode), wait, start, &mut told);
        if let (Some(watch), Some(lock)) = (wait.watch, told) {
            let phase = if result.is_ok() { WaitPhase::Acquired } else { WaitPhase::Failed };
            let (holders, queue) = (Vec::new(), Vec::new());
            watch(&LongWait { pid: self.pid(owner), lock, waited: self.waited_since(start), phase, holders, queue });
        }
        result
    }

    /// Sets `told` to the lock once `wait.watch` was told of the wait.
    fn sleep(
        &self,
        owner: Owner,
        (key, mode): (&LockKey, Mode),
        wait: &WaitPolicy<'_>,
        start: Duration,
        told: &mut Option<String>,
    ) -> Result<()> {
        let mut detect_at = Some(wait.deadlock_timeout);
        loop {
            let waited = self.waited_since(start);
            let failure = if let Err(e) = wait.interrupt.check() {
                Some(e)
            } else if wait.lock_timeout.is_some_and(|t| waited >= t) {
                Some(EngineError::LockTimeout)
            } else if detect_at.is_some_and(|t| waited >= t) {
                detect_at = None;
                if let Some(detail) = self.find_deadlock(owner, key) {
                    return Err(EngineError::Deadlock { detail });
                }
                if let Some(watch) = wait.watch
                    && let Some(long) = self.long_wait(owner, key, mode, self.waited_since(start))
                {
                    watch(&long);
                    *told = Some(long.lock);
                }
                None
            } else {
                None
            };
            let still_waiting = {
                let mut shard = self.shard(key);
                if failure.is_some() {
                    let mut woken = Vec::new();
                    let left = remove_from_queue(&mut shard, key, owner, &mut woken);
                    drop(shard);
                    self.notify(&woken);
                    left
                } else {
                    shard.get(key).is_some_and(|entry| entry.waiters.iter().any(|w| w.owner == owner))
                }
            };
            // A grant that came first wins over a timeout.
            if !still_waiting {
                return Ok(());
            }
            if let Some(e) = failure {
                return Err(e);
            }
            let next = [wait.lock_timeout, detect_at].into_iter().flatten().min();
            match next {
                Some(at) => {
                    self.sessions[owner as usize].cell.wait_for(&*self.scheduler, at.saturating_sub(self.waited_since(start)))
                }
                None => self.sessions[owner as usize].cell.wait(&*self.scheduler),
            }
        }
    }

    fn waited_since(&self, start: Duration) -> Duration {
        self.clock.monotonic().saturating_sub(start)
    }

    pub(crate) fn notify(&self, owners: &[Owner]) {
        for owner in owners {
            self.sessions[*owner as usize].cell.notify();
        }
    }

    pub(crate) fn release_in_table(&self, owner: Owner, key: &LockKey, change: impl FnOnce(&mut Holder)) {
        let mut woken = Vec::new();
        {
            let mut shard = self.shard(key);
            let Some(entry) = shard.get_mut(key) else { return };
            entry.release(owner, change);
            if !entry.waiters.is_empty() {
                entry.wake_waiters(&mut woken);
            }
            if entry.is_unused() {
                shard.remove(key);
            }
        }
        self.notify(&woken);
    }

    /// See `ReleaseTurn`.
    pub fn begin_release(&self, owner: u32) -> ReleaseTurn<'_> {
        ReleaseTurn { owner, _turn: self.sessions[owner as usize].releasing.lock() }
    }

    /// Row and key locks of a transaction that will take no more of them. Locks on relations and other objects stay.
    fn release_rows(&self, owner: u32) {
        self.claims.forget(owner, 0);
        self.release_wide_since(owner, 0);
        let session = &self.sessions[owner as usize];
        let mut keys = {
            let mut held = session.held.lock();
            let mut keys = std::mem::take(&mut held.transaction);
            if !keys.iter().all(|(key, _)| WideLocks::holds(key)) {
                held.transaction = keys.extract_if(.., |(key, _)| !WideLocks::holds(key)).collect();
            }
            keys
        };
        for (key, _) in keys.drain(..) {
            self.release_in_table(owner, &key, |holder| holder.transaction = ModeSet::default());
        }
        session.keep_buffer(keys);
    }

    /// The end of a transaction: everything it holds.
    pub fn release_transaction(&self, owner: u32) {
        // Others may be at it.
        drop(self.sessions[owner as usize].releasing.lock());
        self.claims.forget(owner, 0);
        self.release_wide_since(owner, 0);
        let session = &self.sessions[owner as usize];
        session.wide.store(false, Ordering::Relaxed);
        let mut keys = {
            let mut held = session.held.lock();
            held.fast.clear();
            if held.transaction.is_empty() {
                return;
            }
            std::mem::take(&mut held.transaction)
        };
        for (key, _) in &keys {
            let mut strong = 0;
            self.release_in_table(owner, key, |holder| {
                strong = holder.transaction.iter().filter(|m| m.conflicts_with_weak()).count() as u32;
                holder.transaction = ModeSet::default();
            });
            if strong > 0 && matches!(key, LockKey::Tag(crate::LockTag::Relation { .. })) {
                self.strong_count(key).fetch_sub(strong, Ordering::SeqCst);
            }
        }
        keys.clear();
        session.keep_buffer(keys);
    }

    /// The locks of the session's transaction; `None`: more than are known one by one.
    pub fn transaction_locks(&self, owner: u32) -> Option<Vec<(LockKey, Mode)>> {
        let session = &self.sessions[owner as usize];
        if session.wide.load(Ordering::Relaxed) {
            return None;
        }
        let held = session.held.lock();
        let fast = held.fast.iter().flat_map(|(key, modes)| modes.iter().map(|mode| (*key, mode)));
        let mut all: Vec<(LockKey, Mode)> = fast.chain(held.transaction.iter().copied()).collect();
        all.retain(|(key, _)| !matches!(key, LockKey::Transaction(..)));
        Some(all)
    }

    /// Whether the session holds locks beyond its transaction.
    pub fn has_session_locks(&self, owner: u32) -> bool {
        !self.sessions[owner as usize].held.lock().session.is_empty()
    }

    /// Transaction locks in the table so far, for `release_since`.
    pub fn held(&self, owner: u32) -> usize {
        self.sessions[owner as usize].held.lock().transaction.len()
    }

    /// Releases the row, key and advisory locks taken since `held` answered `mark`. Relation and object locks stay: others may
    /// have moved older ones behind the mark.
    pub fn release_since(&self, owner: u32, mark: usize) {
        let released: Vec<(LockKey, Mode)> = {
            let mut held = self.sessions[owner as usize].held.lock();
            let at = mark.min(held.transaction.len());
            let since = held.transaction.split_off(at);
            let before: hashbrown::HashSet<(LockKey, Mode)> = match since.is_empty() {
                true => hashbrown::HashSet::new(),
                false => held.transaction.iter().copied().collect(),
            };
            let goes = |lock: &(LockKey, Mode)| {
                let kind = matches!(lock.0, LockKey::Row(..) | LockKey::Key(..) | LockKey::Tag(crate::LockTag::Advisory { .. }));
                kind && !before.contains(lock)
            };
            let (released, kept): (Vec<_>, Vec<_>) = since.into_iter().partition(goes);
            held.transaction.extend(kept);
            released
        };
        for (key, mode) in &released {
            self.release_in_table(owner, key, |holder| holder.release(*mode));
        }
    }

    /// Releases one taking of a session lock; false when it was not held (the caller warns).
    pub fn unlock_session(&self, owner: u32, key: LockKey, mode: Mode) -> bool {
        let last = {
            let mut held = self.sessions[owner as usize].held.lock();
            let Some(at) = held.session.iter().rposition(|held| *held == (key, mode)) else { return false };
            held.session.swap_remove(at);
            !held.session.contains(&(key, mode))
        };
        if last {
            self.release_in_table(owner, &key, |holder| holder.session.remove(mode));
        }
        true
    }

    /// Releases every session lock.
    pub fn unlock_session_all(&self, owner: u32) {
        let keys = std::mem::take(&mut self.sessions[owner as usize].held.lock().session);
        for (key, _) in keys {
            self.release_in_table(owner, &key, |holder| holder.session = ModeSet::default());
        }
    }

    /// Everything held and waited for, for pg_locks.
    pub fn list(&self) -> Vec<LockedObject> {
        let pid = |owner: Owner| self.pid(owner);
        let mut out = Vec::new();
        for (owner, session) in self.used_sessions() {
            for (key, modes) in &session.held.lock().fast {
                out.extend(modes.iter().map(|m| key.shown(m.name(), true, pid(owner))));
            }
        }
        for shard in &self.shards {
            for (key, entry) in shard.lock().iter() {
                for holder in entry.holders() {
                    out.extend(holder.modes().iter().map(|m| key.shown(m.name(), true, pid(holder.owner))));
                }
                out.extend(entry.waiters.iter().map(|w| key.shown(w.mode.name(), false, pid(w.owner))));
            }
        }
        out
    }
}
