//! pg_default_acl.

use super::{Rows, Source, push, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for d in s.by_oid(|oid| s.catalog.default_acl_by_oid(oid), s.catalog.default_acls()) {
        push!(out, [oid(d.oid), oid(d.role), oid(d.namespace), char(d.letter), acl(&Some(d.acl.clone()), s.catalog)]);
    }
}
