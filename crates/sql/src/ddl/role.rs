//! Roles and memberships.

use std::sync::Arc;

use melba_catalog::{Membership, Object, ObjectAddress, Role, classes};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{
    AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DropRoleStmt, GrantRoleStmt, Node, RoleStmtType, VariableSetKind,
    node::Node as N,
};

use super::Ddl;
use super::nodes::{inner, option_bool, option_int, option_text, options};

impl Ddl<'_> {
    fn require_create_role(&self, message: &str) -> Result<()> {
        let allowed = self.catalog().role(self.user).is_some_and(|r| r.superuser || r.create_role);
        if !allowed {
            bail!(INSUFFICIENT_PRIVILEGE, "{message}");
        }
        Ok(())
    }

    pub fn create_role(&self, s: &CreateRoleStmt) -> Result<()> {
        self.require_create_role("permission denied to create role")?;
        if self.catalog().role_by_name(&s.role).is_some() {
            bail!(DUPLICATE_OBJECT, "role \"{}\" already exists", s.role);
        }
        if s.role.starts_with("pg_") {
            return Err(err!(RESERVED_NAME, "role name \"{}\" is reserved", s.role)
                .detail("Role names starting with \"pg_\" are reserved."));
        }
        let mut role = Role {
            oid: self.tx.new_oid(),
            name: s.role.as_str().into(),
            superuser: false,
            inherit: true,
            create_role: false,
            create_db: false,
            can_login: s.stmt_type() == RoleStmtType::RolestmtUser,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            member_of: vec![],
            settings: vec![],
        };
        self.role_options(&mut role, &s.options)?;
        let oid = role.oid;
        self.tx.put(Object::Role(Arc::new(role)));
        for def in options(&s.options) {
            let Some(N::List(list)) = def.arg.as_ref().and_then(|a| a.node.as_ref()) else { continue };
            for node in &list.items {
                let N::RoleSpec(spec) = inner(node)? else { continue };
                let other = self.role_spec(spec)?;
                match def.defname.as_str() {
                    "addroleto" => self.add_membership(oid, other, false)?,
                    "rolemembers" => self.add_membership(other, oid, false)?,
                    "adminmembers" => self.add_membership(other, oid, true)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn role_options(&self, role: &mut Role, nodes: &[Node]) -> Result<()> {
        for def in options(nodes) {
            match def.defname.as_str() {
                "superuser" => role.superuser = option_bool(def)?,
                "inherit" => role.inherit = option_bool(def)?,
                "createrole" => role.create_role = option_bool(def)?,
                "createdb" => role.create_db = option_bool(def)?,
                "canlogin" => role.can_login = option_bool(def)?,
                "isreplication" => role.replication = option_bool(def)?,
                "bypassrls" => role.bypass_rls = option_bool(def)?,
                "connectionlimit" => role.connection_limit = option_int(def)? as i32,
                "password" => role.password = option_text(def).map(|text| (self.password_verifier)(&text).into()),
                "validUntil" => {
                    let text = option_text(def).unwrap_or_default();
                    let value = melba_functions::io::text_in(self.session, melba_types::oids::TIMESTAMPTZ, -1, &text)?;
                    role.valid_until = Some(value.as_i64());
                }
                "addroleto" | "rolemembers" | "adminmembers" | "sysid" => {}
                other => return Err(DbError::unsupported(format!("role option \"{other}\""))),
            }
        }
        Ok(())
    }

    pub fn alter_role(&self, s: &AlterRoleStmt) -> Result<()> {
        let spec = s.role.as_ref().ok_or_else(|| DbError::internal("ALTER ROLE without a role"))?;
        let oid = self.role_spec(spec)?;
        if oid != self.user {
            self.require_create_role("permission denied to alter role")?;
        }
        let catalog = self.catalog();
        let mut role = (**catalog.role(oid).ok_or_else(|| DbError::internal("missing role"))?).clone();
        self.role_options(&mut role, &s.options)?;
        self.tx.put(Object::Role(Arc::new(role)));
        Ok(())
    }

    pub fn alter_role_set(&self, s: &AlterRoleSetStmt) -> Result<()> {
        let Some(spec) = &s.role else { return Err(DbError::unsupported("ALTER ROLE ALL SET")) };
        let oid = self.role_spec(spec)?;
        if oid != self.user {
            self.require_create_role("permission denied to alter role")?;
        }
        let database = match s.database.as_str() {
            "" => Oid::INVALID,
            name => self.database_by_name(name)?.oid,
        };
        let catalog = self.catalog();
        let mut role = (**catalog.role(oid).ok_or_else(|| DbError::internal("missing role"))?).clone();
        let set = s.setstmt.as_ref().ok_or_else(|| DbError::internal("ALTER ROLE SET without a setting"))?;
        if set.kind() == VariableSetKind::VarResetAll {
            role.settings.retain(|(d, _)| *d != database);
        } else {
            role.settings.retain(|(d, text)| *d != database || !text.starts_with(&format!("{}=", set.name)));
            if let Some(text) = self.setting_text(set)? {
                role.settings.push((database, text.into()));
            }
        }
        self.tx.put(Object::Role(Arc::new(role)));
        Ok(())
    }

    pub fn drop_role(&self, s: &DropRoleStmt) -> Result<()> {
        self.require_create_role("permission denied to drop role")?;
        for node in &s.roles {
            let N::RoleSpec(spec) = inner(node)? else { continue };
            let catalog = self.catalog();
            let Some(role) = catalog.role_by_name(&spec.rolename) else {
                if s.missing_ok {
                    self.notice(format!("role \"{}\" does not exist, skipping", spec.rolename));
                    continue;
                }
                bail!(UNDEFINED_OBJECT, "role \"{}\" does not exist", spec.rolename);
            };
            if role.oid == self.user {
                bail!(OBJECT_IN_USE, "current user cannot be dropped");
            }
            if role.oid == classes::POSTGRES_ROLE {
                bail!(OBJECT_IN_USE, "cannot drop role postgres because it is required by the database system");
            }
            let uses = self.uses_of_role(role.oid)?;
            if !uses.is_empty() {
                return Err(err!(
                    DEPENDENT_OBJECTS_STILL_EXIST,
                    "role \"{}\" cannot be dropped because some objects depend on it",
                    role.name
                )
                .detail(uses.join("\n")));
            }
            for member in catalog.roles().filter(|r| r.member_of.iter().any(|m| m.role == role.oid)) {
                let mut member = (**member).clone();
                member.member_of.retain(|m| m.role != role.oid);
                self.tx.put(Object::Role(Arc::new(member)));
            }
            self.tx.remove(ObjectAddress { class: classes::PG_AUTHID, object: role.oid, sub: 0 });
        }
        Ok(())
    }

    /// What keeps a role from being dropped, a line each: objects of this database, how many there are in others.
    fn uses_of_role(&self, role: Oid) -> Result<Vec<String>> {
        let catalog = self.catalog();
        let mut lines: Vec<String> = catalog
            .role_uses()
            .into_iter()
            .filter(|u| u.role == role)
            .map(|u| match u.is_owner {
                true => format!("owner of {}", self.describe(u.object)),
                false => format!("privileges for {}", self.describe(u.object)),
            })
            .collect();
        lines.extend(self.large_objects_of_role(role)?);
        for other in self.tx.cluster().catalogs().databases().filter(|c| c.database_oid() != self.tx.database) {
            // Databases are everybody's, and have been listed.
            let count = other.role_uses().iter().filter(|u| u.role == role && u.object.class != classes::PG_DATABASE).count();
            if count > 0 {
                let name = catalog.database(other.database_oid()).map_or("", |d| &d.name);
                lines.push(format!("{count} object{} in database {name}", if count == 1 { "" } else { "s" }));
            }
        }
        Ok(lines)
    }

    fn add_membership(&self, member: Oid, of: Oid, admin: bool) -> Result<()> {
        let catalog = self.catalog();
        let name = |oid| catalog.role(oid).map_or_else(String::new, |r| r.name.to_string());
        if self.is_member(of, member) {
            bail!(INVALID_GRANT_OPERATION, "role \"{}\" is a member of role \"{}\"", name(of), name(member));
        }
        let mut role = (**catalog.role(member).ok_or_else(|| DbError::internal("missing role"))?).clone();
        match role.member_of.iter_mut().find(|m| m.role == of) {
            Some(existing) => existing.admin |= admin,
            None => role.member_of.push(Membership {
                oid: self.tx.new_oid(),
                role: of,
                grantor: self.user,
                admin,
                inherit: role.inherit,
                set: true,
            }),
        }
        self.tx.put(Object::Role(Arc::new(role)));
        Ok(())
    }

    pub fn grant_role(&self, s: &GrantRoleStmt) -> Result<()> {
        let admin = options(&s.opt).any(|d| d.defname == "admin" && option_bool(d).unwrap_or(false));
        for granted in &s.granted_roles {
            let N::AccessPriv(granted) = inner(granted)? else { continue };
            let catalog = self.catalog();
            let of = catalog.role_by_name(&granted.priv_name).map(|r| r.oid);
            let of = of.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{}\" does not exist", granted.priv_name))?;
            for grantee in &s.grantee_roles {
                let N::RoleSpec(spec) = inner(grantee)? else { continue };
                let member = self.role_spec(spec)?;
                if s.is_grant {
                    self.add_membership(member, of, admin)?;
                    continue;
                }
                let catalog = self.catalog();
                let mut role = (**catalog.role(member).ok_or_else(|| DbError::internal("missing role"))?).clone();
                role.member_of.retain(|m| m.role != of);
                self.tx.put(Object::Role(Arc::new(role)));
            }
        }
        Ok(())
    }
}
