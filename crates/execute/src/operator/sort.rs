//! Sorting: keys are encoded to bytes once and compared as bytes. What does not fit is sorted in runs (`spill::Sorter`).

use std::collections::BinaryHeap;
use std::sync::Arc;

use melba_types::{Batch, ByteStrings, Datum, Result, bail};

use super::build;
use crate::{ExecContext, Operator};
use melba_expression::Expression;
use melba_expression::Vector;
use melba_expression::key::KeyPart;
use melba_plan::Storage;
use melba_plan::node::SortNode;
use melba_spill::{Sorted, Sorter};
use melba_types::BATCH_ROWS;

/// Top-N keeps a heap up to this many rows, and sorts everything beyond.
const HEAP_ROWS_MAX: usize = 4096;

pub(super) struct SortOp {
    id: usize,
    node: Arc<SortNode>,
    input: Box<dyn Operator>,
    sorted: Option<Sorted>,
}

/// Encoded keys of a batch's rows.
pub(super) fn encode_keys(keys: &[(Expression, KeyPart)], ctx: &ExecContext, batch: &Batch) -> Result<ByteStrings> {
    let values = keys.iter().map(|(e, _)| e.eval_vector(ctx, batch)).collect::<Result<Vec<Vector<'_>>>>()?;
    let mut out = ByteStrings { ends: Vec::with_capacity(batch.rows), bytes: Vec::with_capacity(batch.rows * keys.len() * 9) };
    for i in 0..batch.rows {
        for (value, (_, part)) in values.iter().zip(keys) {
            value.encode_key(part, i, &mut out.bytes);
        }
        out.ends.push(out.bytes.len() as u32);
        if i == 0 {
            out.reserve_like_first(batch.rows - 1);
        }
    }
    Ok(out)
}

impl SortOp {
    pub fn new(id: usize, node: Arc<SortNode>, ctx: &ExecContext) -> Result<SortOp> {
        let input = build(&node.input, ctx)?;
        Ok(SortOp { id, node, input, sorted: None })
    }

    /// LIMIT + OFFSET, when they bound the sort.
    fn bound(&self, ctx: &ExecContext) -> Result<Option<usize>> {
        let Some((Some(limit), offset)) = &self.node.bound else { return Ok(None) };
        let Some(limit) = row_count(limit, ctx, "LIMIT")? else { return Ok(None) };
        let offset = offset.as_ref().map(|o| row_count(o, ctx, "OFFSET")).transpose()?.flatten().unwrap_or(0);
        Ok(Some(limit.saturating_add(offset)))
    }

    fn sort(&mut self, ctx: &ExecContext) -> Result<Sorted> {
        let bound = self.bound(ctx)?;
        let mut sorter = Sorter::new(ctx.resources(), bound, false);
        let heap = bound.filter(|n| *n <= HEAP_ROWS_MAX);
        if let Some(n) = heap {
            self.top(ctx, n, &mut sorter)?;
        } else {
            while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
                let keys = encode_keys(&self.node.keys, ctx, &batch)?;
                sorter.push(batch, keys)?;
                ctx.check_interrupt()?;
            }
        }
        let sorted = sorter.finish()?;
        ctx.record_timing(self.id, |t| {
            let method = match (sorted.on_disk, heap) {
                (true, _) => "external merge",
                (false, Some(_)) => "top-N heapsort",
                (false, None) => "quicksort",
            };
            t.storage = Some(Storage::Sort { method, on_disk: sorted.on_disk, bytes: sorted.bytes });
        });
        Ok(sorted)
    }

    /// Hands the `n` least rows to the sorter, and some that were among them for a while. Rows too large for that are all
    /// handed to it.
    fn top(&mut self, ctx: &ExecContext, n: usize, sorter: &mut Sorter) -> Result<()> {
        let mut heap: BinaryHeap<(Vec<u8>, usize)> = BinaryHeap::with_capacity(n + 1);
        let (mut all, mut keys) = (Batch::default(), ByteStrings::default());
        let mut bytes = 0;
        if n == 0 {
            return Ok(());
        }
        while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
            let mut kept = Vec::new();
            let new = encode_keys(&self.node.keys, ctx, &batch)?;
            for i in 0..batch.rows {
                let key = new.get(i);
                if heap.len() == n && heap.peek().is_some_and(|(worst, _)| worst[..] <= *key) {
                    continue;
                }
                let place = all.rows + kept.len();
                kept.push(i as u32);
                keys.push(key);
                heap.push((key.to_vec(), place));
                if heap.len() > n {
                    heap.pop();
                }
            }
            let batch = batch.take(&kept);
            bytes += batch.memory_bytes();
            all.append(batch);
            if all.rows > 2 * n + BATCH_ROWS {
                let mut live: Vec<(Vec<u8>, usize)> = heap.drain().collect();
                live.sort_by_key(|(_, place)| *place);
                let rows: Vec<u32> = live.iter().map(|(_, place)| *place as u32).collect();
                all = all.take(&rows);
                bytes = all.memory_bytes();
                keys = ByteStrings::default();
                live.iter().for_each(|(key, _)| keys.push(key));
                heap.extend(live.into_iter().enumerate().map(|(i, (key, _))| (key, i)));
            }
            ctx.check_interrupt()?;
            if bytes > ctx.resources().work_bytes {
                // The sorter keeps them in files; what is not among the least is still left out.
                sorter.push(std::mem::take(&mut all), std::mem::take(&mut keys))?;
                let worst = heap.peek().filter(|_| heap.len() == n).map(|(key, _)| key.clone());
                return self.rest(ctx, worst, sorter);
            }
        }
        sorter.push(all, keys)
    }

    /// Hands all further rows to the sorter, but for those after `worst`.
    fn rest(&mut self, ctx: &ExecContext, worst: Option<Vec<u8>>, sorter: &mut Sorter) -> Result<()> {
        while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
            let keys = encode_keys(&self.node.keys, ctx, &batch)?;
            let kept: Vec<u32> =
                (0..batch.rows as u32).filter(|i| worst.as_ref().is_none_or(|w| keys.get(*i as usize) < &w[..])).collect();
            let mut kept_keys = ByteStrings::default();
            kept.iter().for_each(|i| kept_keys.push(keys.get(*i as usize)));
            sorter.push(batch.take(&kept), kept_keys)?;
            ctx.check_interrupt()?;
        }
        Ok(())
    }
}

impl Operator for SortOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let sorted = match &mut self.sorted {
            Some(sorted) => sorted,
            None => {
                let sorted = self.sort(ctx)?;
                self.sorted.insert(sorted)
            }
        };
        sorted.next(limit.min(BATCH_ROWS))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.sorted = None;
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
