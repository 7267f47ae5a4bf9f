//! Scans of shared WITH queries, recursive unions and their working tables.

use std::sync::Arc;

use hashbrown::HashSet;
use melba_types::{Batch, Datum, Result};

use super::build;
use super::pending::{Pending, append, give};
use super::set_op::row_key;
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::RecursiveUnionNode;

/// Reads the rows of a WITH query, which are computed as far as any reader asks.
pub(super) struct CteScanOp {
    cte: usize,
    at: usize,
    pending: Pending,
}

impl CteScanOp {
    pub fn new(cte: usize) -> CteScanOp {
        CteScanOp { cte, at: 0, pending: Pending::default() }
    }
}

impl Operator for CteScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        match ctx.cte_batch(self.cte, self.at, limit)? {
            None => Ok(None),
            Some(batch) => {
                self.at += 1;
                Ok(give(&mut self.pending, batch, limit))
            }
        }
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.at = 0;
        self.pending.clear();
        Ok(())
    }
}

/// Reads what the last round of a recursive union added.
pub(super) struct WorkTableScanOp {
    table: usize,
    pending: Pending,
    started: bool,
}

impl WorkTableScanOp {
    pub fn new(table: usize) -> WorkTableScanOp {
        WorkTableScanOp { table, pending: Pending::default(), started: false }
    }
}

impl Operator for WorkTableScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.started {
            self.started = true;
            self.pending.put(ctx.work_table(self.table));
        }
        Ok(self.pending.take(limit))
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.started = false;
        self.pending.clear();
        Ok(())
    }
}

pub(super) struct RecursiveUnionOp {
    node: Arc<RecursiveUnionNode>,
    base: Box<dyn Operator>,
    recursive: Box<dyn Operator>,
    in_base: bool,
    /// What this round has added.
    added: Batch,
    seen: HashSet<Box<[u8]>>,
    pending: Pending,
    done: bool,
}

impl RecursiveUnionOp {
    pub fn new(node: Arc<RecursiveUnionNode>, ctx: &ExecContext) -> Result<RecursiveUnionOp> {
        let base = build(&node.base, ctx)?;
        let recursive = build(&node.recursive, ctx)?;
        Ok(RecursiveUnionOp {
            node,
            base,
            recursive,
            in_base: true,
            added: Batch::default(),
            seen: HashSet::new(),
            pending: Pending::default(),
            done: false,
        })
    }

    /// Drops rows that were there before (UNION) and notes the others for the next round.
    fn accept(&mut self, ctx: &ExecContext, batch: Batch) -> Result<Batch> {
        let batch = match &self.node.distinct {
            None => batch,
            Some(parts) => {
                let batch = ctx.expand_batch(batch, &self.node.base.kinds)?;
                let mut kept = Vec::new();
                let mut key = Vec::new();
                for i in 0..batch.rows {
                    row_key(&batch, 0..batch.columns.len(), parts, i, &mut key);
                    if self.seen.insert(key.as_slice().into()) {
                        kept.push(i as u32);
                    }
                }
                batch.take(&kept)
            }
        };
        append(&mut self.added, batch.clone());
        Ok(batch)
    }
}

impl Operator for RecursiveUnionOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        while !self.done {
            let want = limit.min(BATCH_ROWS);
            let next = if self.in_base { self.base.next(ctx, want)? } else { self.recursive.next(ctx, want)? };
            ctx.check_interrupt()?;
            match next {
                Some(batch) => {
                    let batch = self.accept(ctx, batch)?;
                    if batch.rows > 0 {
                        return Ok(give(&mut self.pending, batch, limit));
                    }
                }
                None => {
                    self.in_base = false;
                    let added = std::mem::take(&mut self.added);
                    self.done = added.rows == 0;
                    ctx.set_work_table(self.node.table, added);
                    ctx.set_executor_parameter(self.node.parameter, Datum::Null);
                    self.recursive.rescan(ctx)?;
                }
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.in_base = true;
        self.added = Batch::default();
        self.seen.clear();
        self.pending.clear();
        self.done = false;
        self.base.rescan(ctx)?;
        self.recursive.rescan(ctx)
    }
}
