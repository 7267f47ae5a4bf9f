//! Result, Values, Filter.

use std::sync::Arc;

use melba_types::{Batch, Column, DbError, Kind, Result};

use super::partial::passing;
use crate::team::BuiltTables;
use crate::{ExecContext, Operator};
use melba_expression::Expression;
use melba_expression::Weight;
use melba_plan::node::{FilterNode, ResultNode};
use melba_types::BATCH_ROWS;

pub(super) struct ResultOp {
    node: Arc<ResultNode>,
    input: Option<Box<dyn Operator>>,
    checked: bool,
    done: bool,
}

impl ResultOp {
    pub fn new(node: Arc<ResultNode>, ctx: &ExecContext) -> Result<ResultOp> {
        let input = node.input.as_ref().map(|i| ctx.build(i)).transpose()?;
        Ok(ResultOp { node, input, checked: false, done: false })
    }
}

impl Operator for ResultOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if self.done {
            return Ok(None);
        }
        if !self.checked {
            self.checked = true;
            for condition in &self.node.conditions {
                if !condition.holds(ctx, &[])? {
                    self.done = true;
                    return Ok(None);
                }
            }
        }
        match &mut self.input {
            Some(input) => input.next(ctx, limit),
            None => {
                self.done = true;
                Ok(Some(Batch { columns: vec![], rows: 1 }))
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.done = false;
        self.checked = false;
        self.input.as_mut().map_or(Ok(()), |i| i.rescan(ctx))
    }
}

pub(super) struct ValuesOp {
    rows: Arc<Vec<Vec<Expression>>>,
    kinds: Arc<[Kind]>,
    at: usize,
}

impl ValuesOp {
    pub fn new(rows: Arc<Vec<Vec<Expression>>>, kinds: Arc<[Kind]>) -> ValuesOp {
        ValuesOp { rows, kinds, at: 0 }
    }

    /// Parameters of a row, if the second row stands for all that follow it; 0 if it does not.
    fn repeated_width(&self, ctx: &ExecContext) -> usize {
        let width = ctx.row_parameters();
        match &self.rows[..] {
            [_, second] if width > 0 && second.iter().any(|e| e.reads_parameter_from(width)) => width,
            _ => 0,
        }
    }
}

impl Operator for ValuesOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let width = self.repeated_width(ctx);
        let count = ctx.parameters.len().checked_div(width).unwrap_or(self.rows.len());
        if width > 0 {
            ctx.set_rows_repeated();
        }
        let to = (self.at + limit.min(BATCH_ROWS)).min(count);
        if self.at == to {
            return Ok(None);
        }
        let mut columns: Vec<Column> = self.kinds.iter().map(|k| Column::with_capacity(*k, to - self.at)).collect();
        let mut weight = Weight::default();
        let mut rows = 0;
        for i in self.at..to {
            if weight.is_much() {
                break;
            }
            rows += 1;
            let (row, offset) = if width > 0 && i > 0 { (1, (i - 1) * width) } else { (i, 0) };
            ctx.set_parameter_offset(offset);
            for (column, e) in columns.iter_mut().zip(&self.rows[row]) {
                let value = e.eval_stored(ctx, &[])?;
                weight.add(std::slice::from_ref(&value));
                column.push(value);
            }
        }
        ctx.set_parameter_offset(0);
        self.at += rows;
        Ok(Some(Batch { columns, rows }))
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.at = 0;
        Ok(())
    }
}

pub(super) struct FilterOp {
    id: usize,
    node: Arc<FilterNode>,
    input: Box<dyn Operator>,
    /// A row after those returned has failed.
    failed: Option<DbError>,
}

impl FilterOp {
    pub fn new(id: usize, node: Arc<FilterNode>, ctx: &ExecContext) -> Result<FilterOp> {
        let input = ctx.build(&node.input)?;
        Ok(FilterOp { id, node, input, failed: None })
    }
}

impl Operator for FilterOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some(batch) = self.input.next(ctx, limit)? {
            let rows = batch.rows;
            let (passing, failed) = passing(&self.node.conditions, ctx, batch)?;
            ctx.note_removed(self.id, rows, passing.as_ref().map_or(0, |batch| batch.rows));
            self.failed = failed;
            match passing {
                Some(batch) => return Ok(Some(batch)),
                None => ctx.check_interrupt()?,
            }
        }
        Ok(None)
    }

    fn share(&mut self, ctx: &ExecContext, tables: &mut BuiltTables) -> Result<bool> {
        self.input.share(ctx, tables)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.failed = None;
        self.input.rescan(ctx)
    }
}
