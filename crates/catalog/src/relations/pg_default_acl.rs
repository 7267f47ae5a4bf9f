//! pg_default_acl.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for d in s.by_oid(|oid| s.catalog.default_acl_by_oid(oid), s.catalog.default_acls()) {
        push!(out, [oid(d.oid), oid(d.role), oid(d.namespace), char(d.letter), acl(&Some(d.acl.clone()), s.catalog)]);
    }
}
