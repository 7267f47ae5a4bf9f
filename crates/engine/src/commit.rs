//! The commit pipeline.
//!
//! 1. In one short step under `Pipeline::state`: the CSN, and a place in the queue of commits in flight.
//! 2. Application to the row store, in parallel; versions above the visible CSN are seen by nobody.
//! 3. Publication in CSN order: the visible CSN moves over all finished commits at the queue's front.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_types::{Csn, Lsn};
use parking_lot::Mutex;

use crate::chain::{Chain, Payload};
use crate::engine::Shared;
use crate::error::Result;
use crate::session::Session;
use crate::tree::{MemTable, Tree, TreeData};
use crate::txn::{TreeHeads, What, WriteSet};
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
    waiter: Option<Arc<WaitCell>>,
}

struct State {
    next_csn: u64,
    /// Commits in flight; the front has the CSN after the visible one.
    queue: VecDeque<InFlight>,
}

/// CSN order and what is in flight.
pub(crate) struct Pipeline {
    state: Mutex<State>,
}

/// Changes applied per hold of a memory table's lock.
const APPLY_BATCH: usize = 1024;
/// Chains longer than this are thinned between snapshots, not only cut at the oldest.
const CHAIN_LENGTH_MAX: usize = 16;

impl Pipeline {
    pub fn new(visible: Csn) -> Pipeline {
        Pipeline { state: Mutex::new(State { next_csn: visible.0 + 1, queue: VecDeque::new() }) }
    }
}

impl Shared {
    /// Commits a write set on behalf of a session, which still holds its locks.
    pub(crate) fn commit(
        &self,
        session: &Session,
        writes: &mut WriteSet,
        _log_needed: Lsn,
        _durability: Durability,
    ) -> Result<Csn> {
        if writes.is_empty() {
            return Ok(self.snapshots.visible());
        }
        let csn = {
            let mut state = self.pipeline.state.lock();
            let csn = Csn(state.next_csn);
            state.next_csn += 1;
            state.queue.push_back(InFlight { applied: false, waiter: None });
            csn
        };
        self.apply(writes, csn);
        self.publish(session, csn);
        self.forget_dropped(writes);
        Ok(csn)
    }

    /// Marks a commit applied, publishes what can be, and waits until it is among that.
    fn publish(&self, session: &Session, csn: Csn) {
        let mut state = self.pipeline.state.lock();
        let cell = &self.locks.sessions[session.slot as usize].publish_cell;
        let at = (csn.0 - self.snapshots.visible().0 - 1) as usize;
        state.queue[at].applied = true;
        let mut published = self.snapshots.visible();
        let mut woken = Vec::new();
        while state.queue.front().is_some_and(|c| c.applied) {
            woken.extend(state.queue.pop_front().and_then(|c| c.waiter));
            published.0 += 1;
        }
        self.snapshots.publish(published);
        if published < csn {
            let at = (csn.0 - published.0 - 1) as usize;
            state.queue[at].waiter = Some(Arc::clone(cell));
        }
        drop(state);
        for cell in woken {
            cell.notify();
        }
        while self.snapshots.visible() < csn {
            cell.wait();
        }
        if csn.0 % 8 == 0 {
            self.snapshots.compute_oldest();
        }
    }

    /// Puts the final state of every changed key into the row store.
    fn apply(&self, writes: &WriteSet, csn: Csn) {
        for change in &writes.changes {
            match &change.what {
                What::CreateTree(tree) => tree.committed.store(true, Ordering::Release),
                What::CreateSequence(sequence) => sequence.state.lock().committed = true,
                What::ExtendTable { tree, .. } => {
                    let layout = writes.layouts.iter().find(|(id, _)| *id == tree.id);
                    if let (Some(table), Some((_, layout))) = (tree.as_table(), layout) {
                        *table.layout.write() = Arc::clone(layout);
                    }
                }
                _ => {}
            }
        }
        for written in writes.trees.iter().filter(|t| !t.is_empty()) {
            match (&written.tree.data, &written.heads) {
                (TreeData::Table(table), TreeHeads::Rows(heads)) => {
                    let rows = writes.final_rows(heads).map(|(row, bytes)| (row, bytes.cloned()));
                    let levels = table.levels.read();
                    self.apply_to(&written.tree, &levels.active, csn, rows, |_| 0);
                }
                (TreeData::Index(index), TreeHeads::Keys(heads)) => {
                    let keys = writes.final_keys(heads).map(|(key, live)| (key.clone(), live));
                    let levels = index.levels.read();
                    self.apply_to(&written.tree, &levels.active, csn, keys, |k| k.heap_bytes());
                }
                _ => unreachable!("the heads are of the tree's kind"),
            }
        }
    }

    fn apply_to<K: Ord, V: Payload>(
        &self,
        tree: &Tree,
        table: &MemTable<K, V>,
        csn: Csn,
        changes: impl Iterator<Item = (K, V)>,
        key_bytes: impl Fn(&K) -> usize,
    ) {
        let oldest = self.snapshots.oldest_lagging();
        let mut changes = changes.peekable();
        while changes.peek().is_some() {
            let (mut bytes, mut live) = (0i64, 0i64);
            let mut map = table.map.write();
            for (key, value) in changes.by_ref().take(APPLY_BATCH) {
                bytes += value.heap_bytes() as i64;
                let is_live = value.is_live();
                match map.entry(key) {
                    std::collections::btree_map::Entry::Occupied(mut slot) => {
                        let chain = slot.get_mut();
                        live += i64::from(is_live) - i64::from(chain.value.is_live());
                        chain.push(csn, value);
                        bytes += size_of::<Chain<V>>() as i64 - chain.prune(oldest) as i64;
                        if chain.len_up_to(CHAIN_LENGTH_MAX + 1) > CHAIN_LENGTH_MAX {
                            bytes -= chain.prune_between(&self.snapshots.in_use()) as i64;
                        }
                    }
                    std::collections::btree_map::Entry::Vacant(slot) => {
                        live += i64::from(is_live);
                        bytes += (size_of::<Chain<V>>() + size_of::<K>() + key_bytes(slot.key())) as i64;
                        slot.insert(Chain::new(csn, value));
                    }
                }
            }
            drop(map);
            table.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            tree.live_entries.fetch_add(live as u64, Ordering::Relaxed);
        }
    }

    /// Trees and sequences that the commit dropped. Their relation locks are held, so nobody reads them.
    fn forget_dropped(&self, writes: &WriteSet) {
        for change in &writes.changes {
            match &change.what {
                What::DropTree(tree) => self.remove_tree(tree.id),
                What::DropSequence(sequence) => self.remove_sequence(sequence.id),
                _ => {}
            }
        }
    }
}
