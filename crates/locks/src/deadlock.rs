//! Deadlock detection: a session that has waited for deadlock_timeout searches for a cycle in "waits for".
//!
//! A session waits for the holders of the lock (hard), and for the waiters before it in the queue (soft). A cycle with a soft
//! part can be broken without harm, by letting one waiter pass the other; only a cycle without a soft part ends in an error.

use crate::table::{LockEntry, LockManager, Owner, Shard, remove_from_queue};
use crate::waits::{LongWait, WaitPhase};
use crate::{LockKey, Mode};

use melba_threads::MutexGuard;

/// How many queues are rearranged to break one cycle.
const REARRANGE_MAX: usize = 4;

/// `owner` waits for the owner of the next step.
struct Step {
    owner: Owner,
    key: LockKey,
    mode: Mode,
    soft: bool,
}

/// The lock that a session waits for, and the sessions it waits for; whether each is only before it in the queue.
struct Waiting {
    key: LockKey,
    mode: Mode,
    blockers: Vec<(Owner, bool)>,
}

type Shards<'a> = [MutexGuard<'a, Shard>];

impl LockManager {
    /// PostgreSQL's DETAIL when `start` waits, through others, for itself, and no queue can be rearranged to end that.
    ///
    /// Then `start` no longer waits for `key`: of a cycle whose sessions search at the same time one finds it. Every shard is
    /// locked meanwhile, so the graph is one moment's; this is rare enough.
    pub(crate) fn find_deadlock(&self, start: Owner, key: &LockKey) -> Option<String> {
        let mut shards = self.all_shards();
        let mut changed = Vec::new();
        let cycle = self.break_cycle(&mut shards, start, REARRANGE_MAX, &mut changed).err();
        let mut woken = Vec::new();
        for key in changed {
            if let Some(entry) = shards.iter_mut().find_map(|s| s.get_mut(&key)) {
                entry.wake_waiters(&mut woken);
            }
        }
        if cycle.is_some() {
            shards.iter_mut().any(|shard| remove_from_queue(shard, key, start, &mut woken));
        }
        drop(shards);
        self.notify(&woken);
        cycle.map(|cycle| self.describe(&cycle))
    }

    fn describe(&self, cycle: &[Step]) -> String {
        let line = |i: usize| {
            let (step, blocker) = (&cycle[i], cycle[(i + 1) % cycle.len()].owner);
            let (mode, object) = self.describe_wait(&step.key, step.mode, blocker);
            let (waiter, blocker) = (self.pid(step.owner), self.pid(blocker));
            format!("Process {waiter} waits for {mode} on {object}; blocked by process {blocker}.")
        };
        (0..cycle.len()).map(line).collect::<Vec<String>>().join("\n")
    }

    /// The sessions that keep a session waiting for a lock; `None` when it no longer waits.
    pub(crate) fn long_wait(&self, owner: Owner, key: &LockKey, mode: Mode, waited: std::time::Duration) -> Option<LongWait> {
        let shard = self.shard(key);
        let entry = shard.get(key).filter(|entry| entry.waiters.iter().any(|w| w.owner == owner))?;
        let holders: Vec<Owner> = blockers(entry, owner, mode).into_iter().filter(|b| !b.1).map(|b| b.0).collect();
        let queue: Vec<Owner> = entry.waiters.iter().map(|w| w.owner).collect();
        drop(shard);
        let (mode, object) = self.describe_wait(key, mode, holders.first().copied().unwrap_or(owner));
        let pids = |owners: &[Owner]| owners.iter().map(|owner| self.pid(*owner)).collect();
        Some(LongWait {
            pid: self.pid(owner),
            lock: format!("{mode} on {object}"),
            waited,
            phase: WaitPhase::Waiting,
            holders: pids(&holders),
            queue: pids(&queue),
        })
    }

    /// Mode and object of a lock that a session waits for.
    fn describe_wait(&self, key: &LockKey, mode: Mode, blocker: Owner) -> (&'static str, String) {
        match key {
            // Rows and keys belong to the transaction that has changed or made them, as in PostgreSQL.
            LockKey::Row(..) | LockKey::Key(..) => ("ShareLock", format!("transaction {}", self.transaction(blocker))),
            key => (mode.name(), key.describe()),
        }
    }

    /// The process ids that block the session that announced `pid`, each once.
    pub fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        let shards = self.all_shards();
        let Some(owner) = self.slot(pid) else { return Vec::new() };
        let blockers = self.waits_for(&shards, owner).map(|w| w.blockers).unwrap_or_default();
        let mut out: Vec<i32> = blockers.into_iter().map(|(o, _)| self.pid(o)).collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    fn waits_for(&self, shards: &Shards<'_>, owner: Owner) -> Option<Waiting> {
        let (key, mode) = (*self.sessions[owner as usize].waiting.lock())?;
        let entry = shards.iter().find_map(|s| s.get(&key))?;
        // Granted meanwhile and not yet awake: it waits for no session.
        let waits = entry.waiters.iter().any(|w| w.owner == owner);
        waits.then(|| Waiting { key, mode, blockers: blockers(entry, owner, mode) })
    }

    /// Rearranges queues until `start` is in no cycle; else leaves them as they were and returns one.
    fn break_cycle(
        &self,
        shards: &mut Shards<'_>,
        start: Owner,
        rearrange_max: usize,
        changed: &mut Vec<LockKey>,
    ) -> Result<(), Vec<Step>> {
        let Some(cycle) = self.find_cycle(shards, start) else { return Ok(()) };
        if rearrange_max == 0 {
            return Err(cycle);
        }
        for i in (0..cycle.len()).rev().filter(|i| cycle[*i].soft) {
            let (step, ahead) = (&cycle[i], cycle[(i + 1) % cycle.len()].owner);
            let Some(moved) = pass(shards, &step.key, step.owner, ahead) else { continue };
            changed.push(step.key);
            // Only the waiters that were passed wait for a new session. A cycle of the one that passed them existed before, and
            // the sessions in it find it.
            let place = |of: Owner| moved.iter().position(|o| *o == of).unwrap_or_default();
            let passed = &moved[place(ahead)..place(step.owner)];
            let others_suffer = passed.iter().any(|o| *o != start && self.find_cycle(shards, *o).is_some());
            if !others_suffer && self.break_cycle(shards, start, rearrange_max - 1, changed).is_ok() {
                return Ok(());
            }
            changed.pop();
            restore(shards, &step.key, &moved);
        }
        Err(cycle)
    }

    fn find_cycle(&self, shards: &Shards<'_>, start: Owner) -> Option<Vec<Step>> {
        let (mut path, mut seen) = (Vec::new(), Vec::new());
        self.search(shards, start, start, &mut path, &mut seen).then_some(path)
    }

    fn search(&self, shards: &Shards<'_>, owner: Owner, target: Owner, path: &mut Vec<Step>, seen: &mut Vec<Owner>) -> bool {
        let Some(Waiting { key, mode, blockers }) = self.waits_for(shards, owner) else { return false };
        for (blocker, soft) in blockers {
            path.push(Step { owner, key, mode, soft });
            if blocker == target {
                return true;
            }
            if !seen.contains(&blocker) {
                seen.push(blocker);
                if self.search(shards, blocker, target, path, seen) {
                    return true;
                }
            }
            path.pop();
        }
        false
    }
}

/// Whom a waiter waits for: conflicting holders, and (true) conflicting waiters before it.
fn blockers(entry: &LockEntry, owner: Owner, mode: Mode) -> Vec<(Owner, bool)> {
    let conflicts = mode.conflicts();
    let hard = entry.holders().filter(|h| h.owner != owner && h.modes().intersects(conflicts));
    let mut out: Vec<(Owner, bool)> = hard.map(|h| (h.owner, false)).collect();
    let passes = mode == Mode::AWAIT_CHANGE || entry.holders().any(|h| h.owner == owner);
    if !passes {
        let before = entry.waiters.iter().take_while(|w| w.owner != owner).filter(|w| conflicts.contains(w.mode));
        out.extend(before.map(|w| (w.owner, true)));
    }
    out
}

/// Moves a waiter before another in their queue; the order before, or `None` when they are not there.
fn pass(shards: &mut Shards<'_>, key: &LockKey, owner: Owner, ahead: Owner) -> Option<Vec<Owner>> {
    let waiters = &mut shards.iter_mut().find_map(|s| s.get_mut(key))?.waiters;
    let order: Vec<Owner> = waiters.iter().map(|w| w.owner).collect();
    let place = |of: Owner| order.iter().position(|o| *o == of);
    let (from, to) = (place(owner)?, place(ahead)?);
    let waiter = waiters.remove(from)?;
    waiters.insert(to, waiter);
    Some(order)
}

fn restore(shards: &mut Shards<'_>, key: &LockKey, order: &[Owner]) {
    if let Some(entry) = shards.iter_mut().find_map(|s| s.get_mut(key)) {
        entry.waiters.make_contiguous().sort_by_key(|w| order.iter().position(|o| *o == w.owner));
    }
}
