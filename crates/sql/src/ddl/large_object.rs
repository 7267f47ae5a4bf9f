//! GRANT, COMMENT and ALTER OWNER on large objects, and what DROP ROLE must know of them.

use melba_catalog::acl::GRANT_OPTION_SHIFT;
use melba_catalog::privileges::{AclKind, RoleUse};
use melba_catalog::{AclItem, ObjectAddress, classes};
use melba_types::{Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{GrantStmt, Node, node::Node as N};

use super::Ddl;
use super::nodes::inner;
use super::role::{granted, privilege_bits};
use crate::large_object::{Access, Metadata, Sight, Trees, method_of_setting};

impl Ddl<'_> {
    fn with_large_objects<T>(&self, f: impl FnOnce(&mut Access<'_>) -> Result<T>) -> Result<T> {
        let method = method_of_setting(&self.session.setting("default_toast_compression").unwrap_or_default());
        let mut objects = self.tx.large_objects.lock();
        f(&mut Access::new(&mut objects, &self.tx.engine, Trees::of(&self.catalog()), method))
    }

    fn compatible_privileges(&self) -> bool {
        self.session.setting("lo_compat_privileges").as_deref() == Some("on")
    }

    fn require_large_object_owner(&self, oid: Oid, owner: Oid) -> Result<()> {
        if !self.is_owner(owner) && !self.compatible_privileges() {
            bail!(INSUFFICIENT_PRIVILEGE, "must be owner of large object {oid}");
        }
        Ok(())
    }

    /// GRANT and REVOKE ON LARGE OBJECT.
    pub fn grant_on_large_objects(&self, s: &GrantStmt, grantees: &[Oid]) -> Result<()> {
        let bits = privilege_bits(s, AclKind::LargeObject.all(), "large object")?;
        for node in &s.objects {
            let oid = large_object_oid(Some(node))?;
            self.with_large_objects(|lo| {
                lo.change_metadata(oid, |metadata| {
                    let acl = metadata.acl.as_deref();
                    let default = AclKind::LargeObject.default_acl(metadata.owner);
                    let may_grant = self.grantable(s, oid, metadata, bits)?;
                    let grantor = if self.is_owner(metadata.owner) { metadata.owner } else { self.user };
                    metadata.acl = Some(granted(s, acl.unwrap_or(&default), grantor, may_grant, grantees));
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    /// Which of the privileges the user may grant or revoke; PostgreSQL warns of the others.
    ///
    /// # Errors
    /// 42501 when it has none on the object at all.
    fn grantable(&self, s: &GrantStmt, oid: Oid, metadata: &Metadata, bits: u64) -> Result<u64> {
        let catalog = self.catalog();
        let has = |mask| catalog.has_privileges(self.user, AclKind::LargeObject, metadata.owner, &metadata.acl, mask);
        let single = |mask: u64| (0..GRANT_OPTION_SHIFT).map(|bit| 1 << bit).filter(move |bit| mask & bit != 0);
        let may_grant: u64 = single(bits).filter(|bit| has(bit << GRANT_OPTION_SHIFT)).sum();
        if may_grant == bits {
            return Ok(bits);
        }
        let all = AclKind::LargeObject.all();
        if !single(all).any(|bit| has(bit) || has(bit << GRANT_OPTION_SHIFT)) {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied for large object {oid}");
        }
        let some = if may_grant == 0 { "no" } else { "not all" };
        if s.is_grant {
            let message = format!("{some} privileges were granted for \"large object {oid}\"");
            self.warning(SqlState::WARNING_PRIVILEGE_NOT_GRANTED, message);
        } else {
            let message = format!("{some} privileges could be revoked for \"large object {oid}\"");
            self.warning(SqlState::WARNING_PRIVILEGE_NOT_REVOKED, message);
        }
        Ok(may_grant)
    }

    /// ALTER LARGE OBJECT ... OWNER TO.
    pub fn alter_large_object_owner(&self, object: Option<&Node>, owner: Oid) -> Result<String> {
        let oid = large_object_oid(object)?;
        self.with_large_objects(|lo| {
            let before = lo.existing(Sight::Newest, oid)?;
            self.require_large_object_owner(oid, before.owner)?;
            let catalog = self.catalog();
            if !catalog.has_role(self.user, owner, RoleUse::Set) {
                let name = catalog.role(owner).map_or("", |r| &r.name);
                bail!(INSUFFICIENT_PRIVILEGE, "must be able to SET ROLE \"{name}\"");
            }
            lo.change_metadata(oid, |metadata| {
                metadata.acl = metadata.acl.take().map(|items| given_to(&items, metadata.owner, owner).into());
                metadata.owner = owner;
                Ok(())
            })
        })?;
        Ok("ALTER LARGE OBJECT".into())
    }

    /// What COMMENT ON LARGE OBJECT names.
    pub fn commented_large_object(&self, object: Option<&Node>) -> Result<ObjectAddress> {
        let oid = large_object_oid(object)?;
        let metadata = self.with_large_objects(|lo| lo.existing(Sight::Newest, oid))?;
        self.require_large_object_owner(oid, metadata.owner)?;
        Ok(ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 })
    }

    /// What keeps a role from being dropped, as its error lists it.
    pub fn large_objects_of_role(&self, role: Oid) -> Result<Vec<String>> {
        let mut out = Vec::new();
        self.with_large_objects(|lo| {
            lo.all(|oid, metadata| {
                if metadata.owner == role {
                    out.push(format!("owner of large object {oid}"));
                } else if metadata.acl.iter().flat_map(|items| items.iter()).any(|i| i.grantee == role) {
                    out.push(format!("privileges for large object {oid}"));
                }
            })
        })?;
        Ok(out)
    }
}

/// A privilege list after its object has gone from one owner to another.
fn given_to(items: &[AclItem], old: Oid, new: Oid) -> Vec<AclItem> {
    let mut out: Vec<AclItem> = Vec::with_capacity(items.len());
    let moved = |role: Oid| if role == old { new } else { role };
    for item in items {
        let (grantee, grantor) = (moved(item.grantee), moved(item.grantor));
        match out.iter_mut().find(|i| (i.grantee, i.grantor) == (grantee, grantor)) {
            Some(same) => same.privileges |= item.privileges,
            None => out.push(AclItem { grantee, grantor, privileges: item.privileges }),
        }
    }
    out
}

/// The OID that a statement names.
fn large_object_oid(object: Option<&Node>) -> Result<Oid> {
    match object.map(inner).transpose()? {
        Some(N::Integer(i)) => Ok(Oid(i.ival as u32)),
        Some(N::Float(f)) => f
            .fval
            .parse()
            .map(Oid)
            .map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{}\" is out of range for type oid", f.fval)),
        _ => bail!(SYNTAX_ERROR, "a large object is named by its OID"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_follow_the_owner() {
        let item = |grantee, grantor, privileges| AclItem { grantee: Oid(grantee), grantor: Oid(grantor), privileges };
        let before = [item(1, 1, 6), item(2, 1, 2), item(0, 1, 2)];
        assert_eq!(given_to(&before, Oid(1), Oid(2)), [item(2, 2, 6), item(0, 2, 2)]);
    }
}
