//! pg_index.

use std::sync::Arc;

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes::FIRST_USER_OID;
use crate::objects::*;

const OPTION_DESCENDING: i16 = 1;
const OPTION_NULLS_FIRST: i16 = 2;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let find = |oid: &Oid| s.catalog.relation(*oid);
    let indexes: Vec<&Arc<Relation>> = match (s.oid(0), s.oid(1)) {
        (Some(oid), _) => s.catalog.relation(oid).into_iter().collect(),
        (None, Some(table)) if table.0 >= FIRST_USER_OID => {
            s.catalog.relation(table).into_iter().flat_map(|t| t.indexes.iter().filter_map(find)).collect()
        }
        // System relations do not list their indexes, which are among the first relations.
        (None, Some(_)) => s.catalog.relations().take_while(|r| r.oid.0 < FIRST_USER_OID).collect(),
        _ => s.catalog.relations().collect(),
    };
    for index in indexes {
        if let Some(info) = &index.index {
            push(s, index.oid, info, out);
        }
    }
}

fn push(s: &GeneratorInput<'_>, index: Oid, i: &IndexInfo, out: &mut RelationRows<'_>) {
    let expressions = || i.keys.iter().filter_map(|k| k.expression.as_deref()).collect::<Vec<_>>();
    let constraint = || s.catalog.constraint(i.constraint);
    let option = |k: &IndexKey| {
        let descending = if k.descending { OPTION_DESCENDING } else { 0 };
        descending | if k.nulls_first { OPTION_NULLS_FIRST } else { 0 }
    };
    push!(
        out,
        [
            oid(index),
            oid(i.table),
            int2(i.keys.len() + i.include.len()),
            int2(i.keys.len()),
            bool(i.unique),
            bool(i.nulls_not_distinct),
            bool(i.primary),
            bool(constraint().is_some_and(|c| !c.operators.is_empty())),
            bool(!i.deferrable),
            bool(i.clustered),
            bool(i.valid),
            bool(false),
            bool(true),
            bool(true),
            bool(i.replica_identity),
            int2vector(i.keys.iter().map(|k| k.column).chain(i.include.iter().copied())),
            oidvector(i.keys.iter().map(|k| k.collation)),
            oidvector(i.keys.iter().map(|k| k.opclass)),
            int2vector(i.keys.iter().map(option)),
            if expressions().is_empty() { Datum::Null } else { Datum::text(expressions().join(", ")) },
            text_or_null(&i.predicate),
        ]
    );
}
