//! Unique keys: finds the session or row that has a value.

use std::sync::Arc;

use melba_locks::{LockKey, Mode, Wait};
use melba_store::Result;
use melba_types::{RowId, TreeId};

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

    /// Waits until no other transaction is changing a row; false: one is, and we may not wait.
    fn await_change(&self, table: TreeId, row: RowId, wait: Wait) -> Result<bool> {
        let lock = LockKey::Row(table, row);
        let free = self.lock_key(lock, Mode::AWAIT_CHANGE, wait)?;
        if free {
            self.shared().locks.release_newest(self.session.slot, lock, Mode::AWAIT_CHANGE);
        }
        Ok(free)
    }
}
