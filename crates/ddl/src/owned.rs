//! DROP OWNED and REASSIGN OWNED: everything of a role in this database, according to pg_shdepend.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::role_uses::{RoleDependency, RoleUseKind};
use melba_catalog::{Extension, Object, ObjectAddress, classes};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_relation::dependents::{FIRST_UNPINNED_OID, drop_addresses};
use melba_relation::operator_class::{Placed, give_placed};
use melba_relation::policy::take_role_from_policy;
use melba_relation::statistics::alter::give_statistics;
use melba_routine::operator::give_operator;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{DropBehavior, DropOwnedStmt, ObjectType, ReassignOwnedStmt};

use crate::alter_routine::{give_routine, grant_on_routine};
use crate::alter_table::give_relation;
use crate::collation::give_collation;
use crate::event_trigger::give_event_trigger;
use crate::foreign::{give_server, give_wrapper, grant_on_foreign};
use crate::large_object::{drop_large_object, give_large_object, grant_on_large_object};
use crate::owner::{give_database, give_schema, give_type};
use crate::plain::{give_plain, grant_on_plain};
use crate::privileges::acl::Grant;
use crate::privileges::defaults::set_default_acl;
use crate::privileges::grant::{grant_on_database, grant_on_relation, grant_on_schema, grant_on_type};
use crate::privileges::granted;
use crate::publication::give_publication;
use crate::role::{locked_role, named_role, named_roles, objects_of_role};
use crate::text_search::{TextSearchObject, give_text_search};

pub fn drop_owned(ddl: &Ddl<'_>, s: &DropOwnedStmt) -> Result<()> {
    let roles = named_roles(ddl, &s.roles)?;
    roles.iter().try_for_each(|role| require_privileges_of(ddl, *role, "drop", "drop objects owned by it"))?;
    let mut owned = Vec::new();
    for role in roles {
        refuse_pinned_role(ddl, role, "drop objects owned by")?;
        for used in objects_of_role(ddl, role)? {
            lock_used(ddl, used.object)?;
            match used.how {
                RoleUseKind::Owner => owned.push(used.object),
                RoleUseKind::Acl => revoke_from(ddl, role, used.object)?,
                RoleUseKind::Policy => {
                    if let Some(policy) = ddl.catalog().policy(used.object.object).cloned() {
                        take_role_from_policy(ddl, role, &policy)?;
                    }
                }
            }
        }
        end_memberships_granted_by(ddl, role)?;
    }
    // Databases are never dropped here.
    owned.retain(|o| o.class != classes::PG_DATABASE && is_there(ddl, *o));
    let (large, mut others): (Vec<_>, Vec<_>) = owned.into_iter().partition(|o| o.class == classes::PG_LARGEOBJECT);
    large.into_iter().try_for_each(|o| drop_large_object(ddl, o.object))?;
    // Newest first, which is how messages list them.
    others.sort_by_key(|o| (std::cmp::Reverse(o.object), o.class, o.sub));
    drop_addresses(ddl, &others, s.behavior() == DropBehavior::DropCascade)
}

pub fn reassign_owned(ddl: &Ddl<'_>, s: &ReassignOwnedStmt) -> Result<()> {
    let roles = named_roles(ddl, &s.roles)?;
    roles.iter().try_for_each(|role| require_privileges_of(ddl, *role, "reassign", "reassign objects owned by it"))?;
    let spec = s.newrole.as_ref().ok_or_else(|| DbError::internal("REASSIGN OWNED without a new owner"))?;
    let new = named_role(ddl, spec)?;
    require_privileges_of(ddl, new, "reassign", "reassign objects to it")?;
    for role in roles {
        refuse_pinned_role(ddl, role, "reassign ownership of objects owned by")?;
        for RoleDependency { object, .. } in objects_of_role(ddl, role)?.into_iter().filter(RoleDependency::is_owner) {
            lock_used(ddl, object)?;
            give_object(ddl, object, new)?;
        }
    }
    Ok(())
}

fn require_privileges_of(ddl: &Ddl<'_>, role: Oid, verb: &str, may: &str) -> Result<()> {
    if ddl.has_privileges_of(role) {
        return Ok(());
    }
    let name = ddl.catalog().role(role).map_or_else(String::new, |r| r.name.to_string());
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to {verb} objects")
        .detail(format!("Only roles with privileges of role \"{name}\" may {may}.")))
}

fn refuse_pinned_role(ddl: &Ddl<'_>, role: Oid, verb: &str) -> Result<()> {
    if role.0 >= FIRST_UNPINNED_OID {
        return Ok(());
    }
    let name = ddl.catalog().role(role).map_or_else(String::new, |r| r.name.to_string());
    bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot {verb} role {name} because they are required by the database system")
}

/// Keeps others from changing or dropping an object until the transaction ends.
fn lock_used(ddl: &Ddl<'_>, object: ObjectAddress) -> Result<()> {
    match object.class {
        classes::PG_CLASS => ddl.lock_relation(object.object, RelationLockMode::AccessExclusive),
        classes::PG_LARGEOBJECT => Ok(()),
        classes::PG_DATABASE | classes::PG_TABLESPACE => ddl.lock_database_object(Oid::INVALID, object.class, object.object),
        _ => ddl.lock_database_object(ddl.tx().database, object.class, object.object),
    }
}

/// Whether an object has outlived the wait for its lock.
fn is_there(ddl: &Ddl<'_>, object: ObjectAddress) -> bool {
    object.class == classes::PG_LARGEOBJECT || ddl.catalog().object(object).is_some()
}

/// Revokes the privileges that the role was granted on an object, and those it has granted with them.
fn revoke_from(ddl: &Ddl<'_>, role: Oid, object: ObjectAddress) -> Result<()> {
    let (grant, oid) = (Grant::revoke_all(role), object.object);
    match (object.class, ddl.catalog().object(object)) {
        (classes::PG_LARGEOBJECT, _) => grant_on_large_object(ddl, oid, &grant),
        (_, Some(Object::Relation(relation))) => grant_on_relation(ddl, ObjectType::ObjectTable, &grant, &relation),
        (_, Some(Object::Namespace(_))) => grant_on_schema(ddl, &grant, oid),
        (_, Some(Object::Database(_))) => grant_on_database(ddl, &grant, oid),
        (_, Some(Object::Type(_))) => grant_on_type(ddl, &grant, oid, false),
        (_, Some(Object::Function(f))) => grant_on_routine(ddl, &grant, &f),
        (_, Some(Object::ForeignDataWrapper(_) | Object::ForeignServer(_))) => grant_on_foreign(ddl, &grant, object),
        (_, Some(Object::Plain(object))) => grant_on_plain(ddl, &grant, &object),
        (_, Some(Object::Granted(granted))) => granted::change_granted(ddl, &grant, (*granted).clone()),
        (_, Some(Object::DefaultAcl(acl))) => {
            let kind = AclKind::of_default_acl_letter(acl.letter);
            let kind = kind.ok_or_else(|| DbError::internal("default privileges of an unknown kind"))?;
            set_default_acl(ddl, &grant, kind, kind.all(), acl.role, acl.namespace)
        }
        _ => Ok(()),
    }
}

/// Memberships that a role has granted end.
fn end_memberships_granted_by(ddl: &Ddl<'_>, grantor: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for member in catalog.roles().filter(|r| r.member_of.iter().any(|m| m.grantor == grantor)) {
        let mut role = locked_role(ddl, member.oid)?;
        role.member_of.retain(|m| m.grantor != grantor);
        ddl.tx().put(Object::Role(Arc::new(role)));
    }
    Ok(())
}

/// Changes an object's owner, as ALTER ... OWNER TO does. Default privileges keep their owner.
fn give_object(ddl: &Ddl<'_>, object: ObjectAddress, owner: Oid) -> Result<()> {
    if object.class == classes::PG_LARGEOBJECT {
        return give_large_object(ddl, object.object, owner);
    }
    match ddl.catalog().object(object) {
        Some(Object::Relation(o)) => give_relation(ddl, &o, owner),
        Some(Object::Type(o)) => give_type(ddl, &o, owner),
        Some(Object::Namespace(o)) => give_schema(ddl, &o, owner)?,
        Some(Object::Function(o)) => give_routine(ddl, &o, owner)?,
        Some(Object::Database(o)) => {
            ddl.check_new_owner(o.owner, owner, None)?;
            give_database(ddl, &o, owner);
        }
        Some(Object::Operator(o)) => give_operator(ddl, &o, owner)?,
        Some(Object::OperatorClass(o)) => give_placed(ddl, &Placed::Class(o), owner)?,
        Some(Object::OperatorFamily(o)) => give_placed(ddl, &Placed::Family(o), owner)?,
        Some(Object::Collation(o)) => give_collation(ddl, &o, owner)?,
        Some(Object::TextSearchConfig(o)) => give_text_search(ddl, &TextSearchObject::Config(o), owner)?,
        Some(Object::TextSearchDictionary(o)) => give_text_search(ddl, &TextSearchObject::Dictionary(o), owner)?,
        Some(Object::Publication(o)) => give_publication(ddl, &o, owner)?,
        Some(Object::ForeignDataWrapper(o)) => give_wrapper(ddl, &o, owner)?,
        Some(Object::ForeignServer(o)) => give_server(ddl, &o, owner)?,
        Some(Object::EventTrigger(o)) => give_event_trigger(ddl, &o, owner)?,
        Some(Object::ExtendedStatistics(o)) => give_statistics(ddl, &o, owner)?,
        Some(Object::Plain(o)) => give_plain(ddl, &o, owner)?,
        Some(Object::Extension(o)) => {
            ddl.check_new_owner(o.owner, owner, Some(o.namespace))?;
            ddl.tx().put(Object::Extension(Arc::new(Extension { owner, ..(*o).clone() })));
        }
        _ => {}
    }
    Ok(())
}
