//! DROP OWNED and REASSIGN OWNED: everything of a role in this database, according to pg_shdepend.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::role_uses::{RoleUse, RoleUseKind};
use melba_catalog::{Extension, Object, ObjectAddress, classes};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{DropBehavior, DropOwnedStmt, ObjectType, ReassignOwnedStmt};

use super::Ddl;
use super::dependents::FIRST_UNPINNED_OID;
use super::grant::Grant;

impl Ddl<'_> {
    pub fn drop_owned(&self, s: &DropOwnedStmt) -> Result<()> {
        let roles = self.named_roles(&s.roles)?;
        roles.iter().try_for_each(|role| self.require_privileges_of(*role, "drop", "drop objects owned by it"))?;
        let mut owned = Vec::new();
        for role in roles {
            self.refuse_pinned_role(role, "drop objects owned by")?;
            for used in self.objects_of_role(role)? {
                self.lock_used(used.object)?;
                match used.how {
                    RoleUseKind::Owner => owned.push(used.object),
                    RoleUseKind::Acl => self.revoke_from(role, used.object)?,
                    RoleUseKind::Policy => {
                        if let Some(policy) = self.catalog().policy(used.object.object).cloned() {
                            self.take_role_from_policy(role, &policy)?;
                        }
                    }
                }
            }
            self.end_memberships_granted_by(role)?;
        }
        // Databases are never dropped here.
        owned.retain(|o| o.class != classes::PG_DATABASE && self.is_there(*o));
        let (large, mut others): (Vec<_>, Vec<_>) = owned.into_iter().partition(|o| o.class == classes::PG_LARGEOBJECT);
        large.into_iter().try_for_each(|o| self.drop_large_object(o.object))?;
        // Newest first, which is how messages list them.
        others.sort_by_key(|o| (std::cmp::Reverse(o.object), o.class, o.sub));
        self.drop_addresses(&others, s.behavior() == DropBehavior::DropCascade)
    }

    pub fn reassign_owned(&self, s: &ReassignOwnedStmt) -> Result<()> {
        let roles = self.named_roles(&s.roles)?;
        roles.iter().try_for_each(|role| self.require_privileges_of(*role, "reassign", "reassign objects owned by it"))?;
        let spec = s.newrole.as_ref().ok_or_else(|| DbError::internal("REASSIGN OWNED without a new owner"))?;
        let new = self.named_role(spec)?;
        self.require_privileges_of(new, "reassign", "reassign objects to it")?;
        for role in roles {
            self.refuse_pinned_role(role, "reassign ownership of objects owned by")?;
            for RoleUse { object, .. } in self.objects_of_role(role)?.into_iter().filter(RoleUse::is_owner) {
                self.lock_used(object)?;
                self.give_object(object, new)?;
            }
        }
        Ok(())
    }

    fn require_privileges_of(&self, role: Oid, verb: &str, may: &str) -> Result<()> {
        if self.has_privileges_of(role) {
            return Ok(());
        }
        let name = self.catalog().role(role).map_or_else(String::new, |r| r.name.to_string());
        Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to {verb} objects")
            .detail(format!("Only roles with privileges of role \"{name}\" may {may}.")))
    }

    fn refuse_pinned_role(&self, role: Oid, verb: &str) -> Result<()> {
        if role.0 >= FIRST_UNPINNED_OID {
            return Ok(());
        }
        let name = self.catalog().role(role).map_or_else(String::new, |r| r.name.to_string());
        bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot {verb} role {name} because they are required by the database system")
    }

    /// Keeps others from changing or dropping an object until the transaction ends.
    fn lock_used(&self, object: ObjectAddress) -> Result<()> {
        match object.class {
            classes::PG_CLASS => self.lock_relation(object.object, RelationLockMode::AccessExclusive),
            classes::PG_LARGEOBJECT => Ok(()),
            classes::PG_DATABASE => self.lock_definition(Oid::INVALID, object.class, object.object),
            _ => self.lock_definition(self.tx.database, object.class, object.object),
        }
    }

    /// Whether an object has outlived the wait for its lock.
    fn is_there(&self, object: ObjectAddress) -> bool {
        object.class == classes::PG_LARGEOBJECT || self.catalog().object(object).is_some()
    }

    /// Revokes the privileges that the role was granted on an object, and those it has granted with them.
    fn revoke_from(&self, role: Oid, object: ObjectAddress) -> Result<()> {
        let (grant, oid) = (Grant::revoke_all(role), object.object);
        match (object.class, self.catalog().object(object)) {
            (classes::PG_LARGEOBJECT, _) => self.grant_on_large_object(oid, &grant),
            (_, Some(Object::Relation(relation))) => self.grant_on_relation(ObjectType::ObjectTable, &grant, &relation),
            (_, Some(Object::Namespace(_))) => self.grant_on_schema(&grant, oid),
            (_, Some(Object::Database(_))) => self.grant_on_database(&grant, oid),
            (_, Some(Object::Type(_))) => self.grant_on_type(&grant, oid, false),
            (_, Some(Object::Function(f))) => self.grant_on_routine(&grant, &f),
            (_, Some(Object::DefaultAcl(acl))) => {
                let kind = AclKind::of_default_acl_letter(acl.letter);
                let kind = kind.ok_or_else(|| DbError::internal("default privileges of an unknown kind"))?;
                self.set_default_acl(&grant, kind, kind.all(), acl.role, acl.namespace)
            }
            _ => Ok(()),
        }
    }

    /// Memberships that a role has granted end.
    fn end_memberships_granted_by(&self, grantor: Oid) -> Result<()> {
        let catalog = self.catalog();
        for member in catalog.roles().filter(|r| r.member_of.iter().any(|m| m.grantor == grantor)) {
            let mut role = self.locked_role(member.oid)?;
            role.member_of.retain(|m| m.grantor != grantor);
            self.tx.put(Object::Role(Arc::new(role)));
        }
        Ok(())
    }

    /// Changes an object's owner, as ALTER ... OWNER TO does. Default privileges keep their owner.
    fn give_object(&self, object: ObjectAddress, owner: Oid) -> Result<()> {
        if object.class == classes::PG_LARGEOBJECT {
            return self.give_large_object(object.object, owner);
        }
        match self.catalog().object(object) {
            Some(Object::Relation(o)) => self.give_relation(&o, owner),
            Some(Object::Type(o)) => self.give_type(&o, owner),
            Some(Object::Namespace(o)) => self.give_schema(&o, owner)?,
            Some(Object::Function(o)) => self.give_routine(&o, owner)?,
            Some(Object::Database(o)) => {
                self.check_new_owner(o.owner, owner, None)?;
                self.give_database(&o, owner);
            }
            Some(Object::Operator(o)) => self.give_operator(&o, owner)?,
            Some(Object::Collation(o)) => self.give_collation(&o, owner)?,
            Some(Object::Extension(o)) => {
                self.check_new_owner(o.owner, owner, Some(o.namespace))?;
                self.tx.put(Object::Extension(Arc::new(Extension { owner, ..(*o).clone() })));
            }
            _ => {}
        }
        Ok(())
    }
}
