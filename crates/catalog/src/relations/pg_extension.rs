//! pg_extension.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for e in s.by_oid(|oid| s.catalog.extension(oid), s.catalog.extensions()) {
        let relocatable = crate::available_extensions().iter().any(|d| *d.name == *e.name && d.relocatable);
        push!(
            out,
            [
                oid(e.oid),
                text(&e.name),
                oid(e.owner),
                oid(e.namespace),
                bool(relocatable),
                text(&e.version),
                Datum::Null,
                Datum::Null,
            ]
        );
    }
}
