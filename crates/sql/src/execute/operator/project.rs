//! Projection, and projection with set-returning functions.

use std::sync::Arc;

use melba_types::{Batch, Column, Datum, Result};

use super::build;
use super::function_scan::RowIter;
use crate::execute::expression::Node;
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::{ProjectNode, ProjectSetNode};

pub(super) struct ProjectOp {
    node: Arc<ProjectNode>,
    input: Box<dyn Operator>,
}

impl ProjectOp {
    pub fn new(node: Arc<ProjectNode>, ctx: &ExecContext) -> Result<ProjectOp> {
        let input = build(&node.input, ctx)?;
        Ok(ProjectOp { node, input })
    }
}

impl Operator for ProjectOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let Some(mut batch) = self.input.next(ctx, limit)? else { return Ok(None) };
        let expressions = &self.node.expressions;
        let mut columns: Vec<Column> = Vec::with_capacity(expressions.len());
        for (i, e) in expressions.iter().enumerate() {
            // The last use of an input column takes it.
            if let Node::Column(c) = e.node
                && !expressions[i + 1..].iter().any(|later| {
                    let mut used = Vec::new();
                    later.columns(&mut used);
                    used.contains(&c)
                })
            {
                columns.push(std::mem::replace(&mut batch.columns[c], Column::with_capacity(e.kind, 0)));
                continue;
            }
            columns.push(e.eval_stored_vector(ctx, &batch)?.into_column(e.kind, batch.rows));
        }
        Ok(Some(Batch { columns, rows: batch.rows }))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.input.rescan(ctx)
    }
}

/// Each input row gives as many rows as its longest function; the shorter ones end in NULLs.
pub(super) struct ProjectSetOp {
    node: Arc<ProjectSetNode>,
    input: Box<dyn Operator>,
    batch: Batch,
    at: usize,
    row: Vec<Datum>,
    running: Vec<Option<RowIter>>,
    active: bool,
}

impl ProjectSetOp {
    pub fn new(node: Arc<ProjectSetNode>, ctx: &ExecContext) -> Result<ProjectSetOp> {
        let input = build(&node.input, ctx)?;
        Ok(ProjectSetOp { node, input, batch: Batch::default(), at: 0, row: vec![], running: vec![], active: false })
    }

    /// Starts the next input row; false at the end.
    fn advance(&mut self, ctx: &ExecContext) -> Result<bool> {
        while self.at >= self.batch.rows {
            match self.input.next(ctx, BATCH_ROWS)? {
                None => return Ok(false),
                Some(batch) => {
                    self.batch = batch;
                    self.at = 0;
                }
            }
        }
        self.row = self.batch.row(self.at);
        self.at += 1;
        self.running.clear();
        for function in &self.node.functions {
            self.running.push(Some(RowIter::start(function, ctx, &self.row)?));
        }
        self.active = true;
        Ok(true)
    }

    /// The functions' next values; `None` when all have ended.
    fn step(&mut self) -> Result<Option<Vec<Datum>>> {
        let mut values = Vec::with_capacity(self.running.len());
        let mut any = false;
        for running in &mut self.running {
            let next = match running {
                Some(iter) => iter.next_value()?,
                None => None,
            };
            match next {
                Some(value) => {
                    any = true;
                    values.push(value);
                }
                None => {
                    *running = None;
                    values.push(Datum::Null);
                }
            }
        }
        Ok(any.then_some(values))
    }
}

impl Operator for ProjectSetOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let limit = limit.min(BATCH_ROWS);
        let expressions = &self.node.expressions;
        let mut columns: Vec<Column> = expressions.iter().map(|e| Column::with_capacity(e.kind, 16)).collect();
        let mut rows = 0;
        while rows < limit {
            if !self.active && !self.advance(ctx)? {
                break;
            }
            let Some(values) = self.step()? else {
                self.active = false;
                ctx.check_interrupt()?;
                continue;
            };
            let width = self.row.len();
            self.row.extend(values);
            for (column, e) in columns.iter_mut().zip(&self.node.expressions) {
                column.push(e.eval_row(ctx, &self.row)?);
            }
            self.row.truncate(width);
            rows += 1;
        }
        Ok((rows > 0).then_some(Batch { columns, rows }))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.batch = Batch::default();
        self.at = 0;
        self.active = false;
        self.input.rescan(ctx)
    }
}
