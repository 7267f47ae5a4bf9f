//! The DDL of objects as text: pg_get_viewdef, pg_get_indexdef, pg_get_constraintdef and similar functions. NULL when there is no
//! such object.

use std::sync::Arc;

use melba_catalog::definitions::{
    self, Style, constraint_definition, function_argument_default, function_arguments, function_definition, function_result,
    index_column_definition, owned_sequence, partition_key_definition, trigger_definition,
};
use melba_catalog::{Catalog, Function, Relation, RelationKind, classes};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result, err, oids};

use super::{oid_argument, partition_constraint};
use crate::regs::object_named;

pub(super) fn text_or_null(text: Option<impl Into<Arc<str>>>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

/// Runs `f` with the style of the optional last argument (pretty).
pub(super) fn styled<T>(call: &CallInfo<'_>, pretty: Option<&Datum>, f: impl FnOnce(&Catalog, &Style<'_>) -> T) -> T {
    let path = call.session.search_path();
    let pretty = pretty.is_some_and(|p| p.as_bool());
    // An expression that can no longer be analyzed is shown as it was stored.
    let expression =
        |text: &str, relation: Oid| call.session.shown_expression(text, relation, pretty).unwrap_or_else(|_| text.to_owned());
    f(call.session.catalog(), &Style { path: &path, pretty, expression: &expression })
}

/// pg_get_viewdef; the second argument is `pretty`, or a width to wrap at, which is pretty too.
fn view_definition(call: &CallInfo<'_>, view: Option<&Arc<Relation>>, args: &[Datum]) -> Datum {
    let Some(view) = view.filter(|v| v.view_query.is_some()) else { return Datum::Null };
    let pretty = args.get(1).is_some_and(|p| !matches!(p, Datum::Bool(false)));
    let shown = call.session.shown_query(view, pretty);
    let shown = shown.unwrap_or_else(|_| view.view_query.as_deref().unwrap_or_default().to_owned());
    let shown = shown.trim_end();
    let lead = if shown.starts_with([' ', '(']) { "" } else { " " };
    let end = if shown.ends_with(';') { "" } else { ";" };
    Datum::text(format!("{lead}{shown}{end}"))
}

fn view_by_name(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let catalog = call.session.catalog();
    let oid = object_named(call.session, oids::REGCLASS, args[0].as_str())?;
    Ok(view_definition(call, catalog.relation(oid), args))
}

fn rule_definition(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let catalog = call.session.catalog();
    let rule = oid_argument(args, 0);
    if let Some(rule) = catalog.rule(rule) {
        // One that can no longer be analyzed is shown as it was stored.
        let shown = call.session.shown_rule(rule, args.get(1).is_some_and(|p| p.as_bool()));
        return Ok(Datum::text(shown.unwrap_or_else(|_| rule.actions.join(";"))));
    }
    let Some(view) = catalog.relation_of_part(rule).filter(|r| r.rule == rule) else { return Ok(Datum::Null) };
    let pretty = args.get(1).is_some_and(|p| p.as_bool());
    let visible = pretty && catalog.relation_is_visible(view, &call.session.search_path());
    let name = catalog.qualified(visible, view.namespace, &view.name);
    let query = match view_definition(call, Some(view), args) {
        Datum::Text(query) => query,
        _ => return Ok(Datum::Null),
    };
    Ok(Datum::text(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}")))
}

/// pg_get_expr: expressions are kept as their text.
fn shown_expression(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let pretty = args.get(2).is_some_and(|p| p.as_bool());
    let text = args[0].as_str();
    let relation = oid_argument(args, 1);
    // Partition bounds and default lists are no expressions: they come back as they are.
    Ok(Datum::text(call.session.shown_expression(text, relation, pretty).unwrap_or_else(|_| text.to_owned())))
}

fn with_function<'a>(
    call: &'a CallInfo<'_>,
    args: &[Datum],
    f: impl FnOnce(&'a Catalog, &'a Function) -> Datum,
) -> Result<Datum> {
    let catalog = call.session.catalog();
    Ok(catalog.function(oid_argument(args, 0)).map_or(Datum::Null, |function| f(catalog, function)))
}

/// The same with the defaults of its arguments as they are shown.
fn with_shown_defaults(call: &CallInfo<'_>, args: &[Datum], f: impl FnOnce(&Catalog, &Function) -> Datum) -> Result<Datum> {
    let catalog = call.session.catalog();
    let Some(function) = catalog.function(oid_argument(args, 0)) else { return Ok(Datum::Null) };
    Ok(f(catalog, &Function { arg_defaults: shown_defaults(call, function), ..(**function).clone() }))
}

fn shown_defaults(call: &CallInfo<'_>, function: &Function) -> Vec<Arc<str>> {
    let shown = |text: &Arc<str>| match call.session.shown_expression(text, Oid::INVALID, false) {
        Ok(shown) if function.oid.0 >= classes::FIRST_USER_OID => shown.into(),
        _ => text.clone(),
    };
    function.arg_defaults.iter().map(shown).collect()
}

/// A SQL-standard body; one that cannot be analyzed any more is shown as it was stored.
fn shown_body(call: &CallInfo<'_>, function: &Function) -> Option<Arc<str>> {
    let stored = function.sql_body.as_ref()?;
    Some(call.session.shown_body(function).map_or_else(|_| stored.clone(), Arc::from))
}

fn index_definition(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let oid = oid_argument(args, 0);
    let column = args.get(1).map_or(0, |c| c.as_i32());
    Ok(styled(call, args.get(2), |catalog, style| {
        text_or_null(match usize::try_from(column) {
            Ok(0) => definitions::index_definition(catalog, oid, style),
            Ok(column) => index_column_definition(catalog, oid, column, style),
            Err(_) => None,
        })
    }))
}

fn serial_sequence(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let catalog = call.session.catalog();
    let table = object_named(call.session, oids::REGCLASS, args[0].as_str())?;
    let Some(table) = catalog.relation(table) else { return Ok(Datum::Null) };
    let name = args[1].as_str();
    let Some(at) = table.columns.iter().position(|c| !c.dropped && &*c.name == name) else {
        return Err(err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", table.name));
    };
    let sequence = owned_sequence(catalog, table.oid, at as i16 + 1);
    Ok(text_or_null(sequence.map(|s| catalog.qualified(false, s.namespace, &s.name))))
}

fn relation_of<'a>(call: &'a CallInfo<'_>, args: &[Datum]) -> Option<&'a Arc<Relation>> {
    call.session.catalog().relation(oid_argument(args, 0))
}

fn is_table(relation: Option<&Arc<Relation>>) -> bool {
    relation.is_some_and(|r| matches!(r.kind, RelationKind::Table | RelationKind::PartitionedTable))
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_get_constraintdef", |c, a| Ok(styled(c, None, |k, s| text_or_null(constraint_definition(k, oid_argument(a, 0), s))))),
    ("pg_get_constraintdef_ext", |c, a| {
        Ok(styled(c, a.get(1), |k, s| text_or_null(constraint_definition(k, oid_argument(a, 0), s))))
    }),
    ("pg_get_triggerdef", |c, a| Ok(styled(c, None, |k, s| text_or_null(trigger_definition(k, oid_argument(a, 0), s))))),
    ("pg_get_triggerdef_ext", |c, a| Ok(styled(c, a.get(1), |k, s| text_or_null(trigger_definition(k, oid_argument(a, 0), s))))),
    ("pg_get_indexdef", index_definition),
    ("pg_get_indexdef_ext", index_definition),
    ("pg_get_ruledef", rule_definition),
    ("pg_get_ruledef_ext", rule_definition),
    ("pg_get_viewdef", |c, a| Ok(view_definition(c, relation_of(c, a), a))),
    ("pg_get_viewdef_ext", |c, a| Ok(view_definition(c, relation_of(c, a), a))),
    ("pg_get_viewdef_wrap", |c, a| Ok(view_definition(c, relation_of(c, a), a))),
    ("pg_get_viewdef_name", view_by_name),
    ("pg_get_viewdef_name_ext", view_by_name),
    ("pg_get_expr", shown_expression),
    ("pg_get_expr_ext", shown_expression),
    ("pg_get_function_arguments", |c, a| {
        with_shown_defaults(c, a, |k, f| Datum::text(function_arguments(k, f, true, &c.session.search_path())))
    }),
    ("pg_get_function_identity_arguments", |c, a| {
        with_function(c, a, |k, f| Datum::text(function_arguments(k, f, false, &c.session.search_path())))
    }),
    ("pg_get_function_result", |c, a| with_function(c, a, |k, f| text_or_null(function_result(k, f, &c.session.search_path())))),
    ("pg_get_function_arg_default", |c, a| {
        let number = usize::try_from(a[1].as_i32()).unwrap_or(0);
        with_shown_defaults(c, a, |_, f| text_or_null(function_argument_default(f, number)))
    }),
    ("pg_get_function_sqlbody", |c, a| with_function(c, a, |_, f| text_or_null(shown_body(c, f)))),
    ("pg_get_functiondef", |c, a| {
        let Some(function) = c.session.catalog().function(oid_argument(a, 0)) else { return Ok(Datum::Null) };
        let arg_defaults = shown_defaults(c, function);
        let function = Function { sql_body: shown_body(c, function), arg_defaults, ..(**function).clone() };
        styled(c, None, |k, s| function_definition(k, &function, s)).map(Datum::text)
    }),
    ("pg_get_partkeydef", |c, a| Ok(styled(c, None, |k, s| text_or_null(partition_key_definition(k, oid_argument(a, 0), s))))),
    ("pg_get_partition_constraintdef", |c, a| {
        Ok(text_or_null(relation_of(c, a).and_then(|r| partition_constraint::definition(c.session, r))))
    }),
    ("pg_get_serial_sequence", serial_sequence),
    ("pg_relation_is_publishable", |c, a| {
        let relation = relation_of(c, a);
        Ok(relation.map_or(Datum::Null, |r| {
            let user = r.oid.0 >= melba_catalog::classes::FIRST_USER_OID;
            Datum::Bool(user && is_table(Some(r)) && r.persistence == melba_catalog::Persistence::Permanent)
        }))
    }),
    // There are only the built-in tablespaces, which have no location.
    ("pg_tablespace_location", |_, _| Ok(Datum::text(""))),
];

/// pg_options_to_table: `name=value` items as rows.
pub fn options_to_table(_: &CallInfo<'_>, args: &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    let items = if args[0].is_null() { Vec::new() } else { args[0].as_array().elements.clone() };
    Ok(Box::new(items.into_iter().filter(|i| !i.is_null()).map(|item| {
        Ok(match item.as_str().split_once('=') {
            Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
            None => vec![item, Datum::Null],
        })
    })))
}
