//! Functions in FROM and foreign tables that read files: batches come with the needed columns only.

use std::sync::Arc;

use melba_engine::{Held, ZoneOp};
use melba_fmgr::{FileBound, FileRequest, FileRows, NamedFiles};
use melba_plan::file_scan::{FileScanNode, LastColumn, ScannedFiles};
use melba_types::{BATCH_ROWS, Batch, Column, ColumnData, Datum, Kind, Result};

use crate::{ExecContext, Operator};

pub(super) struct FileScanOp {
    node: Arc<FileScanNode>,
    /// `None` before the first row and after the last.
    rows: Option<Box<dyn FileRows>>,
    begun: bool,
    /// Rows before.
    number: i64,
    held: Option<Held>,
}

impl FileScanOp {
    pub fn new(node: Arc<FileScanNode>) -> FileScanOp {
        FileScanOp { node, rows: None, begun: false, number: 0, held: None }
    }

    fn open(&self, ctx: &ExecContext) -> Result<Option<Box<dyn FileRows>>> {
        let files = match &self.node.files {
            ScannedFiles::Table(table) => NamedFiles::Table(Arc::clone(table)),
            ScannedFiles::Function { source, args } => {
                let args = args.iter().map(|a| a.eval_row(ctx, &[])).collect::<Result<Vec<_>>>()?;
                // Options may be null.
                if args.first().is_none_or(Datum::is_null) {
                    return Ok(None);
                }
                NamedFiles::Function { source: source.to_string(), args }
            }
        };
        let bounds = self
            .node
            .conditions
            .iter()
            .map(|(column, op, value)| Ok(bound(*column, *op, value.eval_row(ctx, &[])?)))
            .collect::<Result<Vec<_>>>()?;
        let request = FileRequest {
            files,
            columns: self.node.columns.clone(),
            needed: self.node.needed.clone(),
            bounds: bounds.into_iter().flatten().collect(),
        };
        Arc::clone(&ctx.session).open_files(request).map(Some)
    }
}

/// The values that a condition lets pass; of a comparison with NULL, which no row passes, nothing is made.
fn bound(column: usize, op: ZoneOp, value: Datum) -> Option<FileBound> {
    if value.is_null() {
        return None;
    }
    let (least, greatest) = match op {
        ZoneOp::Equal => (Some(value.clone()), Some(value)),
        ZoneOp::Less | ZoneOp::LessOrEqual => (None, Some(value)),
        ZoneOp::Greater | ZoneOp::GreaterOrEqual => (Some(value), None),
        _ => return None,
    };
    Some(FileBound { column, least, greatest })
}

impl Operator for FileScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.rows = self.open(ctx)?;
        }
        let Some(rows) = &mut self.rows else { return Ok(None) };
        ctx.check_interrupt()?;
        let mut batch = rows.next(limit.clamp(1, BATCH_ROWS))?;
        if batch.is_none() {
            (self.rows, self.held) = (None, None);
            return Ok(None);
        }
        match (self.node.last, &mut batch) {
            (Some(LastColumn::Number), Some(batch)) => {
                let first = self.number + 1;
                self.number += batch.rows as i64;
                batch.columns.push(Column::new(ColumnData::Int8((first..=self.number).collect())));
            }
            (Some(LastColumn::TableOid(oid)), Some(batch)) => {
                let mut column = Column::with_capacity(Kind::Oid, batch.rows);
                (0..batch.rows).for_each(|_| column.push(Datum::Oid(oid.0)));
                batch.columns.push(column);
            }
            _ => {}
        }
        self.held.get_or_insert_with(|| ctx.resources().held()).set(rows.memory_bytes())?;
        Ok(batch)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        (self.rows, self.begun, self.number, self.held) = (None, false, 0, None);
        Ok(())
    }
}
