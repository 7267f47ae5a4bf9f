//! Roles and memberships.

use std::sync::Arc;

use melba_catalog::memberships::{GrantOptions, check_may_grant_role, check_new_members, is_admin_of, revocation, role_grantor};
use melba_catalog::role_uses::{RoleDependency, RoleUseKind, role_uses};
use melba_catalog::{Membership, Object, ObjectAddress, Role, classes};
use melba_definition::context::Ddl;
use melba_definition::describe::describe;
use melba_definition::kept_setting::{kept_setting, may_reset};
use melba_parse::nodes::{inner, option_bool, option_text, options};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DropBehavior, DropRoleStmt, GrantRoleStmt, Node, RoleSpec, RoleSpecType,
    RoleStmtType, VariableSetKind, VariableSetStmt,
};

use crate::database::{change_settings, connection_limit, database_by_name, set_in_database};
use crate::large_object::large_objects_of_role;
use crate::plain::change_settings_of_all;

/// The role that grants or revokes a role, and GRANTED BY.
struct Grantor {
    user: Oid,
    named: Option<Oid>,
}

fn has_attribute(ddl: &Ddl<'_>, attribute: impl Fn(&Role) -> bool) -> bool {
    ddl.catalog().role(ddl.user()).is_some_and(|r| r.superuser || attribute(r))
}

/// Whether the user has CREATEROLE and ADMIN OPTION on a role, which most changes of one need.
fn may_manage(ddl: &Ddl<'_>, role: Oid) -> bool {
    has_attribute(ddl, |r| r.create_role) && is_admin_of(&ddl.catalog(), ddl.user(), role)
}

/// A role's present state, locked against changes by others until the transaction ends.
pub fn locked_role(ddl: &Ddl<'_>, oid: Oid) -> Result<Role> {
    ddl.lock_database_object(Oid::INVALID, classes::PG_AUTHID, oid)?;
    let catalog = ddl.catalog();
    let role = catalog.role(oid).ok_or_else(|| err!(UNDEFINED_OBJECT, "role {oid} was concurrently dropped"))?;
    Ok((**role).clone())
}

fn role_name(ddl: &Ddl<'_>, oid: Oid) -> String {
    ddl.catalog().role(oid).map_or_else(String::new, |r| r.name.to_string())
}

/// The roles of a list, in which PUBLIC is invalid.
pub fn named_roles(ddl: &Ddl<'_>, nodes: &[Node]) -> Result<Vec<Oid>> {
    let mut roles = Vec::with_capacity(nodes.len());
    for node in nodes {
        let N::RoleSpec(spec) = inner(node)? else { continue };
        roles.push(named_role(ddl, spec)?);
    }
    Ok(roles)
}

pub fn named_role(ddl: &Ddl<'_>, spec: &RoleSpec) -> Result<Oid> {
    match spec.roletype() {
        RoleSpecType::RolespecPublic => Err(err!(UNDEFINED_OBJECT, "role \"public\" does not exist")),
        _ => ddl.role_spec(spec),
    }
}

pub fn create_role(ddl: &Ddl<'_>, s: &CreateRoleStmt) -> Result<()> {
    check_options(&s.options)?;
    check_new_role(ddl, &s.options)?;
    check_not_reserved(&s.role)?;
    if ddl.catalog().role_by_name(&s.role).is_some() {
        bail!(DUPLICATE_OBJECT, "role \"{}\" already exists", s.role);
    }
    let mut role = Role {
        oid: ddl.tx().new_oid(),
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
    role_options(ddl, &mut role, &s.options)?;
    let oid = role.oid;
    ddl.tx().put(Object::Role(Arc::new(role)));
    let listed = |name: &str| -> Result<Vec<Oid>> {
        let mut lists = options(&s.options).filter(|d| d.defname == name);
        match lists.next().and_then(|d| d.arg.as_ref()?.node.as_ref()) {
            Some(N::List(list)) => named_roles(ddl, &list.items),
            _ => Ok(Vec::new()),
        }
    };
    for group in listed("addroleto")? {
        check_may_grant_role(&ddl.catalog(), ddl.user(), group, true)?;
        add_members(ddl, group, &[oid], &grantor(ddl, None), &GrantOptions::default())?;
    }
    grant_to_creator(ddl, oid)?;
    let by = grantor(ddl, None);
    add_members(ddl, oid, &listed("rolemembers")?, &by, &GrantOptions::default())?;
    let admin = GrantOptions { admin: Some(true), ..GrantOptions::default() };
    add_members(ddl, oid, &listed("adminmembers")?, &by, &admin)
}

/// A role that creates another without being a superuser administers it; createrole_self_grant adds further options.
fn grant_to_creator(ddl: &Ddl<'_>, role: Oid) -> Result<()> {
    if ddl.is_superuser() {
        return Ok(());
    }
    let admin = GrantOptions { admin: Some(true), inherit: Some(false), set: Some(false) };
    let by = Grantor { user: classes::POSTGRES_ROLE, named: Some(classes::POSTGRES_ROLE) };
    add_members(ddl, role, &[ddl.user()], &by, &admin)?;
    let setting = ddl.session().setting("createrole_self_grant").unwrap_or_default();
    let has = |word: &str| setting.split(',').any(|w| w.trim().eq_ignore_ascii_case(word));
    if !has("set") && !has("inherit") {
        return Ok(());
    }
    let more = GrantOptions { admin: Some(false), inherit: Some(has("inherit")), set: Some(has("set")) };
    add_members(ddl, role, &[ddl.user()], &grantor(ddl, Some(ddl.user())), &more)
}

/// # Errors
/// 42501 when the user may not create roles, or not with these attributes.
fn check_new_role(ddl: &Ddl<'_>, nodes: &[Node]) -> Result<()> {
    let denied = || err!(INSUFFICIENT_PRIVILEGE, "permission denied to create role");
    if !has_attribute(ddl, |r| r.create_role) {
        return Err(denied().detail("Only roles with the CREATEROLE attribute may create roles."));
    }
    for (option, attribute, held) in ATTRIBUTES {
        if is_set(nodes, option)? == Some(true) && !has_attribute(ddl, held) {
            return Err(denied()
                .detail(format!("Only roles with the {attribute} attribute may create roles with the {attribute} attribute.")));
        }
    }
    Ok(())
}

fn role_options(ddl: &Ddl<'_>, role: &mut Role, nodes: &[Node]) -> Result<()> {
    for def in options(nodes) {
        match def.defname.as_str() {
            "superuser" => role.superuser = option_bool(def)?,
            "inherit" => role.inherit = option_bool(def)?,
            "createrole" => role.create_role = option_bool(def)?,
            "createdb" => role.create_db = option_bool(def)?,
            "canlogin" => role.can_login = option_bool(def)?,
            "isreplication" => role.replication = option_bool(def)?,
            "bypassrls" => role.bypass_rls = option_bool(def)?,
            "connectionlimit" => role.connection_limit = connection_limit(def)?,
            "password" => {
                role.password = match option_text(def) {
                    Some(text) => new_password(ddl, &role.name, &text)?,
                    None => None,
                };
            }
            "validUntil" => {
                let text = option_text(def).unwrap_or_default();
                let value = melba_fmgr::io::text_in(ddl.session(), melba_types::oids::TIMESTAMPTZ, -1, &text)?;
                role.valid_until = Some(value.as_i64());
            }
            "sysid" => ddl.notice("SYSID can no longer be specified"),
            "addroleto" | "rolemembers" | "adminmembers" => {}
            other => return Err(DbError::unsupported(format!("role option \"{other}\""))),
        }
    }
    Ok(())
}

/// The stored form of a password; nothing for an empty one, also where only its verifier was given.
fn new_password(ddl: &Ddl<'_>, role: &str, password: &str) -> Result<Option<Arc<str>>> {
    match ddl.stored_password(role, password)? {
        Some(verifier) => Ok(Some(verifier.into())),
        None => {
            ddl.notice("empty string is not a valid password, clearing password");
            Ok(None)
        }
    }
}

pub fn alter_role(ddl: &Ddl<'_>, s: &AlterRoleStmt) -> Result<()> {
    let spec = s.role.as_ref().ok_or_else(|| DbError::internal("ALTER ROLE without a role"))?;
    check_may_alter_name(spec)?;
    check_options(&s.options)?;
    let oid = named_role(ddl, spec)?;
    let mut role = locked_role(ddl, oid)?;
    check_altered(ddl, &role, &s.options)?;
    if role.oid == classes::POSTGRES_ROLE && is_set(&s.options, "superuser")? == Some(false) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "permission denied to alter role")
            .detail("The bootstrap superuser must have the SUPERUSER attribute."));
    }
    role_options(ddl, &mut role, &s.options)?;
    ddl.tx().put(Object::Role(Arc::new(role)));
    let members = options(&s.options).find(|d| d.defname == "rolemembers");
    if let Some(N::List(list)) = members.and_then(|d| d.arg.as_ref()?.node.as_ref()) {
        let members = named_roles(ddl, &list.items)?;
        let by = grantor(ddl, None);
        return match s.action {
            -1 => drop_members(ddl, oid, &members, &by, &GrantOptions::default(), false),
            _ => add_members(ddl, oid, &members, &by, &GrantOptions::default()),
        };
    }
    Ok(())
}

/// # Errors
/// 42501 when the user may not change a role so.
fn check_altered(ddl: &Ddl<'_>, role: &Role, nodes: &[Node]) -> Result<()> {
    let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to alter role").detail(detail));
    let has = |name: &str| options(nodes).any(|d| d.defname == name);
    if role.superuser && !ddl.is_superuser() {
        return denied("Only roles with the SUPERUSER attribute may alter roles with the SUPERUSER attribute.".into());
    }
    if has("superuser") && !ddl.is_superuser() {
        return denied("Only roles with the SUPERUSER attribute may change the SUPERUSER attribute.".into());
    }
    if !may_manage(ddl, role.oid) {
        const MANAGED: [&str; 8] =
            ["inherit", "createrole", "createdb", "canlogin", "connectionlimit", "validUntil", "isreplication", "bypassrls"];
        if MANAGED.iter().any(|name| has(name)) {
            return denied(managers_only(role, "alter"));
        }
        if has("password") && role.oid != ddl.user() {
            return denied(
                "To change another role's password, the current user must have the CREATEROLE attribute and the ADMIN option \
                 on the role."
                    .into(),
            );
        }
    } else {
        for (option, attribute, held) in ATTRIBUTES {
            if has(option) && !has_attribute(ddl, held) {
                return denied(format!("Only roles with the {attribute} attribute may change the {attribute} attribute."));
            }
        }
    }
    if has("rolemembers") && !is_admin_of(&ddl.catalog(), ddl.user(), role.oid) {
        return denied(format!("Only roles with the ADMIN option on role \"{}\" may add or drop members.", role.name));
    }
    Ok(())
}

pub fn alter_role_set(ddl: &Ddl<'_>, s: &AlterRoleSetStmt) -> Result<()> {
    let set = s.setstmt.as_ref().ok_or_else(|| DbError::internal("ALTER ROLE SET without a setting"))?;
    let Some(spec) = &s.role else {
        return set_for_all_roles(ddl, &s.database, set);
    };
    check_may_alter_name(spec)?;
    let oid = named_role(ddl, spec)?;
    let mut role = locked_role(ddl, oid)?;
    let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to alter role").detail(detail));
    if role.superuser {
        if !ddl.is_superuser() {
            return denied("Only roles with the SUPERUSER attribute may alter roles with the SUPERUSER attribute.".into());
        }
    } else if !may_manage(ddl, oid) && oid != ddl.user() {
        return denied(managers_only(&role, "alter"));
    }
    let database = match s.database.as_str() {
        "" => Oid::INVALID,
        name => database_by_name(ddl, name)?.oid,
    };
    if set.kind() == VariableSetKind::VarResetAll {
        role.settings.retain(|(d, text)| *d != database || !may_reset(ddl, text));
    } else {
        let text = kept_setting(ddl, set)?;
        role.settings.retain(|(d, text)| *d != database || !text.starts_with(&format!("{}=", set.name)));
        role.settings.extend(text.map(|text| (database, text.into())));
    }
    ddl.tx().put(Object::Role(Arc::new(role)));
    Ok(())
}

/// ALTER ROLE ALL [IN DATABASE ...] SET.
fn set_for_all_roles(ddl: &Ddl<'_>, database: &str, set: &VariableSetStmt) -> Result<()> {
    if !database.is_empty() {
        let found = database_by_name(ddl, database)?;
        ddl.require_owner(found.owner, "database", database)?;
        return set_in_database(ddl, &found, set);
    }
    if !ddl.is_superuser() {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to alter setting")
            .detail("Only roles with the SUPERUSER attribute may alter settings globally."));
    }
    change_settings_of_all(ddl, |settings| change_settings(ddl, settings, set))
}

pub fn rename_role(ddl: &Ddl<'_>, from: &str, to: &str) -> Result<()> {
    let found = ddl.catalog().role_by_name(from).map(|r| r.oid);
    let oid = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{from}\" does not exist"))?;
    let role = locked_role(ddl, oid)?;
    if oid == ddl.session_user() {
        bail!(FEATURE_NOT_SUPPORTED, "session user cannot be renamed");
    }
    if oid == ddl.user() {
        bail!(FEATURE_NOT_SUPPORTED, "current user cannot be renamed");
    }
    check_not_reserved(from)?;
    check_not_reserved(to)?;
    if ddl.catalog().role_by_name(to).is_some() {
        bail!(DUPLICATE_OBJECT, "role \"{to}\" already exists");
    }
    let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to rename role").detail(detail));
    if role.superuser {
        if !ddl.is_superuser() {
            return denied("Only roles with the SUPERUSER attribute may rename roles with the SUPERUSER attribute.".into());
        }
    } else if !may_manage(ddl, oid) {
        return denied(managers_only(&role, "rename"));
    }
    let mut renamed = Role { name: to.into(), ..role };
    // Such a verifier is salted with the name.
    if renamed.password.as_deref().is_some_and(|p| p.starts_with("md5")) {
        renamed.password = None;
        ddl.notice("MD5 password cleared because of role rename");
    }
    ddl.tx().put(Object::Role(Arc::new(renamed)));
    Ok(())
}

pub fn drop_role(ddl: &Ddl<'_>, s: &DropRoleStmt) -> Result<()> {
    let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to drop role").detail(detail));
    if !has_attribute(ddl, |r| r.create_role) {
        return denied(
            "Only roles with the CREATEROLE attribute and the ADMIN option on the target roles may drop roles.".into(),
        );
    }
    let mut dropped = Vec::new();
    for node in &s.roles {
        let N::RoleSpec(spec) = inner(node)? else { continue };
        if spec.roletype() != RoleSpecType::RolespecCstring {
            bail!(INVALID_PARAMETER_VALUE, "cannot use special role specifier in DROP ROLE");
        }
        let found = ddl.catalog().role_by_name(&spec.rolename).map(|r| r.oid);
        let Some(oid) = found else {
            if s.missing_ok {
                ddl.notice(format!("role \"{}\" does not exist, skipping", spec.rolename));
                continue;
            }
            bail!(UNDEFINED_OBJECT, "role \"{}\" does not exist", spec.rolename);
        };
        // Nobody makes anything that mentions it meanwhile.
        ddl.lock_object_exclusively(Oid::INVALID, classes::PG_AUTHID, oid)?;
        let role = locked_role(ddl, oid)?;
        if oid == ddl.user() {
            bail!(OBJECT_IN_USE, "current user cannot be dropped");
        }
        if oid == ddl.session_user() {
            bail!(OBJECT_IN_USE, "session user cannot be dropped");
        }
        if role.superuser && !ddl.is_superuser() {
            return denied("Only roles with the SUPERUSER attribute may drop roles with the SUPERUSER attribute.".into());
        }
        if !is_admin_of(&ddl.catalog(), ddl.user(), oid) {
            return denied(managers_only(&role, "drop"));
        }
        end_memberships(ddl, oid)?;
        if !dropped.contains(&oid) {
            dropped.push(oid);
        }
    }
    // Only now, so that grants between the dropped roles do not keep either.
    dropped.into_iter().try_for_each(|oid| drop_unused_role(ddl, oid))
}

/// Takes a role from its members, and itself out of those it is a member of.
fn end_memberships(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    let of_it = |m: &Membership| m.role == oid;
    let members: Vec<Oid> = ddl.catalog().roles().filter(|r| r.member_of.iter().any(of_it)).map(|r| r.oid).collect();
    for member in members {
        let mut role = locked_role(ddl, member)?;
        role.member_of.retain(|m| !of_it(m));
        ddl.tx().put(Object::Role(Arc::new(role)));
    }
    let mut role = locked_role(ddl, oid)?;
    role.member_of.clear();
    ddl.tx().put(Object::Role(Arc::new(role)));
    Ok(())
}

fn drop_unused_role(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    if oid.0 < classes::FIRST_USER_OID {
        let name = role_name(ddl, oid);
        bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop role {name} because it is required by the database system");
    }
    let uses = uses_of_role(ddl, oid)?;
    if !uses.is_empty() {
        let name = role_name(ddl, oid);
        return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "role \"{name}\" cannot be dropped because some objects depend on it")
            .detail(uses.join("\n")));
    }
    ddl.tx().remove(ObjectAddress { class: classes::PG_AUTHID, object: oid, sub: 0 });
    Ok(())
}

/// The objects in this database, and the databases, that a role owns or has privileges on.
pub fn objects_of_role(ddl: &Ddl<'_>, role: Oid) -> Result<Vec<RoleDependency>> {
    let mut uses = role_uses(&ddl.catalog());
    uses.retain(|u| u.role == role);
    uses.extend(large_objects_of_role(ddl, role)?);
    uses.sort_by_key(|u| (u.object.object, u.object.class, u.object.sub));
    Ok(uses)
}

/// The objects that keep a role from being dropped, one line each: those of this database, and their number in others.
fn uses_of_role(ddl: &Ddl<'_>, role: Oid) -> Result<Vec<String>> {
    let catalog = ddl.catalog();
    let told = |u: RoleDependency| match u.how {
        RoleUseKind::Owner => format!("owner of {}", describe(ddl, u.object)),
        RoleUseKind::Acl => format!("privileges for {}", describe(ddl, u.object)),
        RoleUseKind::Policy => format!("target of {}", describe(ddl, u.object)),
    };
    let mut lines: Vec<String> = objects_of_role(ddl, role)?.into_iter().map(told).collect();
    for member in catalog.roles() {
        for granted in member.member_of.iter().filter(|m| m.grantor == role) {
            let of = role_name(ddl, granted.role);
            lines.push(format!("privileges for membership of role {} in role {of}", member.name));
        }
    }
    for other in ddl.tx().cluster().catalogs().databases().filter(|c| c.database_oid() != ddl.tx().database) {
        // Databases and parameters are everybody's, and have been listed.
        let is_own = |class: Oid| ![classes::PG_DATABASE, classes::PG_PARAMETER_ACL, classes::PG_TABLESPACE].contains(&class);
        let count = role_uses(other).iter().filter(|u| u.role == role && is_own(u.object.class)).count();
        if count > 0 {
            let name = catalog.database(other.database_oid()).map_or("", |d| &d.name);
            lines.push(format!("{count} object{} in database {name}", if count == 1 { "" } else { "s" }));
        }
    }
    Ok(lines)
}

fn grantor(ddl: &Ddl<'_>, named: Option<Oid>) -> Grantor {
    Grantor { user: ddl.user(), named }
}

/// Makes `members` members of `of`.
fn add_members(ddl: &Ddl<'_>, of: Oid, members: &[Oid], by: &Grantor, options: &GrantOptions) -> Result<()> {
    if members.is_empty() {
        return Ok(());
    }
    ddl.lock_database_object(Oid::INVALID, classes::PG_AUTHID, of)?;
    let catalog = ddl.catalog();
    let grantor = role_grantor(&catalog, by.user, of, by.named, true)?;
    check_new_members(&catalog, of, members, grantor, options)?;
    for member in members {
        let mut role = locked_role(ddl, *member)?;
        let usual = Membership {
            oid: ddl.tx().new_oid(),
            role: of,
            grantor,
            admin: options.admin.unwrap_or(false),
            inherit: options.inherit.unwrap_or(role.inherit),
            set: options.set.unwrap_or(true),
        };
        match role.member_of.iter_mut().find(|m| (m.role, m.grantor) == (of, grantor)) {
            Some(held) => {
                let before = *held;
                held.admin = options.admin.unwrap_or(held.admin);
                held.inherit = options.inherit.unwrap_or(held.inherit);
                held.set = options.set.unwrap_or(held.set);
                if (before.admin, before.inherit, before.set) == (held.admin, held.inherit, held.set) {
                    ddl.notice(format!(
                        "role \"{}\" has already been granted membership in role \"{}\" by role \"{}\"",
                        role.name,
                        role_name(ddl, of),
                        role_name(ddl, grantor)
                    ));
                }
            }
            None => role.member_of.push(usual),
        }
        ddl.tx().put(Object::Role(Arc::new(role)));
    }
    Ok(())
}

/// Ends memberships in `of`, or takes one of their options back.
fn drop_members(ddl: &Ddl<'_>, of: Oid, members: &[Oid], by: &Grantor, options: &GrantOptions, cascade: bool) -> Result<()> {
    ddl.lock_database_object(Oid::INVALID, classes::PG_AUTHID, of)?;
    let catalog = ddl.catalog();
    let grantor = role_grantor(&catalog, by.user, of, by.named, false)?;
    let mut revocation = revocation(&catalog, of);
    for member in members {
        if !revocation.revoke(*member, grantor, options, cascade)? {
            let message = format!(
                "role \"{}\" has not been granted membership in role \"{}\" by role \"{}\"",
                role_name(ddl, *member),
                role_name(ddl, of),
                role_name(ddl, grantor)
            );
            ddl.warning(SqlState::WARNING, message);
        }
    }
    for (grant, after) in revocation.changes() {
        let mut role = locked_role(ddl, grant.member)?;
        role.member_of.retain_mut(|m| match after {
            _ if m.oid != grant.membership.oid => true,
            Some(after) => {
                *m = after;
                true
            }
            None => false,
        });
        ddl.tx().put(Object::Role(Arc::new(role)));
    }
    Ok(())
}

pub fn grant_role(ddl: &Ddl<'_>, s: &GrantRoleStmt) -> Result<()> {
    let options = grant_options(&s.opt)?;
    let by = grantor(ddl, s.grantor.as_ref().map(|spec| named_role(ddl, spec)).transpose()?);
    let members = named_roles(ddl, &s.grantee_roles)?;
    for granted in &s.granted_roles {
        let N::AccessPriv(granted) = inner(granted)? else { continue };
        if granted.priv_name.is_empty() || !granted.cols.is_empty() {
            bail!(INVALID_GRANT_OPERATION, "column names cannot be included in GRANT/REVOKE ROLE");
        }
        let of = ddl.catalog().role_by_name(&granted.priv_name).map(|r| r.oid);
        let of = of.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{}\" does not exist", granted.priv_name))?;
        check_may_grant_role(&ddl.catalog(), ddl.user(), of, s.is_grant)?;
        if s.is_grant {
            add_members(ddl, of, &members, &by, &options)?;
        } else {
            drop_members(ddl, of, &members, &by, &options, s.behavior() == DropBehavior::DropCascade)?;
        }
    }
    Ok(())
}

/// The option's name, the attribute's, and whether a role has it.
type Attribute = (&'static str, &'static str, fn(&Role) -> bool);

/// Attributes that only those who have them may give.
const ATTRIBUTES: [Attribute; 4] = [
    ("superuser", "SUPERUSER", |r| r.superuser),
    ("createdb", "CREATEDB", |r| r.create_db),
    ("isreplication", "REPLICATION", |r| r.replication),
    ("bypassrls", "BYPASSRLS", |r| r.bypass_rls),
];

fn is_set(nodes: &[Node], option: &str) -> Result<Option<bool>> {
    options(nodes).find(|d| d.defname == option).map(option_bool).transpose()
}

fn managers_only(role: &Role, verb: &str) -> String {
    let name = &role.name;
    format!("Only roles with the CREATEROLE attribute and the ADMIN option on role \"{name}\" may {verb} this role.")
}

/// # Errors
/// 42601 for an option that is given twice.
fn check_options(nodes: &[Node]) -> Result<()> {
    let mut seen = Vec::new();
    for def in options(nodes) {
        if seen.contains(&def.defname.as_str()) {
            return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(def.location));
        }
        seen.push(def.defname.as_str());
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    name.starts_with("pg_")
}

fn check_not_reserved(name: &str) -> Result<()> {
    if !is_reserved(name) {
        return Ok(());
    }
    let error = err!(RESERVED_NAME, "role name \"{name}\" is reserved");
    Err(error.detail("Role names starting with \"pg_\" are reserved."))
}

fn check_may_alter_name(spec: &RoleSpec) -> Result<()> {
    if spec.roletype() == RoleSpecType::RolespecCstring && is_reserved(&spec.rolename) {
        let error = err!(RESERVED_NAME, "role name \"{}\" is reserved", spec.rolename);
        return Err(error.detail("Cannot alter reserved roles."));
    }
    Ok(())
}

/// The options of a GRANT or REVOKE of roles.
fn grant_options(nodes: &[Node]) -> Result<GrantOptions> {
    let mut out = GrantOptions::default();
    for def in options(nodes) {
        let option = match def.defname.as_str() {
            "admin" => &mut out.admin,
            "inherit" => &mut out.inherit,
            "set" => &mut out.set,
            other => return Err(err!(SYNTAX_ERROR, "unrecognized role option \"{other}\"").at(def.location)),
        };
        let text = option_text(def).unwrap_or_default();
        let value = melba_types::boolean::parse(melba_fmgr::type_io::trim(&text)).ok_or_else(|| {
            let message = format!("unrecognized value for role option \"{}\": \"{text}\"", def.defname);
            err!(INVALID_PARAMETER_VALUE, "{message}").at(def.location)
        })?;
        *option = Some(value);
    }
    Ok(out)
}
