//! Large objects: byte strings of up to 4 TB with an OID, an owner and a privilege list, read and written in parts
//! (docs/design/largeobject.md).
//!
//! The objects of a database are rows of two table trees: metadata (row id: the object's OID) and data (row id: the OID, then
//! the number of an extent of 64 KB). So commit, rollback, savepoints, recovery and space are the engine's.
//!
//! Invariants:
//! 1. A session that creates or removes an object holds its metadata row FOR UPDATE; one that changes owner, privileges or size,
//!    FOR NO KEY UPDATE; one that writes within it, FOR KEY SHARE, and the extent's row FOR NO KEY UPDATE. Or it holds EXCLUSIVE
//!    on the whole block of OIDs, which every session first locks ROW EXCLUSIVE. A change applies to the newest state.
//! 2. A change first enters the transaction's `Buffer`. The buffer is empty whenever a statement takes its view, at every
//!    savepoint and at the commit, so only the functions of this module know of it.
//! 3. A missing extent reads as zeros; no extent lies beyond the object's size.

mod access;
mod buffer;
mod descriptor;
mod extent;
mod metadata;
mod scan;

pub use access::{LargeObjectAccess, Sight};
pub use descriptor::Descriptor;
pub use extent::method_of_setting;
pub use metadata::Metadata;
pub use scan::{RowsOf, Scan};

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::{Catalog, Object, ObjectChange};
use melba_engine::{Persistence, Transaction};
use melba_toast::Method;
use melba_types::{Kind, Oid, Result, RowId, TreeId};

use access::BlockLock;
use buffer::Buffer;

/// Bytes of an extent: the least cost of a read or write.
pub const EXTENT_BYTES: usize = 64 << 10;
/// Bytes of a row of pg_largeobject.
pub const PAGE_BYTES: usize = 2048;
/// The largest object: as many pages as pg_largeobject.pageno can count.
pub const SIZE_MAX: i64 = i32::MAX as i64 * PAGE_BYTES as i64;

/// Columns of the metadata tree: owner, privileges (see `metadata`), size.
pub const METADATA_KINDS: [Kind; 3] = [Kind::Oid, Kind::Bytes, Kind::Int8];
/// Columns of the data tree: lengths of the pages (null: all are full), length, frame (see `extent`).
pub const DATA_KINDS: [Kind; 3] = [Kind::Bytes, Kind::Int4, Kind::Bytes];

/// Where a database's large objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trees {
    pub database: Oid,
    pub metadata: TreeId,
    pub data: TreeId,
}

impl Trees {
    /// Those of a catalog's database.
    pub fn of(catalog: &Catalog) -> Trees {
        let database = catalog.database(catalog.database_oid());
        let (metadata, data) = database.map(|d| (d.large_object_metadata, d.large_object_data)).unwrap_or_default();
        Trees { database: catalog.database_oid(), metadata, data }
    }

    /// New, empty ones of a database.
    pub fn create(engine: &Transaction, database: Oid) -> Result<Trees> {
        let metadata = engine.create_table_tree(&METADATA_KINDS, Persistence::Logged)?;
        let data = engine.create_table_tree(&DATA_KINDS, Persistence::Logged)?;
        Ok(Trees { database, metadata, data })
    }
}

/// Creates trees for databases that have none yet: those of a new cluster.
pub fn give_trees(cluster: &melba_catalog::ClusterCatalog, engine: &Transaction) -> Result<Vec<(Oid, ObjectChange)>> {
    let mut changes = Vec::new();
    for catalog in cluster.databases() {
        let Some(database) = catalog.database(catalog.database_oid()) else { continue };
        if database.large_object_metadata == TreeId(0) {
            let trees = Trees::create(engine, catalog.database_oid())?;
            let mut changed = (**database).clone();
            (changed.large_object_metadata, changed.large_object_data) = (trees.metadata, trees.data);
            changes.push((catalog.database_oid(), ObjectChange::Put(Object::Database(Arc::new(changed)))));
        }
    }
    Ok(changes)
}

/// A transaction's state of large objects: changes on their way to the engine, and open descriptors.
#[derive(Default)]
pub struct LargeObjects {
    buffer: Buffer,
    descriptors: Vec<Option<Descriptor>>,
    /// By block of OIDs.
    blocks: HashMap<u32, BlockLock>,
    /// How many descriptors were ever opened; a savepoint stores it.
    opened: u64,
}

impl LargeObjects {
    /// Hands all changes to the engine: a statement ends.
    pub fn flush(&mut self, engine: &Arc<Transaction>) -> Result<()> {
        self.buffer.flush(engine)?;
        self.buffer.target = None;
        Ok(())
    }

    /// Nothing is kept that the transaction's end must forget; the buffer is empty.
    pub fn is_unused(&self) -> bool {
        self.descriptors.is_empty() && self.blocks.is_empty()
    }

    /// The target of the running statement's changes, and the compression of extents, if they are known already.
    pub fn target(&self) -> Option<(Trees, Method)> {
        self.buffer.target
    }

    /// A point to roll back to; the buffer is empty.
    pub fn savepoint(&self) -> u64 {
        self.opened
    }

    /// Forgets everything after a savepoint: changes, and descriptors that were opened since.
    pub fn rollback_to(&mut self, savepoint: u64) {
        self.buffer.clear();
        // Row locks are released with the subtransaction; locking twice does no harm.
        self.blocks.clear();
        for slot in &mut self.descriptors {
            if slot.as_ref().is_some_and(|d| d.number >= savepoint) {
                *slot = None;
            }
        }
    }
}

/// The row of an object's metadata.
fn metadata_row(oid: Oid) -> RowId {
    RowId(u64::from(oid.0))
}

/// The row of an extent.
fn data_row(oid: Oid, extent: u64) -> RowId {
    RowId(u64::from(oid.0) << 32 | extent)
}

/// The object and extent of a row of the data tree.
fn of_data_row(row: RowId) -> (Oid, u64) {
    (Oid((row.0 >> 32) as u32), row.0 & 0xffff_ffff)
}

#[cfg(test)]
mod tests;
