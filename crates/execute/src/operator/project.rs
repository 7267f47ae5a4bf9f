//! Projection, and projection with set-returning functions.

use std::sync::Arc;

use melba_types::{Batch, Column, Datum, DbError, Kind, Result};

use super::function_scan::RowIter;
use super::partial::{indices, rows_before};
use crate::team::BuiltTables;
use crate::{ExecContext, Operator};
use melba_expression::Expression;
use melba_expression::{Node, Pieces, Weight, in_row_order};
use melba_plan::node::{ProjectNode, ProjectSetNode};
use melba_types::BATCH_ROWS;

pub(super) struct ProjectOp {
    node: Arc<ProjectNode>,
    input: Box<dyn Operator>,
    /// Values may be long: how many rows are computed together.
    pieces: Option<Pieces>,
    /// Input rows that are left when they are computed in pieces.
    left: Batch,
    at: usize,
    /// The row after those returned has failed.
    failed: Option<DbError>,
}

impl ProjectOp {
    pub fn new(node: Arc<ProjectNode>, ctx: &ExecContext) -> Result<ProjectOp> {
        let input = ctx.build(&node.input)?;
        let pieces = node.expressions.iter().any(Expression::makes_values).then(Pieces::default);
        Ok(ProjectOp { node, input, pieces, left: Batch::default(), at: 0, failed: None })
    }

    /// The next rows of the input, as many as are computed together.
    fn part(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if self.at >= self.left.rows {
            let Some(batch) = self.input.next(ctx, limit)? else { return Ok(None) };
            if self.pieces.is_none_or(|pieces| pieces.next(batch.rows) == batch.rows) {
                return Ok(Some(batch));
            }
            (self.left, self.at) = (batch, 0);
        }
        let rows = self.pieces.unwrap_or_default().next((self.left.rows - self.at).min(limit));
        let part = self.left.slice(self.at..self.at + rows, None);
        self.at += rows;
        Ok(Some(part))
    }

    /// The columns that are computed, by their places.
    fn computed(&self, ctx: &ExecContext, batch: &Batch) -> Result<Vec<Option<Column>>> {
        if batch.rows > 1 && in_row_order(&self.node.expressions) {
            return self.computed_in_row_order(ctx, batch);
        }
        let computed = |e: &Expression| match e.node {
            Node::Column(_) => Ok(None),
            _ => Ok(Some(e.eval_stored_vector(ctx, batch)?.into_column(e.kind, batch.rows)?)),
        };
        self.node.expressions.iter().map(computed).collect()
    }

    fn computed_in_row_order(&self, ctx: &ExecContext, batch: &Batch) -> Result<Vec<Option<Column>>> {
        let is_computed = |e: &Expression| !matches!(e.node, Node::Column(_));
        let empty = |e: &Expression| is_computed(e).then(|| Column::with_capacity(e.kind, batch.rows));
        let mut columns: Vec<Option<Column>> = self.node.expressions.iter().map(empty).collect();
        for i in 0..batch.rows {
            ctx.check_interrupt()?;
            let row = batch.row(i);
            for (e, column) in self.node.expressions.iter().zip(&mut columns) {
                if let Some(column) = column {
                    column.push(e.eval_row(ctx, &row)?);
                }
            }
        }
        Ok(columns)
    }

    fn project(&self, ctx: &ExecContext, mut batch: Batch) -> (Option<Batch>, Option<DbError>) {
        let expressions = &self.node.expressions;
        let computed = match self.computed(ctx, &batch) {
            Ok(computed) => computed,
            Err(error) if !expressions.iter().all(Expression::is_repeatable) => return (None, Some(error)),
            Err(error) => {
                let part = |range| {
                    let part = batch.take(&indices(range));
                    self.computed(ctx, &part).map(|computed| (part, computed))
                };
                let (before, error) = rows_before(batch.rows, error, part);
                let before = before.map(|(part, computed)| assemble(expressions, part, computed));
                return (before, Some(error));
            }
        };
        let batch = assemble(expressions, std::mem::take(&mut batch), computed);
        (Some(batch), None)
    }
}

/// Computed columns, and those of the input between them.
fn assemble(expressions: &[Expression], mut input: Batch, computed: Vec<Option<Column>>) -> Batch {
    let mut columns: Vec<Column> = Vec::with_capacity(expressions.len());
    for (i, (e, column)) in expressions.iter().zip(computed).enumerate() {
        columns.push(match (column, &e.node) {
            (Some(column), _) => column,
            // The last use of an input column takes it.
            (None, Node::Column(c)) => {
                let again = expressions[i + 1..].iter().any(|later| matches!(later.node, Node::Column(other) if other == *c));
                let column = &mut input.columns[*c];
                if again { column.clone() } else { std::mem::replace(column, Column::with_capacity(e.kind, 0)) }
            }
            (None, _) => Column::with_capacity(e.kind, 0),
        });
    }
    Batch { columns, rows: input.rows }
}

impl Operator for ProjectOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(part) = self.part(ctx, limit)? else { return Ok(None) };
        let rows = part.rows;
        match self.project(ctx, part) {
            (Some(made), failed) => {
                if let Some(pieces) = &mut self.pieces {
                    pieces.note_output(rows, made.memory_bytes());
                }
                self.failed = failed;
                Ok(Some(made))
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    fn share(&mut self, ctx: &ExecContext, tables: &mut BuiltTables) -> Result<bool> {
        self.input.share(ctx, tables)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.failed = None;
        (self.left, self.at) = (Batch::default(), 0);
        self.input.rescan(ctx)
    }
}

/// Each input row results in as many rows as its longest function; the shorter ones end in NULLs.
pub(super) struct ProjectSetOp {
    node: Arc<ProjectSetNode>,
    kinds: Arc<[Kind]>,
    input: Box<dyn Operator>,
    /// Columns of the input that arguments read.
    read: Vec<usize>,
    batch: Batch,
    /// The next row of the batch; the one before it is running while `active`.
    at: usize,
    /// The running row, with the columns that are read, and its size.
    row: Vec<Datum>,
    row_bytes: usize,
    running: Vec<Option<RowIter>>,
    active: bool,
    /// The row after those returned has failed.
    failed: Option<DbError>,
}

impl ProjectSetOp {
    pub fn new(node: Arc<ProjectSetNode>, kinds: Arc<[Kind]>, ctx: &ExecContext) -> Result<ProjectSetOp> {
        let input = ctx.build(&node.input)?;
        let mut read = Vec::new();
        node.functions.iter().for_each(|function| function.columns(&mut read));
        read.sort_unstable();
        read.dedup();
        Ok(ProjectSetOp {
            node,
            kinds,
            input,
            read,
            batch: Batch::default(),
            at: 0,
            row: vec![],
            row_bytes: 0,
            running: vec![],
            active: false,
            failed: None,
        })
    }

    /// Makes sure that there is a row that runs or may; false at the end.
    fn has_row(&mut self, ctx: &ExecContext) -> Result<bool> {
        while !self.active && self.at >= self.batch.rows {
            match self.input.next(ctx, BATCH_ROWS)? {
                None => return Ok(false),
                Some(batch) => {
                    self.batch = batch;
                    self.at = 0;
                }
            }
        }
        Ok(true)
    }

    /// Starts the next row of the batch.
    fn start(&mut self, ctx: &ExecContext) -> Result<()> {
        let at = self.at;
        self.at += 1;
        self.row.clear();
        self.row.resize(self.batch.columns.len(), Datum::Null);
        for column in &self.read {
            self.row[*column] = self.batch.columns[*column].get(at);
        }
        self.row_bytes = self.batch.columns.iter().map(|column| column.heap_bytes(at)).sum();
        self.running.clear();
        for function in &self.node.functions {
            self.running.push(Some(RowIter::start(function, ctx, &self.row)?));
        }
        self.active = true;
        Ok(())
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

    /// Rows of the present batch, at most `limit`: appends to the functions' columns, and to the list of the rows that they are of.
    fn fill(&mut self, ctx: &ExecContext, limit: usize, columns: &mut [Column], rows: &mut Vec<u32>) -> Result<()> {
        let mut weight = Weight::default();
        while rows.len() < limit && !weight.is_much() {
            if !self.active {
                if self.at >= self.batch.rows {
                    break;
                }
                self.start(ctx)?;
            }
            let Some(values) = self.step()? else {
                self.active = false;
                ctx.check_interrupt()?;
                continue;
            };
            weight.add(&values);
            weight.add_bytes(self.row_bytes);
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            rows.push(self.at as u32 - 1);
        }
        Ok(())
    }
}

impl Operator for ProjectSetOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let limit = limit.min(BATCH_ROWS);
        while self.has_row(ctx)? {
            ctx.check_interrupt()?;
            let kinds = &self.kinds[self.batch.columns.len()..];
            let mut made: Vec<Column> = kinds.iter().map(|kind| Column::with_capacity(*kind, 16)).collect();
            let mut rows = Vec::new();
            if let Err(error) = self.fill(ctx, limit, &mut made, &mut rows) {
                if rows.is_empty() {
                    return Err(error);
                }
                self.failed = Some(error);
            }
            if !rows.is_empty() {
                let mut columns: Vec<Column> = self.batch.columns.iter().map(|column| column.take(&rows)).collect();
                columns.extend(made);
                return Ok(Some(Batch { columns, rows: rows.len() }));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.batch = Batch::default();
        self.at = 0;
        self.active = false;
        self.failed = None;
        self.input.rescan(ctx)
    }
}
