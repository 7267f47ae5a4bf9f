//! pg_operator.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for o in s.by_oid(|oid| s.catalog.operator(oid), s.catalog.operators()) {
        push!(
            out,
            [
                oid(o.oid),
                text(&o.name),
                oid(o.namespace),
                oid(o.owner),
                char(if o.left.is_valid() { b'b' } else { b'l' }),
                bool(o.can_merge),
                bool(o.can_hash),
                oid(o.left),
                oid(o.right),
                oid(o.result),
                oid(o.commutator),
                oid(o.negator),
                oid(o.function),
                regproc(&o.restrict, s.catalog),
                regproc(&o.join, s.catalog),
            ]
        );
    }
}
