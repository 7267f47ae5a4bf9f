//! pg_namespace.

use super::{Rows, Source, push, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    let namespaces = match (s.oid(0), s.text(1)) {
        (None, Some(name)) => s.catalog.namespace_by_name(name).into_iter().collect(),
        _ => s.by_oid(|oid| s.catalog.namespace(oid), s.catalog.namespaces()),
    };
    for n in namespaces {
        push!(out, [oid(n.oid), text(&n.name), oid(n.owner), acl(&n.acl, s.catalog)]);
    }
}
