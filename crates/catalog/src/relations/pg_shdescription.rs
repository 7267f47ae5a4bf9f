//! pg_shdescription: COMMENT ON roles and databases.

use super::{Rows, Source, push, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for d in s.catalog.descriptions().filter(|d| crate::snapshot::is_shared_class(d.address.class)) {
        push!(out, [oid(d.address.object), oid(d.address.class), text(&d.text)]);
    }
}
