//! pg_rewrite: the `_RETURN` rules of views.

use melba_types::Datum;

use super::{Rows, Source, values::*};

pub(super) fn rows(s: &Source<'_>, out: &mut Rows<'_>) {
    let views: Vec<_> = match s.oid(2) {
        Some(view) => s.catalog.relation(view).into_iter().collect(),
        None => s.catalog.relations().collect(),
    };
    for view in views.into_iter().filter(|r| r.rule.is_valid()) {
        let Some(query) = &view.view_query else { continue };
        out.push([
            oid(view.rule),
            Datum::text("_RETURN"),
            oid(view.oid),
            char(b'1'),
            char(b'O'),
            bool(true),
            Datum::text("<>"),
            text(query),
        ]);
    }
}
