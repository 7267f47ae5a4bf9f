//! pg_proc: functions, procedures, aggregates and window functions.

use std::sync::Arc;

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let functions: Vec<&Arc<Function>> = match (s.oid(0), s.text(1), s.oid(2)) {
        (Some(oid), ..) => s.catalog.function(oid).into_iter().collect(),
        (_, Some(name), Some(namespace)) => s.catalog.functions_by_name(namespace, name).collect(),
        (_, None, Some(namespace)) => s.catalog.functions_in(namespace).collect(),
        (_, Some(name), None) => {
            let mut found = Vec::new();
            for namespace in s.catalog.namespaces() {
                found.extend(s.catalog.functions_by_name(namespace.oid, name));
            }
            found.sort_by_key(|f| f.oid);
            found
        }
        _ => s.catalog.functions().collect(),
    };
    for function in functions {
        push(s, function, out);
    }
}

fn push(s: &GeneratorInput<'_>, f: &Function, out: &mut RelationRows<'_>) {
    let kind = match f.kind {
        FunctionKind::Function => b'f',
        FunctionKind::Procedure => b'p',
        FunctionKind::Aggregate => b'a',
        FunctionKind::Window => b'w',
    };
    let defaults: Vec<&str> = f.arg_defaults.iter().map(|d| &**d).collect();
    push!(
        out,
        [
            oid(f.oid),
            text(&f.name),
            oid(f.namespace),
            oid(f.owner),
            oid(f.language),
            Datum::Float4(f.cost),
            Datum::Float4(f.rows),
            oid(f.variadic),
            Datum::Oid(0),
            char(kind),
            bool(f.security_definer),
            bool(f.leakproof),
            bool(f.strict),
            bool(f.returns_set),
            char(f.volatility),
            char(f.parallel),
            int2(f.arg_types.len()),
            int2(f.arg_defaults.len()),
            oid(f.return_type),
            oidvector(f.arg_types.iter().copied()),
            oids_or_null(&f.all_arg_types),
            chars_or_null(&f.arg_modes),
            texts_or_null(&f.arg_names),
            if defaults.is_empty() { Datum::Null } else { Datum::text(defaults.join(", ")) },
            Datum::Null,
            text(&f.source),
            Datum::Null,
            text_or_null(&f.sql_body),
            texts_or_null(&f.config),
            acl(&f.acl, s.catalog),
        ]
    );
}
