//! Two-phase commit: a transaction as bytes, from which the server restores the same transaction after a restart.
//!
//! ```text
//! locks    count, then each: u8 0 relation / 1 object / 2 name / 3 advisory / 4 row / 5 row that moves to another tree,
//!          its numbers; or u8 6 value of a unique key, tree, length, value; then u8 mode
//! changes  as the log would hold them (docs/design/wal.md), those of unlogged and memory trees too
//! ```
//!
//! Numbers are LEB128. Invariants:
//! 1. The bytes hold the locks by which the transaction excludes others: its restoration takes the same locks before any other session
//!    starts. A value of a unique key is listed with its bytes, because its hash changes with each start of the server: so only those
//!    values are locked again of which the transaction has changed an entry; it relies on no others.
//! 2. They hold which rows it moves to other trees: who waits for the lock after the restart must learn of it (`moves`).
//! 3. A restoration leaves out the changes of trees that the restart has emptied. The bytes must be made anew then: a later restart
//!    need not empty those trees again.

use std::collections::HashSet;
use std::sync::Arc;

use melba_locks::{HoldDuration, LockKey, LockManager, LockTag, Mode, Wait};
use melba_store::{EngineError, KeyBytes, Persistence, Result, Sequence, Tree, split_entry};
use melba_threads::atomic::Ordering;
use melba_types::bytes::{ByteReader, put_bytes, put_varint};
use melba_types::row::RowLayout;
use melba_types::{Kind, RowId, TreeId};

use super::{Transaction, TwoPhase};
use crate::commit::{Operation, decode, encode_if};
use crate::view::Isolation;
use crate::write_set::{ChangeKind, TreeHeads, WriteSet};

const RELATION: u8 = 0;
const OBJECT: u8 = 1;
const NAME: u8 = 2;
const ADVISORY: u8 = 3;
const ROW: u8 = 4;
const MOVED_ROW: u8 = 5;
const KEY: u8 = 6;

/// A prepared transaction's bytes, to be restored.
#[derive(Clone, Copy)]
pub struct PreparedBytes<'a> {
    pub bytes: &'a [u8],
    /// Whether the values of unique keys are among the locks. Once, they were not.
    pub lists_keys: bool,
    /// The engine was opened after they were made.
    pub reopened: bool,
}

impl TwoPhase<'_> {
    /// Whether it has changed objects of its session only.
    pub fn has_temporary_changes(&self) -> bool {
        let state = self.txn.state.lock();
        let is_temporary = |persistence| persistence == Persistence::Temporary;
        let of_schema = |what: &ChangeKind| match what {
            ChangeKind::CreateTree(tree) | ChangeKind::DropTree(tree) | ChangeKind::ExtendTable { tree, .. } => {
                is_temporary(tree.persistence)
            }
            ChangeKind::CreateSequence(sequence) | ChangeKind::DropSequence(sequence) => is_temporary(sequence.persistence),
            ChangeKind::Row { .. } | ChangeKind::Key { .. } => false,
        };
        state.writes.trees.iter().any(|t| !t.is_empty() && is_temporary(t.tree.persistence))
            || state.writes.links.iter().any(|link| is_temporary(link.tree.persistence))
            || state.writes.changes.iter().any(|change| of_schema(&change.kind))
    }

    /// OIDs of the relations that it has locked.
    pub fn locked_relations(&self) -> Vec<u32> {
        let locks = self.txn.shared().locks.transaction_locks(self.txn.session.slot).unwrap_or_default();
        let relation = |(key, _): &(LockKey, Mode)| match key {
            LockKey::Tag(LockTag::Relation { relation, .. }) => Some(*relation),
            _ => None,
        };
        locks.iter().filter_map(relation).collect()
    }

    /// The transaction as bytes: its changes and its locks.
    ///
    /// # Errors
    /// `Unsupported` for a SERIALIZABLE transaction and one with claims, `Limit` for one whose changes are partly in files, or with too many locks.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.txn.isolation == Isolation::Serializable {
            return Err(EngineError::Unsupported("PREPARE TRANSACTION of a SERIALIZABLE transaction"));
        }
        if self.txn.shared().locks.claims.has_any(self.txn.session.slot) {
            return Err(EngineError::Unsupported("PREPARE TRANSACTION after writing to a table with an exclusion constraint"));
        }
        let locks = self.txn.shared().locks.transaction_locks(self.txn.session.slot);
        let locks = locks.ok_or(EngineError::Limit("a transaction with so many locks cannot be prepared"))?;
        let (keys, locks): (Vec<_>, Vec<_>) = locks.into_iter().partition(|(key, _)| matches!(key, LockKey::Key(..)));
        let keys: HashSet<LockKey> = keys.into_iter().map(|(key, _)| key).collect();
        let mut out = Vec::new();
        self.txn.with_state(|state| {
            state.seal();
            let moved: Option<HashSet<_>> = state.writes.moved.iter().map(|(tree, row)| Some((tree, row?))).collect();
            let Some(moved) = moved.filter(|_| state.writes.links.is_empty()) else {
                return Err(EngineError::Limit("a transaction with so many changes cannot be prepared"));
            };
            let values = locked_values(&state.writes, &self.txn.shared().locks, &keys);
            put_varint((locks.len() + values.len()) as u64, &mut out);
            let moves = |key: &LockKey| matches!(key, LockKey::Row(tree, row) if moved.contains(&(*tree, *row)));
            locks.iter().for_each(|(key, mode)| put_lock(key, *mode, moves(key), &mut out));
            for (tree, value) in values {
                out.push(KEY);
                put_varint(tree.0, &mut out);
                put_bytes(value, &mut out);
                out.push(Mode::KEY.number());
            }
            encode_if(&state.writes, |persistence| persistence != Persistence::Temporary, &mut out);
            Ok(out)
        })
    }

    /// No session runs it until its end: it keeps no versions alive.
    pub fn set_aside(&self) {
        self.txn.state.lock().snapshot = None;
        let mut pins = self.txn.session.pins.lock();
        pins.current = None;
        self.txn.shared().snapshots.hold(self.txn.session.slot, pins.oldest());
    }

    /// Restores a prepared transaction into this one, which must be new. No other transaction has begun since the engine was
    /// opened, except restored ones. Whether it has left out changes, of trees that the restart has emptied.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are none that `to_bytes` has made. The locks before the error are held then.
    pub fn restore(&self, from: PreparedBytes<'_>) -> Result<bool> {
        let corrupt = || EngineError::Corrupt { what: "a prepared transaction is malformed".into() };
        let mut r = ByteReader::new(from.bytes);
        for _ in 0..r.varint().ok_or_else(corrupt)? {
            let (key, mode, moves) = read_lock(&mut r, &self.txn.shared().locks).ok_or_else(corrupt)?;
            lock_again(self.txn, key, mode)?;
            if let (LockKey::Row(tree, row), true) = (key, moves) {
                self.txn.note_move(tree, row)?;
            }
        }
        let mut restoration = Restoration { txn: self.txn, from, left_out: false };
        let mut failure = None;
        let changes = r.take(r.remaining()).unwrap_or_default();
        let decoded = decode(changes, &mut |operation| {
            if failure.is_none() {
                failure = restoration.restore(operation).err();
            }
        });
        match (failure, decoded) {
            (Some(e), _) => Err(e),
            (None, Some(())) => Ok(restoration.left_out),
            (None, None) => Err(corrupt()),
        }
    }
}

/// The locked values of unique keys of which a transaction has changed entries.
fn locked_values<'a>(writes: &'a WriteSet, locks: &LockManager, held: &HashSet<LockKey>) -> Vec<(TreeId, &'a [u8])> {
    let mut values: Vec<(TreeId, &[u8])> = Vec::new();
    for written in writes.trees.iter().filter(|_| !held.is_empty()) {
        let TreeHeads::Keys(heads) = &written.heads else { continue };
        for (entry, _) in writes.final_keys(heads) {
            let Some((value, _)) = split_entry(entry.as_slice()) else { continue };
            let lock = (written.tree.id, value);
            if values.last() != Some(&lock) && held.contains(&LockKey::Key(written.tree.id, locks.hash_key(value))) {
                values.push(lock);
            }
        }
    }
    values
}

fn lock_again(txn: &Transaction, key: LockKey, mode: Mode) -> Result<()> {
    match txn.session.lock_key(key, mode, HoldDuration::Transaction, Wait::NoWait)? {
        true => Ok(()),
        false => Err(EngineError::Misuse("a prepared transaction's lock is taken")),
    }
}

/// Puts the changes of a prepared transaction into a new one.
struct Restoration<'a> {
    txn: &'a Transaction,
    from: PreparedBytes<'a>,
    left_out: bool,
}

impl Restoration<'_> {
    fn restore(&mut self, operation: Operation<'_>) -> Result<()> {
        let txn = self.txn;
        let store = &txn.shared().store;
        match operation {
            Operation::CreateTable { tree, persistence, kinds } => create_again(txn, Tree::table(tree, &kinds, persistence)),
            Operation::CreateIndex { tree, table, persistence } => create_again(txn, Tree::index(tree, table, persistence)),
            Operation::DropTree(tree) => {
                let tree = Arc::clone(&*store.tree(tree)?);
                put_schema(txn, ChangeKind::DropTree(tree))
            }
            Operation::ExtendTable { tree, kinds } => extend_again(txn, tree, kinds),
            Operation::CreateSequence { id, persistence, definition, state } => {
                store.skip_tree_ids(id.0 + 1);
                let sequence = Arc::new(Sequence::new(id, definition, state, persistence, false));
                store.add_sequence(Arc::clone(&sequence));
                put_schema(txn, ChangeKind::CreateSequence(sequence))
            }
            Operation::DropSequence(id) => put_schema(txn, ChangeKind::DropSequence(store.sequence(id)?)),
            Operation::Row { tree, row, bytes } => {
                let tree = txn.tree(tree)?;
                if self.keeps(tree.persistence) { put_again(txn, &tree, row, bytes) } else { Ok(()) }
            }
            Operation::Entry { tree, key, live } => {
                let tree = txn.tree(tree)?;
                if self.keeps(tree.persistence) { self.put_entry_again(&tree, key, live) } else { Ok(()) }
            }
            Operation::LinkSegments { .. } | Operation::SequenceState { .. } => {
                Err(EngineError::Corrupt { what: "a prepared transaction has what it cannot have".into() })
            }
        }
    }

    /// Whether rows of trees are there since the transaction was prepared.
    fn keeps(&mut self, persistence: Persistence) -> bool {
        let kept = match persistence {
            _ if !self.from.reopened => true,
            Persistence::Logged => true,
            Persistence::Unlogged => self.txn.shared().unlogged_kept,
            Persistence::Memory | Persistence::Temporary => false,
        };
        self.left_out |= !kept;
        kept
    }

    fn put_entry_again(&self, tree: &Arc<Tree>, entry: &[u8], live: bool) -> Result<()> {
        let txn = self.txn;
        tree.require_index()?;
        if let Some((key, _)) = split_entry(entry).filter(|_| !self.from.lists_keys) {
            // It is not known whether the index is unique. If another prepared transaction has the lock, it is not.
            let lock = LockKey::Key(tree.id, txn.shared().locks.hash_key(key));
            txn.session.lock_key(lock, Mode::KEY, HoldDuration::Transaction, Wait::NoWait)?;
        }
        txn.change(|state| {
            let command = state.command;
            state.writes.put_key(command, tree, KeyBytes::new(entry), live);
            Ok(())
        })
    }
}

fn put_schema(txn: &Transaction, what: ChangeKind) -> Result<()> {
    txn.change(|state| {
        let command = state.command;
        state.writes.put_schema(command, what);
        Ok(())
    })
}

fn create_again(txn: &Transaction, tree: Tree) -> Result<()> {
    let store = &txn.shared().store;
    store.skip_tree_ids(tree.id.without_toast().0 + 1);
    let tree = Arc::new(tree);
    store.add_tree(Arc::clone(&tree));
    put_schema(txn, ChangeKind::CreateTree(tree))
}

fn extend_again(txn: &Transaction, tree: TreeId, kinds: Vec<Kind>) -> Result<()> {
    let tree = Arc::clone(&*txn.tree(tree)?);
    txn.change(|state| {
        let own = state.writes.layouts.iter().position(|(id, _)| *id == tree.id);
        let before = own.map(|at| state.writes.layouts.swap_remove(at).1);
        state.writes.layouts.push((tree.id, Arc::new(RowLayout::new(kinds))));
        let command = state.command;
        state.writes.put_schema(command, ChangeKind::ExtendTable { tree, before });
        Ok(())
    })
}

fn put_again(txn: &Transaction, tree: &Arc<Tree>, row: RowId, bytes: Option<&[u8]>) -> Result<()> {
    let table = tree.require_table()?;
    // Other sessions that insert from now on take other ids.
    table.next_row.fetch_max(row.0 + 1, Ordering::Relaxed);
    let was_there = txn.get_latest(tree.id, row)?.row.is_some();
    let live = match (was_there, bytes.is_some()) {
        (false, true) => 1,
        (true, false) => -1,
        _ => 0,
    };
    txn.change(|state| {
        let command = state.command;
        state.writes.put_row(command, tree, row, bytes.map(Into::into), live);
        Ok(())
    })
}

/// `moves`: of a row that moves to another tree.
fn put_lock(key: &LockKey, mode: Mode, moves: bool, out: &mut Vec<u8>) {
    let mut put = |kind: u8, numbers: &[u64]| {
        out.push(kind);
        numbers.iter().for_each(|n| put_varint(*n, out));
        out.push(mode.number());
    };
    match *key {
        LockKey::Tag(LockTag::Relation { database, relation }) => put(RELATION, &[database.into(), relation.into()]),
        LockKey::Tag(LockTag::Object { database, class, object }) => put(OBJECT, &[database.into(), class.into(), object.into()]),
        LockKey::Tag(LockTag::Name { database, class, hash }) => put(NAME, &[database.into(), class.into(), hash]),
        LockKey::Tag(LockTag::Advisory { database, key, two_keys }) => put(ADVISORY, &[database.into(), key, two_keys.into()]),
        LockKey::Row(tree, row) => put(if moves { MOVED_ROW } else { ROW }, &[tree.0, row.0]),
        // Values of unique keys are listed by their bytes.
        LockKey::Key(..) | LockKey::Transaction(..) => {}
    }
}

/// A lock, and whether it is of a row that moves to another tree.
fn read_lock(r: &mut ByteReader<'_>, locks: &LockManager) -> Option<(LockKey, Mode, bool)> {
    let kind = r.u8()?;
    let small = |n: u64| u32::try_from(n).ok();
    let key = match kind {
        RELATION => LockKey::Tag(LockTag::Relation { database: small(r.varint()?)?, relation: small(r.varint()?)? }),
        OBJECT => {
            let (database, class) = (small(r.varint()?)?, small(r.varint()?)?);
            LockKey::Tag(LockTag::Object { database, class, object: small(r.varint()?)? })
        }
        NAME => {
            let (database, class) = (small(r.varint()?)?, small(r.varint()?)?);
            LockKey::Tag(LockTag::Name { database, class, hash: r.varint()? })
        }
        ADVISORY => {
            let (database, key) = (small(r.varint()?)?, r.varint()?);
            LockKey::Tag(LockTag::Advisory { database, key, two_keys: r.varint()? != 0 })
        }
        ROW | MOVED_ROW => LockKey::Row(TreeId(r.varint()?), RowId(r.varint()?)),
        KEY => LockKey::Key(TreeId(r.varint()?), locks.hash_key(r.bytes()?)),
        _ => return None,
    };
    Some((key, Mode::of_number(r.u8()?)?, kind == MOVED_ROW))
}
