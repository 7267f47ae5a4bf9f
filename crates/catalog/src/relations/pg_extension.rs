//! pg_extension.

use melba_types::Datum;

use super::{Rows, Source, push, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
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
