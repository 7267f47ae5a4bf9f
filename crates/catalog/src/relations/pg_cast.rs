//! pg_cast.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let casts: Vec<_> = match (s.oid(0), s.oid(1)) {
        (None, Some(source)) => s.catalog.casts_from(source).collect(),
        _ => s.by_oid(|oid| s.catalog.cast_by_oid(oid), s.catalog.casts()),
    };
    for cast in casts {
        push!(
            out,
            [oid(cast.oid), oid(cast.source), oid(cast.target), oid(cast.function), char(cast.context), char(cast.method)]
        );
    }
}
