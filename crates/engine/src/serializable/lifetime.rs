//! Registration, the decision to commit, and the end.

use melba_store::Result;
use melba_threads::planted::{Plant, is_planted};
use melba_types::{Csn, TreeId, TxnId};

use super::{Entry, FINISHED_MAX, Id, NEVER, Safety, Serializable, SerializableState, check_doomed, failure};

/// Sessions to wake: the question they waited for has been decided.
pub(crate) type Woken = Vec<u32>;

impl Serializable {
    /// Registers a transaction in the step in which it takes its snapshot. `None`: it is READ ONLY and no running transaction
    /// could make the snapshot unsafe, so there is nothing to track.
    pub fn register(&self, txn: TxnId, slot: u32, read_only: bool, acquire: impl FnOnce() -> Csn) -> (Csn, Option<Id>) {
        let mut state = self.state.lock();
        let snapshot = acquire();
        let may_write = |id: &Id| {
            let e = state.get(*id);
            !e.read_only && !e.doomed
        };
        let writers: Vec<Id> = match read_only {
            true => state.active.iter().copied().filter(may_write).collect(),
            false => Vec::new(),
        };
        if read_only && writers.is_empty() {
            return (snapshot, None);
        }
        let entry = Entry {
            txn,
            slot,
            snapshot,
            begun: state.sequence,
            prepared: NEVER,
            committed: NEVER,
            csn: Csn(NEVER),
            read_only,
            doomed: false,
            wrote: false,
            reads: Default::default(),
            writes: Default::default(),
            conflicts_in: Vec::new(),
            conflicts_out: Vec::new(),
            earliest_out: NEVER,
            latest_in: 0,
            safety: Safety::Unknown,
            waits_for: writers.clone(),
            watched_by: Vec::new(),
        };
        let id = state.add(entry);
        for writer in writers {
            state.get_mut(writer).watched_by.push(id);
        }
        (snapshot, Some(id))
    }

    /// Whether the snapshot of a READ ONLY transaction is known to be safe.
    pub fn safety(&self, id: Id) -> Safety {
        self.state.lock().get(id).safety
    }

    /// The slots of the sessions that a READ ONLY transaction's safety depends on.
    pub fn waits_for(&self, slot: u32) -> Vec<u32> {
        let state = self.state.lock();
        let waiting = state.active.iter().map(|id| state.get(*id)).find(|e| e.slot == slot && e.safety == Safety::Unknown);
        waiting.map(|e| e.waits_for.iter().map(|id| state.get(*id).slot).collect()).unwrap_or_default()
    }

    /// Decides whether a transaction may commit. Afterwards nothing makes it fail for a conflict.
    pub fn prepare(&self, id: Id) -> Result<()> {
        let mut state = self.state.lock();
        if state.get(id).safety != Safety::Safe {
            state.break_structures(id)?;
        }
        state.sequence += 1;
        state.get_mut(id).prepared = state.sequence;
        Ok(())
    }

    /// A prepared transaction has become visible; its locks are still held.
    pub fn commit(&self, id: Id, csn: Csn) -> Woken {
        let mut state = self.state.lock();
        state.sequence += 1;
        let now = state.sequence;
        let entry = state.get_mut(id);
        entry.committed = now;
        entry.csn = csn;
        let declared_read_only = entry.read_only;
        entry.read_only |= !entry.wrote;
        state.keep_earliest_conflicts(id);
        let woken = if declared_read_only { state.stop_waiting(id) } else { state.tell_watchers(id) };
        state.active.retain(|other| *other != id);
        state.finished.push_back(id);
        state.clean();
        woken
    }

    /// A transaction that was rolled back, or found safe, takes part in nothing any more.
    pub fn forget(&self, id: Id) -> Woken {
        let mut state = self.state.lock();
        let mut woken = state.stop_waiting(id);
        woken.extend(state.tell_watchers(id));
        state.active.retain(|other| *other != id);
        state.forget(id);
        state.clean();
        woken
    }

    /// A tree was dropped by a commit that is visible now.
    pub fn tree_dropped(&self, tree: TreeId) {
        self.state.lock().generalise(tree);
    }

    /// All that is tracked, for pg_locks: the slot of a running transaction's session, and the marks as `Reads::list` has them.
    #[expect(clippy::type_complexity, reason = "rows of a listing")]
    pub fn list(&self) -> Vec<(Option<u32>, Vec<(TreeId, Option<u64>, Option<melba_types::RowId>)>)> {
        let state = self.state.lock();
        let all = state.active.iter().chain(&state.finished).map(|id| state.get(*id));
        all.map(|e| ((!e.is_committed()).then_some(e.slot), e.reads.list())).collect()
    }
}

impl SerializableState {
    fn add(&mut self, entry: Entry) -> Id {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.transactions.push(None);
                Id(self.transactions.len() as u32 - 1)
            }
        };
        self.transactions[id.0 as usize] = Some(entry);
        self.active.push(id);
        id
    }

    /// Takes a transaction out of everything that names it.
    pub(super) fn forget(&mut self, id: Id) -> Option<Entry> {
        let entry = self.transactions[id.0 as usize].take()?;
        for other in &entry.conflicts_in {
            self.get_mut(*other).conflicts_out.retain(|o| *o != id);
        }
        for other in &entry.conflicts_out {
            self.get_mut(*other).conflicts_in.retain(|o| *o != id);
        }
        for tree in entry.reads.trees().chain(entry.writes.trees()) {
            if let Some(users) = self.trees.get_mut(&tree) {
                users.readers.retain(|o| *o != id);
                users.writers.retain(|o| *o != id);
                if users.readers.is_empty() && users.writers.is_empty() {
                    self.trees.remove(&tree);
                }
            }
        }
        self.free.push(id);
        Some(entry)
    }

    /// Before `id` commits: of every T1 -> T2 -> id the pivot fails, or, when it is too late for that, `id`.
    fn break_structures(&mut self, id: Id) -> Result<()> {
        check_doomed(self.get(id), "during commit attempt")?;
        for pivot in self.get(id).conflicts_in.clone() {
            let entry = self.get(pivot);
            // One that has committed did so before `id`, which is then not the first.
            if entry.doomed || entry.is_committed() {
                continue;
            }
            let is_danger = |t1: &Id| {
                let e = self.get(*t1);
                *t1 == id || (!e.is_committed() && !e.read_only && !e.doomed)
            };
            if entry.conflicts_in.iter().any(is_danger) {
                if entry.is_prepared() {
                    return Err(failure("Canceled on commit attempt with conflict in from prepared pivot."));
                }
                self.get_mut(pivot).doomed = true;
            }
        }
        Ok(())
    }

    /// Keeps of a committed transaction's conflicts those that may still matter.
    fn keep_earliest_conflicts(&mut self, id: Id) {
        let read_only = self.get(id).read_only;
        for other in self.get(id).conflicts_out.clone() {
            let o = self.get(other);
            let (prepared, committed) = (o.prepared, o.is_committed());
            // A prepared transaction may be visible already, whether its session has reported that or not.
            let counts = if is_planted(Plant::ForgetPrepared) { committed } else { true };
            if counts && !read_only {
                let entry = self.get_mut(id);
                entry.earliest_out = entry.earliest_out.min(prepared);
            }
            if committed {
                self.remove_conflict(id, other);
            }
        }
        for other in self.get(id).conflicts_in.clone() {
            let o = self.get(other);
            // One that has committed has counted this one, if it may have been before it.
            if o.is_committed() || o.read_only {
                self.remove_conflict(other, id);
            }
        }
    }

    fn remove_conflict(&mut self, reader: Id, writer: Id) {
        self.get_mut(reader).conflicts_out.retain(|o| *o != writer);
        self.get_mut(writer).conflicts_in.retain(|o| *o != reader);
    }

    /// A READ ONLY transaction ends before all that it depended on have.
    fn stop_waiting(&mut self, id: Id) -> Woken {
        for writer in std::mem::take(&mut self.get_mut(id).waits_for) {
            self.get_mut(writer).watched_by.retain(|o| *o != id);
        }
        Vec::new()
    }

    /// A writer has ended: updates the READ ONLY transactions whose snapshots depended on it.
    fn tell_watchers(&mut self, id: Id) -> Woken {
        let mut woken = Vec::new();
        let entry = self.get_mut(id);
        // It has committed: of those whom it read around, the earliest.
        let earliest_out = if entry.is_committed() && entry.wrote { entry.earliest_out } else { NEVER };
        for watcher in std::mem::take(&mut entry.watched_by) {
            let w = self.get_mut(watcher);
            w.waits_for.retain(|o| *o != id);
            if w.safety != Safety::Unknown {
                continue;
            }
            if earliest_out <= w.begun {
                w.safety = Safety::Unsafe;
                woken.push(w.slot);
            } else if w.waits_for.is_empty() {
                w.safety = Safety::Safe;
                woken.push(w.slot);
            }
        }
        woken
    }

    /// Forgets committed transactions that were concurrent with none that runs; summarises when too many are left.
    fn clean(&mut self) {
        let oldest = self.active.iter().map(|id| self.get(*id).begun).min().unwrap_or(NEVER);
        while let Some(id) = self.finished.front().copied()
            && self.get(id).committed <= oldest
        {
            self.finished.pop_front();
            self.forget(id);
        }
        while self.finished.len() > FINISHED_MAX {
            self.summarise_oldest();
        }
        self.clear_summary(oldest);
    }
}
