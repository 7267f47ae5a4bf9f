//! ALTER DEFAULT PRIVILEGES.

use std::sync::Arc;

use melba_catalog::grants::ListChange;
use melba_catalog::privileges::{AclKind, RoleUse};
use melba_catalog::{AclItem, DefaultAcl, Object, ObjectAddress, classes};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterDefaultPrivilegesStmt, ObjectType, node::Node as N};

use super::Ddl;
use super::grant::Grant;
use melba_parse::nodes::{inner, options, string};

impl Ddl<'_> {
    pub fn alter_default_privileges(&self, s: &AlterDefaultPrivilegesStmt) -> Result<()> {
        let action = s.action.as_ref().ok_or_else(|| DbError::internal("default privileges without a grant"))?;
        let grant = self.read_grant(action)?;
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
                    N::RoleSpec(role) => roles.push(self.role_spec(role)?),
                    _ => schemas.push(self.namespace(string(node).unwrap_or_default())?.oid),
                }
            }
        }
        if roles.is_empty() {
            roles.push(self.user);
        }
        if schemas.is_empty() {
            schemas.push(Oid::INVALID);
        } else if matches!(kind, AclKind::Namespace | AclKind::LargeObject) {
            let what = if kind == AclKind::Namespace { "SCHEMAS" } else { "LARGE OBJECTS" };
            bail!(INVALID_GRANT_OPERATION, "cannot use IN SCHEMA clause when using GRANT/REVOKE ON {what}");
        }
        for role in roles {
            if !self.catalog().has_role(self.user, role, RoleUse::Inherit) {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change default privileges");
            }
            self.lock_definition(self.tx.database, classes::PG_DEFAULT_ACL, role)?;
            for namespace in &schemas {
                self.set_default_acl(&grant, kind, privileges, role, *namespace)?;
            }
        }
        Ok(())
    }

    /// Default privileges as messages about dependencies name them.
    pub fn describe_default_acl(&self, acl: &DefaultAcl) -> String {
        let catalog = self.catalog();
        let what = match acl.letter {
            b'r' => "relations",
            b'S' => "sequences",
            b'f' => "functions",
            b'T' => "types",
            b'n' => "schemas",
            _ => "large objects",
        };
        let role = catalog.role(acl.role).map_or("?", |r| &r.name);
        let place = catalog.namespace(acl.namespace).map_or_else(String::new, |n| format!(" in schema {}", n.name));
        format!("default privileges on new {what} belonging to role {role}{place}")
    }

    pub fn set_default_acl(&self, grant: &Grant<'_>, kind: AclKind, privileges: u64, role: Oid, namespace: Oid) -> Result<()> {
        let letter = kind.default_acl_letter().ok_or_else(|| err!(INTERNAL_ERROR, "no default privileges of {kind:?}"))?;
        let catalog = self.catalog();
        // A schema's additional privileges start empty.
        let usual: Vec<AclItem> = if namespace.is_valid() { Vec::new() } else { kind.default_acl(role) };
        let existing = catalog.default_acl(role, namespace, letter);
        let change = ListChange {
            is_grant: grant.is_grant,
            grant_option: grant.grant_option,
            cascade: grant.cascade,
            owner: role,
            grantor: role,
            privileges,
            grantees: &grant.grantees,
        };
        let mut acl = catalog.changed_list(existing.map_or(&usual, |d| &d.acl), &change)?;
        acl.sort_by_key(|i| (i.grantee, i.grantor));
        let is_usual = acl.len() == usual.len() && usual.iter().all(|item| acl.contains(item));
        match existing {
            Some(existing) if is_usual => {
                self.tx.remove(ObjectAddress { class: classes::PG_DEFAULT_ACL, object: existing.oid, sub: 0 });
            }
            None if is_usual => {}
            _ => {
                let oid = existing.map_or_else(|| self.tx.new_oid(), |d| d.oid);
                let acl = acl.into();
                self.tx.put(Object::DefaultAcl(Arc::new(DefaultAcl { oid, role, namespace, letter, acl })));
            }
        }
        Ok(())
    }
}
