//! Scans of shared WITH queries, recursive unions and their working tables.

use std::sync::Arc;

use hashbrown::HashSet;
use melba_engine::Held;
use melba_types::{Batch, Datum, Result};

use super::pending::{Pending, give};
use super::sort::encode_keys;
use crate::key_overhead::KEY_OVERHEAD_BYTES;
use crate::{ExecContext, Operator};
use melba_plan::NodeStorage;
use melba_plan::node::RecursiveUnionNode;
use melba_spill::{Place, Store};
use melba_types::BATCH_ROWS;

/// Reads the rows of a WITH query, which are computed as far as any reader needs.
pub(super) struct CteScanOp {
    id: usize,
    cte: usize,
    place: Place,
}

impl CteScanOp {
    pub fn new(id: usize, cte: usize) -> CteScanOp {
        CteScanOp { id, cte, place: 0 }
    }
}

impl Operator for CteScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let batch = ctx.cte_rows(self.cte, &mut self.place, limit)?;
        if batch.is_none() && ctx.instrumented() {
            let (memory, disk) = ctx.cte_usage(self.cte);
            ctx.record_timing(self.id, |t| t.storage = Some(NodeStorage::Rows { memory: memory as u64, disk }));
        }
        Ok(batch)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.place = 0;
        Ok(())
    }
}

/// Reads the rows that the last round of a recursive union added.
pub(super) struct WorkTableScanOp {
    table: usize,
    place: Place,
}

impl WorkTableScanOp {
    pub fn new(table: usize) -> WorkTableScanOp {
        WorkTableScanOp { table, place: 0 }
    }
}

impl Operator for WorkTableScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        ctx.work_rows(self.table, &mut self.place, limit)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.place = 0;
        Ok(())
    }
}

pub(super) struct RecursiveUnionOp {
    node: Arc<RecursiveUnionNode>,
    base: Box<dyn Operator>,
    recursive: Box<dyn Operator>,
    in_base: bool,
    /// The rows that this round has added.
    added: Option<Store>,
    /// UNION: the keys of all rows so far. Every round may look up any of them, so they stay in memory.
    seen: HashSet<Box<[u8]>>,
    held: Option<Held>,
    pending: Pending,
    done: bool,
}

impl RecursiveUnionOp {
    pub fn new(node: Arc<RecursiveUnionNode>, ctx: &ExecContext) -> Result<RecursiveUnionOp> {
        let base = ctx.build(&node.base)?;
        let recursive = ctx.build(&node.recursive)?;
        Ok(RecursiveUnionOp {
            node,
            base,
            recursive,
            in_base: true,
            added: None,
            seen: HashSet::new(),
            held: None,
            pending: Pending::default(),
            done: false,
        })
    }

    /// Drops rows that were there before (UNION) and notes the others for the next round.
    fn accept(&mut self, ctx: &ExecContext, batch: Batch) -> Result<Batch> {
        let batch = match &self.node.distinct {
            None => batch,
            Some(keys) => {
                let batch = ctx.expand_batch(batch, &self.node.base.kinds)?;
                let keys = encode_keys(keys, ctx, &batch)?;
                let mut kept = Vec::new();
                let mut bytes = 0;
                for i in 0..batch.rows {
                    let key = keys.get(i);
                    if self.seen.insert(key.into()) {
                        bytes += key.len() + KEY_OVERHEAD_BYTES;
                        kept.push(i as u32);
                    }
                }
                self.held.get_or_insert_with(|| ctx.resources().held()).grow(bytes)?;
                batch.take(&kept)
            }
        };
        // A round that adds nothing is the last one.
        if batch.rows > 0 {
            self.added.get_or_insert_with(|| Store::new(ctx.resources())).push(batch.clone())?;
        }
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
                    let added = self.added.take();
                    self.done = added.is_none();
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
        self.added = None;
        self.seen.clear();
        self.held = None;
        self.pending.clear();
        self.done = false;
        self.base.rescan(ctx)?;
        self.recursive.rescan(ctx)
    }
}
