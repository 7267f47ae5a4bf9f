//! pg_shdescription: COMMENT ON roles, databases and tablespaces.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for d in s.catalog.descriptions().filter(|d| crate::classes::is_shared(d.address.class)) {
        push!(out, [oid(d.address.object), oid(d.address.class), text(&d.text)]);
    }
}
