//! CREATE STATISTICS as text.

use std::fmt::Write;

use melba_types::Oid;

use super::Style;
use super::relations::expression_key_text;
use crate::extended_statistics::{statistics_columns, statistics_kinds as kinds};
use crate::naming::quote_ident;
use crate::snapshot::Catalog;

/// pg_get_statisticsobjdef.
pub fn statistics_definition(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let statistics = catalog.statistics_object(oid)?;
    let table = catalog.relation(statistics.table)?;
    let mut out = format!("CREATE STATISTICS {}", catalog.qualified(false, statistics.namespace, &statistics.name));
    let words = [(kinds::NDISTINCT, "ndistinct"), (kinds::DEPENDENCIES, "dependencies"), (kinds::MCV, "mcv")];
    let chosen: Vec<&str> = words.iter().filter(|(kind, _)| statistics.kinds.contains(kind)).map(|(_, word)| *word).collect();
    if chosen.len() < words.len() && statistics.columns.len() + statistics.expressions.len() > 1 {
        // Writing to a string cannot fail.
        let _ = write!(out, " ({})", chosen.join(", "));
    }
    let columns = statistics_definition_columns(catalog, oid, style)?;
    let _ = write!(out, " ON {columns} FROM {}", catalog.relation_name(table, style.path));
    Some(out)
}

/// pg_get_statisticsobjdef_columns.
pub fn statistics_definition_columns(catalog: &Catalog, oid: Oid, style: &Style<'_>) -> Option<String> {
    let statistics = catalog.statistics_object(oid)?;
    let table = catalog.relation(statistics.table)?;
    let mut items: Vec<String> = statistics_columns(statistics, table).map(|name| quote_ident(name).into_owned()).collect();
    items.extend(statistics.expressions.iter().map(|text| expression_key_text(text, table, style)));
    Some(items.join(", "))
}
