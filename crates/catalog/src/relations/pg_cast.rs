//! pg_cast.

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    for cast in s.catalog.casts() {
        out.push([oid(cast.oid), oid(cast.source), oid(cast.target), oid(cast.function), char(cast.context), char(cast.method)]);
    }
}
