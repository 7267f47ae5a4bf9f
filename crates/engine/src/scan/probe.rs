//! Whether a key is taken, in the newest committed state.

use std::ops::Bound;
use std::sync::Arc;

use melba_locks::{LockKey, Mode, Wait};
use melba_store::{KeyBytes, Result, Tree};
use melba_types::RowId;

use super::index::{may_have_entries, successor};
use crate::txn::{IndexAccess, Transaction, announce, entries};
use crate::view::ReadView;

impl IndexAccess<'_> {
    /// The row of a live entry with exactly this key, other than `except`, in the newest committed state with everything of
    /// our own: for checks of constraints.
    pub fn probe_latest(&self, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        self.txn.with_newest(|csn| self.probe(ReadView { csn, command: ReadView::LATEST_COMMAND }, key, except))
    }

    fn probe(&self, view: ReadView, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        if self.is_absent(view, &*self.txn.tree(self.tree)?, key)? {
            return Ok(None);
        }
        let mut scan = self.lookup(view, key)?;
        while let Some(row) = scan.next_of(key)? {
            if Some(row) != except {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Whether no source of entries has any that begins with `key`, which for most new keys costs a search in memory.
    fn is_absent(&self, view: ReadView, tree: &Tree, key: &[u8]) -> Result<bool> {
        let Some(end) = successor(key).filter(|_| !announce::tracks(self.txn, view)) else { return Ok(false) };
        let bounds = (Bound::Included(key), Bound::Excluded(end.as_slice()));
        let mut known = !entries::private_indexes(self.txn, view, tree.id).is_empty();
        entries::own_keys(self.txn, view, tree.id, bounds, false, 1, |_, _| known = true);
        let runs = {
            let levels = tree.require_index()?.levels.read();
            known |= levels.used_memory().any(|table| table.map.read().range::<[u8], _>(bounds).next().is_some());
            Arc::clone(&levels.runs)
        };
        let (lower, upper) = (Bound::Included(KeyBytes::new(key)), Bound::Excluded(end));
        for run in runs.iter() {
            known = known || may_have_entries(run, view, &lower, &upper, Some(key))?;
        }
        Ok(!known)
    }

    /// Locks one value of a unique index against other transactions and finds the row, other than `except`, that has it now;
    /// `None`: it is ours to use.
    ///
    /// Waits for other sessions that use the value, and for those that are changing or removing the row that has it, because they
    /// may free it. The value stays locked only when it is free or its row is not being changed, because a session that changes
    /// the row may need the value back.
    pub fn claim_key(&self, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        self.claim_key_into(key, except, &mut ClaimedKeys::default())
    }

    /// The same; a value that was not locked before is noted in `claimed`, for `ClaimedKeys::release`.
    pub fn claim_key_into(&self, key: &[u8], except: Option<RowId>, claimed: &mut ClaimedKeys) -> Result<Option<RowId>> {
        let table = self.txn.tree(self.tree)?.table;
        let lock = LockKey::Key(self.tree, self.txn.shared().locks.hash_key(key));
        let (locks, slot) = (&self.txn.shared().locks, self.txn.session().slot);
        loop {
            let held = locks.held(slot);
            self.txn.lock_key(lock, Mode::KEY, Wait::Block)?;
            let is_new = locks.held(slot) > held;
            if is_new && locks.yield_to_load(slot, self.tree, key)? {
                continue;
            }
            let found = self.probe_latest(key, except)?;
            if let Some(row) = found
                && !self.txn.await_change(table, row, Wait::NoWait)?
            {
                if is_new {
                    locks.release_newest(slot, lock, Mode::KEY);
                }
                self.txn.await_change(table, row, Wait::Block)?;
                continue;
            }
            if is_new {
                claimed.keys.push(lock);
            }
            return Ok(found);
        }
    }
}

/// Values of unique keys that a transaction has locked, and those of exclusion constraints that it has claimed, for a row that it may not
/// insert after all. A transaction with very many locks keeps further ones in sets, and those are not noted.
#[derive(Default)]
pub struct ClaimedKeys {
    keys: Vec<LockKey>,
    /// Claims made before.
    claims: usize,
}

impl ClaimedKeys {
    /// Begins to note values; the transaction keeps those that were noted before.
    pub fn begin(&mut self, txn: &Transaction) {
        self.keys.clear();
        self.claims = txn.shared().locks.claims.held(txn.session().slot);
    }

    /// Releases what was noted: the transaction has written no entry with these values.
    pub fn release(&mut self, txn: &Transaction) {
        let (locks, slot) = (&txn.shared().locks, txn.session().slot);
        for lock in self.keys.drain(..).rev() {
            locks.release_newest(slot, lock, Mode::KEY);
        }
        locks.claims.forget(slot, self.claims);
    }
}
