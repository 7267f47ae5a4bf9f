//! Row-level security: policies become conditions of the tables that a query reads, and checks of the rows that it writes.
//!
//! Stored queries never have them: they are added to an analyzed query on its way to a plan. Invariants:
//! 1. Whose policies apply is decided as for privileges: for relations in a view's query those of the view's owner, unless it is
//!    a security_invoker one.
//! 2. For a table with children the policies of the table that the query names apply, whatever its children have.
//! 3. Relations in a policy are subject to the policies of their own tables, for the same role.

use std::sync::Arc;

use melba_catalog::row_security::{policies_for, row_security};
use melba_catalog::{Policy, Relation, RelationKind, RowSecurity, policy_commands};
use melba_types::{Datum, Oid, Result, err, limits, oids};

use super::context::Context;
use super::expression::analyze_stored_expression;
use super::inline::inline_in_expression;
use melba_tree::permissions::{Permissions, role_inside};
use melba_tree::*;

/// The additions of row-level security to a query.
#[derive(Default)]
pub struct Secured {
    /// The query is another one for another user, or with row_security set otherwise.
    pub depends_on_user: bool,
    /// The permissions that the policies need for the relations in them.
    pub permissions: Permissions,
}

/// Adds the policies of its tables to a query.
///
/// # Errors
/// 42501 where policies would hide rows and row_security is off, 42P17 for a policy that needs itself.
pub fn apply_row_security(cx: &Context<'_>, query: &mut Query) -> Result<Secured> {
    let mut rewriter = Rewriter { cx, active: Vec::new(), secured: Secured::default() };
    rewriter.query(query, None)?;
    Ok(rewriter.secured)
}

/// Whether policies apply to a user's access to a table.
///
/// # Errors
/// 42501 where they would and row_security is off.
pub fn is_restricted(cx: &Context<'_>, relation: &Relation, user: Oid) -> Result<bool> {
    let RowSecurity::Enforced { is_owner } = row_security(cx.catalog, relation, user) else { return Ok(false) };
    if cx.session.setting("row_security").as_deref() != Some("off") {
        return Ok(true);
    }
    let name = &relation.name;
    let error = err!(INSUFFICIENT_PRIVILEGE, "query would be affected by row-level security policy for table \"{name}\"");
    Err(match is_owner {
        true => error.hint("To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL SECURITY."),
        false => error,
    })
}

struct Rewriter<'a> {
    cx: &'a Context<'a>,
    /// Tables whose policies' subqueries are being processed.
    active: Vec<Oid>,
    secured: Secured,
}

/// The conditions and checks added to one entry of a range table.
#[derive(Default)]
struct Added {
    security: Vec<Expr>,
    checks: Vec<RowCheck>,
}

/// Policies of one command.
struct Policies {
    permissive: Vec<Arc<Policy>>,
    restrictive: Vec<Arc<Policy>>,
}

impl Rewriter<'_> {
    /// `role`: whose policies apply; `None`: those of the role that runs the query.
    fn query(&mut self, query: &mut Query, role: Option<Oid>) -> Result<()> {
        limits::check_stack()?;
        // Conditions added by policies are processed when they are added.
        let mut result = Ok(());
        query.expressions_mut(&mut |e| {
            if result.is_ok() {
                result = self.expression(e, role);
            }
        });
        result?;
        for cte in &mut query.ctes {
            self.query(&mut cte.query, role)?;
        }
        for at in 0..query.range_table.len() {
            let role = query.range_table[at].required.role_within(role);
            match &mut query.range_table[at].kind {
                RangeKind::Relation { oid, .. } => {
                    let oid = *oid;
                    self.relation(query, at, oid, role)?;
                }
                RangeKind::Subquery { query, view } => {
                    let role = role_inside(self.cx.catalog, *view, role);
                    self.query(query, role)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn expression(&mut self, e: &mut Expr, role: Option<Oid>) -> Result<()> {
        let mut result = Ok(());
        e.children_mut(&mut |child| {
            if result.is_ok() {
                result = self.expression(child, role);
            }
        });
        result?;
        match e {
            Expr::Sublink(s) => self.query(&mut s.query, role_inside(self.cx.catalog, s.view, role)),
            _ => Ok(()),
        }
    }

    fn relation(&mut self, query: &mut Query, at: usize, oid: Oid, role: Option<Oid>) -> Result<()> {
        let Some(relation) = self.cx.catalog.relation(oid).filter(|r| r.row_security) else { return Ok(()) };
        if !matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable) {
            return Ok(());
        }
        let through = query.range_table[at].required.through.iter();
        let role = through.fold(role, |role, (view, _)| role_inside(self.cx.catalog, *view, role));
        let user = role.unwrap_or(self.cx.user);
        self.secured.depends_on_user = true;
        if !is_restricted(self.cx, relation, user)? {
            return Ok(());
        }
        let mut added = self.policies_of_entry(query, at, relation, user)?;
        let conditions = added.security.iter_mut().chain(added.checks.iter_mut().map(|c| &mut c.condition));
        self.policy_conditions(conditions, relation, role)?;
        query.range_table[at].security.splice(0..0, added.security);
        query.row_checks.splice(0..0, added.checks);
        Ok(())
    }

    /// Subqueries of policies are subject to policies, too.
    fn policy_conditions<'e>(
        &mut self,
        conditions: impl Iterator<Item = &'e mut Expr>,
        relation: &Relation,
        role: Option<Oid>,
    ) -> Result<()> {
        for condition in conditions {
            let has_query = condition.any(&mut |e| matches!(e, Expr::Sublink(_)));
            if has_query && self.active.contains(&relation.oid) {
                let name = &relation.name;
                return Err(err!(INVALID_OBJECT_DEFINITION, "infinite recursion detected in policy for relation \"{name}\""));
            }
            self.secured.permissions.add(Permissions::of_expression(condition, role, self.cx.catalog));
            self.active.push(relation.oid);
            let result = self.expression(condition, role);
            self.active.pop();
            result?;
        }
        Ok(())
    }

    /// The conditions and checks that PostgreSQL's get_row_security_policies adds for a relation.
    fn policies_of_entry(&self, query: &Query, at: usize, relation: &Arc<Relation>, user: Oid) -> Result<Added> {
        let required = &query.range_table[at].required;
        let (reads, updates) = (required.select || !required.behind.is_empty(), required.update);
        let is_target = query.result == Some(at);
        let of = |command| self.policies(relation, command, user);
        let mut added = Adding { cx: self.cx, relation, entry: at, added: Added::default() };
        match query.command {
            Command::Insert if is_target => {
                added.check(RowCheckKind::Insert, &of(policy_commands::INSERT), false)?;
                if reads {
                    added.check(RowCheckKind::Insert, &of(policy_commands::SELECT), true)?;
                }
                let conflict = query.insert.as_ref().and_then(|insert| insert.on_conflict.as_ref());
                if conflict.is_some_and(|conflict| conflict.update.is_some()) {
                    let (update, select) = (of(policy_commands::UPDATE), of(policy_commands::SELECT));
                    added.check(RowCheckKind::Conflict, &update, true)?;
                    if reads {
                        added.check(RowCheckKind::Conflict, &select, true)?;
                    }
                    added.check(RowCheckKind::Update, &update, false)?;
                    if reads {
                        added.check(RowCheckKind::Update, &select, true)?;
                    }
                }
            }
            Command::Update if is_target => {
                let update = of(policy_commands::UPDATE);
                added.restrict(&update)?;
                if reads {
                    added.restrict(&of(policy_commands::SELECT))?;
                }
                added.check(RowCheckKind::Update, &update, false)?;
                if reads {
                    added.check(RowCheckKind::Update, &of(policy_commands::SELECT), true)?;
                }
            }
            Command::Delete if is_target => {
                added.restrict(&of(policy_commands::DELETE))?;
                if reads {
                    added.restrict(&of(policy_commands::SELECT))?;
                }
            }
            Command::Merge if is_target => self.policies_of_merge(&mut added, reads, !query.returning.is_empty(), user)?,
            _ => {
                if updates {
                    added.restrict(&of(policy_commands::UPDATE))?;
                }
                added.restrict(&of(policy_commands::SELECT))?;
            }
        }
        Ok(added.added)
    }

    fn policies_of_merge(&self, added: &mut Adding<'_>, reads: bool, returns: bool, user: Oid) -> Result<()> {
        let of = |command| self.policies(added.relation, command, user);
        let (select, update) = (of(policy_commands::SELECT), of(policy_commands::UPDATE));
        let (delete, insert) = (of(policy_commands::DELETE), of(policy_commands::INSERT));
        if reads {
            added.restrict(&select)?;
        }
        added.check(RowCheckKind::MergeUpdate, &update, true)?;
        added.check(RowCheckKind::Update, &update, false)?;
        if reads {
            added.check(RowCheckKind::Update, &select, true)?;
        }
        added.check(RowCheckKind::MergeDelete, &delete, true)?;
        added.check(RowCheckKind::Insert, &insert, false)?;
        if reads && returns {
            added.check(RowCheckKind::Insert, &select, true)?;
        }
        Ok(())
    }

    fn policies(&self, relation: &Relation, command: u8, user: Oid) -> Policies {
        let all = policies_for(self.cx.catalog, relation.oid, command, user);
        let (mut permissive, restrictive): (Vec<_>, Vec<_>) = all.into_iter().cloned().partition(|p| p.permissive);
        // PostgreSQL's order of evaluation: one policy may hide the effects of the next.
        permissive.reverse();
        Policies { permissive, restrictive }
    }
}

/// Gathers the additions for one entry.
struct Adding<'a> {
    cx: &'a Context<'a>,
    relation: &'a Arc<Relation>,
    entry: usize,
    added: Added,
}

impl Adding<'_> {
    fn condition(&self, text: &str) -> Result<Expr> {
        let mut e = analyze_stored_expression(self.cx, text, Some(self.relation), None)?;
        inline_in_expression(self.cx, &mut e)?;
        put_on_entry(&mut e, self.entry);
        Ok(e)
    }

    /// Rows must satisfy each restrictive policy and one of the permissive ones, of which there must be one.
    fn restrict(&mut self, policies: &Policies) -> Result<()> {
        let permissive = self.conditions(&policies.permissive, |p| p.using.clone())?;
        let Some(permissive) = any_of(permissive) else {
            self.added.security.push(nothing());
            return Ok(());
        };
        let restrictive = self.conditions(&policies.restrictive, |p| p.using.clone())?;
        for condition in restrictive.into_iter().map(|(_, condition)| condition).chain([permissive]) {
            // A condition for several commands is added once.
            if !self.added.security.iter().any(|known| equal(known, &condition)) {
                self.added.security.push(condition);
            }
        }
        Ok(())
    }

    /// The same as checks. `by_using`: by the USING condition, not by WITH CHECK.
    fn check(&mut self, kind: RowCheckKind, policies: &Policies, by_using: bool) -> Result<()> {
        let text = |p: &Policy| if by_using { p.using.clone() } else { p.check.clone().or_else(|| p.using.clone()) };
        let name = &self.relation.name;
        let check = |policy, condition| RowCheck { kind, name: name.clone(), policy, condition };
        let Some(permissive) = any_of(self.conditions(&policies.permissive, text)?) else {
            self.added.checks.push(check(None, nothing()));
            return Ok(());
        };
        let restrictive = self.conditions(&policies.restrictive, text)?;
        self.added.checks.push(check(None, permissive));
        self.added.checks.extend(restrictive.into_iter().map(|(policy, condition)| check(Some(policy), condition)));
        Ok(())
    }

    /// With the names of the policies.
    fn conditions(&self, policies: &[Arc<Policy>], text: impl Fn(&Policy) -> Option<Arc<str>>) -> Result<Vec<(Arc<str>, Expr)>> {
        let with_text = policies.iter().filter_map(|p| Some((p.name.clone(), text(p)?)));
        with_text.map(|(name, text)| Ok((name, self.condition(&text)?))).collect()
    }
}

fn any_of(conditions: Vec<(Arc<str>, Expr)>) -> Option<Expr> {
    let mut all: Vec<Expr> = conditions.into_iter().map(|(_, condition)| condition).collect();
    match all.len() {
        0 | 1 => all.pop(),
        _ => Some(Expr::Or(all)),
    }
}

/// Without a policy no row is visible.
fn nothing() -> Expr {
    let value = Datum::Bool(false);
    Expr::Const(Const { value, ty: oids::BOOL, typmod: -1, collation: Oid::INVALID, location: -1 })
}
