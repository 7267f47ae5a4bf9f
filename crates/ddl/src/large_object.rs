//! GRANT, COMMENT and ALTER OWNER on large objects, and the checks of DROP ROLE for them.

use melba_catalog::grants::given_to;
use melba_catalog::privileges::AclKind;
use melba_catalog::role_uses::{RoleUse, RoleUseKind};
use melba_catalog::{ObjectAddress, ObjectChange, classes};
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::{GrantStmt, Node, node::Node as N};

use super::Ddl;
use super::grant::Grant;
use melba_largeobject::{Access, Sight, Trees, method_of_setting};
use melba_parse::nodes::inner;

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
    pub fn grant_on_large_objects(&self, s: &GrantStmt, grant: &Grant<'_>) -> Result<()> {
        s.objects.iter().try_for_each(|node| self.grant_on_large_object(large_object_oid(Some(node))?, grant))
    }

    pub fn grant_on_large_object(&self, oid: Oid, grant: &Grant<'_>) -> Result<()> {
        let name = format!("large object {oid}");
        self.with_large_objects(|lo| {
            lo.change_metadata(oid, |metadata| {
                let acl = metadata.acl.as_deref();
                metadata.acl = Some(self.acl_after(grant, AclKind::LargeObject, metadata.owner, acl, "large object", &name)?);
                Ok(())
            })
        })
    }

    /// ALTER LARGE OBJECT ... OWNER TO.
    pub fn alter_large_object_owner(&self, object: Option<&Node>, owner: Oid) -> Result<()> {
        let oid = large_object_oid(object)?;
        let before = self.with_large_objects(|lo| lo.existing(Sight::Newest, oid))?;
        self.require_large_object_owner(oid, before.owner)?;
        self.give_large_object(oid, owner)
    }

    pub fn give_large_object(&self, oid: Oid, owner: Oid) -> Result<()> {
        self.with_large_objects(|lo| {
            let before = lo.existing(Sight::Newest, oid)?;
            self.check_new_owner(before.owner, owner, None)?;
            lo.change_metadata(oid, |metadata| {
                metadata.acl = metadata.acl.take().map(|items| given_to(&items, metadata.owner, owner).into());
                metadata.owner = owner;
                Ok(())
            })
        })
    }

    pub fn drop_large_object(&self, oid: Oid) -> Result<()> {
        self.with_large_objects(|lo| lo.unlink(oid))?;
        let address = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
        if self.catalog().description(address).is_some() {
            self.tx.change(ObjectChange::RemoveDescription(address));
        }
        Ok(())
    }

    /// The object that COMMENT ON LARGE OBJECT names.
    pub fn commented_large_object(&self, object: Option<&Node>) -> Result<ObjectAddress> {
        let oid = large_object_oid(object)?;
        let metadata = self.with_large_objects(|lo| lo.existing(Sight::Newest, oid))?;
        self.require_large_object_owner(oid, metadata.owner)?;
        Ok(ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 })
    }

    /// The large objects that a role owns or has privileges on.
    pub fn large_objects_of_role(&self, role: Oid) -> Result<Vec<RoleUse>> {
        let mut out = Vec::new();
        self.with_large_objects(|lo| {
            lo.all(|oid, metadata| {
                let is_owner = metadata.owner == role;
                if is_owner || metadata.acl.iter().flat_map(|items| items.iter()).any(|i| i.grantee == role) {
                    let object = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
                    let how = if is_owner { RoleUseKind::Owner } else { RoleUseKind::Acl };
                    out.push(RoleUse { object, role, how });
                }
            })
        })?;
        Ok(out)
    }
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
