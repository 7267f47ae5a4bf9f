//! pg_aggregate, whose rows are parts of functions.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    match s.oid(0) {
        Some(oid) => s.catalog.function(oid).into_iter().for_each(|f| push(f, out)),
        None => s.catalog.functions().for_each(|f| push(f, out)),
    }
}

fn push(f: &Function, out: &mut RelationRows<'_>) {
    let Some(a) = &f.aggregate else { return };
    let moving = a.moving.as_deref();
    let of_moving = |get: fn(&MovingAggregate) -> Oid| oid(moving.map_or(Oid::INVALID, get));
    push!(
        out,
        [
            oid(f.oid),
            char(a.kind),
            Datum::Int2(a.direct_args),
            oid(a.transition),
            oid(a.final_function),
            oid(a.combine),
            oid(a.serial),
            oid(a.deserial),
            of_moving(|m| m.transition),
            of_moving(|m| m.inverse),
            of_moving(|m| m.final_function),
            bool(a.final_extra),
            bool(moving.is_some_and(|m| m.final_extra)),
            char(a.final_modify),
            char(moving.map_or(b'r', |m| m.final_modify)),
            oid(a.sort_operator),
            oid(a.transition_type),
            Datum::Int4(a.space),
            of_moving(|m| m.transition_type),
            Datum::Int4(moving.map_or(0, |m| m.space)),
            text_or_null(&a.initial_value),
            text_or_null(&moving.and_then(|m| m.initial_value.clone())),
        ]
    );
}
