//! pg_enum: the labels of enum types.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let types: Vec<_> = match s.oid(1) {
        Some(oid) => s.catalog.type_(oid).into_iter().collect(),
        None => s.catalog.types().filter(|t| !t.labels.is_empty()).collect(),
    };
    let mut all: Vec<_> = types.iter().flat_map(|t| t.labels.iter().map(|l| (t.oid, l))).collect();
    all.sort_by_key(|(_, l)| l.0);
    for (ty, (label_oid, order, label)) in all {
        push!(out, [oid(*label_oid), oid(ty), Datum::Float4(*order), text(label)]);
    }
}
