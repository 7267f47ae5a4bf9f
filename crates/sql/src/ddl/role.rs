//! Roles, memberships and privileges.

use std::sync::Arc;

use melba_catalog::{AclItem, Membership, Namespace, Object, ObjectAddress, Relation, Role, classes};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{
    AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DropRoleStmt, GrantRoleStmt, GrantStmt, GrantTargetType, Node, ObjectType,
    RoleStmtType, VariableSetKind, node::Node as N,
};

use super::Ddl;
use super::nodes::{inner, option_bool, option_int, option_text, options, string, strings};

/// PostgreSQL's ACL_* bits by privilege name.
pub const PRIVILEGES: [(&str, u64); 15] = [
    ("insert", 1),
    ("select", 1 << 1),
    ("update", 1 << 2),
    ("delete", 1 << 3),
    ("truncate", 1 << 4),
    ("references", 1 << 5),
    ("trigger", 1 << 6),
    ("execute", 1 << 7),
    ("usage", 1 << 8),
    ("create", 1 << 9),
    ("temporary", 1 << 10),
    ("temp", 1 << 10),
    ("connect", 1 << 11),
    ("set", 1 << 12),
    ("maintain", 1 << 14),
];

/// Everything a table's owner may do.
const TABLE_ALL: u64 = 0b111_1111 | 1 << 14;
const SEQUENCE_ALL: u64 = 1 << 1 | 1 << 2 | 1 << 8;
const SCHEMA_ALL: u64 = 1 << 8 | 1 << 9;
const DATABASE_ALL: u64 = 1 << 9 | 1 << 10 | 1 << 11;
/// Grant options live in the upper half.
const GRANT_OPTION_SHIFT: u32 = 32;

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
            let mut owned: Vec<String> = catalog
                .relations()
                .filter(|r| r.owner == role.oid && r.index.is_none())
                .map(|r| format!("owner of {}", self.describe(ObjectAddress { class: classes::PG_CLASS, object: r.oid, sub: 0 })))
                .collect();
            owned.extend(self.large_objects_of_role(role.oid)?);
            if !owned.is_empty() {
                return Err(err!(
                    DEPENDENT_OBJECTS_STILL_EXIST,
                    "role \"{}\" cannot be dropped because some objects depend on it",
                    role.name
                )
                .detail(owned.join("\n")));
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

    pub fn grant(&self, s: &GrantStmt) -> Result<()> {
        if s.targtype() != GrantTargetType::AclTargetObject && s.targtype() != GrantTargetType::AclTargetAllInSchema {
            return Err(DbError::unsupported("ALTER DEFAULT PRIVILEGES"));
        }
        let mut grantees = Vec::new();
        for node in &s.grantees {
            if let N::RoleSpec(spec) = inner(node)? {
                grantees.push(self.role_spec(spec)?);
            }
        }
        match s.objtype() {
            ObjectType::ObjectTable | ObjectType::ObjectSequence => {
                for relation in self.granted_relations(s)? {
                    self.grant_on_relation(s, &relation, &grantees)?;
                }
                Ok(())
            }
            ObjectType::ObjectSchema => {
                for node in &s.objects {
                    let namespace = self.namespace(string(node).unwrap_or_default())?;
                    self.require_owner(namespace.owner, "schema", &namespace.name)?;
                    let acl = self.changed_acl(s, namespace.acl.as_deref(), namespace.owner, SCHEMA_ALL, &grantees)?;
                    self.tx.put(Object::Namespace(Arc::new(Namespace { acl: Some(acl), ..(*namespace).clone() })));
                }
                Ok(())
            }
            ObjectType::ObjectDatabase => {
                for node in &s.objects {
                    let database = self.database_by_name(string(node).unwrap_or_default())?;
                    self.require_owner(database.owner, "database", &database.name)?;
                    let acl = self.changed_acl(s, database.acl.as_deref(), database.owner, DATABASE_ALL, &grantees)?;
                    let changed = melba_catalog::Database { acl: Some(acl), ..(*database).clone() };
                    self.tx.put(Object::Database(Arc::new(changed)));
                }
                Ok(())
            }
            ObjectType::ObjectLargeobject => self.grant_on_large_objects(s, &grantees),
            _ => Err(DbError::unsupported("GRANT on this kind of object")),
        }
    }

    fn granted_relations(&self, s: &GrantStmt) -> Result<Vec<Arc<Relation>>> {
        let mut out = Vec::new();
        for node in &s.objects {
            match inner(node)? {
                N::RangeVar(name) => out.push(self.open_relation(name, RelationLockMode::AccessShare)?),
                N::String(schema) => {
                    let namespace = self.namespace(&schema.sval)?;
                    let sequence = s.objtype() == ObjectType::ObjectSequence;
                    let catalog = self.catalog();
                    out.extend(
                        catalog
                            .relations_in(namespace.oid)
                            .into_iter()
                            .filter(|r| r.index.is_none() && (r.sequence.is_some() == sequence))
                            .cloned(),
                    );
                }
                _ => {}
            }
        }
        Ok(out)
    }

    fn grant_on_relation(&self, s: &GrantStmt, relation: &Relation, grantees: &[Oid]) -> Result<()> {
        self.require_owner(relation.owner, super::schema::relation_word(relation.kind), &relation.name)?;
        let all = if relation.sequence.is_some() { SEQUENCE_ALL } else { TABLE_ALL };
        let mut columns = relation.columns.to_vec();
        let mut whole = Vec::new();
        for node in &s.privileges {
            let N::AccessPriv(privilege) = inner(node)? else { continue };
            if privilege.cols.is_empty() {
                whole.push(node.clone());
                continue;
            }
            for number in self.column_numbers(relation, &strings(&privilege.cols), false)? {
                let column = &mut columns[number as usize - 1];
                let one = GrantStmt { privileges: vec![node.clone()], ..s.clone() };
                let column_all = 1 | 1 << 1 | 1 << 2 | 1 << 5;
                let acl = column.acl.as_deref().unwrap_or(&[]);
                column.acl = Some(self.changed_acl_from(&one, acl, relation.owner, column_all, grantees)?);
            }
        }
        let mut next = Relation { columns: columns.into(), ..relation.clone() };
        if s.privileges.is_empty() || !whole.is_empty() {
            let statement = GrantStmt { privileges: whole, ..s.clone() };
            next.acl = Some(self.changed_acl(&statement, relation.acl.as_deref(), relation.owner, all, grantees)?);
        }
        self.put_relation(next);
        Ok(())
    }

    fn changed_acl(
        &self,
        s: &GrantStmt,
        acl: Option<&[AclItem]>,
        owner: Oid,
        all: u64,
        grantees: &[Oid],
    ) -> Result<Arc<[AclItem]>> {
        let owners = [AclItem { grantee: owner, grantor: owner, privileges: all }];
        self.changed_acl_from(s, acl.unwrap_or(&owners), owner, all, grantees)
    }

    fn changed_acl_from(&self, s: &GrantStmt, acl: &[AclItem], owner: Oid, all: u64, grantees: &[Oid]) -> Result<Arc<[AclItem]>> {
        // Superusers and members of the owner's role grant as the owner.
        let grantor = if self.is_owner(owner) { owner } else { self.user };
        Ok(granted(s, acl, grantor, privilege_bits(s, all, "this kind of object")?, grantees))
    }
}

/// The privileges that a statement names, of the `all` that there are on what it calls `what`.
pub(super) fn privilege_bits(s: &GrantStmt, all: u64, what: &str) -> Result<u64> {
    if s.privileges.is_empty() {
        return Ok(all);
    }
    let mut bits = 0;
    for node in &s.privileges {
        let N::AccessPriv(privilege) = inner(node)? else { continue };
        let name = privilege.priv_name.to_ascii_lowercase();
        if name.is_empty() {
            bits |= all;
            continue;
        }
        let Some((_, bit)) = PRIVILEGES.iter().find(|(n, _)| *n == name) else {
            bail!(SYNTAX_ERROR, "unrecognized privilege type \"{name}\"");
        };
        if bit & all == 0 {
            bail!(INVALID_GRANT_OPERATION, "invalid privilege type {} for {what}", name.to_uppercase());
        }
        bits |= bit;
    }
    Ok(bits)
}

/// A privilege list after `grantor` has granted or revoked `bits`.
pub(super) fn granted(s: &GrantStmt, acl: &[AclItem], grantor: Oid, bits: u64, grantees: &[Oid]) -> Arc<[AclItem]> {
    let mut items = acl.to_vec();
    for grantee in grantees {
        let at = items.iter().position(|i| i.grantee == *grantee).unwrap_or_else(|| {
            items.push(AclItem { grantee: *grantee, grantor, privileges: 0 });
            items.len() - 1
        });
        let options = bits << GRANT_OPTION_SHIFT;
        let item = &mut items[at];
        match (s.is_grant, s.grant_option) {
            (true, true) => item.privileges |= bits | options,
            (true, false) => item.privileges |= bits,
            (false, true) => item.privileges &= !options,
            (false, false) => item.privileges &= !(bits | options),
        }
    }
    items.retain(|i| i.privileges != 0);
    items.into()
}
