//! Row and unique-key locks of transactions that hold very many: sets of numbers instead of entries of the lock table.
//!
//! A session that holds thousands of locks puts further ones, where nobody else has or wants the lock, into compressed sets by
//! tree and mode. Who then wants such a lock moves it into the table first, where everything goes as usual: waiting, deadlock
//! detection, pg_locks.
//!
//! Invariants:
//! 1. Sets are read and changed under the shard lock of the key, and under the mutex here, in this order.
//! 2. A key that has an entry in the table has one that knows every holder: a lock in a set is entered before the entry is looked at.
//! 3. Unique keys are held by 32 bits of their hash: two of the same only wait for each other needlessly. So a lock that was
//!    entered into the table stays in its set as well.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_types::TreeId;
use roaring::RoaringTreemap;

use super::loaded::LoadedKeys;
use super::modes::{Mode, ModeSet};
use super::table::Owner;
use super::tag::LockKey;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Locks in the table from which on a session's further ones go into sets.
pub(super) const TABLE_LOCKS_MAX: usize = 4096;

/// The sets of all sessions.
#[derive(Default)]
pub(super) struct WideLocks {
    /// Sessions with sets.
    holders: AtomicU32,
    /// Loads in all layers.
    loads: AtomicU32,
    sets: Mutex<HashMap<Owner, Vec<Layer>>>,
}

/// Locks taken since a savepoint.
#[derive(Default)]
struct Layer {
    rows: Vec<(TreeId, Mode, RoaringTreemap)>,
    /// Hashes lie nowhere near each other, so nothing is gained by a bitmap.
    keys: Vec<(TreeId, Mode, HashSet<u32>)>,
    /// Those that others wanted: entered into the table.
    entered: Vec<(LockKey, Mode)>,
    loads: Vec<Load>,
}

/// Keys of a bulk load (`loaded`).
struct Load {
    keys: Arc<LoadedKeys>,
    /// Those that others wanted: entered into the table.
    entered: Vec<LockKey>,
}

impl Layer {
    fn modes(&self, key: &LockKey) -> ModeSet {
        let mut modes = ModeSet::default();
        match *key {
            LockKey::Row(tree, row) => {
                let has = |(t, _, set): &&(TreeId, Mode, RoaringTreemap)| *t == tree && set.contains(row.0);
                self.rows.iter().filter(has).for_each(|(_, mode, _)| modes.insert(*mode));
            }
            LockKey::Key(tree, hash) => {
                let has = |(t, _, set): &&(TreeId, Mode, HashSet<u32>)| *t == tree && set.contains(&short(hash));
                self.keys.iter().filter(has).for_each(|(_, mode, _)| modes.insert(*mode));
            }
            LockKey::Tag(_) => {}
        }
        modes
    }

    fn insert(&mut self, key: &LockKey, mode: Mode) {
        match *key {
            LockKey::Row(tree, row) => {
                let at = self.rows.iter().position(|(t, m, _)| (*t, *m) == (tree, mode)).unwrap_or_else(|| {
                    self.rows.push((tree, mode, RoaringTreemap::new()));
                    self.rows.len() - 1
                });
                self.rows[at].2.insert(row.0);
            }
            LockKey::Key(tree, hash) => {
                let at = self.keys.iter().position(|(t, m, _)| (*t, *m) == (tree, mode)).unwrap_or_else(|| {
                    self.keys.push((tree, mode, HashSet::new()));
                    self.keys.len() - 1
                });
                self.keys[at].2.insert(short(hash));
            }
            LockKey::Tag(_) => {}
        }
    }
}

fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl WideLocks {
    /// Some session may have sets. Asked under the shard lock of the key in question.
    #[inline]
    pub fn any(&self) -> bool {
        self.holders.load(Ordering::SeqCst) > 0
    }

    /// Whether a key may be in sets at all.
    pub fn holds(key: &LockKey) -> bool {
        matches!(key, LockKey::Row(..) | LockKey::Key(..))
    }

    /// The modes in which others hold a key that is about to be looked at in the table: each is entered there by the caller.
    pub fn enter(&self, key: &LockKey, wanted_by: Owner, mut grant: impl FnMut(Owner, Mode)) {
        for (owner, layers) in self.sets.lock().iter_mut() {
            if *owner == wanted_by {
                continue;
            }
            for layer in layers {
                let modes = layer.modes(key);
                for mode in modes.iter() {
                    if !layer.entered.contains(&(*key, mode)) {
                        layer.entered.push((*key, mode));
                    }
                    grant(*owner, mode);
                }
            }
        }
    }

    /// The modes in which a session holds a key by its sets.
    pub fn modes(&self, owner: Owner, key: &LockKey) -> ModeSet {
        let sets = self.sets.lock();
        let layers = sets.get(&owner).into_iter().flatten();
        layers.fold(ModeSet::default(), |modes, layer| modes.union(layer.modes(key)))
    }

    /// Whether others hold keys of an index in sets.
    pub fn has_keys(&self, owner: Owner, tree: TreeId) -> bool {
        let sets = self.sets.lock();
        let mut others = sets.iter().filter(|(other, _)| **other != owner).flat_map(|(_, layers)| layers);
        others.any(|layer| layer.keys.iter().any(|(of, ..)| *of == tree))
    }

    /// Whether others hold a key in sets.
    pub fn is_held(&self, owner: Owner, key: &LockKey) -> bool {
        let sets = self.sets.lock();
        let mut others = sets.iter().filter(|(other, _)| **other != owner).flat_map(|(_, layers)| layers);
        others.any(|layer| !layer.modes(key).is_empty())
    }

    /// Some session may have lent keys.
    #[inline]
    pub fn any_loads(&self) -> bool {
        self.loads.load(Ordering::SeqCst) > 0
    }

    /// Whether others have lent keys of the index of a key.
    pub fn has_loads(&self, owner: Owner, key: &LockKey) -> bool {
        match key {
            LockKey::Key(tree, _) => self.any_loads() && !self.loads(owner, *tree).is_empty(),
            LockKey::Row(..) | LockKey::Tag(_) => false,
        }
    }

    /// Keys of an index that others have lent.
    pub fn loads(&self, owner: Owner, tree: TreeId) -> Vec<(Owner, Arc<LoadedKeys>)> {
        let sets = self.sets.lock();
        let others = sets.iter().filter(|(other, _)| **other != owner);
        let loads =
            others.flat_map(|(other, layers)| layers.iter().flat_map(|layer| &layer.loads).map(|load| (*other, &load.keys)));
        loads.filter(|(_, keys)| keys.tree == tree).map(|(other, keys)| (other, Arc::clone(keys))).collect()
    }

    pub fn lend(&self, owner: Owner, keys: &Arc<LoadedKeys>) {
        let mut sets = self.sets.lock();
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.newest(&mut sets, owner, |layer| layer.loads.push(Load { keys: Arc::clone(keys), entered: Vec::new() }));
    }

    /// Undoes `lend`; what the table has of the keys is the caller's to release.
    pub fn take_back(&self, owner: Owner, keys: &Arc<LoadedKeys>) -> Vec<LockKey> {
        let mut sets = self.sets.lock();
        for layer in sets.get_mut(&owner).into_iter().flatten() {
            if let Some(at) = layer.loads.iter().position(|load| Arc::ptr_eq(&load.keys, keys)) {
                self.loads.fetch_sub(1, Ordering::SeqCst);
                return layer.loads.swap_remove(at).entered;
            }
        }
        Vec::new()
    }

    /// Notes that a lent key is about to be entered into the table; false: it is lent no more. Under the key's shard lock.
    pub fn enter_loaded(&self, owner: Owner, keys: &Arc<LoadedKeys>, key: &LockKey) -> bool {
        let mut sets = self.sets.lock();
        let mut loads = sets.get_mut(&owner).into_iter().flatten().flat_map(|layer| &mut layer.loads);
        let Some(load) = loads.find(|load| Arc::ptr_eq(&load.keys, keys)) else { return false };
        if !load.entered.contains(key) {
            load.entered.push(*key);
        }
        true
    }

    /// Takes a lock that nobody else has or wants; under the key's shard lock, so that who asks for it next sees `any`.
    pub fn insert(&self, owner: Owner, key: &LockKey, mode: Mode) {
        self.newest(&mut self.sets.lock(), owner, |layer| layer.insert(key, mode));
    }

    /// Changes a session's newest layer.
    fn newest(&self, sets: &mut HashMap<Owner, Vec<Layer>>, owner: Owner, change: impl FnOnce(&mut Layer)) {
        let layers = sets.entry(owner).or_insert_with(|| {
            self.holders.fetch_add(1, Ordering::SeqCst);
            vec![Layer::default()]
        });
        if let Some(layer) = layers.last_mut() {
            change(layer);
        }
    }

    /// Begins a layer for what is locked after a savepoint; the number of those before it.
    pub fn mark(&self, owner: Owner) -> usize {
        match self.sets.lock().get_mut(&owner) {
            Some(layers) => {
                layers.push(Layer::default());
                layers.len() - 1
            }
            None => 0,
        }
    }

    /// Forgets the layers from a mark on, all for 0; what the table has of them is the caller's to release.
    pub fn forget(&self, owner: Owner, mark: usize) -> Vec<(LockKey, Mode)> {
        let mut sets = self.sets.lock();
        let Some(layers) = sets.get_mut(&owner) else { return Vec::new() };
        let gone = layers.split_off(mark.min(layers.len()));
        if layers.is_empty() {
            sets.remove(&owner);
            self.holders.fetch_sub(1, Ordering::SeqCst);
        } else {
            // The savepoint may be rolled back to again.
            layers.push(Layer::default());
        }
        let mut entered = Vec::new();
        for layer in gone {
            entered.extend(layer.entered);
            self.loads.fetch_sub(layer.loads.len() as u32, Ordering::SeqCst);
            entered.extend(layer.loads.into_iter().flat_map(|load| load.entered).map(|key| (key, Mode::KEY)));
        }
        entered
    }
}
