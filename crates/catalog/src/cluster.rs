//! `ClusterCatalog`: the catalogs of all databases, which share roles, databases and the OID counter.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::Object;
use crate::snapshot::{Catalog, ObjectChange};

/// Snapshots of all databases. Cloning is cheap; every catalog sees the same roles and databases.
#[derive(Clone, Debug)]
pub struct ClusterCatalog {
    databases: BTreeMap<Oid, Arc<Catalog>>,
}

impl Default for ClusterCatalog {
    /// A new cluster: template0, template1 and postgres, all empty.
    fn default() -> Self {
        let first = Catalog::default();
        let oids: Vec<Oid> = first.databases().map(|d| d.oid).collect();
        ClusterCatalog { databases: oids.into_iter().map(|oid| (oid, Arc::new(first.sibling(oid)))).collect() }
    }
}

impl ClusterCatalog {
    /// The cluster that stored changes (see `decode_change`) make, in any order.
    pub fn load(changes: impl IntoIterator<Item = (Oid, ObjectChange)>) -> ClusterCatalog {
        let mut by_database: BTreeMap<Oid, Vec<ObjectChange>> = BTreeMap::new();
        for (database, change) in changes {
            by_database.entry(database).or_default().push(change);
        }
        // Shared objects (database 0) come first: they say which databases there are.
        let shared = by_database.remove(&Oid::INVALID).unwrap_or_default();
        let mut cluster = ClusterCatalog::default().with(classes::POSTGRES_DATABASE, &shared);
        for (database, mut changes) in by_database {
            // Tables before the indexes that they then list.
            changes.sort_by_key(|c| matches!(c, ObjectChange::Put(Object::Relation(r)) if r.index.is_some()));
            cluster = cluster.with(database, &changes);
        }
        cluster
    }

    pub fn database(&self, oid: Oid) -> Option<&Arc<Catalog>> {
        self.databases.get(&oid)
    }

    pub fn database_by_name(&self, name: &str) -> Option<&Arc<Catalog>> {
        let any = self.databases.values().next()?;
        self.database(any.database_by_name(name)?.oid)
    }

    /// The catalogs in the order of the databases' OIDs.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Catalog>> {
        self.databases.values()
    }

    /// The cluster after changes made in one database. Changes to shared objects reach all; a database that was added starts
    /// empty; one that was removed no longer exists. Changes to a removed database are dropped with it.
    pub fn with(&self, database: Oid, changes: &[ObjectChange]) -> ClusterCatalog {
        let mut next = self.clone();
        // Shared objects can change in a database that does not exist (any more): their home is any other.
        let home = next.databases.get(&database).or_else(|| next.databases.values().next());
        let Some(home) = home.cloned() else { return next };
        let changed = if home.database_oid() == database {
            home.with(changes)
        } else {
            let shared: Vec<_> = changes.iter().filter(|c| c.is_shared()).cloned().collect();
            home.with(&shared)
        };
        let home = home.database_oid();
        if changes.iter().any(ObjectChange::is_shared) {
            for catalog in next.databases.values_mut().filter(|c| c.database_oid() != home) {
                *catalog = Arc::new(catalog.with_shared_of(&changed));
            }
        }
        for change in changes {
            match change {
                ObjectChange::Put(Object::Database(d)) if d.oid != home => {
                    next.databases.entry(d.oid).or_insert_with(|| Arc::new(changed.sibling(d.oid)));
                }
                ObjectChange::Remove(a) if a.class == classes::PG_DATABASE && a.object != home => {
                    next.databases.remove(&a.object);
                }
                _ => {}
            }
        }
        next.databases.insert(home, Arc::new(changed));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Database, Namespace, ObjectAddress, Role};
    use crate::{decode_change, encode_change};

    #[test]
    fn shared_objects_reach_every_database() {
        let cluster = ClusterCatalog::default();
        let postgres = cluster.database_by_name("postgres").expect("postgres").clone();
        let template = postgres.database_by_name("template1").expect("template1");
        let database = Database { oid: postgres.allocate_oid(), name: "app".into(), ..(**template).clone() };
        let role = postgres.role_by_name("pg_monitor").expect("a role");
        let role = Role { oid: postgres.allocate_oid(), name: "anna".into(), ..(**role).clone() };
        let space = postgres.namespace_by_name("public").expect("public");
        let space = Namespace { oid: postgres.allocate_oid(), name: "s".into(), ..(**space).clone() };
        let changes = [
            ObjectChange::Put(Object::Database(Arc::new(database.clone()))),
            ObjectChange::Put(Object::Role(Arc::new(role))),
            ObjectChange::Put(Object::Namespace(Arc::new(space))),
        ];
        let cluster = cluster.with(postgres.database_oid(), &changes);
        let rows: Vec<_> = changes.iter().map(|c| encode_change(postgres.database_oid(), c)).collect();
        let read = rows.iter().map(|r| decode_change(&r.key, r.value.as_ref().expect("a put")).expect("reads back"));
        for cluster in [cluster.clone(), ClusterCatalog::load(read)] {
            let app = cluster.database_by_name("app").expect("the new database");
            assert!(app.role_by_name("anna").is_some() && app.namespace_by_name("s").is_none());
            let postgres = cluster.database_by_name("postgres").expect("postgres");
            assert!(postgres.role_by_name("anna").is_some() && postgres.namespace_by_name("s").is_some());
            assert_eq!(app.allocate_oid().0 + 1, postgres.allocate_oid().0);
        }
        let gone = ObjectAddress { class: classes::PG_DATABASE, object: database.oid, sub: 0 };
        let cluster = cluster.with(postgres.database_oid(), &[ObjectChange::Remove(gone)]);
        assert!(cluster.database_by_name("app").is_none());
        assert!(cluster.databases().all(|c| c.database(database.oid).is_none()));
    }
}
