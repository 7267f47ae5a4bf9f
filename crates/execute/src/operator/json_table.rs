//! JSON_TABLE: a row for each item of a path, joined with the rows of the paths that are nested in it.

use std::sync::Arc;

use melba_types::{Batch, Column, Datum, DbError, Kind, Result, limits};

use crate::{ExecContext, Operator};
use melba_expression::Weight;
use melba_plan::node::JsonTableNode;
use melba_types::BATCH_ROWS;

/// Where a path stands.
#[derive(Default)]
struct PathPosition {
    items: std::vec::IntoIter<Datum>,
    current: Option<Datum>,
    number: i32,
}

pub(super) struct JsonTableOp {
    node: Arc<JsonTableNode>,
    kinds: Arc<[Kind]>,
    /// By path. Empty before the document was read.
    positions: Vec<PathPosition>,
    passing: Vec<Datum>,
    /// A row after those returned has failed.
    failed: Option<DbError>,
    done: bool,
}

impl JsonTableOp {
    pub fn new(node: Arc<JsonTableNode>, kinds: Arc<[Kind]>) -> JsonTableOp {
        JsonTableOp { node, kinds, positions: Vec::new(), passing: Vec::new(), failed: None, done: false }
    }

    /// Reads the document; false without one.
    fn start(&mut self, ctx: &ExecContext) -> Result<bool> {
        let rows = &self.node.rows;
        let document = rows.item.eval_row(ctx, &[])?;
        if document.is_null() {
            return Ok(false);
        }
        self.passing = rows.passing.iter().map(|(_, value)| value.eval_row(ctx, &[])).collect::<Result<_>>()?;
        self.positions.resize_with(self.node.paths.len(), PathPosition::default);
        self.restart(0, document, ctx)?;
        Ok(true)
    }

    /// Finds the items of a path in an item of the one around it.
    fn restart(&mut self, at: usize, item: Datum, ctx: &ExecContext) -> Result<()> {
        let found = self.node.rows.select(ctx, item, self.node.paths[at].path.clone(), &self.passing);
        let items = match found {
            Ok(found) => found.as_array().elements.clone(),
            Err(e) if !self.node.throws && e.sqlstate().class() == "22" => Vec::new(),
            Err(e) => return Err(e),
        };
        self.positions[at] = PathPosition { items: items.into_iter(), current: None, number: 0 };
        Ok(())
    }

    /// Moves a path to its next row, which is its item with the next row of a nested path, or with none when they have none.
    fn advance(&mut self, at: usize, ctx: &ExecContext) -> Result<bool> {
        limits::check_stack()?;
        if self.positions[at].current.is_some() && self.advance_nested(at, ctx)? {
            return Ok(true);
        }
        let position = &mut self.positions[at];
        position.current = position.items.next();
        let Some(item) = position.current.clone() else { return Ok(false) };
        position.number += 1;
        let node = self.node.clone();
        for &nested in &node.paths[at].nested {
            self.restart(nested, item.clone(), ctx)?;
        }
        self.advance_nested(at, ctx)?;
        Ok(true)
    }

    fn advance_nested(&mut self, at: usize, ctx: &ExecContext) -> Result<bool> {
        let node = self.node.clone();
        for &nested in &node.paths[at].nested {
            if self.advance(nested, ctx)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn row(&mut self, ctx: &ExecContext) -> Result<Option<Vec<Datum>>> {
        if self.positions.is_empty() && !self.start(ctx)? {
            return Ok(None);
        }
        if !self.advance(0, ctx)? {
            return Ok(None);
        }
        let mut row = vec![Datum::Null; self.node.columns.len()];
        for (path, position) in self.node.paths.iter().zip(&self.positions) {
            let Some(item) = &position.current else { continue };
            for at in path.columns.clone() {
                row[at] = match &self.node.columns[at] {
                    Some(value) => ctx.with_local(item.clone(), || value.eval_row(ctx, &[]))?,
                    None => Datum::Int4(position.number),
                };
            }
        }
        Ok(Some(row))
    }
}

impl Operator for JsonTableOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.done {
            return Ok(None);
        }
        let mut columns: Vec<Column> = self.kinds.iter().map(|k| Column::with_capacity(*k, 16)).collect();
        let mut rows = 0;
        let mut weight = Weight::default();
        while rows < limit.min(BATCH_ROWS) && !weight.is_much() {
            let row = match self.row(ctx) {
                Ok(Some(row)) => row,
                Ok(None) => {
                    self.done = true;
                    break;
                }
                Err(error) if rows > 0 => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            weight.add(&row);
            for (column, value) in columns.iter_mut().zip(row) {
                column.push(value);
            }
            rows += 1;
        }
        ctx.check_interrupt()?;
        Ok((rows > 0).then_some(Batch { columns, rows }))
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.positions.clear();
        self.failed = None;
        self.done = false;
        Ok(())
    }
}
