//! The commit pipeline.
//!
//! 1. In one short step under `Pipeline::state`: the CSN, the place in the log, and a place in the queue of commits in flight.
//! 2. Application to the row store, in parallel. When a commit is applied, and all before it are, its locks on rows and keys go:
//!    who takes them next will be behind it in the log. Other views than theirs do not see it yet.
//! 3. The log's flush, shared: one of the waiting commits leads and flushes for all (group commit).
//! 4. Publication in CSN order: the visible CSN moves over all finished commits at the queue's front. A synchronous commit is
//!    finished when it is applied and durable, an asynchronous one when it is applied.
//!
//! A panic before step 1 costs the transaction. From there on to step 4 it poisons the engine: no later commit could be published, for
//! this one never will be. All who wait are woken, and hear of it.

use std::collections::VecDeque;
use std::sync::Arc;

use melba_types::{Csn, Lsn};
use melba_wal::{Wal, WrittenBy};

use crate::batch;
use crate::chain::{Chain, Payload};
use crate::engine::Shared;
use crate::error::{EngineError, Result};
use crate::key::KeyBytes;
use crate::levels::{MemTable, entry_bytes};
use crate::locks::ReleaseTurn;
use crate::planted::{Plant, is_planted, step};
use crate::session::Session;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::tree::{Tree, TreeData};
use crate::txn::{Link, PrivateRun, TreeHeads, What, WriteSet};
use crate::wait::WaitCell;

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

/// The session whose locks on rows and keys are given back before the commit is published.
#[derive(Clone, Copy)]
pub(crate) struct EarlyRelease(pub u32);

/// A commit that has its CSN and is applied.
pub(crate) struct Started {
    pub csn: Csn,
    /// The log must be durable up to here before it is published.
    needed: Lsn,
    /// The log has nothing of it.
    is_unlogged: bool,
}

/// What must have become durable, or visible, before a commit returns, beside its own record.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs {
    /// The log up to here, also when nothing was written (nextval).
    pub log: Lsn,
    /// The commits up to here: the transaction has seen them, or has taken locks after them.
    pub seen: Csn,
}

struct State {
    next_csn: u64,
    /// Commits in flight; the front has the CSN after the visible one.
    queue: VecDeque<InFlight>,
    /// So many at the queue's front are applied.
    applied: usize,
    /// A commit is flushing the log for all.
    has_leader: bool,
}

/// CSN order and what is in flight.
pub(crate) struct Pipeline {
    state: Mutex<State>,
}

/// Changes applied per hold of a memory table's lock.
const APPLY_BATCH: usize = 1024;
/// Chains longer than this are thinned between snapshots, not only cut at the oldest.
const CHAIN_LENGTH_MAX: usize = 16;
/// Tombstones looked at for removal by a commit.
const GARBAGE_BATCH: usize = 256;
/// A log record's length is a u32.
const PAYLOAD_BYTES_MAX: usize = 3 << 30;
/// Asynchronous commits wait for the disk when it lags behind by this much.
const PENDING_LOG_BYTES_MAX: u64 = 64 << 20;

impl Pipeline {
    pub fn new(visible: Csn) -> Pipeline {
        let state = State { next_csn: visible.0 + 1, queue: VecDeque::new(), applied: 0, has_leader: false };
        Pipeline { state: Mutex::new(state) }
    }
}

/// Whom to wake; they are, when this is dropped.
#[derive(Default)]
struct Woken(Vec<Arc<WaitCell>>);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.iter().for_each(|cell| cell.notify());
    }
}

/// Held from a commit's place in the order to its publication.
struct InOrder<'a>(&'a Shared);

impl Drop for InOrder<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(PoisonOnPanic(self.0));
            drop(self.0.publish(&mut self.0.pipeline.state.lock()));
            self.0.room.notify_all();
        }
    }
}

/// Held while a commit gets its place, under the pipeline's lock.
struct PoisonOnPanic<'a>(&'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(EngineError::Misuse("a commit panicked"));
        }
    }
}

/// Room in the log for a record that is not appended yet.
struct Promise<'a> {
    wal: &'a Wal,
    bytes: Option<usize>,
}

impl<'a> Promise<'a> {
    fn new(wal: &'a Wal, bytes: usize) -> Result<Promise<'a>> {
        wal.reserve(bytes)?;
        Ok(Promise { wal, bytes: Some(bytes) })
    }

    /// The record is in the log.
    fn keep(mut self) {
        self.bytes = None;
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes {
            self.wal.unreserve(bytes);
        }
    }
}

#[cfg(test)]
impl Shared {
    /// Whether a commit is flushing the log, or waits for siblings first.
    pub(crate) fn has_leader(&self) -> bool {
        self.pipeline.state.lock().has_leader
    }
}

/// One moment of the pipeline.
pub(crate) struct Floor {
    /// The newest CSN given out.
    pub assigned: Csn,
    /// Every commit up to here is applied, and its record lies before `replay`; the records of all others do not.
    pub whole: Csn,
    pub replay: Lsn,
}

impl Shared {
    /// Where the pipeline is.
    pub(crate) fn floor(&self) -> Floor {
        let state = self.pipeline.state.lock();
        let in_flight = state.queue.iter().map(|c| c.start).min().unwrap_or(Lsn(u64::MAX));
        Floor { assigned: Csn(state.next_csn - 1), whole: self.snapshots.visible(), replay: in_flight.min(self.wal.end()) }
    }

    /// Steps 1 and 2 for a write set whose session still holds its locks; `seen` is the newest commit that the transaction has
    /// seen or has relied on. Nothing has changed after an error.
    pub(crate) fn start_commit(
        &self,
        writes: &mut WriteSet,
        needs: Needs,
        durability: Durability,
        locks: Option<EarlyRelease>,
    ) -> Result<Started> {
        self.check_poison()?;
        let sync = durability == Durability::Sync;
        if writes.is_empty() {
            if needs.seen > self.snapshots.visible() || sync && needs.log > self.wal.durable() {
                self.flush_log(WrittenBy::Client)?;
            }
            return Ok(Started { csn: self.snapshots.visible(), needed: Lsn(0), is_unlogged: true });
        }
        self.make_room()?;
        self.check_memory_tables(writes, 0)?;
        if writes.replaces() {
            self.settle_row_store()?;
        }
        self.sync_links(writes)?;
        step();
        let mut payload = std::mem::take(&mut writes.encoded);
        payload.clear();
        batch::encode(writes, &mut payload);
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(EngineError::OutOfMemory { what: "a transaction's changes exceed the log's record size" });
        }
        // The last thing that may fail: from here on the commit has its place in the order.
        let promise = if payload.is_empty() { None } else { Some(self.promise(writes, payload.len())?) };
        step();
        let _in_order = InOrder(self);
        let (csn, needed, end) = self.put_in_order(&mut payload, needs, sync, locks)?;
        promise.into_iter().for_each(Promise::keep);
        writes.encoded = payload;
        step();
        self.apply(writes, csn);
        step();
        // Before others may believe that the commit is over: a flush keeps what is there then, and forgets the record.
        self.forget_dropped(writes);
        step();
        self.note_one_applied(csn);
        Ok(Started { csn, needed, is_unlogged: end.0 == 0 })
    }

    /// Room in the log; what gives space back has it on a full disk, too.
    fn promise(&self, writes: &WriteSet, bytes: usize) -> Result<Promise<'_>> {
        match writes.frees() {
            true => self.reserve.with(self.clock.monotonic(), || Promise::new(&self.wal, bytes)),
            false => self.reserve.check().and_then(|()| Promise::new(&self.wal, bytes)),
        }
    }

    /// Step 1: the commit's number, how far the log must be durable for it, and where its record ends. The only errors are that numbers
    /// are used up, and that a commit before it has panicked.
    fn put_in_order(
        &self,
        payload: &mut Vec<u8>,
        needs: Needs,
        sync: bool,
        locks: Option<EarlyRelease>,
    ) -> Result<(Csn, Lsn, Lsn)> {
        let crc = melba_wal::payload_crc(payload);
        let mut state = self.pipeline.state.lock();
        // Behind a panic in here the order has a gap, or the log a record too many: nobody may follow.
        let _gap = PoisonOnPanic(self);
        self.check_poison()?;
        if state.next_csn > melba_wal::CSN_MAX {
            return Err(EngineError::Limit("commit sequence numbers are used up"));
        }
        step();
        let csn = Csn(state.next_csn);
        state.next_csn += 1;
        step();
        let (start, end) = match payload.is_empty() {
            true => (Lsn(u64::MAX), Lsn(0)),
            false => self.wal.append(csn, payload, crc),
        };
        step();
        let needed = if sync && !is_planted(Plant::PublishEarly) { end.max(needs.log) } else { Lsn(0) };
        state.queue.push_back(InFlight { applied: false, start, needed, waiter: None, locks });
        step();
        Ok((csn, needed, end))
    }

    /// The end of step 2.
    fn note_one_applied(&self, csn: Csn) {
        let mut state = self.pipeline.state.lock();
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
    pub(crate) fn wait_published(&self, session: &Session, started: &Started) -> Result<()> {
        if self.snapshots.visible() >= started.csn { Ok(()) } else { self.finish_commit(session, started.csn, started.needed) }
    }

    /// The part of step 4 that needs no waiting: whether the commit is published now.
    pub(crate) fn try_publish(&self, started: &Started) -> Result<bool> {
        if self.snapshots.visible() < started.csn {
            drop(self.publish(&mut self.pipeline.state.lock()));
        }
        match self.snapshots.visible() >= started.csn {
            true => Ok(true),
            false => self.check_poison().map(|()| false),
        }
    }

    /// What follows publication.
    pub(crate) fn end_commit(&self, started: &Started, durability: Durability) -> Result<()> {
        if started.csn.0.is_multiple_of(8) {
            self.snapshots.compute_oldest();
        }
        if durability == Durability::Async && !started.is_unlogged {
            let waiting = self.waiting_log_bytes();
            self.log_writer.leave(waiting);
            if waiting > PENDING_LOG_BYTES_MAX {
                self.flush_log(WrittenBy::Client)?;
            }
        }
        Ok(())
    }

    /// Flushes everything that is committed by now, so that replay begins after it. Changes that a transaction moved into
    /// segments of its own are linked behind the row store, which must hold no older version of them then, and neither must
    /// what recovery puts into it. None is added meanwhile, for the transaction holds the rows' locks.
    fn settle_row_store(&self) -> Result<()> {
        let end = self.wal.end();
        let mut first = true;
        while std::mem::take(&mut first) || self.checkpoint.load(Ordering::Relaxed) < end.0 {
            self.flush_all(&mut self.background.lock().flush)?;
        }
        Ok(())
    }

    /// Rows of memory tables have nowhere else to go, so there is a limit to them.
    /// `more` are about to be added. Removing is always possible.
    pub(crate) fn check_memory_tables(&self, writes: &WriteSet, more: usize) -> Result<()> {
        let own = (writes.memory_table_bytes + more) as u64;
        let used = self.memory_tables_bytes.load(Ordering::Relaxed) + own;
        if own > 0 && used > self.options.memory_tables_bytes() {
            return Err(EngineError::OutOfMemory { what: "memory tables have reached their limit" });
        }
        Ok(())
    }

    /// The names of segments that the commit links must be durable before its record can be.
    fn sync_links(&self, writes: &WriteSet) -> Result<()> {
        let must_last = writes.links.iter().any(|l| l.tree.is_synced());
        if must_last { self.files.sync_names().map_err(|e| self.poison(e)) } else { Ok(()) }
    }

    /// Sees an applied commit published, leading a flush of the log if one is needed and nobody does.
    fn finish_commit(&self, session: &Session, csn: Csn, needed: Lsn) -> Result<()> {
        let cell = &self.locks.sessions[session.slot as usize].publish_cell;
        let _in_order = InOrder(self);
        let mut state = self.pipeline.state.lock();
        loop {
            let woken = self.publish(&mut state);
            let published = self.snapshots.visible();
            if published >= csn {
                drop(state);
                drop(woken);
                return Ok(());
            }
            if let Err(e) = self.check_poison() {
                drop(state);
                drop(woken);
                return Err(e);
            }
            let lead = !state.has_leader && needed > self.wal.durable();
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
                crate::wait::about_to_wait();
                self.await_siblings(session);
                step();
                self.flush_log_alone(WrittenBy::Client)
            } else {
                cell.wait();
                Ok(())
            };
            step();
            state = self.pipeline.state.lock();
            if lead {
                state.has_leader = false;
            }
            if flushed.is_err() {
                let waiting = Woken(state.queue.iter_mut().filter_map(|c| c.waiter.take()).collect());
                drop(state);
                drop(waiting);
                return flushed;
            }
        }
    }

    /// Moves the applied CSN as far as it may; returns whose locks go now.
    fn note_applied(&self, state: &mut State) -> Vec<ReleaseTurn<'_>> {
        let mut releases = Vec::new();
        while let Some(commit) = state.queue.get_mut(state.applied).filter(|c| c.applied) {
            // In their turn now, released once the pipeline is unlocked: the owner may be published meanwhile, and waits for it.
            releases.extend(commit.locks.take().map(|EarlyRelease(slot)| self.locks.begin_release(slot)));
            state.applied += 1;
        }
        self.snapshots.note_applied(Csn(self.snapshots.visible().0 + state.applied as u64));
        releases
    }

    /// Moves the visible CSN as far as it may; returns whom to wake: the published, and one who should lead the next flush.
    fn publish(&self, state: &mut MutexGuard<'_, State>) -> Woken {
        let mut woken = Woken::default();
        if self.is_poisoned() {
            woken.0.extend(state.queue.iter_mut().filter_map(|c| c.waiter.take()));
            return woken;
        }
        let durable = self.wal.durable();
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

    fn flush_log_alone(&self, by: WrittenBy) -> Result<()> {
        match self.wal.flush(by) {
            Ok(_) => Ok(()),
            Err(e) => Err(self.poison(e.into())),
        }
    }

    /// Makes everything in the log durable, and publishes what waited for that.
    pub(crate) fn flush_log(&self, by: WrittenBy) -> Result<()> {
        let result = self.flush_log_alone(by);
        drop(self.publish(&mut self.pipeline.state.lock()));
        result
    }

    /// Puts the final state of every changed key into the row store.
    fn apply(&self, writes: &WriteSet, csn: Csn) {
        for change in &writes.changes {
            self.apply_schema(&change.what, writes);
        }
        for Link { tree, run, live, .. } in &writes.links {
            tree.live.fetch_add(*live, Ordering::Relaxed);
            // Opened again with the CSN that its zeros now stand for; that it opened before makes a failure one of the disk's.
            if let Err(e) = self.link(tree, run, csn) {
                self.poison(e);
            }
        }
        for written in writes.trees.iter().filter(|t| !t.is_empty()) {
            step();
            let tree = &written.tree;
            match (&tree.data, &written.heads) {
                (TreeData::Table(table), TreeHeads::Rows(heads)) => {
                    let levels = table.levels.read();
                    let rows = writes.final_rows(heads).map(|(row, bytes)| (row, bytes.cloned()));
                    self.apply_to(tree, &levels.active, csn, rows, |_| 0);
                    self.collect_garbage(tree, &levels.active, |id| levels.is_bottom(*id), |_| 0);
                }
                (TreeData::Index(index), TreeHeads::Keys(heads)) => {
                    let levels = index.levels.read();
                    let keys = writes.final_keys(heads).map(|(key, live)| (key.clone(), live));
                    self.apply_to(tree, &levels.active, csn, keys, |k| k.heap_bytes());
                    let bottom = |key: &KeyBytes| levels.is_bottom(key.as_slice());
                    self.collect_garbage(tree, &levels.active, bottom, |k| k.heap_bytes());
                }
                _ => unreachable!("the heads are of the tree's kind"),
            }
            tree.live.fetch_add(written.live, Ordering::Relaxed);
        }
    }

    fn apply_schema(&self, what: &What, writes: &WriteSet) {
        match what {
            What::CreateTree(tree) => tree.committed.store(true, Ordering::Release),
            What::CreateSequence(sequence) => sequence.state.lock().committed = true,
            What::ExtendTable { tree, .. } => {
                let layout = writes.layouts.iter().find(|(id, _)| *id == tree.id);
                if let (Some(table), Some((_, layout))) = (tree.as_table(), layout) {
                    table.layout.set(Arc::clone(layout));
                }
            }
            _ => {}
        }
    }

    fn link(&self, tree: &Tree, run: &PrivateRun, csn: Csn) -> Result<()> {
        match (&tree.data, run) {
            (TreeData::Table(table), PrivateRun::Table(run)) => {
                let linked = self.files.link_table(run, csn)?;
                table.levels.write().add_runs([linked]);
            }
            (TreeData::Index(index), PrivateRun::Index(run)) => {
                let linked = self.files.link_index(run, csn)?;
                index.levels.write().add_runs([linked]);
            }
            _ => unreachable!("a private run is of its tree's kind"),
        }
        Ok(())
    }

    /// Puts versions into a memory table.
    fn apply_to<K: Ord + Clone, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        csn: Csn,
        changes: impl Iterator<Item = (K, V)>,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        let oldest = self.snapshots.oldest_lagging();
        let mut changes = changes.peekable();
        table.note_keys();
        while changes.peek().is_some() {
            let mut bytes = 0i64;
            let mut dead = Vec::new();
            let mut map = table.map.write();
            for (key, value) in changes.by_ref().take(APPLY_BATCH) {
                if !value.is_live() {
                    dead.push(key.clone());
                }
                bytes += value.heap_bytes() as i64;
                match map.entry(key) {
                    std::collections::btree_map::Entry::Occupied(mut slot) => {
                        let chain = slot.get_mut();
                        chain.push(csn, value);
                        bytes += size_of::<Chain<V>>() as i64 - chain.prune(oldest) as i64;
                        if chain.len_up_to(CHAIN_LENGTH_MAX + 1) > CHAIN_LENGTH_MAX {
                            bytes -= chain.prune_between(&self.snapshots.in_use()) as i64;
                        }
                    }
                    std::collections::btree_map::Entry::Vacant(slot) => {
                        bytes += entry_bytes::<K, V>(key_bytes(slot.key())) as i64;
                        slot.insert(Chain::new(csn, value));
                    }
                }
            }
            // `garbage` is locked before `map`, never the other way round.
            drop(map);
            if !dead.is_empty() {
                table.garbage.lock().extend(dead.into_iter().map(|key| (csn, key)));
            }
            self.account(tree, table, bytes);
        }
    }

    pub(crate) fn account<K, V>(&self, tree: &Tree, table: &MemTable<K, V>, bytes: i64) {
        add(&table.bytes, bytes);
        add(if tree.is_flushed() { &self.row_store_bytes } else { &self.memory_tables_bytes }, bytes);
    }

    /// Removes a few tombstones that every snapshot sees, and what they hide. Each commit does about twice what it adds.
    fn collect_garbage<K: Ord, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        bottom: impl Fn(&K) -> bool,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        let oldest = self.snapshots.oldest_lagging();
        let mut garbage = table.garbage.lock();
        if garbage.front().is_none_or(|(csn, _)| *csn > oldest) {
            return;
        }
        let mut bytes = 0;
        let mut map = table.map.write();
        for _ in 0..GARBAGE_BATCH {
            let Some((_, key)) = garbage.pop_front_if(|(csn, _)| *csn <= oldest) else { break };
            let Some(chain) = map.get_mut(&key) else { continue };
            bytes += chain.prune(oldest);
            let dead = !chain.value.is_live() && chain.csn <= oldest;
            if dead && bottom(&key) {
                map.remove(&key);
                bytes += entry_bytes::<K, V>(key_bytes(&key));
            }
        }
        drop(map);
        self.account(tree, table, -(bytes as i64));
    }

    /// Trees and sequences that the commit dropped. Their relation locks are held, so nobody reads them.
    fn forget_dropped(&self, writes: &WriteSet) {
        for change in &writes.changes {
            match &change.what {
                What::DropTree(tree) => {
                    let counter = if tree.is_flushed() { &self.row_store_bytes } else { &self.memory_tables_bytes };
                    add(counter, -(tree.memory_bytes() as i64));
                    self.serializable.tree_dropped(tree.id);
                    tree.discard();
                    self.remove_tree(tree.id);
                }
                What::DropSequence(sequence) => self.remove_sequence(sequence.id),
                _ => {}
            }
        }
    }
}

/// Adds a signed amount.
pub(crate) fn add(counter: &AtomicU64, amount: i64) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}
