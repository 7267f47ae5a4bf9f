//! Values of exclusion constraints: claims them, and waits for transactions that have claimed others.

use std::sync::Arc;

use melba_locks::{Claim, ClaimNumber, Claims, LockKey, Mode, RowLockMode, Wait};
use melba_store::Result;
use melba_types::{Datum, RowId};

use super::ClaimedValues;

impl ClaimedValues<'_> {
    /// Claims the values of a key that the transaction is about to write. Others that claim values later see them until the
    /// transaction ends (`locks::claims`). `group`: the bytes of the columns that are compared by equality.
    pub fn claim(&self, group: &[u8], values: &Arc<[Datum]>, row: Option<RowId>) -> Result<ClaimNumber> {
        let slot = self.txn.session.slot;
        self.txn.lock_key(self.lock(slot), Mode::of_change(RowLockMode::ForUpdate), Wait::Block)?;
        Ok(self.table().claim(slot, self.tree, group, Arc::clone(values), row))
    }

    /// Takes back the newest claim.
    pub fn unclaim(&self, number: ClaimNumber) {
        self.table().unclaim(self.txn.session.slot, number);
    }

    /// The claims of other transactions in a group that come before one. Some may have ended.
    pub fn before(&self, group: &[u8], number: ClaimNumber) -> Vec<Claim> {
        self.table().before(self.txn.session.slot, self.tree, group, number)
    }

    /// The number of the newest claim for a row; the last number, when it is not known by row.
    pub fn of_row(&self, group: &[u8], row: RowId) -> ClaimNumber {
        self.table().of_row(self.txn.session.slot, self.tree, group, row).unwrap_or(ClaimNumber::LAST)
    }

    /// Waits until the transaction with a claim has ended, or rolled back to before it; false: it has not, and we may not wait.
    pub fn wait(&self, claim: &Claim, wait: Wait) -> Result<bool> {
        self.txn.await_holder(self.lock(claim.owner), wait)
    }

    fn table(&self) -> &Claims {
        &self.txn.shared().locks.claims
    }

    /// The lock that a session holds for its claims in an index.
    fn lock(&self, owner: u32) -> LockKey {
        LockKey::Key(self.tree, self.txn.shared().locks.hash_key(&owner.to_be_bytes()))
    }
}
