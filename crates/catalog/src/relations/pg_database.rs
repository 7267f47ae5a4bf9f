//! pg_database.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

const UTF8: i32 = 6;
const PG_DEFAULT_TABLESPACE: u32 = 1663;
/// Text compares by code point, in any system locale.
const LOCALE: &str = "C.UTF-8";

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for d in s.by_oid(|oid| s.catalog.database(oid), s.catalog.databases()) {
        push!(
            out,
            [
                oid(d.oid),
                text(&d.name),
                oid(d.owner),
                Datum::Int4(UTF8),
                char(b'b'),
                bool(d.is_template),
                bool(d.allow_connections),
                bool(false),
                Datum::Int4(d.connection_limit),
                Datum::Oid(3),
                Datum::Oid(1),
                Datum::Oid(PG_DEFAULT_TABLESPACE),
                Datum::text(LOCALE),
                Datum::text(LOCALE),
                Datum::text(LOCALE),
                Datum::Null,
                Datum::Null,
                acl(&d.acl, s.catalog),
                // The old name of datlocale, which then was of ICU only.
                Datum::Null,
            ]
        );
    }
}
