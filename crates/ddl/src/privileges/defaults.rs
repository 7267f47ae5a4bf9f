//! ALTER DEFAULT PRIVILEGES.

use std::sync::Arc;

use melba_catalog::default_privileges::default_acl;
use melba_catalog::grants::{ListChange, changed_list};
use melba_catalog::privileges::{AclKind, RoleUse};
use melba_catalog::{AclItem, DefaultAcl, Object, ObjectAddress, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, options, string};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterDefaultPrivilegesStmt, ObjectType};

use crate::privileges::acl::Grant;
use crate::privileges::grant::read_grant;

pub fn alter_default_privileges(ddl: &Ddl<'_>, s: &AlterDefaultPrivilegesStmt) -> Result<()> {
    let action = s.action.as_ref().ok_or_else(|| DbError::internal("default privileges without a grant"))?;
    let grant = read_grant(ddl, action)?;
    let kind = match action.objtype() {
        ObjectType::ObjectTable => AclKind::Table,
        ObjectType::ObjectSequence => AclKind::Sequence,
        ObjectType::ObjectFunction | ObjectType::ObjectRoutine | ObjectType::ObjectProcedure => AclKind::Function,
        ObjectType::ObjectType => AclKind::Type,
        ObjectType::ObjectSchema => AclKind::Namespace,
        ObjectType::ObjectLargeobject => AclKind::LargeObject,
        _ => return Err(DbError::unsupported("default privileges of this kind of object")),
    };
    let privileges = grant.whole(kind.all(), kind)?;
    let (mut roles, mut schemas) = (Vec::new(), Vec::new());
    for option in options(&s.options) {
        let Some(N::List(list)) = option.arg.as_deref().and_then(|a| a.node.as_ref()) else { continue };
        for node in &list.items {
            match inner(node)? {
                N::RoleSpec(role) => roles.push(ddl.role_spec(role)?),
                _ => schemas.push(ddl.namespace(string(node).unwrap_or_default())?.oid),
            }
        }
    }
    if roles.is_empty() {
        roles.push(ddl.user());
    }
    if schemas.is_empty() {
        schemas.push(Oid::INVALID);
    } else if matches!(kind, AclKind::Namespace | AclKind::LargeObject) {
        let what = if kind == AclKind::Namespace { "SCHEMAS" } else { "LARGE OBJECTS" };
        bail!(INVALID_GRANT_OPERATION, "cannot use IN SCHEMA clause when using GRANT/REVOKE ON {what}");
    }
    for role in roles {
        if !ddl.catalog().has_role(ddl.user(), role, RoleUse::Inherit) {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change default privileges");
        }
        ddl.lock_database_object(ddl.tx().database, classes::PG_DEFAULT_ACL, role)?;
        for namespace in &schemas {
            set_default_acl(ddl, &grant, kind, privileges, role, *namespace)?;
        }
    }
    Ok(())
}

pub fn set_default_acl(
    ddl: &Ddl<'_>,
    grant: &Grant<'_>,
    kind: AclKind,
    privileges: u64,
    role: Oid,
    namespace: Oid,
) -> Result<()> {
    let letter = kind.default_acl_letter().ok_or_else(|| err!(INTERNAL_ERROR, "no default privileges of {kind:?}"))?;
    let catalog = ddl.catalog();
    // A schema's additional privileges start empty.
    let usual: Vec<AclItem> = if namespace.is_valid() { Vec::new() } else { kind.default_acl(role) };
    let existing = default_acl(&catalog, role, namespace, letter);
    let change = ListChange {
        is_grant: grant.is_grant,
        grant_option: grant.grant_option,
        cascade: grant.cascade,
        owner: role,
        grantor: role,
        privileges,
        grantees: &grant.grantees,
    };
    let mut acl = changed_list(&catalog, existing.map_or(&usual, |d| &d.acl), &change)?;
    acl.sort_by_key(|i| (i.grantee, i.grantor));
    let is_usual = acl.len() == usual.len() && usual.iter().all(|item| acl.contains(item));
    match existing {
        Some(existing) if is_usual => {
            ddl.tx().remove(ObjectAddress { class: classes::PG_DEFAULT_ACL, object: existing.oid, sub: 0 });
        }
        None if is_usual => {}
        _ => {
            let oid = existing.map_or_else(|| ddl.tx().new_oid(), |d| d.oid);
            let acl = acl.into();
            ddl.tx().put(Object::DefaultAcl(Arc::new(DefaultAcl { oid, role, namespace, letter, acl })));
        }
    }
    Ok(())
}
