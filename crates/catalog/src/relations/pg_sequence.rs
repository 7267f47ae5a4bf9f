//! pg_sequence.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for relation in s.by_oid(|oid| s.catalog.relation(oid), s.catalog.user_relations()) {
        let Some(sequence) = &relation.sequence else { continue };
        push!(
            out,
            [
                oid(relation.oid),
                oid(sequence.ty),
                Datum::Int8(sequence.start),
                Datum::Int8(sequence.increment),
                Datum::Int8(sequence.max),
                Datum::Int8(sequence.min),
                Datum::Int8(sequence.cache),
                bool(sequence.cycle),
            ]
        );
    }
}
