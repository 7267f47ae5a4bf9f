//! JSON_TABLE as a source of rows.

use std::sync::Arc;

use melba_types::{Datum, DbError, Result};

use crate::explain_output;
use crate::layout::Layout;
use crate::node::{Estimate, JsonTableNode, JsonTableStep, Op};
use crate::planner::{Planner, Stage};
use melba_tree::{Expr, JsonBehaviorKind, JsonTable, JsonTablePath, RangeKind};

/// The expressions of its rows.
pub fn inputs(table: &JsonTable) -> impl Iterator<Item = &Expr> {
    let values = table.columns.iter().filter_map(|column| column.value.as_ref());
    table.passing.iter().map(|(_, value)| value).chain(values).chain([&table.item])
}

pub fn create_json_table(planner: &mut Planner<'_>, entry: usize, estimate: Estimate) -> Result<Stage> {
    let described = planner.level().entries[entry].clone();
    let RangeKind::JsonTable(table) = described.kind else {
        return Err(DbError::internal("JSON_TABLE entry expected"));
    };
    let node = planner.compile_with(&Layout::default(), None, |compiler| {
        let rows = compiler.json_path("sqljson_rows", &table.item, &table.root.path, &table.passing)?;
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            columns.push(column.value.as_ref().map(|value| compiler.compile_over_local(value)).transpose()?);
        }
        let mut paths = Vec::new();
        flatten(&table.root, &mut paths)?;
        Ok(JsonTableNode { rows, throws: table.on_error == JsonBehaviorKind::Error, paths, columns })
    })?;
    let kinds = planner.kinds_of(&described.columns);
    let width = kinds.len();
    let mut node = planner.node(Op::JsonTable(Arc::new(node)), kinds, estimate);
    explain_output::scanned(planner, &mut node, None, Some("json_table"), &described.name);
    Ok(explain_output::scan_stage(planner, node, Layout::of(entry, width)))
}

/// Appends a path and those in it, and returns its number.
fn flatten(path: &JsonTablePath, out: &mut Vec<JsonTableStep>) -> Result<usize> {
    let Expr::Const(constant) = &path.path else { return Err(DbError::internal("path of JSON_TABLE is no constant")) };
    let Datum::Bytes(_) = &constant.value else { return Err(DbError::internal("path of JSON_TABLE is no jsonpath")) };
    let at = out.len();
    out.push(JsonTableStep { path: constant.value.clone(), columns: path.columns.clone(), nested: Vec::new() });
    for nested in &path.nested {
        let nested = flatten(nested, out)?;
        out[at].nested.push(nested);
    }
    Ok(at)
}
