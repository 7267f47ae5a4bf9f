//! Functions and procedures.

use std::fmt::Write;

use melba_types::{Oid, err};

use super::{Style, literal};
use crate::classes;
use crate::naming::quote_ident;
use crate::objects::*;
use crate::snapshot::Catalog;

/// Settings whose values are lists of names.
const LIST_SETTINGS: [&str; 6] = [
    "search_path",
    "temp_tablespaces",
    "local_preload_libraries",
    "session_preload_libraries",
    "shared_preload_libraries",
    "unix_socket_directories",
];

/// pg_get_function_arguments (with defaults) and pg_get_function_identity_arguments (without).
pub fn function_arguments(catalog: &Catalog, function: &Function, defaults: bool, path: &[Oid]) -> String {
    print_arguments(catalog, function, false, defaults, path)
}

/// pg_get_function_result; `None` for procedures.
pub fn function_result(catalog: &Catalog, function: &Function, path: &[Oid]) -> Option<String> {
    if function.kind == FunctionKind::Procedure {
        return None;
    }
    if function.returns_set {
        let columns = print_arguments(catalog, function, true, false, path);
        if !columns.is_empty() {
            return Some(format!("TABLE({columns})"));
        }
    }
    let set = if function.returns_set { "SETOF " } else { "" };
    Some(format!("{set}{}", catalog.type_name(function.return_type, path)))
}

/// pg_get_function_arg_default: the default of a parameter, counted from 1 among all of them.
pub fn function_argument_default(function: &Function, number: usize) -> Option<&str> {
    let at = number.checked_sub(1)?;
    let is_input = |i: usize| !matches!(function.arg_modes.get(i), Some(b'o' | b't'));
    if at >= argument_types(function).len() || !is_input(at) {
        return None;
    }
    let input = (0..at).filter(|i| is_input(*i)).count();
    let first = function.arg_types.len() - function.arg_defaults.len().min(function.arg_types.len());
    function.arg_defaults.get(input.checked_sub(first)?).map(|d| &**d)
}

fn print_arguments(catalog: &Catalog, f: &Function, table: bool, mut defaults: bool, path: &[Oid]) -> String {
    let types = argument_types(f);
    let ordered = f.aggregate.as_ref().filter(|a| a.kind != b'n').map(|a| a.direct_args as usize);
    let mut out = String::new();
    let mut printed = 0;
    let mut i = 0;
    while i < types.len() {
        let mode = f.arg_modes.get(i).copied().unwrap_or(b'i');
        if table != (mode == b't') {
            i += 1;
            continue;
        }
        if ordered == Some(printed) {
            out.push_str(if printed > 0 { " ORDER BY " } else { "ORDER BY " });
        } else if printed > 0 {
            out.push_str(", ");
        }
        out.push_str(match mode {
            b'o' => "OUT ",
            b'b' => "INOUT ",
            b'v' => "VARIADIC ",
            b'i' if f.kind == FunctionKind::Procedure => "IN ",
            _ => "",
        });
        if let Some(name) = f.arg_names.get(i).filter(|n| !n.is_empty()) {
            let _ = write!(out, "{} ", quote_ident(name));
        }
        out.push_str(&catalog.type_name(types[i], path));
        if defaults && let Some(default) = function_argument_default(f, i + 1) {
            let _ = write!(out, " DEFAULT {default}");
        }
        printed += 1;
        // A variadic ordered-set aggregate takes its last argument on both sides of ORDER BY.
        if ordered == Some(printed) && i + 1 == types.len() {
            defaults = false;
        } else {
            i += 1;
        }
    }
    out
}

/// pg_get_functiondef.
///
/// # Errors
/// 42809 for an aggregate.
pub fn function_definition(catalog: &Catalog, f: &Function, style: &Style<'_>) -> melba_types::Result<String> {
    if f.kind == FunctionKind::Aggregate {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an aggregate function", f.name));
    }
    let what = if f.kind == FunctionKind::Procedure { "PROCEDURE" } else { "FUNCTION" };
    let mut out = format!(
        "CREATE OR REPLACE {what} {}({})\n",
        catalog.qualified(false, f.namespace, &f.name),
        function_arguments(catalog, f, true, style.path)
    );
    if let Some(result) = function_result(catalog, f, style.path) {
        let _ = writeln!(out, " RETURNS {result}");
    }
    let _ = writeln!(out, " LANGUAGE {}", quote_ident(catalog.language_name(f.language).unwrap_or("internal")));
    let attributes = attributes(f);
    if !attributes.is_empty() {
        let _ = writeln!(out, "{attributes}");
    }
    for setting in &f.config {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let value = if LIST_SETTINGS.contains(&name) {
            let items = value.split(',').map(|v| literal(v.trim().trim_matches('"')));
            items.collect::<Vec<_>>().join(", ")
        } else {
            literal(value)
        };
        let _ = writeln!(out, " SET {} TO {value}", quote_ident(name));
    }
    match &f.sql_body {
        Some(body) => out.push_str(body),
        None => {
            let mut tag = format!("${}", what.to_ascii_lowercase());
            while f.source.contains(&tag) {
                tag.push('x');
            }
            let _ = write!(out, "AS {tag}${}{tag}$", f.source);
        }
    }
    out.push('\n');
    Ok(out)
}

fn argument_types(f: &Function) -> &[Oid] {
    if f.all_arg_types.is_empty() { &f.arg_types } else { &f.all_arg_types }
}

/// Everything that is not the default, on one line.
fn attributes(f: &Function) -> String {
    let mut out = String::new();
    if f.kind == FunctionKind::Window {
        out.push_str(" WINDOW");
    }
    out.push_str(match f.volatility {
        b'i' => " IMMUTABLE",
        b's' => " STABLE",
        _ => "",
    });
    out.push_str(match f.parallel {
        b's' => " PARALLEL SAFE",
        b'r' => " PARALLEL RESTRICTED",
        _ => "",
    });
    for (is, text) in [(f.strict, " STRICT"), (f.security_definer, " SECURITY DEFINER"), (f.leakproof, " LEAKPROOF")] {
        if is {
            out.push_str(text);
        }
    }
    let usual_cost = if classes::is_written_language(f.language) { 100.0 } else { 1.0 };
    if f.cost != usual_cost {
        let _ = write!(out, " COST {}", f.cost);
    }
    if f.rows > 0.0 && f.rows != 1000.0 {
        let _ = write!(out, " ROWS {}", f.rows);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::PG_CATALOG;

    #[test]
    fn built_in_functions_are_described_as_postgresql_describes_them() {
        let c = Catalog::default();
        let f = |oid| c.function(Oid(oid)).expect("a built-in function");
        let arguments = |oid| function_arguments(&c, f(oid), true, &[PG_CATALOG]);
        assert_eq!(
            arguments(5054),
            "jsonb_in jsonb, path text[], replacement jsonb, create_if_missing boolean DEFAULT true, \
             null_value_treatment text DEFAULT 'use_json_null'::text"
        );
        assert_eq!(arguments(3972), "double precision ORDER BY anyelement");
        assert_eq!(arguments(3986), "VARIADIC \"any\" ORDER BY VARIADIC \"any\"");
        assert_eq!(function_argument_default(f(5054), 4), Some("true"));
        assert_eq!(function_argument_default(f(5054), 3), None);
        assert_eq!(function_result(&c, f(1067), &[PG_CATALOG]).as_deref(), Some("SETOF integer"));
        let text = function_definition(&c, f(3464), &Style::plain(&[PG_CATALOG])).expect("a definition");
        assert!(text.ends_with(
            "secs double precision DEFAULT 0.0)\n RETURNS interval\n LANGUAGE internal\n IMMUTABLE PARALLEL SAFE STRICT\n\
             AS $function$make_interval$function$\n"
        ));
    }
}
