//! pg_parameter_acl.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for row in s.by_oid(|oid| s.catalog.granted(oid), s.catalog.parameter_acls()) {
        push!(out, [oid(row.oid), text(&row.name), acl(&row.acl, s.catalog)]);
    }
}
