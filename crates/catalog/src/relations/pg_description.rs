//! pg_description: COMMENT ON objects of this database. Built-in objects have none.

use melba_types::Datum;

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    let of_one = s.oid(0).into_iter().flat_map(|oid| s.catalog.descriptions_of(oid));
    let all = s.catalog.descriptions().filter(|_| s.oid(0).is_none());
    for d in of_one.chain(all).filter(|d| !crate::snapshot::is_shared_class(d.address.class)) {
        out.push([oid(d.address.object), oid(d.address.class), Datum::Int4(d.address.sub), text(&d.text)]);
    }
}
