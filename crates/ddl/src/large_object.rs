//! GRANT, COMMENT and ALTER OWNER on large objects, and the checks of DROP ROLE for them.

use melba_catalog::grants::given_to;
use melba_catalog::privileges::AclKind;
use melba_catalog::role_uses::{RoleDependency, RoleUseKind};
use melba_catalog::{ObjectAddress, ObjectChange, classes};
use melba_definition::context::Ddl;
use melba_largeobject::{LargeObjectAccess, Sight, Trees, method_of_setting};
use melba_parse::nodes::inner;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{GrantStmt, Node};

use crate::privileges::acl::{Grant, acl_after};

fn with_large_objects<T>(ddl: &Ddl<'_>, f: impl FnOnce(&mut LargeObjectAccess<'_>) -> Result<T>) -> Result<T> {
    let method = method_of_setting(&ddl.session().setting("default_toast_compression").unwrap_or_default());
    let mut objects = ddl.tx().large_objects.lock();
    f(&mut LargeObjectAccess::new(&mut objects, &ddl.tx().engine, Trees::of(&ddl.catalog()), method))
}

fn compatible_privileges(ddl: &Ddl<'_>) -> bool {
    ddl.session().setting("lo_compat_privileges").as_deref() == Some("on")
}

fn require_large_object_owner(ddl: &Ddl<'_>, oid: Oid, owner: Oid) -> Result<()> {
    if !ddl.is_owner(owner) && !compatible_privileges(ddl) {
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of large object {oid}");
    }
    Ok(())
}

/// The objects that GRANT and REVOKE ON LARGE OBJECT name.
pub fn granted_large_objects(ddl: &Ddl<'_>, s: &GrantStmt) -> Result<Vec<Oid>> {
    let oids = s.objects.iter().map(|node| large_object_oid(Some(node))).collect::<Result<Vec<_>>>()?;
    with_large_objects(ddl, |lo| oids.iter().try_for_each(|oid| lo.existing(Sight::Newest, *oid).map(drop)))?;
    Ok(oids)
}

pub fn grant_on_large_object(ddl: &Ddl<'_>, oid: Oid, grant: &Grant<'_>) -> Result<()> {
    let name = format!("large object {oid}");
    with_large_objects(ddl, |lo| {
        lo.change_metadata(oid, |metadata| {
            let acl = metadata.acl.as_deref();
            metadata.acl = Some(acl_after(ddl, grant, AclKind::LargeObject, metadata.owner, acl, "large object", &name)?);
            Ok(())
        })
    })
}

/// ALTER LARGE OBJECT ... OWNER TO.
pub fn alter_large_object_owner(ddl: &Ddl<'_>, object: Option<&Node>, owner: Oid) -> Result<()> {
    let oid = large_object_oid(object)?;
    let before = with_large_objects(ddl, |lo| lo.existing(Sight::Newest, oid))?;
    require_large_object_owner(ddl, oid, before.owner)?;
    give_large_object(ddl, oid, owner)
}

pub fn give_large_object(ddl: &Ddl<'_>, oid: Oid, owner: Oid) -> Result<()> {
    with_large_objects(ddl, |lo| {
        let before = lo.existing(Sight::Newest, oid)?;
        ddl.check_new_owner(before.owner, owner, None)?;
        lo.change_metadata(oid, |metadata| {
            metadata.acl = metadata.acl.take().map(|items| given_to(&items, metadata.owner, owner).into());
            metadata.owner = owner;
            Ok(())
        })
    })
}

pub fn drop_large_object(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    with_large_objects(ddl, |lo| lo.unlink(oid))?;
    let address = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
    if ddl.catalog().description(address).is_some() {
        ddl.tx().change(ObjectChange::RemoveDescription(address));
    }
    Ok(())
}

/// The object that COMMENT ON LARGE OBJECT names.
pub fn commented_large_object(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<ObjectAddress> {
    let oid = large_object_oid(object)?;
    let metadata = with_large_objects(ddl, |lo| lo.existing(Sight::Newest, oid))?;
    require_large_object_owner(ddl, oid, metadata.owner)?;
    Ok(ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 })
}

/// The large objects that a role owns or has privileges on.
pub fn large_objects_of_role(ddl: &Ddl<'_>, role: Oid) -> Result<Vec<RoleDependency>> {
    let mut out = Vec::new();
    with_large_objects(ddl, |lo| {
        lo.all(|oid, metadata| {
            let is_owner = metadata.owner == role;
            if is_owner || metadata.acl.iter().flat_map(|items| items.iter()).any(|i| i.grantee == role) {
                let object = ObjectAddress { class: classes::PG_LARGEOBJECT, object: oid, sub: 0 };
                let how = if is_owner { RoleUseKind::Owner } else { RoleUseKind::Acl };
                out.push(RoleDependency { object, role, how });
            }
        })
    })?;
    Ok(out)
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
