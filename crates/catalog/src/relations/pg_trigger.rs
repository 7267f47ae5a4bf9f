//! pg_trigger: triggers made by CREATE TRIGGER. Foreign keys work without triggers.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let find = |oid: &Oid| s.catalog.trigger(*oid);
    let triggers: Vec<_> = match (s.oid(0), s.oid(1)) {
        (Some(oid), _) => s.catalog.trigger(oid).into_iter().collect(),
        (None, Some(table)) => s.catalog.relation(table).into_iter().flat_map(|t| t.triggers.iter().filter_map(find)).collect(),
        _ => s.catalog.triggers().collect(),
    };
    for trigger in triggers {
        push(trigger, out);
    }
}

fn push(t: &Trigger, out: &mut RelationRows<'_>) {
    // Each argument ends with a zero byte.
    let arguments = || t.arguments.iter().flat_map(|a| a.bytes().chain([0])).collect::<Vec<u8>>();
    push!(
        out,
        [
            oid(t.oid),
            oid(t.table),
            oid(t.parent),
            text(&t.name),
            oid(t.function),
            Datum::Int2(t.events),
            char(t.enabled),
            bool(false),
            oid(t.constraint_table),
            Datum::Oid(0),
            oid(t.constraint),
            bool(t.deferrable),
            bool(t.initially_deferred),
            int2(t.arguments.len()),
            int2vector(t.columns.iter().copied()),
            Datum::bytes(arguments()),
            text_or_null(&t.when),
            text_or_null(&t.old_table),
            text_or_null(&t.new_table),
        ]
    );
}
