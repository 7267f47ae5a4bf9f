//! Keeps stored text correct when an object it uses is renamed: the text is analyzed before the change and printed again after it.

use std::sync::Arc;

use melba_analyze::{AnalyzedRule, Expected, RoutineScope, analyze_in_routine, routine_statements};
use melba_catalog::row_security::policies_of;
use melba_catalog::rules::rules_of;
use melba_catalog::{
    Catalog, Column, Constraint, DomainInfo, ExtendedStatistics, Function, IndexInfo, IndexKey, Object, ObjectAddress,
    ObjectChange, Policy, Relation, RewriteRule, Trigger, Type, classes, encode_change,
};
use melba_definition::context::Ddl;
use melba_tree::{Expr, Query};
use melba_types::{DbError, Oid, Result, bail};

use super::policy::{print_policy, stored_policy_condition};
use crate::rule::{print_rule, read_rule};
use crate::statistics::create::put_statistics;
use crate::table::relation::put_relation;
use crate::trigger::{condition_of, trigger_condition_text};
use crate::view::deparse_with_names;

/// A stored text, analyzed so that it can be printed again.
pub enum StoredText {
    View { relation: Oid, query: Box<Query> },
    Check { constraint: Oid, expr: Expr },
    Default { relation: Oid, column: usize, expr: Expr },
    DomainDefault { domain: Oid, expr: Expr },
    IndexKey { index: Oid, key: usize, expr: Expr },
    Predicate { index: Oid, expr: Expr },
    PartitionKey { relation: Oid, column: usize, expr: Expr },
    Condition { trigger: Oid, condition: Expr },
    Statistics { statistics: Oid, exprs: Vec<Expr> },
    Rule { rule: Oid, analyzed: AnalyzedRule },
    Policy { policy: Oid, using: Option<Expr>, check: Option<Expr> },
    Body { function: Oid, queries: Vec<Query>, scope: RoutineScope },
    ArgumentDefault { function: Oid, argument: usize, expr: Expr },
}

/// Runs `change` and then prints every stored text that mentions the relation again, so that it uses the new names.
pub fn rewriting_dependents(ddl: &Ddl<'_>, relation: Oid, change: impl FnOnce() -> Result<()>) -> Result<()> {
    let kept = read_texts(ddl, [relation], [], [])?;
    change()?;
    print_texts(ddl, kept)
}

/// The same for an object that is no relation. Waits for transactions whose new objects mention it.
///
/// # Errors
/// XX000 when another transaction has changed it during the wait.
pub fn rewriting_users_of(ddl: &Ddl<'_>, of: ObjectAddress, change: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = ddl.catalog();
    ddl.lock_object_exclusively(ddl.tx().database, of.class, of.object)?;
    let row = |catalog: &Catalog| catalog.object(of).map(|o| encode_change(ddl.tx().database, &ObjectChange::Put(o)));
    if row(&before) != row(&ddl.catalog()) {
        bail!(INTERNAL_ERROR, "tuple concurrently updated");
    }
    let mut kept = Vec::new();
    keep_users(ddl, of, &mut kept)?;
    change()?;
    print_texts(ddl, kept)
}

/// The texts of relations, and all texts that mention them or the functions.
pub fn read_texts(
    ddl: &Ddl<'_>,
    relations: impl IntoIterator<Item = Oid>,
    functions: impl IntoIterator<Item = Oid>,
    types: impl IntoIterator<Item = Oid>,
) -> Result<Vec<StoredText>> {
    let mut kept = Vec::new();
    for relation in relations {
        let own = ddl.relation(relation)?;
        keep_checks(ddl, &own, &mut kept)?;
        keep_view(ddl, &own, &mut kept)?;
        own.triggers.iter().try_for_each(|t| keep_condition(ddl, *t, &mut kept))?;
        for rule in rules_of(&ddl.catalog(), relation) {
            keep_rule(ddl, rule, &mut kept)?;
        }
        for policy in policies_of(&ddl.catalog(), relation) {
            keep_policy(ddl, policy, &mut kept)?;
        }
        for index in &own.indexes {
            keep_index(ddl, *index, &mut kept)?;
        }
        keep_users(ddl, ObjectAddress { class: classes::PG_CLASS, object: relation, sub: 0 }, &mut kept)?;
        if own.row_type.is_valid() {
            keep_users(ddl, ObjectAddress { class: classes::PG_TYPE, object: own.row_type, sub: 0 }, &mut kept)?;
        }
    }
    for object in functions {
        keep_users(ddl, ObjectAddress { class: classes::PG_PROC, object, sub: 0 }, &mut kept)?;
    }
    for object in types {
        keep_users(ddl, ObjectAddress { class: classes::PG_TYPE, object, sub: 0 }, &mut kept)?;
    }
    Ok(kept)
}

/// The texts that new columns of a relation may change the meaning of: those that join it by names of columns, or give its columns names by an
/// alias, one of which a new column may have; and those whose aliases list columns that stand behind its own.
pub fn read_naming_texts(ddl: &Ddl<'_>, relation: Oid, new: &[&str]) -> Result<Vec<StoredText>> {
    let lists = |text: &str| ["JOIN ", " WITH ORDINALITY", "ROWS FROM("].iter().any(|word| text.contains(word));
    read_queries(ddl, relation, |text| lists(text) || new.iter().any(|column| text.contains(column)))
}

/// Runs `drop`, which drops a column, and then prints the queries of the relation that are left again: their aliases list its columns.
pub fn rewriting_lists(ddl: &Ddl<'_>, relation: Oid, drop: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut kept = read_queries(ddl, relation, |_| true)?;
    drop()?;
    let catalog = ddl.catalog();
    kept.retain(|text| match text {
        StoredText::View { relation, .. } => catalog.relation(*relation).is_some(),
        StoredText::Body { function, .. } | StoredText::ArgumentDefault { function, .. } => catalog.function(*function).is_some(),
        StoredText::Rule { rule, .. } => catalog.rule(*rule).is_some(),
        StoredText::Policy { policy, .. } => catalog.policy(*policy).is_some(),
        _ => false,
    });
    print_texts(ddl, kept)
}

/// The queries of views, functions, rules and policies that mention a relation, or functions that return its rows, of those with such a text.
fn read_queries(ddl: &Ddl<'_>, relation: Oid, has: impl Fn(&str) -> bool) -> Result<Vec<StoredText>> {
    let catalog = ddl.catalog();
    let of = ObjectAddress { class: classes::PG_CLASS, object: relation, sub: 0 };
    let row_type = catalog.relation(relation).map_or(Oid::INVALID, |r| r.row_type);
    let of_rows = catalog.dependents(ObjectAddress { class: classes::PG_TYPE, object: row_type, sub: 0 }).map(|d| d.dependent);
    let functions = of_rows.filter(|d| d.class == classes::PG_PROC).flat_map(|function| catalog.dependents(function));
    let mut users: Vec<ObjectAddress> =
        catalog.dependents(of).chain(functions).map(|d| ObjectAddress { sub: 0, ..d.dependent }).collect();
    users.sort_unstable();
    users.dedup();
    let in_any = |texts: &[Option<&str>]| texts.iter().flatten().any(|text| has(text));
    let mut kept = Vec::new();
    for user in users {
        match catalog.object(user) {
            Some(Object::Relation(view)) if in_any(&[view.view_query.as_deref()]) => {
                keep_relation(ddl, view.oid, of, &mut kept)?;
            }
            Some(Object::Function(f)) if in_any(&[f.sql_body.as_deref()]) => keep_function(ddl, f.oid, &mut kept)?,
            Some(Object::Rule(rule)) if rule.actions.iter().any(|text| has(text)) => keep_rule(ddl, &rule, &mut kept)?,
            Some(Object::Policy(p)) if in_any(&[p.using.as_deref(), p.check.as_deref()]) => keep_policy(ddl, &p, &mut kept)?,
            _ => {}
        }
    }
    Ok(kept)
}

pub fn print_texts(ddl: &Ddl<'_>, kept: Vec<StoredText>) -> Result<()> {
    kept.into_iter().try_for_each(|item| print_again(ddl, item))
}

fn stored(ddl: &Ddl<'_>, text: &str, of: &Arc<Relation>, column: Option<&Column>) -> Result<Expr> {
    let expected = column.map(|c| Expected { ty: c.ty, typmod: c.typmod, column: &c.name });
    ddl.with_context(|c| melba_analyze::analyze_stored_expression(c, text, Some(of), expected))
}

/// Checks, generation expressions and the partition key of a relation.
fn keep_checks(ddl: &Ddl<'_>, relation: &Arc<Relation>, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    for constraint in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
        keep_check(ddl, constraint, relation, kept)?;
    }
    for (at, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
        keep_default(ddl, relation, at, column, kept)?;
    }
    for (at, column) in relation.partition_key.iter().flat_map(|k| k.columns.iter().enumerate()) {
        if let Some(text) = &column.expression {
            let expr = stored(ddl, text, relation, None)?;
            kept.push(StoredText::PartitionKey { relation: relation.oid, column: at, expr });
        }
    }
    Ok(())
}

fn keep_check(ddl: &Ddl<'_>, constraint: &Constraint, relation: &Arc<Relation>, kept: &mut Vec<StoredText>) -> Result<()> {
    if let Some(text) = &constraint.expression {
        kept.push(StoredText::Check { constraint: constraint.oid, expr: stored(ddl, text, relation, None)? });
    }
    Ok(())
}

fn keep_domain_check(ddl: &Ddl<'_>, constraint: &Constraint, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(domain) = catalog.type_(constraint.domain).and_then(|t| t.domain.as_ref()) else { return Ok(()) };
    if let Some(text) = &constraint.expression {
        let (base, typmod) = catalog.base_type_and_typmod(domain.base, domain.typmod);
        let expr = ddl.with_context(|c| melba_analyze::analyze_stored_domain_check(c, text, base, typmod))?;
        kept.push(StoredText::Check { constraint: constraint.oid, expr });
    }
    Ok(())
}

fn keep_domain_default(ddl: &Ddl<'_>, domain: Oid, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(ty) = catalog.type_(domain).filter(|t| t.depends_on.iter().any(|d| d.object == of.object)) else {
        return Ok(());
    };
    let Some(info) = &ty.domain else { return Ok(()) };
    if let Some(text) = &info.default {
        let expected = Expected { ty: info.base, typmod: info.typmod, column: &ty.name };
        let expr = ddl.with_context(|c| melba_analyze::analyze_stored_expression(c, text, None, Some(expected)))?;
        kept.push(StoredText::DomainDefault { domain, expr });
    }
    Ok(())
}

fn keep_condition(ddl: &Ddl<'_>, trigger: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
    let known = |k: &StoredText| matches!(k, StoredText::Condition { trigger: known, .. } if *known == trigger);
    let catalog = ddl.catalog();
    if let Some(row) = catalog.trigger(trigger).filter(|_| !kept.iter().any(known))
        && let Some(condition) = condition_of(ddl, row)?
    {
        kept.push(StoredText::Condition { trigger, condition });
    }
    Ok(())
}

fn keep_policy(ddl: &Ddl<'_>, policy: &Policy, kept: &mut Vec<StoredText>) -> Result<()> {
    let known = |k: &StoredText| matches!(k, StoredText::Policy { policy: known, .. } if *known == policy.oid);
    if kept.iter().any(known) {
        return Ok(());
    }
    let table = ddl.relation(policy.table)?;
    let using = stored_policy_condition(ddl, &policy.using, &table)?;
    let check = stored_policy_condition(ddl, &policy.check, &table)?;
    kept.push(StoredText::Policy { policy: policy.oid, using, check });
    Ok(())
}

fn keep_rule(ddl: &Ddl<'_>, rule: &RewriteRule, kept: &mut Vec<StoredText>) -> Result<()> {
    let known = |k: &StoredText| matches!(k, StoredText::Rule { rule: known, .. } if *known == rule.oid);
    if !kept.iter().any(known) {
        kept.push(StoredText::Rule { rule: rule.oid, analyzed: read_rule(ddl, rule)? });
    }
    Ok(())
}

fn keep_statistics(ddl: &Ddl<'_>, oid: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
    let known = |k: &StoredText| matches!(k, StoredText::Statistics { statistics, .. } if *statistics == oid);
    let catalog = ddl.catalog();
    let Some(row) = catalog.statistics_object(oid).filter(|s| !s.expressions.is_empty() && !kept.iter().any(known)) else {
        return Ok(());
    };
    let table = ddl.relation(row.table)?;
    let exprs = row.expressions.iter().map(|text| stored(ddl, text, &table, None)).collect::<Result<_>>()?;
    kept.push(StoredText::Statistics { statistics: oid, exprs });
    Ok(())
}

fn keep_default(ddl: &Ddl<'_>, relation: &Arc<Relation>, at: usize, column: &Column, kept: &mut Vec<StoredText>) -> Result<()> {
    if let Some(text) = &column.default {
        let expr = stored(ddl, text, relation, Some(column))?;
        kept.push(StoredText::Default { relation: relation.oid, column: at, expr });
    }
    Ok(())
}

fn keep_index(ddl: &Ddl<'_>, index: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
    let relation = ddl.relation(index)?;
    let Some(info) = &relation.index else { return Ok(()) };
    let table = ddl.relation(info.table)?;
    for (at, key) in info.keys.iter().enumerate() {
        if let Some(text) = &key.expression {
            kept.push(StoredText::IndexKey { index, key: at, expr: stored(ddl, text, &table, None)? });
        }
    }
    if let Some(text) = &info.predicate {
        kept.push(StoredText::Predicate { index, expr: stored(ddl, text, &table, None)? });
    }
    Ok(())
}

/// Views, functions, defaults, checks and indexes that mention an object.
fn keep_users(ddl: &Ddl<'_>, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    // Arrays of a type are named after it.
    if let Some(array) = catalog.type_(of.object).filter(|t| of.class == classes::PG_TYPE && t.array.is_valid()) {
        keep_users(ddl, ObjectAddress { object: array.array, ..of }, kept)?;
    }
    let mut users: Vec<ObjectAddress> = catalog.dependents(of).map(|d| d.dependent).collect();
    users.dedup_by_key(|u| (u.class, u.object));
    let uses = |list: &[ObjectAddress]| list.iter().any(|d| d.object == of.object);
    for user in users {
        match user.class {
            classes::PG_PROC => keep_function(ddl, user.object, kept)?,
            classes::PG_CONSTRAINT => {
                let Some(constraint) = catalog.constraint(user.object).filter(|c| uses(&c.depends_on)) else { continue };
                match catalog.relation(constraint.relation) {
                    Some(relation) => keep_check(ddl, constraint, relation, kept)?,
                    None => keep_domain_check(ddl, constraint, kept)?,
                }
            }
            classes::PG_ATTRDEF => {
                if let Some((relation, at)) = catalog.column_with_default(user.object) {
                    keep_default(ddl, relation, at, &relation.columns[at], kept)?;
                }
            }
            classes::PG_TRIGGER => keep_condition(ddl, user.object, kept)?,
            classes::PG_POLICY => {
                if let Some(policy) = catalog.policy(user.object) {
                    keep_policy(ddl, policy, kept)?;
                }
            }
            classes::PG_REWRITE => {
                if let Some(rule) = catalog.rule(user.object) {
                    keep_rule(ddl, rule, kept)?;
                }
            }
            classes::PG_STATISTIC_EXT => keep_statistics(ddl, user.object, kept)?,
            classes::PG_TYPE => keep_domain_default(ddl, user.object, of, kept)?,
            _ => keep_relation(ddl, user.object, of, kept)?,
        }
    }
    Ok(())
}

/// The query of a view; one that cannot be read, as earlier versions could store, is left as it is.
fn keep_view(ddl: &Ddl<'_>, view: &Relation, kept: &mut Vec<StoredText>) -> Result<()> {
    if view.view_query.is_none() {
        return Ok(());
    }
    match ddl.with_context(|c| melba_analyze::analyze_view(c, view)) {
        Ok(query) => kept.push(StoredText::View { relation: view.oid, query: Box::new(query) }),
        Err(e) if e.fields().sqlstate.as_str().starts_with("42") => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

fn keep_relation(ddl: &Ddl<'_>, oid: Oid, of: ObjectAddress, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(relation) = catalog.relation(oid) else { return Ok(()) };
    keep_view(ddl, relation, kept)?;
    for (at, column) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated != 0 && !c.dropped) {
        if column.default_depends_on.iter().any(|d| d.object == of.object) {
            keep_default(ddl, relation, at, column, kept)?;
        }
    }
    if relation.index.is_some() && of.class != classes::PG_CLASS {
        keep_index(ddl, oid, kept)?;
    }
    Ok(())
}

fn keep_function(ddl: &Ddl<'_>, oid: Oid, kept: &mut Vec<StoredText>) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(f) = catalog.function(oid) else { return Ok(()) };
    if f.sql_body.is_some() {
        let scope = RoutineScope::of(f, &f.arg_types, Oid::INVALID);
        let statements = routine_statements(f, ddl.session())?;
        let queries = ddl.with_context(|c| {
            let c = c.of_body(f);
            statements.iter().map(|s| analyze_in_routine(&c, &s.node, &scope)).collect::<Result<Vec<_>>>()
        })?;
        kept.push(StoredText::Body { function: oid, queries, scope });
    }
    for (argument, text) in f.arg_defaults.iter().enumerate() {
        let expr = ddl.with_context(|c| melba_analyze::analyze_stored_expression(c, text, None, None))?;
        kept.push(StoredText::ArgumentDefault { function: oid, argument, expr });
    }
    Ok(())
}

fn print_view(ddl: &Ddl<'_>, view: Oid, query: &Query) -> Result<()> {
    let text = ddl.with_context(|c| Ok(melba_deparse::stored_query(c, query)))?;
    let view = ddl.relation(view)?;
    // Its own columns may have other names by now.
    let text = deparse_with_names(&text, &view.columns, query, ddl)?;
    if view.view_query.as_deref() != Some(&*text) {
        put_relation(ddl, Relation { view_query: Some(text.into()), ..(*view).clone() });
    }
    Ok(())
}

fn print_again(ddl: &Ddl<'_>, item: StoredText) -> Result<()> {
    let print = |expr: &Expr, of: Option<&Relation>| ddl.with_context(|c| Ok(Arc::from(melba_deparse::expression(c, expr, of))));
    match item {
        StoredText::View { relation, query } => print_view(ddl, relation, &query)?,
        StoredText::Check { constraint, expr } => {
            let catalog = ddl.catalog();
            let row = catalog.constraint(constraint).ok_or_else(|| DbError::internal("missing constraint"))?;
            let text = print(&expr, catalog.relation(row.relation).map(|r| &**r))?;
            ddl.tx().put(Object::Constraint(Arc::new(Constraint { expression: Some(text), ..(**row).clone() })));
        }
        StoredText::Condition { trigger, condition } => {
            let catalog = ddl.catalog();
            let row = catalog.trigger(trigger).ok_or_else(|| DbError::internal("missing trigger"))?;
            let when = Some(trigger_condition_text(ddl, &condition, &*ddl.relation(row.table)?)?);
            ddl.tx().put(Object::Trigger(Arc::new(Trigger { when, ..(**row).clone() })));
        }
        StoredText::Rule { rule, analyzed } => print_rule(ddl, rule, analyzed)?,
        StoredText::Policy { policy, using, check } => print_policy(ddl, policy, using, check)?,
        StoredText::Statistics { statistics, exprs } => print_statistics(ddl, statistics, &exprs)?,
        StoredText::Default { relation, column, expr } => {
            let relation = ddl.relation(relation)?;
            let text = print(&expr, Some(&relation))?;
            let mut columns = relation.columns.to_vec();
            columns[column].default = Some(text);
            put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
        }
        StoredText::DomainDefault { domain, expr } => {
            let catalog = ddl.catalog();
            let ty = catalog.type_(domain).ok_or_else(|| DbError::internal("missing type"))?;
            let info = ty.domain.as_ref().ok_or_else(|| DbError::internal("domain without definition"))?;
            let default = ddl.with_context(|c| Ok(melba_deparse::domain_default(c, &expr).into()))?;
            let domain = Some(Arc::new(DomainInfo { default: Some(default), ..(**info).clone() }));
            ddl.tx().put(Object::Type(Arc::new(Type { domain, ..(**ty).clone() })));
        }
        StoredText::PartitionKey { relation, column, expr } => {
            let relation = ddl.relation(relation)?;
            let Some(key) = &relation.partition_key else { return Ok(()) };
            let mut key = (**key).clone();
            key.columns[column].expression = Some(print(&expr, Some(&relation))?);
            put_relation(ddl, Relation { partition_key: Some(Arc::new(key)), ..(*relation).clone() });
        }
        StoredText::IndexKey { index, key, expr } => change_index(ddl, index, |info, table| {
            let text = print(&expr, Some(table))?;
            let mut keys = info.keys.clone();
            keys[key] = IndexKey { expression: Some(text), ..keys[key].clone() };
            Ok(IndexInfo { keys, ..info.clone() })
        })?,
        StoredText::Predicate { index, expr } => {
            change_index(ddl, index, |info, table| Ok(IndexInfo { predicate: Some(print(&expr, Some(table))?), ..info.clone() }))?
        }
        StoredText::Body { function, queries, scope } => change_function(ddl, function, |f| {
            let is_return = f.sql_body.as_deref().is_some_and(|b| b.starts_with("RETURN"));
            // Its own name may be the one that changed.
            let scope = RoutineScope { name: f.name.clone(), ..scope };
            let text = ddl.with_context(|c| Ok(melba_deparse::stored_body(c, &queries, &scope, is_return)))?;
            Ok(Function { sql_body: Some(text.into()), ..f.clone() })
        })?,
        StoredText::ArgumentDefault { function, argument, expr } => change_function(ddl, function, |f| {
            let mut f = f.clone();
            f.arg_defaults[argument] = print(&expr, None)?;
            Ok(f)
        })?,
    }
    Ok(())
}

fn print_statistics(ddl: &Ddl<'_>, statistics: Oid, exprs: &[Expr]) -> Result<()> {
    let catalog = ddl.catalog();
    let row = catalog.statistics_object(statistics).ok_or_else(|| DbError::internal("missing statistics object"))?;
    let table = ddl.relation(row.table)?;
    let print = |e: &Expr| ddl.with_context(|c| Ok(Arc::<str>::from(melba_deparse::expression(c, e, Some(&table)))));
    let expressions = exprs.iter().map(print).collect::<Result<_>>()?;
    put_statistics(ddl, ExtendedStatistics { expressions, ..(**row).clone() });
    Ok(())
}

fn change_function(ddl: &Ddl<'_>, oid: Oid, f: impl FnOnce(&Function) -> Result<Function>) -> Result<()> {
    let catalog = ddl.catalog();
    let function = catalog.function(oid).ok_or_else(|| DbError::internal("missing function"))?;
    ddl.tx().put(Object::Function(Arc::new(f(function)?)));
    Ok(())
}

fn change_index(ddl: &Ddl<'_>, index: Oid, f: impl FnOnce(&IndexInfo, &Relation) -> Result<IndexInfo>) -> Result<()> {
    let index = ddl.relation(index)?;
    let info = index.index.as_ref().ok_or_else(|| DbError::internal("index without definition"))?;
    let table = ddl.relation(info.table)?;
    let info = f(info, &table)?;
    put_relation(ddl, Relation { index: Some(Arc::new(info)), ..(*index).clone() });
    Ok(())
}
