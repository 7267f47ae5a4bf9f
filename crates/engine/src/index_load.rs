//! Bulk loads into indexes that already have entries: COPY, INSERT ... SELECT and long INSERT ... VALUES.
//!
//! The entries are sorted into segments like those of a new index. The segments themselves then lock the keys of a unique index
//! all at once (`locks::loaded`), and the keys are compared with the index's entries in their common order, not looked up.
//!
//! Obstacles, which are locks of other sessions and existing entries, are resolved one key at a time, in the order of the rows,
//! as single insertions would do it: `claim_key` waits where they would wait. Meanwhile the load holds no other of its keys, so
//! it cannot deadlock where they would not.
//!
//! Invariant: when `finish` has linked the segments, no other session has or gets one of their keys before the transaction ends.

use std::collections::BinaryHeap;
use std::ops::Bound;
use std::sync::Arc;

use melba_locks::LoadedKeys;
use melba_segment::KeyCursor;
use melba_store::{IndexRun, Result};
use melba_types::{RowId, TreeId};

use crate::index_build::{Built, Duplicate, IndexBuilder, Unique};
use crate::scan::IndexScan;
use crate::txn::{Transaction, entries};
use crate::view::ReadView;

/// Obstacles that are remembered from one search of all keys: those of the first rows.
const OBSTACLES_MAX: usize = 1024;
/// Entries that are stepped over before a search for the next one of interest begins.
const STEPS_MAX: usize = 32;
/// Entries between two checks for interrupts.
const ENTRIES_PER_LOOK: usize = 1 << 12;

/// Collects the index entries of a statement's new rows.
pub struct IndexLoad {
    builder: IndexBuilder,
}

impl IndexLoad {
    /// Begins a load of an index that is not in memory only. `unique`: keys must be unique, unless `add` gets another value.
    pub fn begin(txn: &Arc<Transaction>, tree: TreeId, unique: bool) -> Result<IndexLoad> {
        let unique = if unique { Unique::FirstRow } else { Unique::No };
        Ok(IndexLoad { builder: IndexBuilder::new(txn, tree, unique)? })
    }

    /// Adds an entry of a new row; see `IndexBuilder::add`.
    #[inline]
    pub fn add(&mut self, key: &[u8], row: RowId, may_repeat: bool) -> Result<()> {
        self.builder.add(key, row, may_repeat)
    }

    /// Hands all entries to the transaction, and locks their keys. When some are taken already, by other entries or each other,
    /// nothing is added, and the answer is the first row of the load whose key is: `rows.1`.
    pub fn finish(mut self) -> Result<Option<Duplicate>> {
        let built = self.builder.build()?;
        let keys = LoadedKeys { tree: self.builder.tree().id, runs: built.runs.clone() };
        if self.builder.is_unique()
            && let Some(duplicate) = lock_keys(self.builder.txn(), &Arc::new(keys), &built)?
        {
            return Ok(Some(duplicate));
        }
        self.builder.link(built)?;
        Ok(None)
    }
}

/// Locks the keys of a load, when none of them is taken.
fn lock_keys(txn: &Arc<Transaction>, keys: &Arc<LoadedKeys>, built: &Built) -> Result<Option<Duplicate>> {
    let (locks, slot) = (&txn.shared().locks, txn.session().slot);
    if keys.runs.is_empty() {
        return Ok(None);
    }
    loop {
        locks.lend(slot, keys);
        let obstacles = obstacles(txn, keys);
        if built.duplicate.is_none() && obstacles.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(None);
        }
        locks.take_back(slot, keys);
        let obstacles = obstacles?;
        for Obstacle { row, key } in &obstacles {
            if built.duplicate.as_ref().is_some_and(|duplicate| duplicate.rows.1 <= *row) {
                break;
            }
            if let Some(found) = txn.index(keys.tree).claim_key(key, None)? {
                return Ok(Some(Duplicate { key: key.clone(), rows: (found, *row) }));
            }
        }
        if obstacles.len() < OBSTACLES_MAX && built.duplicate.is_some() {
            return Ok(built.duplicate.clone());
        }
    }
}

/// A key of the load that others have or may have, and its row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Obstacle {
    row: RowId,
    key: Vec<u8>,
}

/// Those of the first rows.
#[derive(Default)]
struct Obstacles(BinaryHeap<Obstacle>);

impl Obstacles {
    fn push(&mut self, key: &[u8], row: RowId) {
        if self.0.len() == OBSTACLES_MAX {
            if self.0.peek().is_some_and(|last| last.row <= row) {
                return;
            }
            self.0.pop();
        }
        self.0.push(Obstacle { row, key: key.to_vec() });
    }
}

/// Obstacles to the keys that are lent, in the order of the rows.
fn obstacles(txn: &Arc<Transaction>, keys: &LoadedKeys) -> Result<Vec<Obstacle>> {
    let mut found = Obstacles::default();
    locked(txn, keys, &mut found)?;
    // Only now: changes whose locks other sessions have released are applied.
    let (view, _pin) = txn.latest_view();
    for run in &keys.runs {
        existing(txn, view, keys.tree, run, &mut found)?;
    }
    let mut obstacles = found.0.into_sorted_vec();
    obstacles.dedup();
    Ok(obstacles)
}

/// Keys that others have locked.
fn locked(txn: &Arc<Transaction>, keys: &LoadedKeys, found: &mut Obstacles) -> Result<()> {
    let (locks, slot) = (&txn.shared().locks, txn.session().slot);
    let foreign = locks.foreign_keys(slot, keys.tree);
    if foreign.is_empty() {
        return Ok(());
    }
    let interrupt = txn.session().interrupt();
    for run in &keys.runs {
        let mut cursor = run.reader.cursor();
        let mut n = 0usize;
        let mut valid = cursor.seek_first()?;
        while valid {
            if n.is_multiple_of(ENTRIES_PER_LOOK) {
                interrupt.check()?;
            }
            n += 1;
            let (key, row) = entries::split(cursor.key())?;
            if locks.is_foreign(slot, &foreign, key)? {
                found.push(key, row);
            }
            valid = cursor.next()?;
        }
    }
    Ok(())
}

/// Keys of a segment that the index has.
fn existing(txn: &Arc<Transaction>, view: ReadView, tree: TreeId, run: &Arc<IndexRun>, found: &mut Obstacles) -> Result<()> {
    let meta = run.reader.meta();
    let (first, _) = entries::split(&meta.key_min)?;
    let (last, _) = entries::split(&meta.key_max)?;
    let last = Bound::Included(last);
    let mut scan = IndexScan::open(Arc::clone(txn), view, &*txn.tree(tree)?, (Bound::Included(first), last), false, None)?;
    let mut cursor = run.reader.cursor();
    let interrupt = txn.session().interrupt();
    // The entry of the index, and how many of them have been passed since the cursor moved last.
    let (mut known, mut passed) = (Vec::new(), 0);
    while let Some((key, _)) = scan.next()? {
        known.clear();
        known.extend_from_slice(key);
        if cursor.is_valid()
            && let (next, _) = entries::split(cursor.key())?
            && next > known.as_slice()
        {
            passed += 1;
            if passed == STEPS_MAX {
                interrupt.check()?;
                scan.restart((Bound::Included(next), last), None)?;
            }
            continue;
        }
        passed = 0;
        if !go_to(&mut cursor, &known)? {
            return Ok(());
        }
        let (key, row) = entries::split(cursor.key())?;
        if key == known {
            found.push(key, row);
        }
    }
    Ok(())
}

/// Moves a cursor forward to the first entry with at least a key; false when there is none.
fn go_to(cursor: &mut KeyCursor, key: &[u8]) -> Result<bool> {
    for _ in 0..STEPS_MAX {
        if !cursor.is_valid() {
            break;
        }
        if cursor.key() >= key {
            return Ok(true);
        }
        if !cursor.next()? {
            return Ok(false);
        }
    }
    Ok(cursor.seek(key)?)
}
