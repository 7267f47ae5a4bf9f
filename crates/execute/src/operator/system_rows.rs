//! Rows of system relations and of sequences.

use melba_catalog::Storage;
use melba_catalog::relations::{self, EqFilter};
use melba_engine::SequenceId;
use melba_types::{Batch, Datum, DbError, Kind, Result, RowId};

use super::pending::batch_of;
use super::table_scan::output_row;
use crate::ExecContext;
use melba_plan::node::{ScanOutput, SystemScanNode};

/// The node's outputs, of the given kinds, for the rows in which all given columns have the given values.
pub(super) fn rows(ctx: &ExecContext, node: &SystemScanNode, kinds: &[Kind], equal: &[(usize, Datum)]) -> Result<Batch> {
    let Some(relation) = ctx.catalog().relation(node.relation) else {
        return Err(DbError::internal(format!("system relation {} does not exist", node.relation)));
    };
    if equal.iter().any(|(_, value)| value.is_null()) {
        return Ok(batch_of(kinds, &[]));
    }
    if let Storage::Sequence(id) = relation.storage {
        let row = sequence_row(ctx, SequenceId(id.0))?;
        let passes =
            equal.iter().all(|(column, value)| matches!((&row[*column], value), (Datum::Bool(a), Datum::Bool(b)) if a == b));
        let shown = output_row(ctx, &node.outputs, &row, RowId(0))?;
        return Ok(batch_of(kinds, if passes { std::slice::from_ref(&shown) } else { &[] }));
    }
    let filters: Vec<EqFilter> = equal.iter().map(|(column, value)| EqFilter { column: *column, value: value.clone() }).collect();
    let read = |places: &[usize]| relations::rows(relation, ctx.catalog(), ctx.session.live_info(), &filters, places);
    let place = |output: &ScanOutput| if let ScanOutput::Column(place) = output { Some(*place) } else { None };
    let plain: Option<Vec<usize>> = node.outputs.iter().map(place).collect();
    if let Some(places) = plain {
        return read(&places);
    }
    let all: Vec<usize> = (0..node.column_kinds.len()).collect();
    let batch = read(&all)?;
    let shown = (0..batch.rows).map(|i| output_row(ctx, &node.outputs, &batch.row(i), RowId(0)));
    Ok(batch_of(kinds, &shown.collect::<Result<Vec<_>>>()?))
}

/// last_value, log_cnt, is_called. The log has a sequence's values ahead of time, but never by a number that is told.
fn sequence_row(ctx: &ExecContext, id: SequenceId) -> Result<Vec<Datum>> {
    let state = ctx.transaction().sequence_state(id)?;
    Ok(vec![Datum::Int8(state.last_value), Datum::Int8(0), Datum::Bool(state.is_called)])
}
