//! A transaction as SQL sees it: the engine's transaction together with the catalog changes it has made so far.
//!
//! Invariants:
//! 1. Statements read the catalog through `catalog()`: the newest committed snapshot, plus this transaction's own changes; with the
//!    partitions that were attached in the transaction's snapshot, if it keeps one, and whose detach has begun since.
//! 2. Catalog rows reach the engine only in `commit`, in the same WAL record as the rest of the transaction, and the new
//!    snapshot is published after the commit is visible and before its locks are released.
//! 3. A committed catalog has no two objects of one name: new names are locked (`names`).
//! 4. What a committed object depends on is there: it is locked when the object is made (`references`).

pub mod cluster;
mod names;
pub mod notify;
pub mod prepared;
mod references;
mod tree;
mod two_phase;
pub mod xids;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use melba_catalog::detaching::with_attached;
use melba_catalog::{Catalog, Object, ObjectAddress, ObjectChange};
use melba_engine::{Committing, Durability, ExportedSnapshot, Isolation, Savepoint, Transaction};
use melba_types::{Csn, DbError, Oid, Result, bail};
use parking_lot::Mutex;

use cluster::Cluster;
use melba_largeobject::LargeObjects;
use melba_table::{DeferredEvents, DeferredPosition};
use melba_types::RarelyUsed;
use notify::{Listener, PendingNotifications};
use prepared::Voted;
use xids::XidSnapshot;

/// One running transaction.
pub struct Tx {
    cluster: Arc<Cluster>,
    pub engine: Arc<Transaction>,
    /// OID of the session's database.
    pub database: Oid,
    /// Constraint checks that wait for the commit.
    pub deferred: DeferredEvents,
    pub large_objects: RarelyUsed<LargeObjects>,
    /// Its notifications, and its changes to LISTEN, which take effect once it has committed.
    notifications: RarelyUsed<PendingNotifications>,
    ddl: RarelyUsed<CatalogChanges>,
    /// The last catalog with partitions that are detached since the snapshot, after the one it was made from.
    attached: RarelyUsed<Option<[Arc<Catalog>; 2]>>,
    /// Its id in SQL, once it has one.
    xid: OnceLock<u64>,
    /// Snapshots that others may adopt until this ends.
    exported: Mutex<Vec<ExportedSnapshot>>,
    /// It is prepared: it ends as another `Tx`.
    ends_elsewhere: AtomicBool,
}

#[derive(Default)]
struct CatalogChanges {
    changes: Vec<(Oid, ObjectChange)>,
    /// The committed catalog when each change was made.
    committed: Vec<Arc<Catalog>>,
    /// The private snapshot and the version of the committed one it was made from.
    working: Option<(u64, Arc<Catalog>)>,
    /// How many of the changes have been checked for new names, and for what they use.
    claimed: usize,
    /// The catalog at each open savepoint.
    savepoints: Vec<Arc<Catalog>>,
}

/// An exported snapshot's name, of PostgreSQL's form: the commit it ends with distinguishes it from all others.
fn snapshot_name(csn: Csn) -> String {
    format!("{:08X}-{:08X}-1", csn.0 >> 32, csn.0 & u64::from(u32::MAX))
}

/// A point to roll back to.
pub struct TxSavepoint {
    engine: Savepoint,
    changes: usize,
    /// Savepoints that were open before it.
    depth: usize,
    deferred: DeferredPosition,
    large_objects: u64,
    notifications: notify::PendingPosition,
}

impl Tx {
    /// Begins a transaction of a session of the database.
    pub fn begin(
        cluster: &Arc<Cluster>,
        session: &Arc<melba_engine::EngineSession>,
        database: Oid,
        isolation: Isolation,
    ) -> Result<Tx> {
        let engine = cluster.engine.begin_in(session, isolation)?;
        Ok(Tx {
            cluster: cluster.clone(),
            engine,
            database,
            deferred: DeferredEvents::default(),
            large_objects: RarelyUsed::default(),
            notifications: RarelyUsed::default(),
            ddl: RarelyUsed::default(),
            attached: RarelyUsed::default(),
            xid: OnceLock::new(),
            exported: Mutex::default(),
            ends_elsewhere: AtomicBool::new(false),
        })
    }

    /// A prepared transaction, to be ended.
    fn of_voted(cluster: &Arc<Cluster>, voted: Voted, database: Oid, xid: u64) -> Tx {
        let claimed = voted.changes.len();
        let changes = CatalogChanges { changes: voted.changes, claimed, ..CatalogChanges::default() };
        let ddl = RarelyUsed::default();
        *ddl.lock() = changes;
        Tx {
            cluster: cluster.clone(),
            engine: voted.engine,
            database,
            deferred: DeferredEvents::default(),
            large_objects: RarelyUsed::default(),
            notifications: RarelyUsed::default(),
            ddl,
            attached: RarelyUsed::default(),
            xid: OnceLock::from(xid),
            exported: Mutex::default(),
            ends_elsewhere: AtomicBool::new(false),
        }
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The catalog this transaction sees now.
    pub fn catalog(&self) -> Arc<Catalog> {
        let newest = self.newest_catalog();
        let partitions = self.detached_since(&newest);
        if partitions.is_empty() {
            return newest;
        }
        let mut attached = self.attached.lock();
        if let Some([from, seen]) = &*attached
            && Arc::ptr_eq(from, &newest)
        {
            return seen.clone();
        }
        let seen = Arc::new(with_attached(&newest, &partitions));
        *attached = Some([newest, seen.clone()]);
        seen
    }

    fn detached_since(&self, catalog: &Catalog) -> Vec<Oid> {
        self.engine.kept_snapshot().map_or_else(Vec::new, |snapshot| self.cluster.detached_since(catalog, snapshot))
    }

    /// The newest committed catalog, with the transaction's changes.
    fn newest_catalog(&self) -> Arc<Catalog> {
        let Some(mut ddl) = self.ddl.used().filter(|ddl| !ddl.changes.is_empty()) else {
            return self.cluster().catalog(self.database);
        };
        let version = self.cluster().catalog_version();
        match &ddl.working {
            Some((at, catalog)) if *at == version => catalog.clone(),
            _ => {
                let own = ddl.changes.iter().filter(|(database, _)| *database == self.database);
                let changes: Vec<ObjectChange> = own.map(|(_, c)| c.clone()).collect();
                let catalog = Arc::new(self.cluster().catalog(self.database).with(&changes));
                ddl.working = Some((version, catalog.clone()));
                catalog
            }
        }
    }

    /// Whether `catalog` is the committed one of a version: no transaction has changed it since, this one included.
    pub fn sees_catalog_version(&self, version: u64) -> bool {
        self.cluster().catalog_version() == version && !self.has_own_catalog()
    }

    /// What this transaction sees is no committed catalog: it must not be used by another one.
    pub fn has_own_catalog(&self) -> bool {
        let has_attached = || !self.detached_since(&self.cluster().catalog(self.database)).is_empty();
        self.has_catalog_changes() || self.engine.kept_snapshot().is_some() && has_attached()
    }

    /// This transaction has changed the catalog: plans made from it must not outlive it.
    pub fn has_catalog_changes(&self) -> bool {
        self.ddl.used().is_some_and(|ddl| !ddl.changes.is_empty())
    }

    /// Exports the running statement's snapshot until the transaction ends; its name.
    pub fn export_snapshot(&self) -> Result<String> {
        let snapshot = self.engine.export_snapshot()?;
        let csn = snapshot.csn();
        self.exported.lock().push(snapshot);
        Ok(snapshot_name(csn))
    }

    /// Takes the snapshot of that name as this transaction's.
    pub fn adopt_snapshot(&self, name: &str) -> Result<()> {
        let is_hexadecimal = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
        if !name.chars().all(|c| is_hexadecimal(c) || c == '-') {
            bail!(INVALID_PARAMETER_VALUE, "invalid snapshot identifier: \"{name}\"");
        }
        let hexadecimal = |digits: Option<&str>| u64::from_str_radix(digits?, 16).ok();
        let mut parts = name.split('-');
        let csn = hexadecimal(parts.next()).zip(hexadecimal(parts.next())).map(|(high, low)| Csn(high << 32 | low));
        match csn.filter(|csn| snapshot_name(*csn) == name) {
            Some(csn) if self.engine.adopt_snapshot(csn)? => Ok(()),
            _ => bail!(UNDEFINED_OBJECT, "snapshot \"{name}\" does not exist"),
        }
    }

    /// The transaction's id, assigned now if it has none.
    pub fn xid(&self) -> u64 {
        *self.xid.get_or_init(|| self.cluster.xids.assign())
    }

    /// The id of the transaction that a commit ended, as xmin shows it.
    pub fn xid_of_commit(&self, csn: Csn) -> u32 {
        self.cluster.xids.of_commit(csn)
    }

    /// The same where PostgreSQL would have assigned one: it has been requested, or something was changed.
    pub fn xid_if_assigned(&self) -> Option<u64> {
        let has_changed = self.engine.has_writes() || self.has_catalog_changes();
        if has_changed { Some(self.xid()) } else { self.xid.get().copied() }
    }

    /// The ids of transactions as the running statement sees them.
    pub fn xid_snapshot(&self) -> XidSnapshot {
        self.cluster.xids.snapshot(self.engine.active_view().csn)
    }

    fn end_xid(&self, csn: Csn, is_commit: bool) {
        if let Some(xid) = self.xid.get() {
            self.cluster.xids.end(*xid, csn, is_commit);
        }
    }

    /// A fresh OID.
    pub fn new_oid(&self) -> Oid {
        self.catalog().allocate_oid()
    }

    /// Adds or replaces an object.
    pub fn put(&self, object: Object) {
        self.change(ObjectChange::Put(object));
    }

    /// Drops an object.
    pub fn remove(&self, address: ObjectAddress) {
        self.change(ObjectChange::Remove(address));
    }

    /// Makes a change in the session's database.
    pub fn change(&self, change: ObjectChange) {
        let base = self.newest_catalog();
        let version = self.cluster().catalog_version();
        let mut ddl = self.ddl.lock();
        let next = Arc::new(base.with(std::slice::from_ref(&change)));
        ddl.changes.push((self.database, change));
        ddl.committed.push(self.cluster().catalog(self.database));
        ddl.working = Some((version, next));
    }

    /// Claims what the changes of the catalog since the last call need: the names of new objects, the objects that they change, and those that they
    /// use. Waits for other sessions that make, change or drop the same.
    ///
    /// # Errors
    /// 23505 for a name that another transaction has given, 42704 for an object that one has dropped, XX000 for a change of an object that one
    /// has changed.
    pub fn claim_changes(&self) -> Result<()> {
        let changed: Vec<(Object, Arc<Catalog>)> = {
            let Some(mut ddl) = self.ddl.used() else { return Ok(()) };
            let end = ddl.changes.len();
            let from = std::mem::replace(&mut ddl.claimed, end);
            let changes = ddl.changes.iter().zip(&ddl.committed).skip(from);
            let put = |((_, change), committed): (&(Oid, ObjectChange), &Arc<Catalog>)| match change {
                ObjectChange::Put(object) => Some((object.clone(), committed.clone())),
                _ => None,
            };
            changes.filter_map(put).collect()
        };
        if changed.is_empty() {
            return Ok(());
        }
        self.lock_changed(&changed)?;
        self.claim_names(&changed)?;
        self.lock_referenced(&changed)
    }

    /// How many changes of the catalog there are.
    pub fn change_count(&self) -> usize {
        self.ddl.used().map_or(0, |ddl| ddl.changes.len())
    }

    /// The changes of the session's database since there were `count`.
    pub fn changes_since(&self, count: usize) -> Vec<ObjectChange> {
        let ddl = self.ddl.used();
        let own = ddl.iter().flat_map(|ddl| ddl.changes.get(count..).unwrap_or_default());
        own.filter(|(database, _)| *database == self.database).map(|(_, change)| change.clone()).collect()
    }

    /// Forgets everything of another database, whose trees the caller drops.
    pub fn drop_database(&self, database: Oid) {
        let committed = self.cluster().catalog(database);
        let objects = committed.user_objects();
        let mut ddl = self.ddl.lock();
        for object in objects {
            let change = match &object {
                Object::Role(_) | Object::Database(_) => continue,
                Object::Description(d) => ObjectChange::RemoveDescription(d.address),
                object => ObjectChange::Remove(object.address()),
            };
            if !change.is_shared() {
                ddl.changes.push((database, change));
                ddl.committed.push(committed.clone());
            }
        }
    }

    /// Hands changes of large objects to the engine: before anything takes a view that must see them.
    pub fn flush_large_objects(&self) -> Result<()> {
        self.large_objects.used().map_or(Ok(()), |mut objects| objects.flush(&self.engine))
    }

    /// Whether the innermost savepoint's part of the transaction has made the relation, or given it new storage.
    pub fn has_new_storage(&self, relation: Oid) -> bool {
        if !self.has_catalog_changes() {
            return false;
        }
        let at_savepoint = self.ddl.used().and_then(|ddl| ddl.savepoints.last().cloned());
        let before = at_savepoint.unwrap_or_else(|| self.cluster().catalog(self.database));
        let (now, storage) = (self.catalog(), |catalog: &Catalog| Some(catalog.relation(relation)?.storage.clone()));
        storage(&now).is_some() && storage(&now) != storage(&before)
    }

    pub fn savepoint(&self) -> Result<TxSavepoint> {
        self.flush_large_objects()?;
        let catalog = self.catalog();
        let mut ddl = self.ddl.lock();
        let (changes, depth) = (ddl.changes.len(), ddl.savepoints.len());
        ddl.savepoints.push(catalog);
        drop(ddl);
        Ok(TxSavepoint {
            engine: self.engine.savepoint(),
            changes,
            depth,
            deferred: self.deferred.position(),
            large_objects: self.large_objects.lock().savepoint(),
            notifications: self.notifications.used().map(|pending| pending.position()).unwrap_or_default(),
        })
    }

    pub fn rollback_to(&self, savepoint: &TxSavepoint) -> Result<()> {
        self.ddl.lock().savepoints.truncate(savepoint.depth + 1);
        if let Some(mut ddl) = self.ddl.used().filter(|ddl| ddl.changes.len() > savepoint.changes) {
            ddl.changes.truncate(savepoint.changes);
            ddl.committed.truncate(savepoint.changes);
            ddl.claimed = ddl.claimed.min(savepoint.changes);
            ddl.working = None;
        }
        let deferred = self.deferred.roll_back_to(&savepoint.deferred);
        self.large_objects.lock().rollback_to(savepoint.large_objects);
        if let Some(mut pending) = self.notifications.used() {
            pending.roll_back_to(savepoint.notifications);
        }
        self.engine.rollback_to(savepoint.engine);
        deferred
    }

    pub fn release(&self, savepoint: TxSavepoint) -> Result<()> {
        self.ddl.lock().savepoints.truncate(savepoint.depth);
        self.engine.release(savepoint.engine);
        Ok(())
    }

    /// The first step of every commit. Descriptors hold views, which must not outlive the transaction.
    fn end_large_objects(&self) -> Result<()> {
        let Some(mut large_objects) = self.large_objects.used() else { return Ok(()) };
        large_objects.flush(&self.engine)?;
        if !large_objects.is_unused() {
            *large_objects = LargeObjects::default();
        }
        Ok(())
    }

    /// NOTIFY of a session: sent when the transaction has committed, once.
    ///
    /// # Errors
    /// 22023 for a channel or a payload that is too long, or no channel; 54000 when all would be too many.
    pub fn notify(&self, listener: &Listener, channel: &str, payload: &str) -> Result<()> {
        let limit = self.cluster.notifications.limit();
        self.notifications.lock().notify((listener.pid, listener.database), channel, payload, limit)
    }

    /// LISTEN, as of the commit.
    ///
    /// # Errors
    /// 22023 for a channel whose name is too long.
    pub fn listen(&self, listener: &Arc<Listener>, channel: &str) -> Result<()> {
        self.notifications.lock().listen(listener, channel)
    }

    /// UNLISTEN, as of the commit; `None`: all channels.
    pub fn unlisten(&self, listener: &Arc<Listener>, channel: Option<&str>) {
        self.notifications.lock().unlisten(listener, channel);
    }

    /// Its commit sends notifications, or starts to listen.
    pub fn has_notifications(&self) -> bool {
        self.notifications.used().is_some_and(|pending| !pending.is_empty())
    }

    /// Waits for the commit. An error after it is returned as a warning.
    pub fn commit(&self, durability: Durability) -> Result<(Csn, Option<DbError>)> {
        let mut pending = self.notifications.take();
        let committed = match pending.is_empty() {
            true => (self.start_commit(durability)?.wait()?, None),
            false => self.commit_and_notify(durability, &mut pending)?,
        };
        self.engine.session().throttle();
        Ok(committed)
    }

    fn commit_and_notify(&self, durability: Durability, pending: &mut PendingNotifications) -> Result<(Csn, Option<DbError>)> {
        let queue = &self.cluster.notifications;
        if !pending.notifies() {
            let csn = self.start_commit(durability)?.wait()?;
            queue.apply(pending);
            return Ok((csn, None));
        }
        let mut place = None;
        let committing = self.start_commit_after(durability, || {
            // The last lock that it takes: others wait for it, but it waits for no session any more.
            self.engine.take_commit_turn()?;
            place = Some(queue.reserve(pending, self.cluster.clock.monotonic())?);
            Ok(())
        })?;
        let csn = committing.wait()?;
        // Sessions that listen from now on are also told of this transaction.
        queue.apply(pending);
        let (place, warning) = place.ok_or_else(|| DbError::internal("a commit without a place in the queue"))?;
        place.publish(|| {
            self.cluster.engine.scheduler().before_wait();
        });
        Ok((csn, warning))
    }

    /// Fixes the commit's place in the order, of a transaction without notifications; the catalog's changes follow when it is published.
    pub fn start_commit(&self, durability: Durability) -> Result<Committing> {
        if self.has_notifications() {
            return Err(DbError::internal("a commit with notifications is waited for"));
        }
        self.start_commit_after(durability, || Ok(()))
    }

    /// `last` runs when nothing else remains to be done before.
    fn start_commit_after(&self, durability: Durability, last: impl FnOnce() -> Result<()>) -> Result<Committing> {
        self.end_large_objects()?;
        self.claim_changes()?;
        let changes = self.ddl.take().changes;
        let committing = if changes.is_empty() {
            last()?;
            self.engine.start_commit(durability, None)?
        } else {
            let net = self.cluster().write_changes(&self.engine, changes)?;
            let cluster = self.cluster().clone();
            last()?;
            self.engine.start_commit(durability, Some(Box::new(move |csn| cluster.publish(net, csn))))?
        };
        self.end_xid(committing.csn(), true);
        Ok(committing)
    }

    pub fn rollback(&self) {
        self.ddl.take();
        self.large_objects.take();
        self.notifications.take();
        self.engine.rollback();
        self.end_xid(self.cluster.engine.visible_csn(), false);
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if self.ends_elsewhere.load(Ordering::Relaxed) {
            return;
        }
        self.end_xid(self.cluster.engine.visible_csn(), false);
    }
}
