//! pg_namespace.

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for n in s.by_oid(|oid| s.catalog.namespace(oid), s.catalog.namespaces()) {
        out.push([oid(n.oid), text(&n.name), oid(n.owner), acl(&n.acl, s.catalog)]);
    }
}
