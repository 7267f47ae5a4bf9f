//! CREATE POLICY, ALTER POLICY, DROP POLICY, and ALTER TABLE ... ROW LEVEL SECURITY.

use std::sync::Arc;

use melba_analyze::{ExprKind, analyze_expression, analyze_stored_expression};
use melba_catalog::{Object, ObjectAddress, Policy, Relation, RelationKind, classes, policy_commands};
use melba_definition::context::Ddl;
use melba_parse::nodes::inner;
use melba_tree::Expr;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterPolicyStmt, AlterTableCmd, AlterTableType as At, CreatePolicyStmt, Node, RangeVar, RenameStmt, RoleSpecType,
};

use crate::dependents::drop_quietly;
use crate::table::relation::put_relation;
use crate::trigger::find_on_table;

pub fn create_policy(ddl: &Ddl<'_>, s: &CreatePolicyStmt) -> Result<()> {
    let command = match s.cmd_name.as_str() {
        "all" => policy_commands::ALL,
        "select" => policy_commands::SELECT,
        "insert" => policy_commands::INSERT,
        "update" => policy_commands::UPDATE,
        "delete" => policy_commands::DELETE,
        _ => return Err(DbError::internal("unrecognized policy command")),
    };
    if matches!(command, policy_commands::SELECT | policy_commands::DELETE) && s.with_check.is_some() {
        bail!(SYNTAX_ERROR, "WITH CHECK cannot be applied to SELECT or DELETE");
    }
    if command == policy_commands::INSERT && s.qual.is_some() {
        bail!(SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT");
    }
    let roles = policy_roles(ddl, &s.roles)?;
    let table = policy_table(ddl, s.table.as_ref())?;
    let using = policy_condition(ddl, s.qual.as_deref(), &table)?;
    let check = policy_condition(ddl, s.with_check.as_deref(), &table)?;
    let catalog = ddl.catalog();
    if catalog.policy_by_name(table.oid, &s.policy_name).is_some() {
        return Err(already_exists(&s.policy_name, &table));
    }
    put_policy(
        ddl,
        Policy {
            oid: ddl.tx().new_oid(),
            name: s.policy_name.as_str().into(),
            table: table.oid,
            permissive: s.permissive,
            command,
            roles,
            depends_on: policy_dependencies(ddl, [&using, &check], &table)?,
            using: using.map(|e| policy_text(ddl, &e, &table)).transpose()?,
            check: check.map(|e| policy_text(ddl, &e, &table)).transpose()?,
        },
    );
    Ok(())
}

pub fn alter_policy(ddl: &Ddl<'_>, s: &AlterPolicyStmt) -> Result<()> {
    let roles = match s.roles.is_empty() {
        true => None,
        false => Some(policy_roles(ddl, &s.roles)?),
    };
    let table = policy_table(ddl, s.table.as_ref())?;
    let mut using = policy_condition(ddl, s.qual.as_deref(), &table)?;
    let mut check = policy_condition(ddl, s.with_check.as_deref(), &table)?;
    let policy = policy_named(ddl, &table, &s.policy_name)?;
    if matches!(policy.command, policy_commands::SELECT | policy_commands::DELETE) && check.is_some() {
        bail!(SYNTAX_ERROR, "only USING expression allowed for SELECT, DELETE");
    }
    if policy.command == policy_commands::INSERT && using.is_some() {
        bail!(SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT");
    }
    using = using.map_or_else(|| stored_policy_condition(ddl, &policy.using, &table), |e| Ok(Some(e)))?;
    check = check.map_or_else(|| stored_policy_condition(ddl, &policy.check, &table), |e| Ok(Some(e)))?;
    put_policy(
        ddl,
        Policy {
            roles: roles.unwrap_or_else(|| policy.roles.clone()),
            depends_on: policy_dependencies(ddl, [&using, &check], &table)?,
            using: using.map(|e| policy_text(ddl, &e, &table)).transpose()?,
            check: check.map(|e| policy_text(ddl, &e, &table)).transpose()?,
            ..(*policy).clone()
        },
    );
    Ok(())
}

pub fn rename_policy(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<()> {
    let table = policy_table(ddl, s.relation.as_ref())?;
    if ddl.catalog().policy_by_name(table.oid, &s.newname).is_some() {
        return Err(already_exists(&s.newname, &table));
    }
    let policy = policy_named(ddl, &table, &s.subname)?;
    put_policy(ddl, Policy { name: s.newname.as_str().into(), ..(*policy).clone() });
    Ok(())
}

/// The policy that DROP POLICY or COMMENT ON POLICY names: its table's names, then its own.
pub fn find_policy(ddl: &Ddl<'_>, names: &[&str], missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let found = find_on_table(ddl, "policy", names, missing_ok, |catalog, table, name| {
        catalog.policy_by_name(table, name).map(|p| p.oid)
    })?;
    Ok(found.map(policy_address))
}

pub fn commented_policy(ddl: &Ddl<'_>, names: &[&str]) -> Result<ObjectAddress> {
    find_policy(ddl, names, false)?.ok_or_else(|| DbError::internal("COMMENT ON POLICY of no policy"))
}

/// DROP OWNED BY a role of a policy: the policy keeps its other roles, or is dropped.
pub fn take_role_from_policy(ddl: &Ddl<'_>, role: Oid, policy: &Policy) -> Result<()> {
    let roles: Vec<Oid> = policy.roles.iter().copied().filter(|r| *r != role).collect();
    match roles.is_empty() {
        true => drop_quietly(ddl, &[policy_address(policy.oid)])?,
        false => put_policy(ddl, Policy { roles, ..policy.clone() }),
    }
    Ok(())
}

/// ALTER TABLE ... ROW LEVEL SECURITY; false: the command is another one.
pub fn set_row_security(ddl: &Ddl<'_>, table: &Relation, c: &AlterTableCmd) -> Result<bool> {
    let mut changed = table.clone();
    match c.subtype() {
        At::AtEnableRowSecurity => changed.row_security = true,
        At::AtDisableRowSecurity => changed.row_security = false,
        At::AtForceRowSecurity => changed.force_row_security = true,
        At::AtNoForceRowSecurity => changed.force_row_security = false,
        _ => return Ok(false),
    }
    put_relation(ddl, changed);
    Ok(true)
}

/// The table of a policy or of a new one, locked against other use until the transaction ends.
fn policy_table(ddl: &Ddl<'_>, name: Option<&RangeVar>) -> Result<Arc<Relation>> {
    let name = name.ok_or_else(|| DbError::internal("a policy without a table"))?;
    let table = ddl.open_target(name)?;
    ddl.require_own_relation(&table)?;
    if !matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", name.relname);
    }
    Ok(table)
}

fn policy_named(ddl: &Ddl<'_>, table: &Relation, name: &str) -> Result<Arc<Policy>> {
    let found = ddl.catalog().policy_by_name(table.oid, name).cloned();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "policy \"{name}\" for table \"{}\" does not exist", table.name))
}

fn policy_roles(ddl: &Ddl<'_>, nodes: &[Node]) -> Result<Vec<Oid>> {
    let mut roles = Vec::with_capacity(nodes.len());
    for node in nodes {
        let N::RoleSpec(spec) = inner(node)? else { continue };
        if spec.roletype() == RoleSpecType::RolespecPublic {
            if nodes.len() > 1 {
                let message = "ignoring specified roles other than PUBLIC";
                let warning = DbError::new(SqlState::INVALID_PARAMETER_VALUE, message);
                let warning = warning.hint("All roles are members of the PUBLIC role.");
                ddl.session().notice(warning.severity(melba_types::Severity::Warning));
            }
            return Ok(vec![Oid::INVALID]);
        }
        roles.push(ddl.role_spec(spec)?);
    }
    Ok(if roles.is_empty() { vec![Oid::INVALID] } else { roles })
}

fn policy_condition(ddl: &Ddl<'_>, node: Option<&Node>, table: &Arc<Relation>) -> Result<Option<Expr>> {
    let analyze = |node| ddl.with_context(|c| analyze_expression(c, node, Some(table), ExprKind::Policy, None));
    node.map(analyze).transpose().map_err(DbError::without_position)
}

/// A policy's condition, analyzed.
pub fn stored_policy_condition(ddl: &Ddl<'_>, text: &Option<Arc<str>>, table: &Arc<Relation>) -> Result<Option<Expr>> {
    let analyze = |text: &Arc<str>| ddl.with_context(|c| analyze_stored_expression(c, text, Some(table), None));
    text.as_ref().map(analyze).transpose()
}

/// Prints conditions again that were analyzed before an object in them was renamed.
pub fn print_policy(ddl: &Ddl<'_>, policy: Oid, using: Option<Expr>, check: Option<Expr>) -> Result<()> {
    let catalog = ddl.catalog();
    let row = catalog.policy(policy).ok_or_else(|| DbError::internal("missing policy"))?;
    let table = ddl.relation(row.table)?;
    let using = using.map(|e| policy_text(ddl, &e, &table)).transpose()?;
    let check = check.map(|e| policy_text(ddl, &e, &table)).transpose()?;
    put_policy(ddl, Policy { using, check, ..(**row).clone() });
    Ok(())
}

fn policy_text(ddl: &Ddl<'_>, condition: &Expr, table: &Relation) -> Result<Arc<str>> {
    ddl.with_context(|c| Ok(melba_deparse::expression(c, condition, Some(table)).into()))
}

/// The dependencies of conditions, columns of their table among them.
fn policy_dependencies(ddl: &Ddl<'_>, conditions: [&Option<Expr>; 2], table: &Relation) -> Result<Vec<ObjectAddress>> {
    let mut all: Vec<ObjectAddress> = Vec::new();
    for condition in conditions.into_iter().flatten() {
        let mut found = ddl.usable(condition.dependencies())?;
        condition.visit_vars(&mut |v| {
            if v.column > 0 {
                found.push(ObjectAddress { class: classes::PG_CLASS, object: table.oid, sub: i32::from(v.column) });
            }
        });
        for address in found {
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    Ok(all)
}

fn put_policy(ddl: &Ddl<'_>, policy: Policy) {
    ddl.tx().put(Object::Policy(Arc::new(policy)));
}

fn policy_address(oid: Oid) -> ObjectAddress {
    ObjectAddress { class: classes::PG_POLICY, object: oid, sub: 0 }
}

fn already_exists(name: &str, table: &Relation) -> DbError {
    err!(DUPLICATE_OBJECT, "policy \"{name}\" for table \"{}\" already exists", table.name)
}
