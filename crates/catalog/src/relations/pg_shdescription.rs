//! pg_shdescription: COMMENT ON roles and databases.

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for d in s.catalog.descriptions().filter(|d| crate::snapshot::is_shared_class(d.address.class)) {
        out.push([oid(d.address.object), oid(d.address.class), text(&d.text)]);
    }
}
