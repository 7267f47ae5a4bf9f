//! Row and unique-key locks of transactions that hold very many: sets of numbers instead of entries of the lock table.
//!
//! A session that holds thousands of locks puts further ones, where no other session has or wants the lock, into compressed sets
//! by tree and mode. A session that then wants such a lock moves it into the table first, where everything works as usual:
//! waiting, deadlock detection, pg_locks.
//!
//! Invariants:
//! 1. Sets are read and changed under the shard lock of the key, and under the mutex here, in this order.
//! 2. An entry of a key in the table knows every holder: a lock in a set is entered before the entry is read.
//! 3. Unique keys are held by 32 bits of their hash: two of the same only wait for each other needlessly. So a lock that was
//!    entered into the table stays in its set as well.
//! 4. The cost of a lock operation does not depend on the number of locks, savepoints and keys that were entered into the table.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_types::TreeId;
use roaring::RoaringTreemap;

use crate::loaded::LoadedKeys;
use crate::modes::{Mode, ModeSet};
use crate::table::Owner;
use crate::tag::LockKey;

use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU32, Ordering};

/// Number of locks in the table from which on a session's further ones are put into sets.
pub const TABLE_LOCKS_MAX: usize = melba_threads::sized(4096, 4);

/// The sets of all sessions.
#[derive(Default)]
pub(crate) struct WideLocks {
    /// Sessions with sets.
    holders: AtomicU32,
    /// Loads of all sessions.
    loads: AtomicU32,
    sessions: Mutex<HashMap<Owner, SessionSets>>,
}

/// The locks of one session in sets.
#[derive(Default)]
struct SessionSets {
    locks: Sets,
    /// By savepoint, oldest first: the locks taken since it and before the next one. Locks from before the first are not listed.
    since: Vec<Since>,
    /// Those of `locks` that others wanted: entered into the table.
    entered: HashMap<Place, Vec<(LockKey, Mode)>>,
    loads: Vec<Load>,
}

/// The locks taken since a savepoint.
#[derive(Default)]
struct Since {
    locks: Sets,
    /// Loads there were.
    loads: usize,
}

/// Keys of a bulk load (`loaded`).
struct Load {
    keys: Arc<LoadedKeys>,
    /// Those that others wanted: entered into the table.
    entered: HashSet<LockKey>,
}

/// Locks by tree. A tree has few modes.
#[derive(Default)]
struct Sets(HashMap<TreeId, Vec<(Mode, Numbers)>>);

/// Which rows, or which keys of an index.
enum Numbers {
    Rows(RoaringTreemap),
    /// Hashes lie nowhere near each other, so nothing is gained by a bitmap.
    Keys(HashSet<u32>),
}

/// A set's knowledge of a lock: its tree and a number.
type Place = (TreeId, u64);

fn place(key: &LockKey) -> Option<Place> {
    match *key {
        LockKey::Row(tree, row) => Some((tree, row.0)),
        LockKey::Key(tree, hash) => Some((tree, hash >> 32)),
        LockKey::Tag(_) | LockKey::Transaction(..) => None,
    }
}

impl Numbers {
    fn contains(&self, number: u64) -> bool {
        match self {
            Numbers::Rows(rows) => rows.contains(number),
            Numbers::Keys(hashes) => hashes.contains(&(number as u32)),
        }
    }

    fn insert(&mut self, number: u64) -> bool {
        match self {
            Numbers::Rows(rows) => rows.insert(number),
            Numbers::Keys(hashes) => hashes.insert(number as u32),
        }
    }

    fn remove(&mut self, number: u64) -> bool {
        match self {
            Numbers::Rows(rows) => rows.remove(number),
            Numbers::Keys(hashes) => hashes.remove(&(number as u32)),
        }
    }

    fn for_each(&self, mut each: impl FnMut(u64)) {
        match self {
            Numbers::Rows(rows) => rows.iter().for_each(each),
            Numbers::Keys(hashes) => hashes.iter().for_each(|hash| each(u64::from(*hash))),
        }
    }
}

impl Sets {
    fn modes(&self, key: &LockKey) -> ModeSet {
        let mut modes = ModeSet::default();
        if let Some((tree, number)) = place(key) {
            let sets = self.0.get(&tree).into_iter().flatten();
            sets.filter(|(_, numbers)| numbers.contains(number)).for_each(|(mode, _)| modes.insert(*mode));
        }
        modes
    }

    fn insert(&mut self, key: &LockKey, mode: Mode) {
        let Some((tree, number)) = place(key) else { return };
        let sets = self.0.entry(tree).or_default();
        let at = sets.iter().position(|(of, _)| *of == mode).unwrap_or_else(|| {
            let is_row = matches!(key, LockKey::Row(..));
            sets.push((mode, if is_row { Numbers::Rows(RoaringTreemap::new()) } else { Numbers::Keys(HashSet::new()) }));
            sets.len() - 1
        });
        sets[at].1.insert(number);
    }

    fn remove(&mut self, (tree, number): Place, mode: Mode) {
        for (_, numbers) in self.0.get_mut(&tree).into_iter().flatten().filter(|(of, _)| *of == mode) {
            numbers.remove(number);
        }
    }

    fn has_keys(&self, tree: TreeId) -> bool {
        self.0.get(&tree).into_iter().flatten().any(|(_, numbers)| matches!(numbers, Numbers::Keys(_)))
    }
}

impl SessionSets {
    fn insert(&mut self, key: &LockKey, mode: Mode) {
        self.locks.insert(key, mode);
        if let Some(since) = self.since.last_mut() {
            since.locks.insert(key, mode);
        }
    }

    /// The modes in which a key is held that is about to be entered into the table.
    fn enter(&mut self, key: &LockKey) -> ModeSet {
        let modes = self.locks.modes(key);
        if let Some(place) = place(key).filter(|_| !modes.is_empty()) {
            let entered = self.entered.entry(place).or_default();
            for mode in modes.iter().filter(|mode| !entered.contains(&(*key, *mode))).collect::<Vec<_>>() {
                entered.push((*key, mode));
            }
        }
        modes
    }

    /// Forgets the locks taken since a savepoint; returns those of them that are in the table.
    fn forget_since(&mut self, mark: usize) -> Vec<(LockKey, Mode)> {
        let gone = self.since.split_off(mark - 1);
        let loads = gone.first().map_or(self.loads.len(), |since| since.loads);
        let mut entered = entered_of(self.loads.split_off(loads));
        for (tree, mode, numbers) in
            gone.iter().flat_map(|since| &since.locks.0).flat_map(|(tree, sets)| sets.iter().map(move |(m, n)| (*tree, *m, n)))
        {
            numbers.for_each(|number| {
                self.locks.remove((tree, number), mode);
                if let Some(known) = self.entered.get_mut(&(tree, number)) {
                    entered.extend(known.extract_if(.., |(_, of)| *of == mode));
                }
            });
        }
        // The savepoint may be rolled back to again.
        self.since.push(Since { loads, ..Since::default() });
        entered
    }

    /// All that the table has.
    fn into_entered(self) -> Vec<(LockKey, Mode)> {
        let mut entered = entered_of(self.loads);
        entered.extend(self.entered.into_values().flatten());
        entered
    }
}

fn entered_of(loads: Vec<Load>) -> Vec<(LockKey, Mode)> {
    loads.into_iter().flat_map(|load| load.entered).map(|key| (key, Mode::KEY)).collect()
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

    /// The modes in which others hold a key that is about to be checked in the table: the caller enters each there.
    pub fn enter(&self, key: &LockKey, wanted_by: Owner, mut grant: impl FnMut(Owner, Mode)) {
        for (owner, sets) in self.sessions.lock().iter_mut().filter(|(owner, _)| **owner != wanted_by) {
            sets.enter(key).iter().for_each(|mode| grant(*owner, mode));
        }
    }

    /// The modes in which a session holds a key by its sets.
    pub fn modes(&self, owner: Owner, key: &LockKey) -> ModeSet {
        self.sessions.lock().get(&owner).map(|sets| sets.locks.modes(key)).unwrap_or_default()
    }

    /// Whether others hold keys of an index in sets.
    pub fn has_keys(&self, owner: Owner, tree: TreeId) -> bool {
        self.sessions.lock().iter().any(|(other, sets)| *other != owner && sets.locks.has_keys(tree))
    }

    /// Whether others hold a key in sets.
    pub fn is_held(&self, owner: Owner, key: &LockKey) -> bool {
        self.sessions.lock().iter().any(|(other, sets)| *other != owner && !sets.locks.modes(key).is_empty())
    }

    /// Whether some session may have lent keys.
    #[inline]
    pub fn any_loads(&self) -> bool {
        self.loads.load(Ordering::SeqCst) > 0
    }

    /// Whether others have lent keys of the index of a key.
    pub fn has_loads(&self, owner: Owner, key: &LockKey) -> bool {
        match key {
            LockKey::Key(tree, _) => self.any_loads() && !self.loads(owner, *tree).is_empty(),
            LockKey::Row(..) | LockKey::Tag(_) | LockKey::Transaction(..) => false,
        }
    }

    /// Keys of an index that others have lent.
    pub fn loads(&self, owner: Owner, tree: TreeId) -> Vec<(Owner, Arc<LoadedKeys>)> {
        let sessions = self.sessions.lock();
        let others = sessions.iter().filter(|(other, _)| **other != owner);
        let loads = others.flat_map(|(other, sets)| sets.loads.iter().map(|load| (*other, &load.keys)));
        loads.filter(|(_, keys)| keys.tree == tree).map(|(other, keys)| (other, Arc::clone(keys))).collect()
    }

    pub fn lend(&self, owner: Owner, keys: &Arc<LoadedKeys>) {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let load = Load { keys: Arc::clone(keys), entered: HashSet::new() };
        self.change(owner, |sets| sets.loads.push(load));
    }

    /// Undoes `lend`; the caller must release the keys that are in the table.
    pub fn take_back(&self, owner: Owner, keys: &Arc<LoadedKeys>) -> Vec<LockKey> {
        let mut sessions = self.sessions.lock();
        let Some(sets) = sessions.get_mut(&owner) else { return Vec::new() };
        let Some(at) = sets.loads.iter().rposition(|load| Arc::ptr_eq(&load.keys, keys)) else { return Vec::new() };
        self.loads.fetch_sub(1, Ordering::SeqCst);
        sets.since.iter_mut().filter(|since| since.loads > at).for_each(|since| since.loads -= 1);
        sets.loads.remove(at).entered.into_iter().collect()
    }

    /// Notes that a lent key is about to be entered into the table; false: it is not lent any more. Under the key's shard lock.
    pub fn enter_loaded(&self, owner: Owner, keys: &Arc<LoadedKeys>, key: &LockKey) -> bool {
        let mut sessions = self.sessions.lock();
        let mut loads = sessions.get_mut(&owner).into_iter().flat_map(|sets| &mut sets.loads);
        let Some(load) = loads.find(|load| Arc::ptr_eq(&load.keys, keys)) else { return false };
        load.entered.insert(*key);
        true
    }

    /// Takes a lock that no other session has or wants; under the key's shard lock, so that the next session to request it sees `any`.
    pub fn insert(&self, owner: Owner, key: &LockKey, mode: Mode) {
        self.change(owner, |sets| sets.insert(key, mode));
    }

    fn change(&self, owner: Owner, change: impl FnOnce(&mut SessionSets)) {
        let mut sessions = self.sessions.lock();
        let sets = sessions.entry(owner).or_insert_with(|| {
            self.holders.fetch_add(1, Ordering::SeqCst);
            SessionSets::default()
        });
        change(sets);
    }

    /// A mark for the locks taken after a savepoint; 0: there were none before it.
    pub fn mark(&self, owner: Owner) -> usize {
        let mut sessions = self.sessions.lock();
        let Some(sets) = sessions.get_mut(&owner) else { return 0 };
        let loads = sets.loads.len();
        // Savepoints with no lock between them share a mark.
        if sets.since.last().is_none_or(|last| !last.locks.0.is_empty() || last.loads != loads) {
            sets.since.push(Since { loads, ..Since::default() });
        }
        sets.since.len()
    }

    /// Forgets the locks taken since a mark, all for 0; the caller must release those that are in the table.
    pub fn forget(&self, owner: Owner, mark: usize) -> Vec<(LockKey, Mode)> {
        let mut sessions = self.sessions.lock();
        let Some(sets) = sessions.get_mut(&owner) else { return Vec::new() };
        let loads = sets.loads.len();
        // A mark exists until an older one is rolled back to.
        if (1..=sets.since.len()).contains(&mark) {
            let entered = sets.forget_since(mark);
            self.loads.fetch_sub((loads - sets.loads.len()) as u32, Ordering::SeqCst);
            return entered;
        }
        if mark > 0 {
            return Vec::new();
        }
        self.loads.fetch_sub(loads as u32, Ordering::SeqCst);
        self.holders.fetch_sub(1, Ordering::SeqCst);
        sessions.remove(&owner).map(SessionSets::into_entered).unwrap_or_default()
    }
}
