//! pg_attrdef: defaults and generation expressions of columns.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let relations: Vec<_> = match (s.oid(1), s.oid(0)) {
        (Some(oid), _) => s.catalog.relation(oid).into_iter().collect(),
        (None, Some(default)) => s.catalog.relation_of_part(default).into_iter().collect(),
        (None, None) => s.catalog.user_relations().collect(),
    };
    let mut all = Vec::new();
    for relation in relations {
        for (i, column) in relation.columns.iter().enumerate() {
            if let Some(default) = column.default.as_ref().filter(|_| !column.dropped) {
                all.push((column.default_oid, relation.oid, i + 1, default));
            }
        }
    }
    all.sort_by_key(|d| d.0);
    for (default_oid, relation, number, default) in all {
        push!(out, [oid(default_oid), oid(relation), int2(number), text(default)]);
    }
}
