//! pg_type.

use std::sync::Arc;

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let types: Vec<&Arc<Type>> = match (s.oid(0), s.text(1), s.oid(2), s.oid(11)) {
        (Some(oid), ..) => s.catalog.type_(oid).into_iter().collect(),
        (_, Some(name), Some(namespace), _) => s.catalog.type_by_name(namespace, name).into_iter().collect(),
        (_, None, Some(namespace), _) => s.catalog.types_in(namespace).collect(),
        (_, None, _, Some(relation)) if relation.is_valid() => {
            s.catalog.relation(relation).and_then(|r| s.catalog.type_(r.row_type)).into_iter().collect()
        }
        (_, Some(name), ..) => {
            let mut found: Vec<_> = s.catalog.namespaces().filter_map(|n| s.catalog.type_by_name(n.oid, name)).collect();
            found.sort_by_key(|t| t.oid);
            found
        }
        _ => s.catalog.types().collect(),
    };
    for ty in types {
        push(s, ty, out);
    }
}

fn letter(kind: TypeKind) -> u8 {
    match kind {
        TypeKind::Base => b'b',
        TypeKind::Composite => b'c',
        TypeKind::Domain => b'd',
        TypeKind::Enum => b'e',
        TypeKind::Pseudo => b'p',
        TypeKind::Range => b'r',
        TypeKind::Multirange => b'm',
    }
}

fn push(s: &GeneratorInput<'_>, t: &Type, out: &mut RelationRows<'_>) {
    let function = |name: &str| oid(s.catalog.type_function(t, name).map_or(Oid::INVALID, |f| f.oid));
    let domain = t.domain.as_deref();
    let base = t.base.as_deref();
    let own_default = domain.map(|d| &d.default).or_else(|| base.map(|b| &b.default));
    let default = || own_default.map_or(Datum::Null, text_or_null);
    // A domain's values are written as those of the type under it.
    let under = s.catalog.type_(s.catalog.base_type(t.oid)).and_then(|t| t.base.as_deref());
    let written = |pick: fn(&BaseInfo) -> Oid, name: &str| under.map_or_else(|| function(name), |b| oid(pick(b)));
    let of_base = |pick: fn(&BaseInfo) -> Oid, name: &str| base.map_or_else(|| function(name), |b| oid(pick(b)));
    // An array type has the type modifiers of its elements.
    let element = || s.catalog.array_element(t.oid).and_then(|e| s.catalog.type_(e)?.base.clone());
    let modifier = |pick: fn(&BaseInfo) -> Oid, name: &str| match element() {
        Some(element) if domain.is_none() => oid(pick(&element)),
        _ => of_base(pick, name),
    };
    push!(
        out,
        [
            oid(t.oid),
            text(&t.name),
            oid(t.namespace),
            oid(t.owner),
            Datum::Int2(t.length),
            bool(t.by_value),
            char(letter(t.type_kind)),
            char(t.category),
            bool(t.preferred),
            bool(t.defined),
            char(t.delimiter),
            oid(t.relation),
            function(&t.subscript),
            oid(t.element),
            oid(t.array),
            of_base(|b| b.input, &t.input),
            written(|b| b.output, &t.output),
            of_base(|b| b.receive, &t.receive),
            written(|b| b.send, &t.send),
            modifier(|b| b.typmod_in, &t.typmod_in),
            modifier(|b| b.typmod_out, &t.typmod_out),
            written(|b| b.analyze, analyze(t)),
            char(t.align),
            char(t.storage),
            bool(domain.is_some_and(|d| d.not_null)),
            oid(domain.map_or(Oid::INVALID, |d| d.base)),
            Datum::Int4(domain.map_or(-1, |d| d.typmod)),
            Datum::Int4(domain.map_or(0, |d| d.dimensions)),
            oid(t.collation),
            if base.is_some() { Datum::Null } else { default() },
            default(),
            acl(&t.acl, s.catalog),
        ]
    );
}

/// The function that ANALYZE would use for columns of the type.
fn analyze(t: &Type) -> &'static str {
    match t.type_kind {
        TypeKind::Range => "range_typanalyze",
        TypeKind::Multirange => "multirange_typanalyze",
        // Not int2vector and oidvector.
        _ if &*t.subscript == "array_subscript_handler" && t.storage != b'p' => "array_typanalyze",
        _ if t.oid == melba_types::oids::TSVECTOR => "ts_typanalyze",
        _ => "-",
    }
}
