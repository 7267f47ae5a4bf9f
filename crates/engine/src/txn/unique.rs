//! Unique keys: finds the session or row that has a value. Values of exclusion constraints: claims them, and waits for transactions
//! that have claimed others.

use std::sync::Arc;

use melba_locks::{Claim, ClaimNumber, Claims, LockKey, Mode, RowLockMode, Wait};
use melba_store::Result;
use melba_types::{Datum, RowId, TreeId};

use super::Transaction;

impl Transaction {
    /// Locks one value of a unique index against other transactions and finds the row, other than `except`, that has it now;
    /// `None`: it is ours to use.
    ///
    /// Waits for other sessions that use the value, and for those that are changing or removing the row that has it, because they
    /// may free it. The value stays locked only when it is free or its row is not being changed, because a session that changes
    /// the row may need the value back.
    pub fn claim_key(self: &Arc<Self>, tree: TreeId, key: &[u8], except: Option<RowId>) -> Result<Option<RowId>> {
        let table = self.tree(tree)?.table;
        let lock = LockKey::Key(tree, self.shared().locks.hash_key(key));
        let (locks, slot) = (&self.shared().locks, self.session.slot);
        loop {
            let held = locks.held(slot);
            self.lock_key(lock, Mode::KEY, Wait::Block)?;
            let is_new = locks.held(slot) > held;
            if is_new && locks.yield_to_load(slot, tree, key)? {
                continue;
            }
            let Some(row) = self.index_probe_latest(tree, key, except)? else { return Ok(None) };
            if self.await_change(table, row, Wait::NoWait)? {
                return Ok(Some(row));
            }
            if is_new {
                locks.release_newest(slot, lock, Mode::KEY);
            }
            self.await_change(table, row, Wait::Block)?;
        }
    }

    /// Waits until no other transaction is changing a row of a table; false: one is, and we may not wait.
    pub fn await_change(&self, table: TreeId, row: RowId, wait: Wait) -> Result<bool> {
        self.await_holder(LockKey::Row(table, row), wait)
    }

    /// Waits until no other transaction holds a lock for a change; false: one does, and we may not wait.
    fn await_holder(&self, lock: LockKey, wait: Wait) -> Result<bool> {
        let free = self.lock_key(lock, Mode::AWAIT_CHANGE, wait)?;
        if free {
            self.shared().locks.release_newest(self.session.slot, lock, Mode::AWAIT_CHANGE);
        }
        Ok(free)
    }

    /// Claims the values of a key that the transaction is about to write. Others that claim values later see them until the
    /// transaction ends (`locks::claims`). `group`: the bytes of the columns that are compared by equality.
    pub fn claim_values(&self, tree: TreeId, group: &[u8], values: &Arc<[Datum]>, row: Option<RowId>) -> Result<ClaimNumber> {
        let slot = self.session.slot;
        self.lock_key(self.claims_lock(tree, slot), Mode::of_change(RowLockMode::ForUpdate), Wait::Block)?;
        Ok(self.claims().claim(slot, tree, group, Arc::clone(values), row))
    }

    /// Takes back the newest claim.
    pub fn unclaim_values(&self, number: ClaimNumber) {
        self.claims().unclaim(self.session.slot, number);
    }

    /// The claims of other transactions in a group that come before one. Some may have ended.
    pub fn claims_before(&self, tree: TreeId, group: &[u8], number: ClaimNumber) -> Vec<Claim> {
        self.claims().before(self.session.slot, tree, group, number)
    }

    /// The number of the newest claim for a row; the last number, when it is not known by row.
    pub fn claim_of_row(&self, tree: TreeId, group: &[u8], row: RowId) -> ClaimNumber {
        self.claims().of_row(self.session.slot, tree, group, row).unwrap_or(ClaimNumber::LAST)
    }

    /// Waits until the transaction with a claim has ended, or rolled back to before it; false: it has not, and we may not wait.
    pub fn await_claim(&self, tree: TreeId, claim: &Claim, wait: Wait) -> Result<bool> {
        self.await_holder(self.claims_lock(tree, claim.owner), wait)
    }

    fn claims(&self) -> &Claims {
        &self.shared().locks.claims
    }

    /// The lock that a session holds for its claims in an index.
    fn claims_lock(&self, tree: TreeId, owner: u32) -> LockKey {
        LockKey::Key(tree, self.shared().locks.hash_key(&owner.to_be_bytes()))
    }
}
