//! Sorting: keys are encoded to bytes once and compared as bytes. Rows that do not fit are sorted in runs (`spill::Sorter`). Each
//! member of a team collects its part of the input; then the members sort all of it, each some ranges of keys.

use std::collections::BinaryHeap;
use std::sync::Arc;

use melba_types::{Batch, ByteStrings, ColumnData, Datum, DbError, Result, bail};

use crate::top_filter::TopFilter;
use crate::{ExecContext, Operator, parallel};
use melba_expression::Expression;
use melba_expression::Vector;
use melba_expression::key::KeyPart;
use melba_plan::NodeStorage;
use melba_plan::node::SortNode;
use melba_spill::{Sorted, Sorter, Threads};
use melba_types::BATCH_ROWS;

/// The room behind strings is freed when it is more than 1/UNUSED_SHARE of their bytes.
const UNUSED_SHARE: usize = 16;

/// Top-N keeps a heap up to this many rows, and sorts everything beyond.
pub(super) const HEAP_ROWS_MAX: usize = 4096;

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

/// LIMIT + OFFSET, when they bound the sort.
pub(super) fn bound(node: &SortNode, ctx: &ExecContext) -> Result<Option<usize>> {
    let Some((Some(limit), offset)) = &node.bound else { return Ok(None) };
    let Some(limit) = row_count(limit, ctx, "LIMIT")? else { return Ok(None) };
    let offset = offset.as_ref().map(|o| row_count(o, ctx, "OFFSET")).transpose()?.flatten().unwrap_or(0);
    Ok(Some(limit.saturating_add(offset)))
}

impl SortOp {
    pub fn new(id: usize, node: Arc<SortNode>, ctx: &ExecContext) -> Result<SortOp> {
        let input = ctx.build(&node.input)?;
        Ok(SortOp { id, node, input, sorted: None })
    }

    fn sorted(&mut self, ctx: &ExecContext) -> Result<&mut Sorted> {
        if self.sorted.is_none() {
            self.sorted = Some(self.sort(ctx)?);
        }
        self.sorted.as_mut().ok_or_else(|| DbError::internal("sorted rows are gone"))
    }

    fn sort(&mut self, ctx: &ExecContext) -> Result<Sorted> {
        let bound = bound(&self.node, ctx)?;
        let heap = bound.filter(|n| *n <= HEAP_ROWS_MAX);
        let sorters = if bound == Some(0) { Vec::new() } else { self.sorters(ctx, bound, heap)? };
        let sorted = Sorter::merge(ctx.resources(), sorters, bound, &SortThreads { ctx, node: &self.node })?;
        ctx.record_timing(self.id, |t| {
            let method = match (sorted.on_disk, heap) {
                (true, _) => "external merge",
                (false, Some(_)) => "top-N heapsort",
                (false, None) => "quicksort",
            };
            t.storage = Some(NodeStorage::Sort { method, on_disk: sorted.on_disk, bytes: sorted.bytes });
        });
        Ok(sorted)
    }

    /// Sorts the input: by a team, each member its part, or alone.
    fn sorters(&mut self, ctx: &ExecContext, bound: Option<usize>, heap: Option<usize>) -> Result<Vec<Sorter>> {
        let node = Arc::clone(&self.node);
        let first = node.keys.first().filter(|_| heap.is_some() && node.top_filter.is_some());
        let filter = first.map(|(_, part)| Arc::new(TopFilter::new(part.clone())));
        // Also when there is none: a sub-plan's limit may have been another before.
        node.top_filter.iter().for_each(|number| ctx.set_top_filter(*number, filter.clone()));
        let begin = |ctx: &ExecContext| Collector::new(&node, ctx, bound, heap, filter.as_deref());
        let Some((team, workers)) = parallel::form(ctx, node.workers, &node.input, &mut *self.input)? else {
            let mut collector = begin(ctx);
            while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
                collector.push(ctx, batch)?;
                ctx.check_interrupt()?;
            }
            return Ok(vec![collector.finish()?]);
        };
        ctx.record_timing(self.id, |t| t.workers = workers.count() as u64);
        parallel::run(ctx, team, &workers, |ctx| {
            let mut collector = begin(ctx);
            parallel::each_batch(ctx, &node.input, |batch| collector.push(ctx, batch))?;
            collector.finish()
        })
    }
}

/// The threads that sort the collected rows.
struct SortThreads<'a> {
    ctx: &'a ExecContext<'a>,
    node: &'a SortNode,
}

impl Threads for SortThreads<'_> {
    fn each<I: Send, T: Send>(&self, items: Vec<I>, f: impl Fn(I) -> T + Sync) -> Result<Vec<T>> {
        let f = |ctx: &ExecContext, item| ctx.check_interrupt().map(|()| f(item));
        parallel::each_of(self.ctx, self.node.workers, &self.node.input, items, f)
    }
}

/// One thread's part of the input.
pub(super) struct Collector<'a> {
    node: &'a SortNode,
    sorter: Sorter,
    top: Option<Top<'a>>,
}

/// The least rows so far, and some that were among them for a while.
struct Top<'a> {
    count: usize,
    /// The keys of the least, and their places in `all`.
    heap: BinaryHeap<(Vec<u8>, usize)>,
    all: Batch,
    keys: ByteStrings,
    /// Of `all`.
    bytes: usize,
    /// Rows were passed to the sorter: they were too large.
    is_over: bool,
    filter: Option<&'a TopFilter>,
}

/// Frees the room behind the strings of a large batch: rows wait for all others, and count with everything that they hold.
fn shrink(batch: &mut Batch, keys: &mut ByteStrings) {
    if batch.rows < BATCH_ROWS / 2 {
        return;
    }
    let strings = batch.columns.iter_mut().filter_map(|column| match &mut column.data {
        ColumnData::Text(strings) | ColumnData::Bytes(strings) => Some(strings),
        _ => None,
    });
    for ByteStrings { bytes, .. } in strings.chain([keys]) {
        if bytes.capacity() - bytes.len() > bytes.len() / UNUSED_SHARE {
            bytes.shrink_to_fit();
        }
    }
}

impl<'a> Collector<'a> {
    /// `heap`: only this many rows are wanted, at least one.
    pub fn new(
        node: &'a SortNode,
        ctx: &ExecContext,
        bound: Option<usize>,
        heap: Option<usize>,
        filter: Option<&'a TopFilter>,
    ) -> Collector<'a> {
        let top = heap.map(|count| Top {
            count,
            heap: BinaryHeap::with_capacity(count + 1),
            all: Batch::default(),
            keys: ByteStrings::default(),
            bytes: 0,
            is_over: false,
            filter,
        });
        Collector { node, sorter: Sorter::new(ctx.resources(), bound, false), top }
    }

    pub fn push(&mut self, ctx: &ExecContext, mut batch: Batch) -> Result<()> {
        let mut keys = encode_keys(&self.node.keys, ctx, &batch)?;
        match &mut self.top {
            None => {
                shrink(&mut batch, &mut keys);
                self.sorter.push(batch, keys)
            }
            Some(top) if top.is_over => top.pass(batch, &keys, &mut self.sorter),
            Some(top) => {
                top.push(batch, &keys);
                if top.bytes > ctx.resources().work_bytes {
                    // The sorter keeps them in files; rows that are not among the least are still excluded.
                    top.is_over = true;
                    self.sorter.push(std::mem::take(&mut top.all), std::mem::take(&mut top.keys))?;
                }
                Ok(())
            }
        }
    }

    /// The sorter with all rows that may be wanted.
    pub fn finish(mut self) -> Result<Sorter> {
        if let Some(top) = self.top.filter(|top| !top.is_over) {
            self.sorter.push(top.all, top.keys)?;
        }
        Ok(self.sorter)
    }
}

impl Top<'_> {
    fn push(&mut self, batch: Batch, new: &ByteStrings) {
        let mut kept = Vec::new();
        for i in 0..batch.rows {
            let key = new.get(i);
            if self.heap.len() == self.count && self.heap.peek().is_some_and(|(worst, _)| worst[..] <= *key) {
                continue;
            }
            let place = self.all.rows + kept.len();
            kept.push(i as u32);
            self.keys.push(key);
            self.heap.push((key.to_vec(), place));
            if self.heap.len() > self.count {
                self.heap.pop();
            }
        }
        if kept.is_empty() {
            return;
        }
        let batch = batch.take(&kept);
        self.bytes += batch.memory_bytes();
        self.all.append(batch);
        if self.all.rows > 2 * self.count + BATCH_ROWS {
            self.forget();
        }
        if let (Some(filter), Some((worst, _)), true) = (self.filter, self.heap.peek(), self.heap.len() == self.count) {
            filter.note(worst);
        }
    }

    /// Drops the rows that are not among the least any more.
    fn forget(&mut self) {
        let mut live: Vec<(Vec<u8>, usize)> = self.heap.drain().collect();
        live.sort_by_key(|(_, place)| *place);
        let rows: Vec<u32> = live.iter().map(|(_, place)| *place as u32).collect();
        self.all = self.all.take(&rows);
        self.bytes = self.all.memory_bytes();
        self.keys = ByteStrings::default();
        live.iter().for_each(|(key, _)| self.keys.push(key));
        self.heap.extend(live.into_iter().enumerate().map(|(i, (key, _))| (key, i)));
    }

    /// Passes further rows to the sorter, without those behind the last wanted one.
    fn pass(&self, batch: Batch, keys: &ByteStrings, sorter: &mut Sorter) -> Result<()> {
        let worst = self.heap.peek().filter(|_| self.heap.len() == self.count).map(|(key, _)| &key[..]);
        let kept: Vec<u32> = (0..batch.rows as u32).filter(|i| worst.is_none_or(|worst| keys.get(*i as usize) < worst)).collect();
        let mut kept_keys = ByteStrings::default();
        kept.iter().for_each(|i| kept_keys.push(keys.get(*i as usize)));
        sorter.push(batch.take(&kept), kept_keys)
    }
}

impl Operator for SortOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        self.sorted(ctx)?.next(limit.min(BATCH_ROWS))
    }

    fn skip(&mut self, ctx: &ExecContext, limit: usize) -> Result<usize> {
        self.sorted(ctx)?.skip(limit)
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

#[cfg(test)]
mod tests {
    use super::*;
    use melba_types::Column;

    #[test]
    fn rows_that_wait_have_little_room_behind_their_strings() {
        let strings = |rows: usize| {
            let mut out = ByteStrings { ends: Vec::new(), bytes: Vec::with_capacity(rows * 40) };
            (0..rows).for_each(|row| out.push(format!("value {row}").as_bytes()));
            out
        };
        for rows in [1, BATCH_ROWS] {
            let text = Column::new(ColumnData::Text(strings(rows)));
            let (mut batch, mut keys) = (Batch::new(vec![text], rows), strings(rows));
            let before = batch.memory_bytes() + keys.bytes.capacity();
            shrink(&mut batch, &mut keys);
            let after = batch.memory_bytes() + keys.bytes.capacity();
            // A few rows are not worth the copy.
            assert_eq!(after < before / 2, rows == BATCH_ROWS, "{before} bytes became {after}");
            let ColumnData::Text(text) = &batch.columns[0].data else { panic!("a column of text") };
            assert!(*text == strings(rows) && keys == strings(rows));
        }
    }
}
