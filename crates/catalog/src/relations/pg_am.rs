//! pg_am: PostgreSQL's access methods, and Melba's `memory` for tables.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes::{HEAP, MEMORY};
use crate::seed::seed;

pub(super) fn rows(_: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let mut heap_handler = Oid::INVALID;
    for r in seed!("pg_am").rows() {
        let handler = r.oid("amhandler");
        if r.oid("oid") == HEAP {
            heap_handler = handler;
        }
        push!(out, [seed_oid(&r, "oid"), Datum::Text(r.text("amname")), oid(handler), char(r.char("amtype"))]);
    }
    push!(out, [oid(MEMORY), Datum::text("memory"), oid(heap_handler), char(b't')]);
}
