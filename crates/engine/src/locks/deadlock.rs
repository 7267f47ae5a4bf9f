//! Deadlock detection: a cycle in "waits for", looked for by a session that has waited for deadlock_timeout.

use super::table::{Entry, LockManager, Owner, Shard};
use super::{LockKey, Mode};

struct Step {
    owner: Owner,
    key: LockKey,
    mode: Mode,
}

impl LockManager {
    /// PostgreSQL's DETAIL when `start` waits, through others, for itself.
    ///
    /// Every shard is locked meanwhile, so the graph is one moment's; this is rare enough.
    pub(super) fn find_deadlock(&self, start: Owner) -> Option<String> {
        let shards = self.all_shards();
        let mut path = Vec::new();
        let mut seen = Vec::new();
        if !self.search(&shards, start, start, &mut path, &mut seen) {
            return None;
        }
        let pid = |owner: Owner| self.pid(owner);
        let lines: Vec<String> = (0..path.len())
            .map(|i| {
                let Step { owner, key, mode } = &path[i];
                let blocker = path[(i + 1) % path.len()].owner;
                format!(
                    "Process {} waits for {} on {}; blocked by process {}.",
                    pid(*owner),
                    mode.name(),
                    key.describe(),
                    pid(blocker)
                )
            })
            .collect();
        Some(lines.join("\n"))
    }

    /// The process ids that stand in the way of the session that announced `pid`, each once.
    pub fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        let shards = self.all_shards();
        let mut out: Vec<i32> = Vec::new();
        let session = self.slot(pid).and_then(|owner| Some((owner, (*self.sessions[owner as usize].waiting.lock())?)));
        if let Some((owner, (key, mode))) = session
            && let Some(entry) = shards.iter().find_map(|s| s.get(&key))
            // Granted meanwhile and not yet awake: waits for nobody.
            && entry.waiters.iter().any(|w| w.owner == owner)
        {
            out.extend(blockers(entry, owner, mode).into_iter().map(|o| self.pid(o)));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    fn search(
        &self,
        shards: &[parking_lot::MutexGuard<'_, Shard>],
        owner: Owner,
        target: Owner,
        path: &mut Vec<Step>,
        seen: &mut Vec<Owner>,
    ) -> bool {
        let Some((key, mode)) = *self.sessions[owner as usize].waiting.lock() else { return false };
        let Some(entry) = shards.iter().find_map(|s| s.get(&key)) else { return false };
        // Granted meanwhile and not yet awake: waits for nobody.
        if !entry.waiters.iter().any(|w| w.owner == owner) {
            return false;
        }
        path.push(Step { owner, key, mode });
        for blocker in blockers(entry, owner, mode) {
            if blocker == target {
                return true;
            }
            if !seen.contains(&blocker) {
                seen.push(blocker);
                if self.search(shards, blocker, target, path, seen) {
                    return true;
                }
            }
        }
        path.pop();
        false
    }
}

/// Whom a waiter waits for: conflicting holders, and conflicting waiters ahead of it.
fn blockers(entry: &Entry, owner: Owner, mode: Mode) -> Vec<Owner> {
    let conflicts = mode.conflicts();
    let mut out: Vec<Owner> =
        entry.holders().filter(|h| h.owner != owner && h.modes().intersects(conflicts)).map(|h| h.owner).collect();
    let holds_already = entry.holders().any(|h| h.owner == owner);
    if !holds_already {
        out.extend(entry.waiters.iter().take_while(|w| w.owner != owner).filter(|w| conflicts.contains(w.mode)).map(|w| w.owner));
    }
    out
}
