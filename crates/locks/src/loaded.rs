//! Unique keys of bulk loads: locked all at once, by the load's own sorted segments.
//!
//! A load has its keys in segments that only its transaction knows. It lends them to the lock manager. A session that has locked
//! a key of that index then searches them for it; if a load has the key, the session enters the load's session into the lock
//! table as the holder and waits for it as for any other.
//!
//! Invariant: of two sessions that want a key, one sees the other. A load is lent first and then searches for other holders; any other
//! session enters the key into the table first and then searches for loads. If both see each other, the load yields (`take_back`).

use std::sync::Arc;

use hashbrown::HashSet;
use melba_types::TreeId;

use crate::modes::Mode;
use crate::table::{HoldDuration, LockManager};
use crate::tag::LockKey;
use melba_store::IndexRun;
use melba_store::Result;
use melba_store::split_entry;

/// The keys of a load, in the order of the segments.
pub struct LoadedKeys {
    pub tree: TreeId,
    pub runs: Vec<Arc<IndexRun>>,
}

impl LoadedKeys {
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let at = self.runs.partition_point(|run| run.reader.meta().key_max.as_slice() < key);
        let Some(run) = self.runs.get(at) else { return Ok(false) };
        if !run.reader.may_contain(key)? {
            return Ok(false);
        }
        let mut cursor = run.reader.cursor();
        let mut found = cursor.seek(key)?;
        // Longer keys that begin with this one are others.
        while found && cursor.key().starts_with(key) {
            if split_entry(cursor.key()).is_some_and(|(known, _)| known == key) {
                return Ok(true);
            }
            found = cursor.next()?;
        }
        Ok(false)
    }
}

/// The locks of other sessions on an index's unique keys.
pub struct ForeignKeys {
    tree: TreeId,
    /// In the table.
    hashes: HashSet<u64>,
    in_sets: bool,
    loads: Vec<Arc<LoadedKeys>>,
}

impl ForeignKeys {
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && !self.in_sets && self.loads.is_empty()
    }
}

impl LockManager {
    /// Locks the keys of a load for its session. Others may hold some of them: see `foreign_keys`.
    pub fn lend(&self, owner: u32, keys: &Arc<LoadedKeys>) {
        self.note_wide(owner);
        self.wide.lend(owner, keys);
    }

    /// Undoes `lend`: waiting sessions continue.
    pub fn take_back(&self, owner: u32, keys: &Arc<LoadedKeys>) {
        for lock in self.wide.take_back(owner, keys) {
            self.release_in_table(owner, &lock, |holder| holder.release(Mode::KEY));
        }
    }

    /// The keys of an index that others hold now.
    pub fn foreign_keys(&self, owner: u32, tree: TreeId) -> ForeignKeys {
        let mut hashes = HashSet::new();
        for shard in self.shards() {
            for (lock, entry) in shard.lock().iter() {
                if let LockKey::Key(of, hash) = lock
                    && *of == tree
                    && entry.holders().any(|holder| holder.owner != owner)
                {
                    hashes.insert(*hash);
                }
            }
        }
        // After every shard has been locked: later lockers know of the load, and no further lock is put into a set.
        let in_sets = self.wide.has_keys(owner, tree);
        let loads = self.wide.loads(owner, tree).into_iter().map(|(_, keys)| keys).collect();
        ForeignKeys { tree, hashes, in_sets, loads }
    }

    /// Whether a key is, or by its hash may be, among them.
    pub fn is_foreign(&self, owner: u32, foreign: &ForeignKeys, key: &[u8]) -> Result<bool> {
        let hash = self.hash_key(key);
        if foreign.hashes.contains(&hash) || foreign.in_sets && self.wide.is_held(owner, &LockKey::Key(foreign.tree, hash)) {
            return Ok(true);
        }
        for load in &foreign.loads {
            if load.contains(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Releases the lock on a key, the newest one of the session, when a load has the key; the lock table then has the load as its holder.
    pub fn yield_to_load(&self, owner: u32, tree: TreeId, key: &[u8]) -> Result<bool> {
        if !self.wide.any_loads() {
            return Ok(false);
        }
        for (other, keys) in self.wide.loads(owner, tree) {
            if keys.contains(key)? {
                let lock = LockKey::Key(tree, self.hash_key(key));
                self.release_newest(owner, lock, Mode::KEY);
                let mut shard = self.shard(&lock);
                if self.wide.enter_loaded(other, &keys, &lock) {
                    shard.entry(lock).or_default().grant(other, Mode::KEY, HoldDuration::Transaction);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}
