//! CREATE RULE, DROP RULE, ALTER RULE, and ALTER TABLE ... ENABLE and DISABLE RULE.

use std::sync::Arc;

use melba_analyze::{AnalyzedRule, RuleAction, analyze_rule, stored_rule, trigger_entries};
use melba_catalog::{
    FIRES_ON_ORIGIN, ObjectAddress, Relation, RelationKind, RewriteRule, VIEW_RULE, classes, quote_ident, quote_literal,
    rule_events,
};
use melba_definition::context::Ddl;
use melba_definition::describe::describe;
use melba_definition::words::plural;
use melba_tree::{Command, Expr, Query, Target};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as At, CmdType, RenameStmt, RuleStmt};

use crate::trigger::find_on_table;

pub fn create_rule(ddl: &Ddl<'_>, s: &RuleStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE RULE without a relation"))?;
    let table = ddl.open_target(name)?;
    if table.kind == RelationKind::MaterializedView {
        bail!(FEATURE_NOT_SUPPORTED, "rules on materialized views are not supported");
    }
    let event = match s.event() {
        CmdType::CmdInsert => rule_events::INSERT,
        CmdType::CmdUpdate => rule_events::UPDATE,
        CmdType::CmdDelete => rule_events::DELETE,
        _ => return refuse_select_rule(ddl, s, &table),
    };
    let analyzed = ddl.analyze_locked(|c| analyze_rule(c, s, &table, event), mentioned)?;
    check_relation(ddl, &table)?;
    check_returning(ddl, s, &analyzed, &table)?;
    if s.rulename == VIEW_RULE {
        return Err(reserved_name(&table));
    }
    let existing = ddl.catalog().rule_by_name(table.oid, &s.rulename).map(|rule| (rule.oid, rule.enabled));
    if existing.is_some() && !s.replace {
        return Err(already_exists(&s.rulename, &table));
    }
    let (oid, enabled) = existing.unwrap_or_else(|| (ddl.tx().new_oid(), FIRES_ON_ORIGIN));
    let (condition, actions) = texts(ddl, &analyzed, &table)?;
    let rule = RewriteRule {
        oid,
        name: s.rulename.as_str().into(),
        table: table.oid,
        event,
        enabled,
        instead: s.instead,
        condition,
        actions,
        depends_on: dependencies(ddl, &analyzed, &table)?,
    };
    ddl.tx().put(rule.into());
    Ok(())
}

/// # Errors
/// Those of PostgreSQL for a rule that is no view's query; 0A000 for one that would replace a view's.
fn refuse_select_rule(ddl: &Ddl<'_>, s: &RuleStmt, table: &Relation) -> Result<()> {
    check_relation(ddl, table)?;
    let name = &table.name;
    if table.kind != RelationKind::View {
        return Err(err!(WRONG_OBJECT_TYPE, "relation \"{name}\" cannot have ON SELECT rules")
            .detail(format!("This operation is not supported for {}.", plural(table.kind))));
    }
    if s.actions.is_empty() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "INSTEAD NOTHING rules on SELECT are not implemented").hint("Use views instead."));
    }
    if s.actions.len() > 1 {
        bail!(FEATURE_NOT_SUPPORTED, "multiple actions for rules on SELECT are not implemented");
    }
    if s.where_clause.is_some() {
        bail!(FEATURE_NOT_SUPPORTED, "event qualifications are not implemented for rules on SELECT");
    }
    if !s.replace {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "\"{name}\" is already a view");
    }
    if s.rulename != VIEW_RULE {
        bail!(INVALID_OBJECT_DEFINITION, "view rule for \"{name}\" must be named \"{VIEW_RULE}\"");
    }
    Err(DbError::unsupported("CREATE OR REPLACE RULE ON SELECT").hint("Use CREATE OR REPLACE VIEW."))
}

/// # Errors
/// 42809 for a relation without rules, 42501 for another's or a system relation.
fn check_relation(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    if !matches!(table.kind, RelationKind::Table | RelationKind::View | RelationKind::PartitionedTable) {
        return Err(err!(WRONG_OBJECT_TYPE, "relation \"{}\" cannot have rules", table.name)
            .detail(format!("This operation is not supported for {}.", plural(table.kind))));
    }
    if table.oid.0 < classes::FIRST_USER_OID {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", table.name);
    }
    ddl.require_own_relation(table)
}

/// RETURNING stands in one command of an unconditional INSTEAD rule, and has the columns of the relation.
fn check_returning(ddl: &Ddl<'_>, s: &RuleStmt, analyzed: &AnalyzedRule, table: &Relation) -> Result<()> {
    let mut has_returning = false;
    for action in &analyzed.actions {
        let RuleAction::Query(query) = action else { continue };
        if query.command == Command::Select {
            return Err(DbError::unsupported("SELECT as the command of a rule"));
        }
        if let Some(what) = melba_deparse::unprintable(query) {
            return Err(DbError::unsupported(format!("{what} in a rule")));
        }
        if query.returning.is_empty() {
            continue;
        }
        if std::mem::replace(&mut has_returning, true) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot have multiple RETURNING lists in a rule");
        }
        if analyzed.condition.is_some() {
            bail!(FEATURE_NOT_SUPPORTED, "RETURNING lists are not supported in conditional rules");
        }
        if !s.instead {
            bail!(FEATURE_NOT_SUPPORTED, "RETURNING lists are not supported in non-INSTEAD rules");
        }
        check_list(ddl, &query.returning, table)?;
    }
    Ok(())
}

fn check_list(ddl: &Ddl<'_>, returning: &[Target], table: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    for (at, target) in returning.iter().enumerate() {
        let Some(column) = table.columns.get(at) else {
            bail!(INVALID_OBJECT_DEFINITION, "RETURNING list has too many entries");
        };
        if column.dropped {
            let message = "cannot create a RETURNING list for a relation containing dropped columns";
            bail!(FEATURE_NOT_SUPPORTED, "{message}");
        }
        let differs = |what, given, wanted| {
            let (place, name) = (at + 1, &column.name);
            err!(INVALID_OBJECT_DEFINITION, "RETURNING list's entry {place} has different {what} from column \"{name}\"")
                .detail(format!("RETURNING list entry has type {given}, but column has type {wanted}."))
        };
        let (ty, typmod) = (target.expr.ty(), target.expr.typmod());
        if ty != column.ty {
            let given = catalog.format_type(ty, None, ddl.path());
            let wanted = catalog.format_type(column.ty, None, ddl.path());
            return Err(differs("type", given, wanted));
        }
        // A modifier that the entry lacks is no difference: PostgreSQL forgives it where it came from a view.
        if typmod != column.typmod && typmod != -1 && column.typmod != -1 {
            let given = catalog.format_type(ty, Some(typmod), ddl.path());
            let wanted = catalog.format_type(column.ty, Some(column.typmod), ddl.path());
            return Err(differs("size", given, wanted));
        }
    }
    if returning.len() < table.columns.len() {
        bail!(INVALID_OBJECT_DEFINITION, "RETURNING list has too few entries");
    }
    Ok(())
}

/// A rule's condition and commands.
type Texts = (Option<Arc<str>>, Vec<Arc<str>>);

/// The texts for the catalog.
fn texts(ddl: &Ddl<'_>, rule: &AnalyzedRule, table: &Relation) -> Result<Texts> {
    ddl.with_context(|c| {
        let over = Query { range_table: trigger_entries(table), ..Query::new(Command::Select) };
        let condition = rule.condition.as_ref().map(|e| melba_deparse::trigger_condition(c, e, &over).into());
        let text = |action: &RuleAction| match action {
            RuleAction::Query(query) => Arc::from(melba_deparse::stored_query(c, query)),
            RuleAction::Notify { channel, payload } => {
                let payload = payload.as_ref().map_or_else(String::new, |p| format!(", {}", quote_literal(p)));
                format!("NOTIFY {}{payload}", quote_ident(channel)).into()
            }
        };
        Ok((condition, rule.actions.iter().map(text).collect()))
    })
}

fn mentioned(rule: &AnalyzedRule) -> Vec<ObjectAddress> {
    let queries = rule.actions.iter().filter_map(|action| match action {
        RuleAction::Query(query) => Some(query),
        RuleAction::Notify { .. } => None,
    });
    queries.flat_map(|query| query.dependencies()).collect()
}

fn dependencies(ddl: &Ddl<'_>, rule: &AnalyzedRule, table: &Relation) -> Result<Vec<ObjectAddress>> {
    let mut all = Vec::new();
    if let Some(condition) = &rule.condition {
        all.extend(ddl.usable(condition.dependencies())?);
        all.extend(columns_of(condition, table));
    }
    for action in &rule.actions {
        if let RuleAction::Query(query) = action {
            all.extend(ddl.usable_of_query(query)?);
        }
    }
    let mut unique: Vec<ObjectAddress> = Vec::with_capacity(all.len());
    // That the rule belongs to its relation is another dependency.
    let is_own = |a: &ObjectAddress| a.class == classes::PG_CLASS && a.object == table.oid && a.sub == 0;
    for address in all.into_iter().filter(|a| !is_own(a)) {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    Ok(unique)
}

fn columns_of(condition: &Expr, table: &Relation) -> Vec<ObjectAddress> {
    let mut found = Vec::new();
    condition.visit_vars(&mut |v| {
        if v.column > 0 {
            found.push(ObjectAddress { class: classes::PG_CLASS, object: table.oid, sub: i32::from(v.column) });
        }
    });
    found
}

/// A rule, analyzed to be printed again.
pub fn read_rule(ddl: &Ddl<'_>, rule: &RewriteRule) -> Result<AnalyzedRule> {
    let table = ddl.relation(rule.table)?;
    ddl.with_context(|c| stored_rule(c, rule, &table, true))
}

/// Prints a rule again that was analyzed before an object in it was renamed.
pub fn print_rule(ddl: &Ddl<'_>, oid: Oid, mut analyzed: AnalyzedRule) -> Result<()> {
    let rule = ddl.catalog().rule(oid).cloned().ok_or_else(|| DbError::internal("missing rule"))?;
    let table = ddl.relation(rule.table)?;
    analyzed.rename_rows(&table);
    let (condition, actions) = texts(ddl, &analyzed, &table)?;
    ddl.tx().put(RewriteRule { condition, actions, ..(*rule).clone() }.into());
    Ok(())
}

/// ALTER RULE ... RENAME TO.
pub fn rename_rule(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER RULE without a relation"))?;
    let table = ddl.open_target(name)?;
    check_relation(ddl, &table)?;
    let is_view_rule = s.subname == VIEW_RULE && table.rule.is_valid();
    let rule = ddl.catalog().rule_by_name(table.oid, &s.subname).cloned();
    if rule.is_none() && !is_view_rule {
        return Err(missing(&s.subname, &table));
    }
    let is_taken = s.newname == VIEW_RULE && table.rule.is_valid();
    if is_taken || ddl.catalog().rule_by_name(table.oid, &s.newname).is_some() {
        return Err(already_exists(&s.newname, &table));
    }
    let Some(rule) = rule else { bail!(INVALID_OBJECT_DEFINITION, "renaming an ON SELECT rule is not allowed") };
    if s.newname == VIEW_RULE {
        return Err(reserved_name(&table));
    }
    ddl.tx().put(RewriteRule { name: s.newname.as_str().into(), ..(*rule).clone() }.into());
    Ok(())
}

/// The rule that DROP RULE or COMMENT ON RULE names: its relation's names, then its own.
pub fn find_rule(ddl: &Ddl<'_>, names: &[&str], missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let found = find_on_table(ddl, "rule", names, missing_ok, |catalog, relation, name| {
        let of_view = || catalog.relation(relation).filter(|r| name == VIEW_RULE && r.rule.is_valid()).map(|r| r.rule);
        catalog.rule_by_name(relation, name).map(|rule| rule.oid).or_else(of_view)
    })?;
    Ok(found.map(|object| ObjectAddress { class: classes::PG_REWRITE, object, sub: 0 }))
}

/// The rule to drop.
///
/// # Errors
/// 2BP01 for a view's query.
pub fn dropped_rule(ddl: &Ddl<'_>, names: &[&str], missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(address) = find_rule(ddl, names, missing_ok)? else { return Ok(None) };
    let catalog = ddl.catalog();
    match catalog.relation_of_part(address.object) {
        None => Ok(Some(address)),
        Some(view) => {
            let view = ObjectAddress { class: classes::PG_CLASS, object: view.oid, sub: 0 };
            let (what, whole) = (describe(ddl, address), describe(ddl, view));
            Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because {whole} requires it")
                .hint(format!("You can drop {whole} instead.")))
        }
    }
}

pub fn commented_rule(ddl: &Ddl<'_>, names: &[&str]) -> Result<ObjectAddress> {
    find_rule(ddl, names, false)?.ok_or_else(|| DbError::internal("COMMENT ON RULE of no rule"))
}

/// ALTER TABLE ... ENABLE or DISABLE RULE; false: the command is another one.
pub fn enable_rule(ddl: &Ddl<'_>, table: &Relation, c: &AlterTableCmd) -> Result<bool> {
    let enabled = match c.subtype() {
        At::AtEnableRule => FIRES_ON_ORIGIN,
        At::AtEnableAlwaysRule => b'A',
        At::AtEnableReplicaRule => b'R',
        At::AtDisableRule => b'D',
        _ => return Ok(false),
    };
    let rule = ddl.catalog().rule_by_name(table.oid, &c.name).cloned().ok_or_else(|| missing(&c.name, table))?;
    if rule.enabled != enabled {
        ddl.tx().put(RewriteRule { enabled, ..(*rule).clone() }.into());
    }
    Ok(true)
}

fn reserved_name(table: &Relation) -> DbError {
    err!(INVALID_OBJECT_DEFINITION, "non-view rule for \"{}\" must not be named \"{VIEW_RULE}\"", table.name)
}

fn missing(name: &str, table: &Relation) -> DbError {
    err!(UNDEFINED_OBJECT, "rule \"{name}\" for relation \"{}\" does not exist", table.name)
}

fn already_exists(name: &str, table: &Relation) -> DbError {
    err!(DUPLICATE_OBJECT, "rule \"{name}\" for relation \"{}\" already exists", table.name)
}
