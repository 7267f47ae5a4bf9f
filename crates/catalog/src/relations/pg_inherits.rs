//! pg_inherits: inheritance, partitions and partitions' indexes.

use melba_types::Datum;

use crate::detaching::detaching_partition;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let children: Vec<_> = match (s.oid(0), s.oid(1)) {
        (Some(child), _) => s.catalog.relation(child).into_iter().collect(),
        (None, Some(parent)) => {
            let children = s.catalog.children(parent).into_iter().chain(detaching_partition(s.catalog, parent));
            children.filter_map(|oid| s.catalog.relation(oid)).collect()
        }
        _ => s.catalog.user_relations().collect(),
    };
    for child in children {
        for (i, parent) in child.parents.iter().enumerate() {
            push!(out, [oid(child.oid), oid(*parent), Datum::Int4(i as i32 + 1), bool(child.detach_pending)]);
        }
    }
}
