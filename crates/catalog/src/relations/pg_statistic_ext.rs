//! pg_statistic_ext and pg_statistic_ext_data: statistics objects, and what ANALYZE found for them.

use std::sync::Arc;

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::codec::encode_mcv_list;
use crate::extended_statistics::statistics_of;
use crate::objects::*;

fn found<'a>(s: &GeneratorInput<'a>, table_column: Option<usize>) -> Vec<&'a Arc<ExtendedStatistics>> {
    match (s.oid(0), table_column.and_then(|column| s.oid(column))) {
        (Some(oid), _) => s.catalog.statistics_object(oid).into_iter().collect(),
        (None, Some(table)) => statistics_of(s.catalog, table),
        _ => s.catalog.statistics_objects().collect(),
    }
}

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for statistics in found(s, Some(1)) {
        push!(
            out,
            [
                oid(statistics.oid),
                oid(statistics.table),
                text(&statistics.name),
                oid(statistics.namespace),
                oid(statistics.owner),
                int2vector(statistics.columns.iter().copied()),
                statistics.target.map_or(Datum::Null, Datum::Int2),
                chars_or_null(&statistics.kinds),
                text_or_null(&expression_list(statistics)),
            ]
        );
    }
}

/// pg_get_expr of pg_statistic_ext.stxexprs prints a list.
fn expression_list(statistics: &ExtendedStatistics) -> Option<Arc<str>> {
    (!statistics.expressions.is_empty()).then(|| statistics.expressions.join(", ").into())
}

pub(super) fn data_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for statistics in found(s, None) {
        for data in &statistics.data {
            let if_any = |any: bool, value: &dyn Fn() -> Datum| if any { value() } else { Datum::Null };
            push!(
                out,
                [
                    oid(statistics.oid),
                    bool(data.inherited),
                    if_any(!data.ndistinct.is_empty(), &|| Datum::bytes(data.ndistinct_text().into_bytes())),
                    if_any(!data.dependencies.is_empty(), &|| Datum::bytes(data.dependencies_text().into_bytes())),
                    if_any(!data.mcv.is_empty(), &|| Datum::bytes(encode_mcv_list(&data.mcv))),
                    Datum::Null,
                ]
            );
        }
    }
}
