//! Sequential scans of stored tables.

use std::sync::Arc;

use melba_engine::{TableScan, ZonePredicate};
use melba_types::{Batch, Column, ColumnData, Datum, DbError, Kind, Oid, Record, Result, RowId};

use super::partial::passing;
use super::pending::{Pending, give_scanned};
use crate::{ExecContext, Operator};
use melba_plan::node::{ScanOutput, TableScanNode, TableSource};

pub(super) struct TableScanOp {
    node: Arc<TableScanNode>,
    scan: Option<TableScan>,
    pending: Pending,
    /// A row after those pending has failed.
    failed: Option<DbError>,
    done: bool,
}

impl TableScanOp {
    pub fn new(node: Arc<TableScanNode>) -> TableScanOp {
        TableScanOp { node, scan: None, pending: Pending::default(), failed: None, done: false }
    }

    fn open(&self, ctx: &ExecContext) -> Result<TableScan> {
        let mut zones = Vec::with_capacity(self.node.zones.len());
        for (column, op, value) in &self.node.zones {
            let value = value.eval_row(ctx, &[])?;
            if !value.is_null() {
                zones.push(ZonePredicate { column: *column, op: *op, value });
            }
        }
        let source = &self.node.source;
        Ok(ctx.transaction().scan(ctx.view(), source.tree, &source.projection, &source.missing, &zones, None)?)
    }
}

impl Operator for TableScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(self.pending.rows_within(limit)) {
            return Ok(Some(batch));
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.done {
            return Ok(None);
        }
        if self.scan.is_none() {
            self.scan = Some(self.open(ctx)?);
        }
        while let Some(scan) = &mut self.scan {
            ctx.check_interrupt()?;
            let Some(found) = scan.next()? else { break };
            if found.row_ids.is_empty() {
                continue;
            }
            let batch = outputs(ctx, &self.node.source, &found.row_ids, found.columns)?;
            let (passing, failed) = passing(&self.node.filter, ctx, batch)?;
            self.failed = failed;
            let Some(batch) = passing else { continue };
            return Ok(give_scanned(&mut self.pending, batch, limit));
        }
        self.scan = None;
        self.done = true;
        Ok(None)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.scan = None;
        self.done = false;
        self.failed = None;
        self.pending.clear();
        Ok(())
    }
}

/// The output columns of scanned rows.
pub(crate) fn outputs(ctx: &ExecContext, source: &TableSource, row_ids: &[RowId], mut columns: Vec<Column>) -> Result<Batch> {
    let rows = row_ids.len();
    if !source.virtuals.is_empty() {
        let batch = Batch { columns, rows };
        let computed = source.virtuals.iter().map(|e| e.eval_batch(ctx, &batch)).collect::<Result<Vec<_>>>()?;
        columns = batch.columns;
        columns.extend(computed);
    }
    if source.plain {
        return Ok(Batch { columns, rows });
    }
    let mut out = Vec::with_capacity(source.outputs.len());
    let mut columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
    for (i, output) in source.outputs.iter().enumerate() {
        out.push(match output {
            ScanOutput::Column(c) => {
                let again = source.outputs[i + 1..].iter().any(|o| match o {
                    ScanOutput::Column(other) => other == c,
                    ScanOutput::WholeRow { .. } => true,
                    _ => false,
                });
                let column = if again { columns[*c].clone() } else { columns[*c].take() };
                column.unwrap_or_else(|| Column::with_capacity(source.kinds[i], 0))
            }
            ScanOutput::RowId => Column::new(ColumnData::Int8(row_ids.iter().map(|r| r.0 as i64).collect())),
            ScanOutput::Const(value) => melba_expression::repeat(value, source.kinds[i], rows),
            ScanOutput::WholeRow { ty, columns: fields, types, names } => {
                let mut column = Column::with_capacity(source.kinds[i], rows);
                for row in 0..rows {
                    let get =
                        |c: &Option<usize>| c.and_then(|c| columns[c].as_ref()).map_or(Datum::Null, |column| column.get(row));
                    let fields = whole_row(ctx, fields.iter().map(get), types)?;
                    column.push(Datum::Record(Arc::new(Record {
                        type_oid: *ty,
                        field_types: types.clone(),
                        field_names: Some(names.clone()),
                        fields,
                    })));
                }
                column
            }
        });
    }
    Ok(Batch { columns: out, rows })
}

/// The fields of a row as a composite value, which holds nothing in stored form.
fn whole_row(ctx: &ExecContext, fields: impl Iterator<Item = Datum>, types: &[Oid]) -> Result<Vec<Datum>> {
    fields.zip(types).map(|(field, ty)| ctx.expand(field, ctx.catalog().kind_of(*ty).unwrap_or(Kind::Text))).collect()
}

/// The outputs for one row of a table whose projected columns are given.
pub(crate) fn source_row(ctx: &ExecContext, source: &TableSource, mut row: Vec<Datum>, id: RowId) -> Result<Vec<Datum>> {
    if source.plain {
        return Ok(row);
    }
    for expression in &source.virtuals {
        let value = expression.eval_row(ctx, &row)?;
        row.push(value);
    }
    output_row(ctx, &source.outputs, &row, id)
}

/// The outputs for one row whose columns, virtual ones too, are given.
pub(crate) fn output_row(ctx: &ExecContext, outputs: &[ScanOutput], row: &[Datum], id: RowId) -> Result<Vec<Datum>> {
    let one = |output: &ScanOutput| {
        Ok(match output {
            ScanOutput::Column(c) => row[*c].clone(),
            ScanOutput::RowId => Datum::Int8(id.0 as i64),
            ScanOutput::Const(value) => value.clone(),
            ScanOutput::WholeRow { ty, columns, types, names } => Datum::Record(Arc::new(Record {
                type_oid: *ty,
                field_types: types.clone(),
                field_names: Some(names.clone()),
                fields: whole_row(ctx, columns.iter().map(|c| c.map_or(Datum::Null, |c| row[c].clone())), types)?,
            })),
        })
    };
    outputs.iter().map(one).collect()
}
