//! Waits for the ends of other transactions, whatever these do until then (PostgreSQL's virtual transaction ids).
//!
//! A waiter lets each of those transactions hold a lock on itself, and then requests it: so the wait is one like every other, with a
//! place in the detector's graph. The transaction releases that lock with all others.

use melba_threads::atomic::Ordering;
use melba_types::Csn;

use crate::table::{HeldLocks, HoldDuration, LockManager, Owner, SessionLocks};
use crate::waits::WaitPolicy;
use crate::{LockKey, Mode, RelationLockMode};

use melba_store::Result;

impl LockManager {
    /// Waits for the transactions that hold a lock on a relation now that conflicts with a mode. Later ones do not matter
    /// (PostgreSQL's WaitForLockers).
    pub fn await_holders(&self, owner: u32, relation: LockKey, mode: Mode, wait: &WaitPolicy<'_>) -> Result<()> {
        let conflicts = mode.conflicts();
        let holds = |_: &SessionLocks, held: &HeldLocks| {
            held.fast.iter().any(|(key, modes)| *key == relation && modes.intersects(conflicts))
                || held.transaction.iter().any(|(key, mode)| *key == relation && conflicts.contains(*mode))
        };
        self.await_transactions(owner, &holds, wait)
    }

    /// Waits for the transactions that keep a snapshot which is not newer (PostgreSQL's WaitForOlderSnapshots).
    pub fn await_snapshots(&self, owner: u32, newest: Csn, wait: &WaitPolicy<'_>) -> Result<()> {
        let keeps = |session: &SessionLocks, _: &HeldLocks| (1..=newest.0 + 1).contains(&session.snapshot.load(Ordering::SeqCst));
        self.await_transactions(owner, &keeps, wait)
    }

    /// Announces the snapshot that a session's transaction keeps; `None`, before it releases its locks, that it keeps none any more.
    pub fn keep_snapshot(&self, owner: u32, csn: Option<Csn>) {
        self.sessions[owner as usize].snapshot.store(csn.map_or(0, |csn| csn.0 + 1), Ordering::SeqCst);
    }

    fn await_transactions(
        &self,
        owner: Owner,
        wanted: &dyn Fn(&SessionLocks, &HeldLocks) -> bool,
        wait: &WaitPolicy<'_>,
    ) -> Result<()> {
        let others = self.used_sessions().filter(|(other, _)| *other != owner);
        let running: Vec<LockKey> =
            others.filter_map(|(other, session)| self.lock_transaction_of(other, session, wanted)).collect();
        let share = Mode::from(RelationLockMode::Share);
        for transaction in running {
            self.lock(owner, transaction, share, HoldDuration::Transaction, wait)?;
            self.release_newest(owner, transaction, share);
        }
        Ok(())
    }

    /// Lets a session's transaction hold a lock on itself, if it is wanted: `wanted` is asked while the session can release nothing.
    fn lock_transaction_of(
        &self,
        owner: Owner,
        session: &SessionLocks,
        wanted: &dyn Fn(&SessionLocks, &HeldLocks) -> bool,
    ) -> Option<LockKey> {
        let mut held = session.held.lock();
        if !wanted(session, &held) {
            return None;
        }
        let (transaction, exclusive) = (LockKey::Transaction(owner, self.transaction(owner)), RelationLockMode::Exclusive.into());
        if !held.transaction.contains(&(transaction, exclusive)) {
            held.transaction.push((transaction, exclusive));
            self.shard(&transaction).entry(transaction).or_default().grant(owner, exclusive, HoldDuration::Transaction);
        }
        Some(transaction)
    }
}
