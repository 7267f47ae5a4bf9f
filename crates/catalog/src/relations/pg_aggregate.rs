//! pg_aggregate. All built in.

use melba_types::Datum;

use super::{Rows, Source, push, values::*};
use crate::seed::seed;

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for r in seed!("pg_aggregate").rows() {
        if s.oid(0).is_some_and(|oid| oid != r.oid("aggfnoid")) {
            continue;
        }
        push!(
            out,
            [
                seed_oid(&r, "aggfnoid"),
                char(r.char("aggkind")),
                Datum::Int2(r.number("aggnumdirectargs")),
                seed_oid(&r, "aggtransfn"),
                seed_oid(&r, "aggfinalfn"),
                seed_oid(&r, "aggcombinefn"),
                seed_oid(&r, "aggserialfn"),
                seed_oid(&r, "aggdeserialfn"),
                seed_oid(&r, "aggmtransfn"),
                seed_oid(&r, "aggminvtransfn"),
                seed_oid(&r, "aggmfinalfn"),
                bool(r.bool("aggfinalextra")),
                bool(r.bool("aggmfinalextra")),
                char(r.char("aggfinalmodify")),
                char(r.char("aggmfinalmodify")),
                seed_oid(&r, "aggsortop"),
                seed_oid(&r, "aggtranstype"),
                Datum::Int4(r.number("aggtransspace")),
                seed_oid(&r, "aggmtranstype"),
                Datum::Int4(r.number("aggmtransspace")),
                r.optional("agginitval").map_or(Datum::Null, Datum::text),
                r.optional("aggminitval").map_or(Datum::Null, Datum::text),
            ]
        );
    }
}
