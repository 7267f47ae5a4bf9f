//! Nested loops: the right side is run for every left row, or read once and kept when it does not depend on it.

use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, Result};

use super::build;
use super::hash_join::join_rows;
use super::pending::{Pending, append, give, nulls};
use crate::execute::expression::filter;
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::{JoinType, NestedLoopNode};

pub(super) struct NestedLoopOp {
    node: Arc<NestedLoopNode>,
    /// Columns of both sides that the conditions read.
    read: Vec<usize>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    batch: Batch,
    at: usize,
    /// The right side's rows when it runs once.
    kept: Option<Batch>,
    /// Of the left row at `at`.
    running: bool,
    matched: bool,
    /// Full joins: which kept rows had a partner.
    partnered: Vec<bool>,
    finished: bool,
    pending: Pending,
}

impl NestedLoopOp {
    pub fn new(node: Arc<NestedLoopNode>, ctx: &ExecContext) -> Result<NestedLoopOp> {
        let left = build(&node.left, ctx)?;
        let right = build(&node.right, ctx)?;
        let mut read = Vec::new();
        node.conditions.iter().for_each(|c| c.columns(&mut read));
        Ok(NestedLoopOp {
            node,
            read,
            left,
            right,
            batch: Batch::default(),
            at: 0,
            kept: None,
            running: false,
            matched: false,
            partnered: vec![],
            finished: false,
            pending: Pending::default(),
        })
    }

    /// Makes sure there is a left row; false at the end.
    fn left_row(&mut self, ctx: &ExecContext) -> Result<bool> {
        while self.at >= self.batch.rows {
            match self.left.next(ctx, BATCH_ROWS)? {
                None => return Ok(false),
                Some(batch) => {
                    self.batch = batch;
                    self.at = 0;
                }
            }
        }
        Ok(true)
    }

    /// The right rows for the present left row, a batch at a time.
    fn right_rows(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        if self.node.parameters.is_empty() {
            if self.running {
                return Ok(None);
            }
            self.running = true;
            if self.kept.is_none() {
                let mut all = Batch { columns: nulls(&self.node.right.kinds, 0), rows: 0 };
                while let Some(batch) = self.right.next(ctx, BATCH_ROWS)? {
                    append(&mut all, batch);
                    ctx.check_interrupt()?;
                }
                self.partnered = vec![false; all.rows];
                self.kept = Some(all);
            }
            // Lent out and put back by the caller.
            return Ok(self.kept.take());
        }
        if !self.running {
            self.running = true;
            for (parameter, column) in &self.node.parameters {
                ctx.set_executor_parameter(*parameter, self.batch.columns[*column].get(self.at));
            }
            self.right.rescan(ctx)?;
        }
        self.right.next(ctx, BATCH_ROWS)
    }

    /// Pairs of the present left row with some right rows that satisfy the conditions.
    fn pairs(&mut self, ctx: &ExecContext, right: &Batch) -> Result<(Batch, Vec<u32>)> {
        let all: Vec<u32> = (0..right.rows as u32).collect();
        let lefts = |rows: usize| vec![self.at as u32; rows];
        if self.node.conditions.is_empty() {
            return Ok((join_rows(&self.batch, &lefts(right.rows), right, &all), all));
        }
        // Only what the conditions read is put together for the rows that they leave out.
        let width = self.batch.columns.len();
        let unread = || Column::new(ColumnData::Bool(Vec::new()));
        let mut columns: Vec<Column> = Vec::with_capacity(width + right.columns.len());
        for (i, column) in self.batch.columns.iter().enumerate() {
            columns.push(if self.read.contains(&i) { column.take(&lefts(right.rows)) } else { unread() });
        }
        for (i, column) in right.columns.iter().enumerate() {
            columns.push(if self.read.contains(&(width + i)) { column.clone() } else { unread() });
        }
        let candidates = Batch { columns, rows: right.rows };
        let kept = filter(&self.node.conditions, ctx, &candidates)?.unwrap_or(all);
        Ok((join_rows(&self.batch, &lefts(kept.len()), right, &kept), kept))
    }

    /// The present left row beside NULLs.
    fn left_alone(&self) -> Batch {
        let mut columns: Vec<_> = self.batch.columns.iter().map(|c| c.take(&[self.at as u32])).collect();
        if self.node.join.keeps_right() {
            columns.extend(nulls(&self.node.right.kinds, 1));
        }
        Batch { columns, rows: 1 }
    }

    fn end_row(&mut self) {
        self.at += 1;
        self.running = false;
        self.matched = false;
    }

    /// The next rows of the present left row; `None` when it is done.
    fn step(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let join = self.node.join;
        while let Some(right) = self.right_rows(ctx)? {
            let found = if right.rows > 0 { Some(self.pairs(ctx, &right)?) } else { None };
            if self.node.parameters.is_empty() {
                self.kept = Some(right);
            }
            let Some((pairs, rights)) = found else { continue };
            if pairs.rows == 0 {
                continue;
            }
            self.matched = true;
            match join {
                JoinType::Semi => {
                    let row = self.left_alone();
                    self.end_row();
                    return Ok(Some(row));
                }
                JoinType::SemiPair => {
                    self.end_row();
                    return Ok(Some(pairs.take(&[0])));
                }
                JoinType::Anti => {
                    self.end_row();
                    return Ok(None);
                }
                _ => {
                    if join == JoinType::Full {
                        rights.iter().for_each(|&r| self.partnered[r as usize] = true);
                    }
                    return Ok(Some(pairs));
                }
            }
        }
        let alone = !self.matched && matches!(join, JoinType::Left | JoinType::Full | JoinType::Anti);
        let row = alone.then(|| self.left_alone());
        self.end_row();
        Ok(row)
    }

    fn unpartnered(&mut self) -> Option<Batch> {
        let kept = self.kept.as_ref()?;
        let rows: Vec<u32> = self.partnered.iter().enumerate().filter(|(_, p)| !**p).map(|(i, _)| i as u32).collect();
        let mut columns = nulls(&self.node.left.kinds, rows.len());
        columns.extend(kept.columns.iter().map(|c| c.take(&rows)));
        Some(Batch { columns, rows: rows.len() })
    }
}

impl Operator for NestedLoopOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        if self.finished {
            return Ok(None);
        }
        let want = limit.min(BATCH_ROWS);
        let mut out = Batch::default();
        while out.rows < want {
            if !self.left_row(ctx)? {
                self.finished = true;
                if self.node.join == JoinType::Full {
                    if self.kept.is_none() {
                        self.right_rows(ctx)?.into_iter().for_each(|kept| self.kept = Some(kept));
                    }
                    if let Some(rest) = self.unpartnered() {
                        append(&mut out, rest);
                    }
                }
                break;
            }
            if let Some(rows) = self.step(ctx)? {
                append(&mut out, rows);
            }
            ctx.check_interrupt()?;
        }
        if out.rows == 0 {
            return Ok(None);
        }
        Ok(give(&mut self.pending, out, limit))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.batch = Batch::default();
        self.at = 0;
        self.kept = None;
        self.running = false;
        self.matched = false;
        self.finished = false;
        self.pending.clear();
        self.left.rescan(ctx)?;
        self.right.rescan(ctx)
    }
}
