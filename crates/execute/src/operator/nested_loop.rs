//! Nested loops: the right side is run for every left row, or read once and kept when it does not depend on it.

use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, DbError, Result};

use super::hash_join::join_rows;
use super::pending::{Pending, give, nulls};
use crate::team::BuiltTables;
use crate::{ExecContext, Operator};
use melba_expression::filter;
use melba_plan::node::{JoinType, NestedLoopNode};
use melba_spill::{Place, Store};
use melba_types::BATCH_ROWS;

pub(super) struct NestedLoopOp {
    id: usize,
    node: Arc<NestedLoopNode>,
    /// Columns of both sides that the conditions read.
    read: Vec<usize>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    batch: Batch,
    at: usize,
    /// The right side's rows when it runs once, and how far the present left row has read them.
    kept: Option<Store>,
    place: Place,
    /// Of the left row at `at`.
    running: bool,
    matched: bool,
    /// Full joins: which kept rows had a partner.
    partnered: Vec<bool>,
    finished: bool,
    pending: Pending,
}

impl NestedLoopOp {
    pub fn new(id: usize, node: Arc<NestedLoopNode>, ctx: &ExecContext) -> Result<NestedLoopOp> {
        let left = ctx.build(&node.left)?;
        let right = ctx.build(&node.right)?;
        let mut read = Vec::new();
        node.conditions.iter().for_each(|c| c.columns(&mut read));
        Ok(NestedLoopOp {
            id,
            node,
            read,
            left,
            right,
            batch: Batch::default(),
            at: 0,
            kept: None,
            place: 0,
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

    /// Reads the right side and keeps its rows.
    fn keep(&mut self, ctx: &ExecContext) -> Result<&mut Store> {
        if self.kept.is_none() {
            let mut all = Store::new(ctx.resources());
            while let Some(batch) = self.right.next(ctx, BATCH_ROWS)? {
                all.push(batch)?;
                ctx.check_interrupt()?;
            }
            if self.node.join == JoinType::Full {
                self.partnered = vec![false; all.rows() as usize];
            }
            all.close()?;
            self.kept = Some(all);
        }
        self.kept.as_mut().ok_or_else(|| DbError::internal("the rows were just kept"))
    }

    /// The right rows for the present left row, a batch at a time.
    fn right_rows(&mut self, ctx: &ExecContext) -> Result<Option<Arc<Batch>>> {
        if self.node.parameters.is_empty() {
            if !self.running {
                self.running = true;
                self.place = 0;
            }
            let mut place = self.place;
            let batch = self.keep(ctx)?.chunk_at(&mut place)?;
            self.place = place;
            return Ok(batch);
        }
        if !self.running {
            self.running = true;
            for (parameter, column) in &self.node.parameters {
                ctx.set_executor_parameter(*parameter, self.batch.columns[*column].get(self.at));
            }
            self.right.rescan(ctx)?;
        }
        Ok(self.right.next(ctx, BATCH_ROWS)?.map(Arc::new))
    }

    /// Pairs of the present left row with some right rows that satisfy the conditions.
    fn pairs(&mut self, ctx: &ExecContext, right: &Batch) -> Result<(Batch, Vec<u32>)> {
        let all: Vec<u32> = (0..right.rows as u32).collect();
        let lefts = |rows: usize| vec![self.at as u32; rows];
        if self.node.conditions.is_empty() {
            return Ok((join_rows(&self.batch, &lefts(right.rows), right, &all), all));
        }
        // For excluded rows only the columns that the conditions read are put together.
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
        ctx.note_removed(self.id, right.rows, kept.len());
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
            if right.rows == 0 {
                continue;
            }
            let (pairs, rights) = self.pairs(ctx, &right)?;
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
                        let first = self.place as usize - right.rows;
                        rights.iter().for_each(|&r| self.partnered[first + r as usize] = true);
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

    /// The next right rows without a partner (full joins, after the last left row).
    fn unpartnered(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let Some(right) = self.right_rows(ctx)? else { return Ok(None) };
        let first = self.place as usize - right.rows;
        let rows: Vec<u32> = (0..right.rows as u32).filter(|r| !self.partnered[first + *r as usize]).collect();
        let mut columns = nulls(&self.node.left.kinds, rows.len());
        columns.extend(right.columns.iter().map(|c| c.take(&rows)));
        Ok(Some(Batch { columns, rows: rows.len() }))
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
                let rest = if self.node.join == JoinType::Full { self.unpartnered(ctx)? } else { None };
                match rest {
                    Some(rest) => out.append(rest),
                    None => {
                        self.finished = true;
                        break;
                    }
                }
                continue;
            }
            if let Some(rows) = self.step(ctx)? {
                out.append(rows);
            }
            ctx.check_interrupt()?;
        }
        if out.rows == 0 {
            return Ok(None);
        }
        Ok(give(&mut self.pending, out, limit))
    }

    fn share(&mut self, ctx: &ExecContext, tables: &mut BuiltTables) -> Result<bool> {
        self.left.share(ctx, tables)
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
