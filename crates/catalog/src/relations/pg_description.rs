//! pg_description: COMMENT ON objects of this database. Built-in objects have none.

use melba_types::Datum;

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for d in s.catalog.descriptions().filter(|d| !crate::snapshot::is_shared_class(d.address.class)) {
        out.push([oid(d.address.object), oid(d.address.class), Datum::Int4(d.address.sub), text(&d.text)]);
    }
}
