//! pg_namespace.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let namespaces = match (s.oid(0), s.text(1)) {
        (None, Some(name)) => s.catalog.namespace_by_name(name).into_iter().collect(),
        _ => s.by_oid(|oid| s.catalog.namespace(oid), s.catalog.namespaces()),
    };
    for n in namespaces {
        push!(out, [oid(n.oid), text(&n.name), oid(n.owner), acl(&n.acl, s.catalog)]);
    }
}
