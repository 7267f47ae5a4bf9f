//! Rows of system relations.

use melba_catalog::relations::{self, EqFilter};
use melba_types::{Datum, DbError, Result};

use super::ExecContext;
use crate::plan::node::SystemScanNode;

/// The rows for which all given columns have the given values.
pub(crate) fn rows(ctx: &ExecContext, node: &SystemScanNode, equal: &[(usize, Datum)]) -> Result<Vec<Vec<Datum>>> {
    let Some(relation) = ctx.catalog.relation(node.relation) else {
        return Err(DbError::internal(format!("system relation {} does not exist", node.relation)));
    };
    if equal.iter().any(|(_, value)| value.is_null()) {
        return Ok(vec![]);
    }
    let filters: Vec<EqFilter> = equal.iter().map(|(column, value)| EqFilter { column: *column, value: value.clone() }).collect();
    let batch = relations::rows(relation, &ctx.catalog, &*ctx.live, &filters)?;
    Ok((0..batch.rows).map(|i| batch.row(i)).collect())
}
