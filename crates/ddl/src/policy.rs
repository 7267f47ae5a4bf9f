//! CREATE POLICY, ALTER POLICY, DROP POLICY, and ALTER TABLE ... ROW LEVEL SECURITY.

use std::sync::Arc;

use melba_catalog::{Object, ObjectAddress, Policy, Relation, RelationKind, classes, policy_commands};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{
    AlterPolicyStmt, AlterTableCmd, AlterTableType as At, CreatePolicyStmt, Node, RangeVar, RenameStmt, RoleSpecType,
    node::Node as N,
};

use super::Ddl;
use melba_analyze::{ExprKind, analyze_expression, analyze_stored_expression};
use melba_parse::nodes::inner;
use melba_tree::Expr;

impl Ddl<'_> {
    pub fn create_policy(&self, s: &CreatePolicyStmt) -> Result<()> {
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
        let roles = self.policy_roles(&s.roles)?;
        let table = self.policy_table(s.table.as_ref())?;
        let using = self.policy_condition(s.qual.as_deref(), &table)?;
        let check = self.policy_condition(s.with_check.as_deref(), &table)?;
        let catalog = self.catalog();
        if catalog.policy_by_name(table.oid, &s.policy_name).is_some() {
            return Err(already_exists(&s.policy_name, &table));
        }
        self.put_policy(Policy {
            oid: self.tx.new_oid(),
            name: s.policy_name.as_str().into(),
            table: table.oid,
            permissive: s.permissive,
            command,
            roles,
            depends_on: self.policy_dependencies([&using, &check], &table)?,
            using: using.map(|e| self.policy_text(&e, &table)).transpose()?,
            check: check.map(|e| self.policy_text(&e, &table)).transpose()?,
        });
        Ok(())
    }

    pub fn alter_policy(&self, s: &AlterPolicyStmt) -> Result<()> {
        let roles = match s.roles.is_empty() {
            true => None,
            false => Some(self.policy_roles(&s.roles)?),
        };
        let table = self.policy_table(s.table.as_ref())?;
        let mut using = self.policy_condition(s.qual.as_deref(), &table)?;
        let mut check = self.policy_condition(s.with_check.as_deref(), &table)?;
        let policy = self.policy_named(&table, &s.policy_name)?;
        if matches!(policy.command, policy_commands::SELECT | policy_commands::DELETE) && check.is_some() {
            bail!(SYNTAX_ERROR, "only USING expression allowed for SELECT, DELETE");
        }
        if policy.command == policy_commands::INSERT && using.is_some() {
            bail!(SYNTAX_ERROR, "only WITH CHECK expression allowed for INSERT");
        }
        using = using.map_or_else(|| self.stored_policy_condition(&policy.using, &table), |e| Ok(Some(e)))?;
        check = check.map_or_else(|| self.stored_policy_condition(&policy.check, &table), |e| Ok(Some(e)))?;
        self.put_policy(Policy {
            roles: roles.unwrap_or_else(|| policy.roles.clone()),
            depends_on: self.policy_dependencies([&using, &check], &table)?,
            using: using.map(|e| self.policy_text(&e, &table)).transpose()?,
            check: check.map(|e| self.policy_text(&e, &table)).transpose()?,
            ..(*policy).clone()
        });
        Ok(())
    }

    pub(super) fn rename_policy(&self, s: &RenameStmt) -> Result<()> {
        let table = self.policy_table(s.relation.as_ref())?;
        if self.catalog().policy_by_name(table.oid, &s.newname).is_some() {
            return Err(already_exists(&s.newname, &table));
        }
        let policy = self.policy_named(&table, &s.subname)?;
        self.put_policy(Policy { name: s.newname.as_str().into(), ..(*policy).clone() });
        Ok(())
    }

    /// The policy that DROP POLICY or COMMENT ON POLICY names: its table's names, then its own.
    pub(super) fn find_policy(&self, names: &[&str], missing_ok: bool) -> Result<Option<ObjectAddress>> {
        let found = self.find_on_table("policy", names, missing_ok, |catalog, table, name| {
            catalog.policy_by_name(table, name).map(|p| p.oid)
        })?;
        Ok(found.map(policy_address))
    }

    pub(super) fn commented_policy(&self, names: &[&str]) -> Result<ObjectAddress> {
        self.find_policy(names, false)?.ok_or_else(|| DbError::internal("COMMENT ON POLICY of no policy"))
    }

    /// DROP OWNED BY a role of a policy: the policy keeps its other roles, or is dropped.
    pub(super) fn take_role_from_policy(&self, role: Oid, policy: &Policy) -> Result<()> {
        let roles: Vec<Oid> = policy.roles.iter().copied().filter(|r| *r != role).collect();
        match roles.is_empty() {
            true => self.drop_quietly(&[policy_address(policy.oid)])?,
            false => self.put_policy(Policy { roles, ..policy.clone() }),
        }
        Ok(())
    }

    /// ALTER TABLE ... ROW LEVEL SECURITY; false: the command is another one.
    pub(super) fn set_row_security(&self, table: &Relation, c: &AlterTableCmd) -> Result<bool> {
        let mut changed = table.clone();
        match c.subtype() {
            At::AtEnableRowSecurity => changed.row_security = true,
            At::AtDisableRowSecurity => changed.row_security = false,
            At::AtForceRowSecurity => changed.force_row_security = true,
            At::AtNoForceRowSecurity => changed.force_row_security = false,
            _ => return Ok(false),
        }
        self.put_relation(changed);
        Ok(true)
    }

    /// The table of a policy or of a new one, locked against other use until the transaction ends.
    fn policy_table(&self, name: Option<&RangeVar>) -> Result<Arc<Relation>> {
        let name = name.ok_or_else(|| DbError::internal("a policy without a table"))?;
        let table = self.open_target(name)?;
        self.require_own_relation(&table)?;
        if !matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable) {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", name.relname);
        }
        Ok(table)
    }

    fn policy_named(&self, table: &Relation, name: &str) -> Result<Arc<Policy>> {
        let found = self.catalog().policy_by_name(table.oid, name).cloned();
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "policy \"{name}\" for table \"{}\" does not exist", table.name))
    }

    fn policy_roles(&self, nodes: &[Node]) -> Result<Vec<Oid>> {
        let mut roles = Vec::with_capacity(nodes.len());
        for node in nodes {
            let N::RoleSpec(spec) = inner(node)? else { continue };
            if spec.roletype() == RoleSpecType::RolespecPublic {
                if nodes.len() > 1 {
                    let message = "ignoring specified roles other than PUBLIC";
                    let warning = DbError::new(SqlState::INVALID_PARAMETER_VALUE, message);
                    let warning = warning.hint("All roles are members of the PUBLIC role.");
                    self.session.notice(warning.severity(melba_types::Severity::Warning));
                }
                return Ok(vec![Oid::INVALID]);
            }
            roles.push(self.role_spec(spec)?);
        }
        Ok(if roles.is_empty() { vec![Oid::INVALID] } else { roles })
    }

    fn policy_condition(&self, node: Option<&Node>, table: &Arc<Relation>) -> Result<Option<Expr>> {
        let analyze = |node| self.with_context(|c| analyze_expression(c, node, Some(table), ExprKind::Policy, None));
        // As in PostgreSQL, whose errors here have no position.
        let without_position = |mut e: DbError| {
            e.fields_mut().position = None;
            e
        };
        node.map(analyze).transpose().map_err(without_position)
    }

    /// A policy's condition, analyzed.
    pub(super) fn stored_policy_condition(&self, text: &Option<Arc<str>>, table: &Arc<Relation>) -> Result<Option<Expr>> {
        let analyze = |text: &Arc<str>| self.with_context(|c| analyze_stored_expression(c, text, Some(table), None));
        text.as_ref().map(analyze).transpose()
    }

    /// Prints conditions again that were analyzed before an object in them was renamed.
    pub(super) fn print_policy(&self, policy: Oid, using: Option<Expr>, check: Option<Expr>) -> Result<()> {
        let catalog = self.catalog();
        let row = catalog.policy(policy).ok_or_else(|| DbError::internal("missing policy"))?;
        let table = self.relation(row.table)?;
        let using = using.map(|e| self.policy_text(&e, &table)).transpose()?;
        let check = check.map(|e| self.policy_text(&e, &table)).transpose()?;
        self.put_policy(Policy { using, check, ..(**row).clone() });
        Ok(())
    }

    fn policy_text(&self, condition: &Expr, table: &Relation) -> Result<Arc<str>> {
        self.with_context(|c| Ok(melba_deparse::expression(c, condition, Some(table)).into()))
    }

    /// The dependencies of conditions, columns of their table among them.
    fn policy_dependencies(&self, conditions: [&Option<Expr>; 2], table: &Relation) -> Result<Vec<ObjectAddress>> {
        let mut all: Vec<ObjectAddress> = Vec::new();
        for condition in conditions.into_iter().flatten() {
            let mut found = self.usable(condition.dependencies())?;
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

    fn put_policy(&self, policy: Policy) {
        self.tx.put(Object::Policy(Arc::new(policy)));
    }
}

fn policy_address(oid: Oid) -> ObjectAddress {
    ObjectAddress { class: classes::PG_POLICY, object: oid, sub: 0 }
}

fn already_exists(name: &str, table: &Relation) -> DbError {
    err!(DUPLICATE_OBJECT, "policy \"{name}\" for table \"{}\" already exists", table.name)
}
