//! PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_catalog::Persistence;
use melba_engine::{Durability, Isolation};
use melba_types::row::RowLayout;
use melba_types::{Csn, Datum, Oid, Result, RowId, bail};

use super::Tx;
use crate::cluster::Cluster;
use crate::prepared::{Finisher, PreparedTransaction, Voted, key_of, restore, value_of};
use crate::tree::{CATALOG_KINDS, CATALOG_TREE};

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
        prepared.wait(identifier, voted);
        Ok(())
    }

    fn vote(&self, shown: &PreparedTransaction) -> Result<Voted> {
        let changes = self.ddl.used().map(|ddl| ddl.changes.clone()).unwrap_or_default();
        let value: Arc<[u8]> = value_of(shown, &changes, &self.engine)?.into();
        let row = RowLayout::new(CATALOG_KINDS.to_vec())
            .encode_row(&[Datum::bytes(key_of(&shown.identifier)), Datum::bytes(&value[..])]);
        let writer = self.cluster.engine.begin(Isolation::ReadCommitted)?;
        let row = writer.insert(CATALOG_TREE, &row)?;
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
        let (voted, xid) = self.prepared.take(identifier, who)?;
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
                match restore(&self.engine, identifier.to_owned(), row, value) {
                    Ok((_, voted)) => self.prepared.wait(identifier, voted),
                    // Another transaction has got one of its locks: a restart restores it.
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
        let (voted, xid) = self.prepared.take(identifier, who)?;
        if let Err(error) = self.forget_voted(voted.row) {
            self.prepared.wait(identifier, voted);
            return Err(error);
        }
        Tx::of_voted(self, voted, who.database, xid).rollback();
        self.prepared.forget(identifier);
        Ok(())
    }

    fn forget_voted(&self, row: RowId) -> Result<()> {
        let writer = self.engine.begin(Isolation::ReadCommitted)?;
        writer.delete(CATALOG_TREE, row)?;
        writer.commit(Durability::Sync)?;
        Ok(())
    }
}
