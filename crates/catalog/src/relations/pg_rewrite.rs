//! pg_rewrite: the `_RETURN` rules of views.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes::FIRST_USER_OID;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let views: Vec<_> = match (s.oid(2), s.oid(0)) {
        (Some(view), _) => s.catalog.relation(view).into_iter().collect(),
        (None, Some(rule)) if rule.0 >= FIRST_USER_OID => s.catalog.relation_of_part(rule).into_iter().collect(),
        _ => s.catalog.relations().collect(),
    };
    for view in views.into_iter().filter(|r| r.rule.is_valid()) {
        let Some(query) = &view.view_query else { continue };
        push!(
            out,
            [
                oid(view.rule),
                Datum::text("_RETURN"),
                oid(view.oid),
                char(b'1'),
                char(b'O'),
                bool(true),
                Datum::text("<>"),
                text(query),
            ]
        );
    }
}
