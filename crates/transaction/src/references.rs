//! Objects that a transaction changes or that its new objects use: another one may change or drop them at the same time.
//!
//! Statements look up what they use in the catalog as their transaction sees it, without a lock (but for relations). So when a statement
//! has run, each object on which a new or changed object depends is locked until the transaction's end, and must still be there. DROP
//! locks what it drops against everybody, and only then looks for dependents.

use std::sync::Arc;

use hashbrown::HashSet;
use melba_catalog::role_uses::roles_of;
use melba_catalog::{Catalog, Object, ObjectAddress, ObjectChange, classes, dependencies, encode_change};
use melba_engine::{LockTag, RelationLockMode, Wait};
use melba_types::{DbError, Oid, Result, bail, err};

use super::Tx;
use super::names::UniqueName;

/// PostgreSQL's word for an object of a class that others may use; `None` for parts of other objects and for what is never dropped alone.
fn word(class: Oid) -> Option<&'static str> {
    Some(match class {
        classes::PG_NAMESPACE => "schema",
        classes::PG_CLASS => "relation",
        classes::PG_TYPE => "type",
        classes::PG_PROC => "function",
        classes::PG_OPERATOR => "operator",
        classes::PG_OPCLASS => "operator class",
        classes::PG_OPFAMILY => "operator family",
        classes::PG_COLLATION => "collation",
        classes::PG_TS_DICT => "text search dictionary",
        classes::PG_TS_CONFIG => "text search configuration",
        _ => return None,
    })
}

/// Whether an object can be dropped: built-in ones stay, and operator classes of extensions belong to the process.
fn may_go(address: ObjectAddress) -> bool {
    let is_class = matches!(address.class, classes::PG_OPCLASS | classes::PG_OPFAMILY);
    let is_of_users = address.object.0 >= classes::FIRST_USER_OID;
    let is_public = address.class == classes::PG_NAMESPACE && address.object == classes::PUBLIC;
    is_public || is_of_users && !(is_class && address.object.0 >= classes::FIRST_EXTENSION_OID)
}

/// Whether two transactions could change an object at the same time: roles, databases, extensions, casts and privileges have locks of their own.
fn is_guarded(object: &Object) -> bool {
    !matches!(
        object,
        Object::Description(_)
            | Object::Role(_)
            | Object::Database(_)
            | Object::Extension(_)
            | Object::Cast(_)
            | Object::DefaultAcl(_)
            | Object::Granted(_)
    )
}

/// The relation that an object is, or that it is a part of.
fn relation_of(object: &Object) -> Option<Oid> {
    let relation = match object {
        Object::Relation(r) => r.oid,
        Object::Constraint(c) => c.relation,
        Object::Trigger(t) => t.table,
        Object::Policy(p) => p.table,
        Object::Rule(r) => r.table,
        Object::ExtendedStatistics(s) => s.table,
        _ => return None,
    };
    relation.is_valid().then_some(relation)
}

/// Whether stored texts that mention an object still mean it: they have its name, and the labels of an enum.
fn is_named_alike(before: &Object, after: &Object) -> bool {
    let has_labels = match (before, after) {
        (Object::Type(before), Object::Type(after)) => {
            before.labels.iter().all(|(oid, _, label)| after.labels.iter().any(|l| l.0 == *oid && l.2 == *label))
        }
        _ => true,
    };
    has_labels && UniqueName::of(before) == UniqueName::of(after)
}

impl Tx {
    /// Keeps others from changing what this transaction has changed. Its statements have read the objects without a lock, as PostgreSQL's
    /// do: they lose if another transaction was first.
    ///
    /// # Errors
    /// XX000 when another transaction has changed or dropped one meanwhile.
    pub(super) fn lock_changed(&self, changed: &[(Object, Arc<Catalog>)]) -> Result<()> {
        let row = |object| encode_change(self.database, &ObjectChange::Put(object)).value;
        for (object, then) in changed.iter().filter(|(object, _)| is_guarded(object)) {
            let address = object.address();
            // What this transaction has made is seen by nobody else.
            let Some(before) = then.object(address) else { continue };
            if let Some(relation) = relation_of(object) {
                // Who drops it has this lock only.
                let tag = LockTag::Relation { database: self.database.0, relation: relation.0 };
                self.engine.lock_object(tag, RelationLockMode::AccessShare, Wait::Block)?;
            }
            let tag = LockTag::Object { database: self.database.0, class: address.class.0, object: address.object.0 };
            self.engine.lock_object(tag, RelationLockMode::ShareUpdateExclusive, Wait::Block)?;
            let now = self.cluster.catalog(self.database);
            if Arc::ptr_eq(&now, then) {
                continue;
            }
            let Some(after) = now.object(address) else { bail!(INTERNAL_ERROR, "tuple concurrently deleted") };
            if row(after) != row(before) {
                bail!(INTERNAL_ERROR, "tuple concurrently updated");
            }
        }
        Ok(())
    }

    /// Locks what the changed objects depend on since they were changed, roles too, and what is commented on.
    ///
    /// # Errors
    /// 42704 for an object that another transaction has dropped meanwhile, 3F000 for the schema of a relation; XX000 for one that has another name now.
    pub(super) fn lock_referenced(&self, changed: &[(Object, Arc<Catalog>)]) -> Result<()> {
        let mut seen = HashSet::new();
        let (mut locked, mut locked_roles) = (HashSet::new(), HashSet::new());
        for (changed, then) in changed {
            let address = changed.address();
            if let Object::Description(_) = changed {
                let described = ObjectAddress { sub: 0, ..address };
                // Rows of pg_description may be about nothing.
                let is_there = then.object(described).is_some();
                if is_there && may_go(described) && locked.insert(described) {
                    self.lock_used(changed, described, then)?;
                }
                continue;
            }
            if !seen.insert(address) {
                continue;
            }
            // As the last change has left it.
            let Some(object) = self.catalog().object(address) else { continue };
            let referenced = |object: &Object| {
                dependencies(object).into_iter().map(|d| ObjectAddress { sub: 0, ..d.referenced }).collect::<HashSet<_>>()
            };
            let committed = self.cluster.catalog(self.database);
            let old = committed.object(address);
            let roles = |catalog: &Catalog, object: &Object| {
                roles_of(catalog, object).into_iter().map(|u| u.role).collect::<HashSet<_>>()
            };
            let old_roles = old.as_ref().map(|o| roles(&committed, o)).unwrap_or_default();
            for role in roles(&self.catalog(), &object) {
                if role.0 >= classes::FIRST_USER_OID && !old_roles.contains(&role) && locked_roles.insert(role) {
                    self.lock_role(role)?;
                }
            }
            let before = old.map(|o| referenced(&o)).unwrap_or_default();
            for used in referenced(&object).into_iter().filter(|used| *used != address && !before.contains(used)) {
                // Texts have the names of schemas, too.
                let namespace = then.object(used).and_then(|o| o.namespace());
                let namespace = namespace.map(|object| ObjectAddress { class: classes::PG_NAMESPACE, object, sub: 0 });
                for used in namespace.into_iter().chain([used]) {
                    if may_go(used) && locked.insert(used) {
                        self.lock_used(&object, used, then)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn lock_role(&self, role: Oid) -> Result<()> {
        let has_role = |catalog: &Catalog| catalog.role(role).is_some();
        let gone = || err!(UNDEFINED_OBJECT, "role {role} was concurrently dropped");
        if !has_role(&self.cluster.catalog(self.database)) {
            return if has_role(&self.catalog()) { Ok(()) } else { Err(gone()) };
        }
        let tag = LockTag::Object { database: Oid::INVALID.0, class: classes::PG_AUTHID.0, object: role.0 };
        self.engine.lock_object(tag, RelationLockMode::AccessShare, Wait::Block)?;
        if has_role(&self.cluster.catalog(self.database)) { Ok(()) } else { Err(gone()) }
    }

    /// `then`: the committed catalog when the using object was made.
    fn lock_used(&self, by: &Object, used: ObjectAddress, then: &Catalog) -> Result<()> {
        let Some(word) = word(used.class) else { return Ok(()) };
        let gone = || err!(UNDEFINED_OBJECT, "referenced {word} was concurrently dropped");
        let Some(found) = self.cluster.catalog(self.database).object(used) else {
            // What this transaction has made is seen by nobody else.
            return self.catalog().object(used).map(drop).ok_or_else(gone);
        };
        let (database, object) = (self.database.0, used.object.0);
        let tag = match used.class {
            classes::PG_CLASS => LockTag::Relation { database, relation: object },
            class => LockTag::Object { database, class: class.0, object },
        };
        self.engine.lock_object(tag, RelationLockMode::AccessShare, Wait::Block)?;
        let before = then.object(used).unwrap_or_else(|| found.clone());
        match self.cluster.catalog(self.database).object(used) {
            Some(after) if is_named_alike(&before, &after) => return Ok(()),
            Some(_) => bail!(INTERNAL_ERROR, "tuple concurrently updated"),
            None => {}
        }
        Err(match (by, found) {
            (Object::Relation(_), Object::Namespace(n)) => missing_schema(&n.name),
            _ => gone(),
        })
    }
}

fn missing_schema(name: &str) -> DbError {
    err!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist")
}
