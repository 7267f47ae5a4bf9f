//! pg_partitioned_table.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for table in s.by_oid(|oid| s.catalog.relation(oid), s.catalog.user_relations()) {
        let Some(key) = &table.partition_key else { continue };
        let expressions: Vec<_> = key.columns.iter().filter_map(|c| c.expression.as_deref()).collect();
        push!(
            out,
            [
                oid(table.oid),
                char(key.strategy.letter()),
                int2(key.columns.len()),
                oid(s.catalog.default_partition(table.oid).unwrap_or(Oid::INVALID)),
                int2vector(key.columns.iter().map(|c| c.column)),
                oidvector(key.columns.iter().map(|c| c.opclass)),
                oidvector(key.columns.iter().map(|c| c.collation)),
                if expressions.is_empty() { Datum::Null } else { Datum::text(expressions.join(", ")) },
            ]
        );
    }
}
