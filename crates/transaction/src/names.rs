//! Names of new objects: two transactions that create objects of one name at the same time.
//!
//! Statements look up a name in the catalog as their transaction sees it, where others' uncommitted objects are not. So each new
//! name is locked until the transaction's end, when the statement that made it has run: the second to take it waits for the
//! first, and is refused if that committed. The unique indexes of PostgreSQL's catalogs do the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use melba_catalog::{Catalog, Object, ObjectChange, classes};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_types::{Oid, Result, err};

use super::Tx;

/// A name that no two objects of a catalog share.
#[derive(PartialEq, Eq, Hash)]
struct UniqueName {
    class: Oid,
    /// PostgreSQL's index, its columns and the object's values.
    index: &'static str,
    columns: &'static str,
    values: String,
}

impl UniqueName {
    /// `None` for an object without a name, or with one that a table's lock reserves for it.
    fn of(object: &Object) -> Option<UniqueName> {
        let (class, index, columns, values) = match object {
            Object::Relation(r) => {
                let values = format!("{}, {}", r.name, r.namespace);
                (classes::PG_CLASS, "pg_class_relname_nsp_index", "relname, relnamespace", values)
            }
            Object::Type(t) => {
                let values = format!("{}, {}", t.name, t.namespace);
                (classes::PG_TYPE, "pg_type_typname_nsp_index", "typname, typnamespace", values)
            }
            Object::Function(f) => {
                let types: Vec<String> = f.arg_types.iter().map(Oid::to_string).collect();
                let values = format!("{}, {}, {}", f.name, types.join(" "), f.namespace);
                (classes::PG_PROC, "pg_proc_proname_args_nsp_index", "proname, proargtypes, pronamespace", values)
            }
            Object::Namespace(n) => (classes::PG_NAMESPACE, "pg_namespace_nspname_index", "nspname", n.name.to_string()),
            Object::ExtendedStatistics(s) => {
                let values = format!("{}, {}", s.name, s.namespace);
                (classes::PG_STATISTIC_EXT, "pg_statistic_ext_name_index", "stxname, stxnamespace", values)
            }
            Object::EventTrigger(e) => {
                (classes::PG_EVENT_TRIGGER, "pg_event_trigger_evtname_index", "evtname", e.name.to_string())
            }
            Object::Role(r) => (classes::PG_AUTHID, "pg_authid_rolname_index", "rolname", r.name.to_string()),
            Object::Database(d) => (classes::PG_DATABASE, "pg_database_datname_index", "datname", d.name.to_string()),
            _ => return None,
        };
        Some(UniqueName { class, index, columns, values })
    }

    fn is_shared(&self) -> bool {
        [classes::PG_AUTHID, classes::PG_DATABASE].contains(&self.class)
    }

    fn tag(&self, database: Oid) -> LockTag {
        let mut hasher = DefaultHasher::new();
        self.values.hash(&mut hasher);
        let database = if self.is_shared() { 0 } else { database.0 };
        LockTag::Name { database, class: self.class.0, hash: hasher.finish() }
    }
}

/// The object of that kind and OID.
fn by_oid(catalog: &Catalog, object: &Object) -> Option<Object> {
    Some(match object {
        Object::Relation(r) => Object::Relation(catalog.relation(r.oid)?.clone()),
        Object::Type(t) => Object::Type(catalog.type_(t.oid)?.clone()),
        Object::Function(f) => Object::Function(catalog.function(f.oid)?.clone()),
        Object::Namespace(n) => Object::Namespace(catalog.namespace(n.oid)?.clone()),
        Object::ExtendedStatistics(s) => Object::ExtendedStatistics(catalog.statistics_object(s.oid)?.clone()),
        Object::EventTrigger(e) => Object::EventTrigger(catalog.event_trigger(e.oid)?.clone()),
        Object::Role(r) => Object::Role(catalog.role(r.oid)?.clone()),
        Object::Database(d) => Object::Database(catalog.database(d.oid)?.clone()),
        _ => return None,
    })
}

/// The object that has the name of this one.
fn by_name(catalog: &Catalog, object: &Object) -> Option<Object> {
    Some(match object {
        Object::Relation(r) => Object::Relation(catalog.relation_by_name(r.namespace, &r.name)?.clone()),
        Object::Type(t) => Object::Type(catalog.type_by_name(t.namespace, &t.name)?.clone()),
        Object::Function(f) => {
            let mut same = catalog.functions_by_name(f.namespace, &f.name).filter(|o| o.arg_types == f.arg_types);
            Object::Function(same.next()?.clone())
        }
        Object::Namespace(n) => Object::Namespace(catalog.namespace_by_name(&n.name)?.clone()),
        Object::ExtendedStatistics(s) => {
            Object::ExtendedStatistics(catalog.statistics_object_by_name(s.namespace, &s.name)?.clone())
        }
        Object::EventTrigger(e) => Object::EventTrigger(catalog.event_trigger_by_name(&e.name)?.clone()),
        Object::Role(r) => Object::Role(catalog.role_by_name(&r.name)?.clone()),
        Object::Database(d) => Object::Database(catalog.database_by_name(&d.name)?.clone()),
        _ => return None,
    })
}

impl Tx {
    /// Claims the names given to objects since the last call, waiting for other sessions that did.
    ///
    /// # Errors
    /// 23505 when another transaction was first.
    pub fn claim_names(&self) -> Result<()> {
        let mut objects = Vec::new();
        {
            let Some(mut ddl) = self.ddl.used() else { return Ok(()) };
            let end = ddl.changes.len();
            let from = std::mem::replace(&mut ddl.claimed, end);
            for (_, change) in ddl.changes.get(from..).unwrap_or_default() {
                if let ObjectChange::Put(object) = change {
                    objects.extend(UniqueName::of(object).map(|name| (name, object.clone())));
                }
            }
        }
        // A table's row type comes first.
        objects.sort_by_key(|(name, _)| name.class != classes::PG_TYPE);
        objects.iter().try_for_each(|(name, object)| self.claim(name, object))
    }

    fn claim(&self, name: &UniqueName, object: &Object) -> Result<()> {
        let has_name = |catalog: &Catalog, object: &Object| {
            by_oid(catalog, object).is_some_and(|known| UniqueName::of(&known).as_ref() == Some(name))
        };
        if has_name(&self.cluster().catalog(self.database), object) {
            return Ok(());
        }
        self.engine.lock_object(name.tag(self.database), RelationLockMode::AccessExclusive, Wait::Block)?;
        // The former holder of the lock has committed and published its changes, or has rolled back.
        let Some(other) = by_name(&self.cluster().catalog(self.database), object) else { return Ok(()) };
        if other.address() == object.address() || !has_name(&self.catalog(), &other) {
            return Ok(());
        }
        let UniqueName { index, columns, values, .. } = name;
        Err(err!(UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"{index}\"")
            .detail(format!("Key ({columns})=({values}) already exists.")))
    }
}
