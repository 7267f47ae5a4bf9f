//! The body of a new function: checks it, and turns RETURN and BEGIN ATOMIC into the stored form.

use melba_analyze::{RoutineScope, analyze_in_routine, check_routine_statement};
use melba_catalog::{Function, ObjectAddress, classes};
use melba_parse::command;
use melba_parse::command::is_query;
use melba_parse::nodes::inner;
use melba_settings::split_identifiers;
use melba_tree::Query;
use melba_types::{DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CallStmt, CreateFunctionStmt, Node};

use melba_definition::context::Ddl;

/// Puts the statement's body into the function's row.
pub fn routine_body(ddl: &Ddl<'_>, s: &CreateFunctionStmt, strings: Option<&[&str]>, f: &mut Function) -> Result<()> {
    match (s.sql_body.as_deref(), strings) {
        (Some(_), Some(_)) => bail!(INVALID_FUNCTION_DEFINITION, "duplicate function body specified"),
        (None, None) => bail!(INVALID_FUNCTION_DEFINITION, "no function body specified"),
        (Some(body), None) => parsed_body(ddl, body, f),
        (None, Some([text])) => {
            f.source = (*text).into();
            Ok(())
        }
        (None, Some(_)) => bail!(
            INVALID_FUNCTION_DEFINITION,
            "only one AS item needed for language \"{}\"",
            ddl.catalog().language_name(f.language).unwrap_or_default()
        ),
    }
}

/// Checks the text of a function that the catalog has, unless check_function_bodies is off.
pub fn check_body(ddl: &Ddl<'_>, f: &Function) -> Result<()> {
    if ddl.session().setting("check_function_bodies").as_deref() == Some("off") {
        return Ok(());
    }
    let path = path_of(ddl, f);
    let within = ddl.with_path(path.as_deref().unwrap_or(ddl.path()), ddl.creation_namespace());
    check_text_body(&within, f).map_err(|e| of_body(ddl, f, e))
}

/// The search path that the function sets for itself.
fn path_of(ddl: &Ddl<'_>, f: &Function) -> Option<Vec<Oid>> {
    let setting = f.config.iter().find_map(|item| item.strip_prefix("search_path="))?;
    let catalog = ddl.catalog();
    let named = split_identifiers(setting).into_iter().filter_map(|name| catalog.namespace_by_name(&name).map(|n| n.oid));
    let mut path: Vec<Oid> = named.collect();
    if !path.contains(&classes::PG_CATALOG) {
        path.insert(0, classes::PG_CATALOG);
    }
    Some(path)
}

fn is_polymorphic(f: &Function) -> bool {
    f.arg_types.iter().any(|t| melba_analyze::is_polymorphic(*t))
}

/// RETURN or BEGIN ATOMIC.
fn parsed_body(ddl: &Ddl<'_>, node: &Node, f: &mut Function) -> Result<()> {
    if is_polymorphic(f) {
        bail!(INVALID_FUNCTION_DEFINITION, "SQL function with unquoted function body cannot have polymorphic arguments");
    }
    let node = inner(node)?.clone();
    let is_return = matches!(node, N::ReturnStmt(_));
    let statements = melba_parse::body_statements(node);
    if let Some(other) = statements.iter().find(|s| !is_query(s)) {
        let name = command::tag(other);
        bail!(FEATURE_NOT_SUPPORTED, "{name} is not yet supported in unquoted SQL function body");
    }
    let scope = RoutineScope::of(f, &f.arg_types, Oid::INVALID);
    let queries = ddl.analyze_locked(
        |c| statements.iter().map(|s| analyze_in_routine(c, s, &scope)).collect::<Result<Vec<Query>>>(),
        |queries| queries.iter().flat_map(Query::dependencies).collect(),
    )?;
    let (text, depends_on) = ddl.with_context(|c| {
        let mut depends_on: Vec<ObjectAddress> = Vec::new();
        for query in &queries {
            if let Some(what) = melba_deparse::unprintable(query) {
                return Err(DbError::unsupported(format!("{what} in an unquoted SQL function body")));
            }
            depends_on.extend(ddl.usable_of_query(query)?);
        }
        let text = melba_deparse::stored_body(c, &queries, &scope, is_return);
        let function = "SQL function \"".to_owned() + &f.name + "\"";
        check_result(c, f, queries.into_iter().last()).map_err(|e| e.within(function))?;
        Ok((text, depends_on))
    })?;
    f.sql_body = Some(text.into());
    f.depends_on.extend(depends_on);
    Ok(())
}

/// A string is parsed, and analyzed unless the types of arguments are not known yet.
fn check_text_body(ddl: &Ddl<'_>, f: &Function) -> Result<()> {
    let statements = melba_parse::parse_as(&f.source, melba_parse::Strings::of(ddl.session()))?.statements;
    if is_polymorphic(f) {
        return Ok(());
    }
    let scope = RoutineScope::of(f, &f.arg_types, Oid::INVALID);
    ddl.with_context(|c| {
        let mut last = None;
        for statement in &statements {
            check_routine_statement(&statement.node)?;
            if let N::CallStmt(call) = &statement.node {
                check_call(c, call, &scope)?;
            }
            last = match is_query(&statement.node) {
                true => Some(analyze_in_routine(c, &statement.node, &scope)?),
                false => None,
            };
        }
        check_result(c, f, last)
    })
}

/// An error in a body points into the statement when the body stands there unchanged.
fn of_body(ddl: &Ddl<'_>, f: &Function, mut e: DbError) -> DbError {
    let Some(position) = e.fields().position else {
        return e.within(format!("SQL function \"{}\"", f.name));
    };
    match melba_parse::place_of_body(ddl.text().text, &f.source, position as usize - 1) {
        Some(at) => {
            e.fields_mut().position = Some((ddl.text().start + at) as u32 + 1);
            e
        }
        None => e.in_query(&f.source),
    }
}

/// A procedure's results would have no receiver.
fn check_call(c: &melba_analyze::Context<'_>, call: &CallStmt, scope: &RoutineScope) -> Result<()> {
    let Some(node) = call.funccall.as_deref() else { return Ok(()) };
    let called = melba_analyze::analyze_call(c, node, melba_analyze::CallPlace::Body(scope))?;
    if called.call.ty != melba_types::oids::VOID {
        bail!(FEATURE_NOT_SUPPORTED, "calling procedures with output arguments is not supported in SQL functions");
    }
    Ok(())
}

/// The last statement returns the function's result.
fn check_result(c: &melba_analyze::Context<'_>, f: &Function, last: Option<Query>) -> Result<()> {
    let result = melba_analyze::routine_result(c, f, &f.arg_types, Oid::INVALID, None)?;
    match last {
        Some(mut query) => melba_analyze::fit_routine_result(c, &mut query, &result).map(drop),
        None if result.ty == melba_types::oids::VOID => Ok(()),
        None => Err(melba_analyze::no_final_query(c, result.ty)),
    }
}

/// Types that other languages do not have are those languages' to refuse.
///
/// # Errors
/// 42P13 for types that no function LANGUAGE sql has, and for a polymorphic result that no argument determines.
pub fn check_types(ddl: &Ddl<'_>, f: &Function) -> Result<()> {
    if f.language == classes::SQL_LANGUAGE {
        check_sql_types(ddl, f)?;
    }
    let outputs = f.all_arg_types.iter().zip(&f.arg_modes).filter(|(_, m)| matches!(m, b'o' | b't')).map(|(t, _)| *t);
    for ty in outputs.chain([f.return_type]) {
        if let Some(detail) = melba_analyze::undetermined_result(ty, &f.arg_types) {
            return Err(err!(INVALID_FUNCTION_DEFINITION, "cannot determine result data type").detail(detail));
        }
    }
    Ok(())
}

fn check_sql_types(ddl: &Ddl<'_>, f: &Function) -> Result<()> {
    let catalog = ddl.catalog();
    let name = |ty: Oid| catalog.type_name(ty, ddl.path());
    let is_pseudo = |ty: Oid| catalog.type_(ty).is_some_and(|t| t.type_kind == melba_catalog::TypeKind::Pseudo);
    let is_fine = |ty: Oid| !is_pseudo(ty) || melba_analyze::is_polymorphic(ty);
    if !is_fine(f.return_type) && !matches!(f.return_type, oids::RECORD | oids::VOID) {
        bail!(INVALID_FUNCTION_DEFINITION, "SQL functions cannot return type {}", name(f.return_type));
    }
    match f.arg_types.iter().find(|ty| !is_fine(**ty)) {
        Some(ty) => Err(err!(INVALID_FUNCTION_DEFINITION, "SQL functions cannot have arguments of type {}", name(*ty))),
        None => Ok(()),
    }
}
