//! pg_event_trigger.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for trigger in s.by_oid(|oid| s.catalog.event_trigger(oid), s.catalog.event_triggers()) {
        push!(
            out,
            [
                oid(trigger.oid),
                text(&trigger.name),
                text(&trigger.event),
                oid(trigger.owner),
                oid(trigger.function),
                char(trigger.enabled),
                texts_or_null(&trigger.tags),
            ]
        );
    }
}
