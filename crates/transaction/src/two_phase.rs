//! PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_catalog::Persistence;
use melba_engine::{Durability, Isolation};
use melba_types::{Csn, Oid, Result, RowId, bail, err};

use super::Tx;
use crate::cluster::Cluster;
use crate::prepared::{Finisher, PreparedTransaction, Taken, Voted, restore, row_of, value_of};
use crate::tree::CATALOG_TREE;

impl Tx {
    /// The transaction waits for COMMIT PREPARED or ROLLBACK PREPARED from now on, and this one has none any more. Its deferred
    /// checks have run.
    ///
    /// # Errors
    /// 42710, 53200, and 0A000 for a transaction that cannot be prepared: the caller rolls it back.
    pub fn prepare(&self, identifier: &str, owner: Oid) -> Result<()> {
        if self.has_notifications() {
            bail!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY");
        }
        if !self.exported.lock().is_empty() {
            bail!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has exported snapshots");
        }
        self.end_large_objects()?;
        self.claim_changes()?;
        let catalog = self.catalog();
        let is_temporary = |oid: u32| catalog.relation(Oid(oid)).is_some_and(|r| r.persistence == Persistence::Temporary);
        if self.engine.two_phase().has_temporary_changes()
            || self.engine.two_phase().locked_relations().into_iter().any(is_temporary)
        {
            bail!(FEATURE_NOT_SUPPORTED, "cannot PREPARE a transaction that has operated on temporary objects");
        }
        let (prepared, at) = (&self.cluster.prepared, self.cluster.clock.now_micros());
        let shown =
            PreparedTransaction { identifier: identifier.to_owned(), xid: self.xid(), owner, database: self.database, at };
        prepared.reserve(shown.clone())?;
        let voted = self.vote(&shown).inspect_err(|_| prepared.forget(identifier))?;
        self.ends_elsewhere.store(true, Ordering::Relaxed);
        prepared.wait(identifier, Taken::Voted(voted));
        Ok(())
    }

    fn vote(&self, shown: &PreparedTransaction) -> Result<Voted> {
        let changes = self.ddl.used().map(|ddl| ddl.changes.clone()).unwrap_or_default();
        let value: Arc<[u8]> = value_of(shown, &changes, &self.engine)?.into();
        let writer = self.cluster.engine.begin(Isolation::ReadCommitted)?;
        let row = writer.insert(CATALOG_TREE, &row_of(&shown.identifier, &value))?;
        writer.commit(Durability::Sync)?;
        // The commit, whenever it comes, forgets it.
        self.engine.delete(CATALOG_TREE, row)?;
        self.engine.two_phase().set_aside();
        Ok(Voted { engine: self.engine.clone(), changes, row, value })
    }
}

impl Cluster {
    /// COMMIT PREPARED.
    ///
    /// # Errors
    /// 42704, 55000, 42501 and 0A000 when `who` cannot end it; those of a commit, after which it waits again.
    pub fn commit_prepared(self: &Arc<Self>, identifier: &str, who: &Finisher) -> Result<Csn> {
        let (taken, xid) = self.prepared.take(identifier, who)?;
        let voted = match taken {
            Taken::Voted(voted) => voted,
            Taken::Damaged(damaged) => {
                let error = err!(DATA_CORRUPTED, "prepared transaction with identifier \"{identifier}\" could not be restored")
                    .detail(damaged.cause.message().to_owned())
                    .hint("It can be removed by ROLLBACK PREPARED.");
                self.prepared.wait(identifier, Taken::Damaged(damaged));
                return Err(error);
            }
        };
        let (row, value) = (voted.row, voted.value.clone());
        let tx = Tx::of_voted(self, voted, who.database, xid);
        match tx.commit(Durability::Sync) {
            Ok((csn, _)) => {
                self.prepared.forget(identifier);
                Ok(csn)
            }
            Err(error) => {
                // It has ended without its changes, which are in its row still.
                drop(tx);
                match restore(&self.engine, identifier.to_owned(), (row, value), false) {
                    // Damaged, if another transaction has got one of its locks.
                    Ok((_, taken)) => self.prepared.wait(identifier, taken),
                    // No session is free: a restart restores it.
                    Err(_) => self.prepared.forget(identifier),
                }
                Err(error)
            }
        }
    }

    /// ROLLBACK PREPARED.
    ///
    /// # Errors
    /// As `commit_prepared`.
    pub fn rollback_prepared(self: &Arc<Self>, identifier: &str, who: &Finisher) -> Result<()> {
        let (taken, xid) = self.prepared.take(identifier, who)?;
        let row = match &taken {
            Taken::Voted(voted) => voted.row,
            Taken::Damaged(damaged) => damaged.row,
        };
        if let Err(error) = self.forget_row(row) {
            self.prepared.wait(identifier, taken);
            return Err(error);
        }
        match taken {
            Taken::Voted(voted) => Tx::of_voted(self, voted, who.database, xid).rollback(),
            Taken::Damaged(damaged) => damaged.engine.rollback(),
        }
        self.prepared.forget(identifier);
        Ok(())
    }

    fn forget_row(&self, row: RowId) -> Result<()> {
        let writer = self.engine.begin(Isolation::ReadCommitted)?;
        writer.delete(CATALOG_TREE, row)?;
        writer.commit(Durability::Sync)?;
        Ok(())
    }
}
