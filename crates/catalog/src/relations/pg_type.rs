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
    let default = || domain.map_or(Datum::Null, |d| text_or_null(&d.default));
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
            function(&t.input),
            function(&t.output),
            function(&t.receive),
            function(&t.send),
            function(&t.typmod_in),
            function(&t.typmod_out),
            function(analyze(t)),
            char(t.align),
            char(t.storage),
            bool(domain.is_some_and(|d| d.not_null)),
            oid(domain.map_or(Oid::INVALID, |d| d.base)),
            Datum::Int4(domain.map_or(-1, |d| d.typmod)),
            Datum::Int4(domain.map_or(0, |d| d.dimensions)),
            oid(t.collation),
            default(),
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
        _ if &*t.subscript == "array_subscript_handler" => "array_typanalyze",
        _ if t.oid == melba_types::oids::TSVECTOR => "ts_typanalyze",
        _ => "-",
    }
}
