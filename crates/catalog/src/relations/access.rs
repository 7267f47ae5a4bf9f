//! pg_amop, pg_amproc, pg_opclass and pg_opfamily.

use std::sync::Arc;

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;

/// Families that are there, by OID.
fn families(s: &GeneratorInput<'_>) -> Vec<Arc<OperatorFamily>> {
    let all = s.catalog.access_methods().families().filter(|f| s.catalog.family_namespace(f).is_some());
    let mut all: Vec<_> = all.cloned().collect();
    all.sort_by_key(|f| f.oid);
    all
}

pub(super) fn operator_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let families = families(s);
    let mut all: Vec<_> = families.iter().flat_map(|f| f.operators.iter().map(move |o| (f, o))).collect();
    all.sort_by_key(|(_, o)| o.oid);
    for (f, o) in all {
        push!(
            out,
            [
                oid(o.oid),
                oid(f.oid),
                oid(o.left),
                oid(o.right),
                Datum::Int2(o.strategy),
                char(if o.ordering { b'o' } else { b's' }),
                oid(o.operator),
                oid(f.method),
                oid(o.sort_family),
            ]
        );
    }
}

pub(super) fn function_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let families = families(s);
    let mut all: Vec<_> = families.iter().flat_map(|f| f.functions.iter().map(move |m| (f, m))).collect();
    all.sort_by_key(|(_, m)| m.oid);
    for (f, m) in all {
        push!(out, [oid(m.oid), oid(f.oid), oid(m.left), oid(m.right), Datum::Int2(m.number), oid(m.function)]);
    }
}

pub(super) fn class_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let mut all: Vec<_> = s.catalog.access_methods().classes().collect();
    all.sort_by_key(|c| c.oid);
    for c in all {
        let Some((namespace, owner)) = s.catalog.class_place(c) else { continue };
        push!(
            out,
            [
                oid(c.oid),
                oid(c.method),
                text(&c.name),
                oid(namespace),
                oid(owner),
                oid(c.family),
                oid(c.input_type),
                bool(c.is_default),
                oid(c.key_type),
            ]
        );
    }
}

pub(super) fn family_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for f in families(s) {
        let Some((namespace, owner)) = s.catalog.family_place(&f) else { continue };
        push!(out, [oid(f.oid), oid(f.method), text(&f.name), oid(namespace), oid(owner)]);
    }
}
