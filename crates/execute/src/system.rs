//! Rows of system relations and of sequences.

use melba_catalog::Storage;
use melba_catalog::relations::{self, EqFilter};
use melba_engine::SequenceId;
use melba_types::{Datum, DbError, Result};

use super::ExecContext;
use melba_plan::node::SystemScanNode;

/// The rows for which all given columns have the given values.
pub(crate) fn rows(ctx: &ExecContext, node: &SystemScanNode, equal: &[(usize, Datum)]) -> Result<Vec<Vec<Datum>>> {
    let Some(relation) = ctx.catalog().relation(node.relation) else {
        return Err(DbError::internal(format!("system relation {} does not exist", node.relation)));
    };
    if equal.iter().any(|(_, value)| value.is_null()) {
        return Ok(vec![]);
    }
    if let Storage::Sequence(id) = relation.storage {
        let row = sequence_row(ctx, SequenceId(id.0))?;
        let passes =
            equal.iter().all(|(column, value)| matches!((&row[*column], value), (Datum::Bool(a), Datum::Bool(b)) if a == b));
        return Ok(if passes { vec![row] } else { Vec::new() });
    }
    let filters: Vec<EqFilter> = equal.iter().map(|(column, value)| EqFilter { column: *column, value: value.clone() }).collect();
    let batch = relations::rows(relation, ctx.catalog(), ctx.session.live_info(), &filters)?;
    Ok((0..batch.rows).map(|i| batch.row(i)).collect())
}

/// last_value, log_cnt, is_called. The log has a sequence's values ahead of time, but never by a number that is told.
fn sequence_row(ctx: &ExecContext, id: SequenceId) -> Result<Vec<Datum>> {
    let state = ctx.transaction().sequence_state(id)?;
    Ok(vec![Datum::Int8(state.last_value), Datum::Int8(0), Datum::Bool(state.is_called)])
}
