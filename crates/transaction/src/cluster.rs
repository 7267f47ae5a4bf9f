//! The databases of a server: the engine, and the newest committed catalogs.
//!
//! Invariants:
//! 1. The catalog tree is the first tree of the engine; its rows are (key, value) as `melba_catalog::encode_change` makes
//!    them.
//! 2. `published` matches those rows at every moment at which no commit with catalog changes is between its publication in the
//!    engine and its `publish` here.
//! 3. Objects of temporary schemas are published but never stored: a restart forgets them with their trees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::{HashMap, HashSet};
use melba_catalog::detaching::detaching_partitions;
use melba_catalog::{Catalog, Object, ObjectChange, Relation, Storage, classes, decode_change, encode_change};
use melba_engine::{Durability, Engine, Isolation, Persistence, Transaction};
use melba_types::row::RowLayout;
use melba_types::{Csn, Datum, DbError, Oid, Result, RowId, TreeId, err};
use melba_vfs::{Clock, Random};
use parking_lot::{Mutex, RwLock};

use crate::notify::Notifications;
use crate::prepared::{PreparedTransactions, Taken, identifier_of, restore};
use crate::tree::{CATALOG_KINDS, CATALOG_TREE};
use crate::xids::Xids;

/// The part of the memory of queries that NOTIFY's queue may take.
const NOTIFY_SHARE: u64 = 4;

/// Everything that the sessions of one server share.
pub struct Cluster {
    pub engine: Arc<Engine>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    published: RwLock<Arc<melba_catalog::ClusterCatalog>>,
    version: AtomicU64,
    pub xids: Xids,
    pub notifications: Notifications,
    pub prepared: PreparedTransactions,
    /// Where each catalog row is.
    rows: Mutex<HashMap<Vec<u8>, RowId>>,
    /// The commit that has marked a partition whose detach is pending, by database and partition. None of an earlier life of the server:
    /// no snapshot is older.
    detaching: Mutex<HashMap<(Oid, Oid), Csn>>,
}

/// Changes of a committing transaction, as `publish` needs them.
pub struct CommittedChanges {
    changes: Vec<(Oid, ObjectChange)>,
    rows: Vec<(Vec<u8>, Option<RowId>)>,
}

/// Leaves out the objects of schemas that are gone: once, operators and other objects of temporary schemas were stored, and outlived these.
fn forget_homeless(changes: &mut Vec<(Oid, ObjectChange)>) {
    let schema = |(database, change): &(Oid, ObjectChange)| match change {
        ObjectChange::Put(Object::Namespace(n)) => Some((*database, n.oid)),
        _ => None,
    };
    let schemas: HashSet<(Oid, Oid)> = changes.iter().filter_map(schema).collect();
    changes.retain(|(database, change)| match change {
        ObjectChange::Put(object) if !matches!(object, Object::Relation(_)) => {
            let of_users = object.namespace().filter(|namespace| namespace.0 >= classes::FIRST_USER_OID);
            of_users.is_none_or(|namespace| schemas.contains(&(*database, namespace)))
        }
        _ => true,
    });
}

impl Cluster {
    /// Reads the catalogs from the engine, or makes the first ones in an empty engine.
    ///
    /// # Errors
    /// XX001 when a catalog row cannot be read.
    pub fn open(engine: Arc<Engine>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Result<Arc<Cluster>> {
        let txn = engine.begin(Isolation::RepeatableRead)?;
        let mut rows = HashMap::new();
        let mut changes = Vec::new();
        let mut prepared = Vec::new();
        if engine.has_tree(CATALOG_TREE) {
            let view = txn.statement_view();
            let mut scan = txn.scan(view, CATALOG_TREE, &[0, 1], &[Datum::Null, Datum::Null], &[], None)?;
            while let Some(batch) = scan.next()? {
                for (i, row) in batch.row_ids.iter().enumerate() {
                    let (key, value) = (batch.columns[0].get(i), batch.columns[1].get(i));
                    if let Some(identifier) = identifier_of(key.as_bytes()) {
                        prepared.push((identifier, *row, Arc::from(value.as_bytes())));
                        continue;
                    }
                    let change = decode_change(key.as_bytes(), value.as_bytes())
                        .ok_or_else(|| err!(DATA_CORRUPTED, "catalog row {row} cannot be read"))?;
                    rows.insert(key.as_bytes().to_vec(), *row);
                    changes.push(change);
                }
            }
            txn.rollback();
            forget_homeless(&mut changes);
        } else {
            let tree = txn.create_table_tree(&CATALOG_KINDS, Persistence::Logged)?;
            if tree != CATALOG_TREE {
                return Err(DbError::internal(format!("the first tree of an empty engine is {tree}")));
            }
            txn.commit(Durability::Sync)?;
        }
        let cluster = Arc::new(Cluster {
            notifications: Notifications::new(engine.query_memory().limit() / NOTIFY_SHARE),
            engine,
            xids: Xids::starting_at(clock.now_micros()),
            clock,
            random,
            published: RwLock::new(Arc::new(melba_catalog::ClusterCatalog::load(changes))),
            version: AtomicU64::new(1),
            rows: Mutex::new(rows),
            detaching: Mutex::default(),
            prepared: PreparedTransactions::default(),
        });
        prepared.into_iter().try_for_each(|(identifier, row, value)| cluster.restore_prepared(identifier, row, value))?;
        cluster.give_large_object_trees()?;
        Ok(cluster)
    }

    /// A transaction that waits for COMMIT PREPARED since an earlier life of the server.
    fn restore_prepared(&self, identifier: String, row: RowId, value: Arc<[u8]>) -> Result<()> {
        let (mut shown, taken) = restore(&self.engine, identifier, (row, value), true)?;
        shown.xid = self.xids.assign();
        let changes = if let Taken::Voted(voted) = &taken { &voted.changes[..] } else { &[] };
        for of_database in changes.chunk_by(|a, b| a.0 == b.0) {
            let changes: Vec<ObjectChange> = of_database.iter().map(|(_, change)| change.clone()).collect();
            // OIDs of its new objects are not assigned again.
            drop(self.catalog(of_database[0].0).with(&changes));
        }
        self.prepared.add(shown, taken);
        Ok(())
    }

    /// The databases of a new cluster get their trees for large objects.
    fn give_large_object_trees(&self) -> Result<()> {
        let txn = self.engine.begin(Isolation::RepeatableRead)?;
        let changes = melba_largeobject::give_trees(&self.catalogs(), &txn)?;
        if changes.is_empty() {
            return Ok(());
        }
        let net = self.write_changes(&txn, changes)?;
        let csn = txn.commit(Durability::Sync)?;
        self.publish(net, csn);
        Ok(())
    }

    /// The newest committed catalog of a database; of the first database when that one was dropped.
    pub fn catalog(&self, database: Oid) -> Arc<Catalog> {
        let published = self.published.read();
        match published.database(database).or_else(|| published.databases().next()) {
            Some(catalog) => catalog.clone(),
            None => Arc::default(),
        }
    }

    /// The catalog of a database by name.
    pub fn catalog_by_name(&self, database: &str) -> Option<Arc<Catalog>> {
        self.published.read().database_by_name(database).cloned()
    }

    /// The newest committed catalogs of all databases.
    pub fn catalogs(&self) -> Arc<melba_catalog::ClusterCatalog> {
        self.published.read().clone()
    }

    /// Compares the indexes of all databases with their tables; returns the problems found.
    pub fn check_indexes(&self) -> Vec<String> {
        // A partial index need not have all rows.
        let whole_index = |relation: &Relation| match (&relation.index, &relation.storage) {
            (Some(index), Storage::Tree(tree)) if index.predicate.is_none() && index.valid => Some(*tree),
            _ => None,
        };
        let catalogs = self.catalogs();
        let of_database = |catalog: &Catalog| -> Vec<TreeId> {
            let relations = catalog.namespaces().flat_map(|namespace| catalog.relations_in(namespace.oid));
            relations.filter_map(|relation| whole_index(relation)).collect()
        };
        let whole: HashSet<TreeId> = catalogs.databases().flat_map(|catalog| of_database(catalog)).collect();
        self.engine.check_indexes(|tree| whole.contains(&tree))
    }

    /// Changes whenever any catalog changes.
    pub fn catalog_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Puts the net effect of a transaction's catalog changes into its write set.
    pub(crate) fn write_changes(&self, txn: &Transaction, changes: Vec<(Oid, ObjectChange)>) -> Result<CommittedChanges> {
        let layout = RowLayout::new(CATALOG_KINDS.to_vec());
        let temporary = self.temporary_objects(&changes);
        let mut net: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        let mut places = HashMap::new();
        for (at, (database, change)) in changes.iter().enumerate() {
            if temporary[at] {
                continue;
            }
            let stored = encode_change(*database, change);
            let place = *places.entry(stored.key).or_insert(net.len());
            match net.get_mut(place) {
                Some(entry) => entry.1 = stored.value,
                None => net.push((stored.key.to_vec(), stored.value)),
            }
        }
        let known = self.rows.lock();
        let mut rows = Vec::with_capacity(net.len());
        for (key, value) in net {
            let row = value.map(|v| layout.encode_row(&[Datum::bytes(&key[..]), Datum::bytes(v)]));
            let id = match (known.get(&key), row) {
                (Some(id), Some(row)) => {
                    txn.update(CATALOG_TREE, *id, &row)?;
                    Some(*id)
                }
                (None, Some(row)) => Some(txn.insert(CATALOG_TREE, &row)?),
                (Some(id), None) => {
                    txn.delete(CATALOG_TREE, *id)?;
                    None
                }
                (None, None) => None,
            };
            rows.push((key, id));
        }
        Ok(CommittedChanges { changes, rows })
    }

    /// For each change, whether it is to an object in a temporary schema.
    fn temporary_objects(&self, changes: &[(Oid, ObjectChange)]) -> Vec<bool> {
        let mut after: HashMap<Oid, Arc<Catalog>> = HashMap::new();
        let mut temporary_oids = hashbrown::HashSet::new();
        let catalogs = self.catalogs();
        for (database, change) in changes {
            let catalog = after.entry(*database).or_insert_with(|| catalogs.database(*database).cloned().unwrap_or_default());
            let is_temporary = |namespace: Oid, set: &hashbrown::HashSet<Oid>| {
                set.contains(&namespace) || catalog.namespace(namespace).is_some_and(|n| n.name.starts_with("pg_temp_"))
            };
            if let ObjectChange::Put(object) = change {
                let of_table = |table: Oid| {
                    let relation = || catalog.relation(table).is_some_and(|r| is_temporary(r.namespace, &temporary_oids));
                    temporary_oids.contains(&table) || relation()
                };
                let of_family = |family: Oid| {
                    let family = catalog.access_methods().family(family);
                    family.is_some_and(|f| temporary_oids.contains(&f.oid) || is_temporary(f.namespace, &temporary_oids))
                };
                let by_schema = object.namespace().is_some_and(|namespace| is_temporary(namespace, &temporary_oids));
                let temporary = by_schema
                    || match object {
                        Object::Namespace(n) => n.name.starts_with("pg_temp_"),
                        Object::Trigger(t) => of_table(t.table),
                        Object::Policy(p) => of_table(p.table),
                        Object::Rule(r) => of_table(r.table),
                        Object::ExtendedStatistics(s) => of_table(s.table),
                        Object::OperatorClass(c) => temporary_oids.contains(&c.family) || of_family(c.family),
                        Object::Description(d) => temporary_oids.contains(&d.address.object),
                        _ => false,
                    };
                if temporary {
                    temporary_oids.insert(object.address().object);
                }
            }
        }
        changes
            .iter()
            .map(|(_, change)| match change {
                ObjectChange::Put(object) => temporary_oids.contains(&object.address().object),
                // A row that was never stored has nothing to remove: `write_changes` finds no row for it.
                ObjectChange::Remove(_) | ObjectChange::RemoveDescription(_) => false,
            })
            .collect()
    }

    /// The partitions of a catalog whose detach has become pending since a snapshot was taken: to that they are attached.
    pub(crate) fn detached_since(&self, catalog: &Catalog, snapshot: Csn) -> Vec<Oid> {
        let mut pending = detaching_partitions(catalog).peekable();
        if pending.peek().is_none() {
            return Vec::new();
        }
        let marked = self.detaching.lock();
        let is_newer = |csn: &Csn| *csn > snapshot;
        pending.filter(|partition| marked.get(&(catalog.database_oid(), *partition)).is_some_and(is_newer)).collect()
    }

    /// Notes the commit of each partition that it has marked.
    fn note_detaching(&self, changes: &[(Oid, ObjectChange)], csn: Csn) {
        let catalogs = self.catalogs();
        for (database, change) in changes {
            let ObjectChange::Put(Object::Relation(relation)) = change else { continue };
            let before = catalogs.database(*database).and_then(|catalog| catalog.relation(relation.oid));
            match (before.is_some_and(|before| before.detach_pending), relation.detach_pending) {
                (false, true) => drop(self.detaching.lock().insert((*database, relation.oid), csn)),
                (true, false) => drop(self.detaching.lock().remove(&(*database, relation.oid))),
                _ => {}
            }
        }
    }

    /// Makes committed changes the newest catalogs. Runs before the transaction's locks are released.
    pub(crate) fn publish(&self, committed: CommittedChanges, csn: Csn) {
        self.note_detaching(&committed.changes, csn);
        let mut known = self.rows.lock();
        for (key, id) in committed.rows {
            match id {
                Some(id) => known.insert(key, id),
                None => known.remove(&key),
            };
        }
        drop(known);
        let mut published = self.published.write();
        let mut next = (**published).clone();
        for of_database in committed.changes.chunk_by(|a, b| a.0 == b.0) {
            let changes: Vec<ObjectChange> = of_database.iter().map(|(_, change)| change.clone()).collect();
            next = next.with(of_database[0].0, &changes);
        }
        *published = Arc::new(next);
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}
