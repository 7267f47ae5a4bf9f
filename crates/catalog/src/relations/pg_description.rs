//! pg_description: COMMENT ON objects of this database. Built-in objects have none.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let found: Vec<_> = match s.oid(0) {
        Some(oid) => s.catalog.descriptions_of(oid).collect(),
        None => s.catalog.descriptions().collect(),
    };
    for d in found.into_iter().filter(|d| !crate::classes::is_shared(d.address.class)) {
        push!(out, [oid(d.address.object), oid(d.address.class), Datum::Int4(d.address.sub), text(&d.text)]);
    }
}
