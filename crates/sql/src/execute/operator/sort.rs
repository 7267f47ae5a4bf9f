//! Sorting: keys are encoded to bytes once and compared as bytes.

use std::collections::BinaryHeap;
use std::sync::Arc;

use melba_types::{Batch, Datum, Result, bail};

use super::build;
use super::pending::{Pending, append, nulls};
use super::quicksort::quicksort;
use crate::execute::expression::Vector;
use crate::execute::key::KeyPart;
use crate::execute::{BATCH_ROWS, ExecContext, Expression, Operator};
use crate::plan::node::SortNode;

/// Top-N keeps a heap up to this many rows, and sorts everything beyond.
const HEAP_ROWS_MAX: usize = 4096;

pub(super) struct SortOp {
    node: Arc<SortNode>,
    input: Box<dyn Operator>,
    sorted: bool,
    pending: Pending,
}

/// Encoded keys of a batch's rows.
pub(super) fn encode_keys(keys: &[(Expression, KeyPart)], ctx: &ExecContext, batch: &Batch) -> Result<Vec<Vec<u8>>> {
    let values = keys.iter().map(|(e, _)| e.eval_vector(ctx, batch)).collect::<Result<Vec<Vector<'_>>>>()?;
    let mut out = Vec::with_capacity(batch.rows);
    for i in 0..batch.rows {
        let mut key = Vec::with_capacity(keys.len() * 10);
        for (value, (_, part)) in values.iter().zip(keys) {
            part.encode(&value.get(i), &mut key);
        }
        out.push(key);
    }
    Ok(out)
}

impl SortOp {
    pub fn new(node: Arc<SortNode>, ctx: &ExecContext) -> Result<SortOp> {
        let input = build(&node.input, ctx)?;
        Ok(SortOp { node, input, sorted: false, pending: Pending::default() })
    }

    /// LIMIT + OFFSET, when they bound the sort.
    fn bound(&self, ctx: &ExecContext) -> Result<Option<usize>> {
        let Some((Some(limit), offset)) = &self.node.bound else { return Ok(None) };
        let Some(limit) = row_count(limit, ctx, "LIMIT")? else { return Ok(None) };
        let offset = offset.as_ref().map(|o| row_count(o, ctx, "OFFSET")).transpose()?.flatten().unwrap_or(0);
        Ok(Some(limit.saturating_add(offset)))
    }

    fn sort(&mut self, ctx: &ExecContext) -> Result<Batch> {
        let bound = self.bound(ctx)?;
        let mut all = Batch { columns: nulls(&self.node.input.kinds, 0), rows: 0 };
        let mut keys: Vec<Vec<u8>> = Vec::new();
        match bound {
            Some(n) if n <= HEAP_ROWS_MAX => self.top(ctx, n, &mut all, &mut keys)?,
            _ => {
                while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
                    keys.extend(encode_keys(&self.node.keys, ctx, &batch)?);
                    append(&mut all, batch);
                    ctx.check_interrupt()?;
                }
            }
        }
        let mut order: Vec<u32> = (0..all.rows as u32).collect();
        quicksort(&mut order, &|&a: &u32, &b: &u32| keys[a as usize].cmp(&keys[b as usize]));
        if let Some(bound) = bound {
            order.truncate(bound);
        }
        Ok(all.take(&order))
    }

    /// Keeps the `n` least rows, and rows that were among them for a while; drops those now and then.
    fn top(&mut self, ctx: &ExecContext, n: usize, all: &mut Batch, keys: &mut Vec<Vec<u8>>) -> Result<()> {
        let mut heap: BinaryHeap<(Vec<u8>, usize)> = BinaryHeap::with_capacity(n + 1);
        if n == 0 {
            return Ok(());
        }
        while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
            let mut kept = Vec::new();
            for (i, key) in encode_keys(&self.node.keys, ctx, &batch)?.into_iter().enumerate() {
                if heap.len() == n && heap.peek().is_some_and(|(worst, _)| *worst <= key) {
                    continue;
                }
                let place = all.rows + kept.len();
                kept.push(i as u32);
                keys.push(key.clone());
                heap.push((key, place));
                if heap.len() > n {
                    heap.pop();
                }
            }
            append(all, batch.take(&kept));
            if all.rows > 2 * n + BATCH_ROWS {
                let mut live: Vec<(Vec<u8>, usize)> = heap.drain().collect();
                live.sort_by_key(|(_, place)| *place);
                let rows: Vec<u32> = live.iter().map(|(_, place)| *place as u32).collect();
                *all = all.take(&rows);
                *keys = live.into_iter().map(|(key, _)| key).collect();
                heap.extend(keys.iter().cloned().enumerate().map(|(i, k)| (k, i)));
            }
            ctx.check_interrupt()?;
        }
        Ok(())
    }
}

impl Operator for SortOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.sorted {
            self.sorted = true;
            let batch = self.sort(ctx)?;
            self.pending.put(batch);
        }
        Ok(self.pending.take(limit))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.sorted = false;
        self.pending.clear();
        self.input.rescan(ctx)
    }
}

/// The value of a LIMIT or OFFSET; `None` when NULL (no limit).
pub(super) fn row_count(e: &Expression, ctx: &ExecContext, clause: &str) -> Result<Option<usize>> {
    let value = match e.eval_row(ctx, &[])? {
        Datum::Null => return Ok(None),
        Datum::Int8(v) => v,
        Datum::Int4(v) => i64::from(v),
        other => return Err(melba_types::DbError::internal(format!("{clause} is {other:?}"))),
    };
    if value < 0 {
        if clause == "LIMIT" {
            bail!(INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative");
        }
        bail!(INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative");
    }
    Ok(Some(value as usize))
}
