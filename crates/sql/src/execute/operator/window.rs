//! Window functions over an input sorted by partition and order columns.

mod frame;

use std::ops::Range;
use std::sync::Arc;

use melba_functions::{AggregateFn, Partition};
use melba_types::{Batch, Column, Datum, Result};

use self::frame::Frames;
use super::build;
use super::pending::{Pending, append, nulls};
use super::sort::encode_keys;
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::{WindowFunction, WindowNode, WindowSpec};

pub(super) struct WindowOp {
    node: Arc<WindowNode>,
    input: Box<dyn Operator>,
    done: bool,
    pending: Pending,
}

impl WindowOp {
    pub fn new(node: Arc<WindowNode>, ctx: &ExecContext) -> Result<WindowOp> {
        let input = build(&node.input, ctx)?;
        Ok(WindowOp { node, input, done: false, pending: Pending::default() })
    }

    fn compute(&mut self, ctx: &ExecContext) -> Result<Batch> {
        let node = self.node.clone();
        let mut all = Batch { columns: nulls(&node.input.kinds, 0), rows: 0 };
        while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
            append(&mut all, batch);
            ctx.check_interrupt()?;
        }
        if all.rows == 0 {
            return Ok(all);
        }
        let partition_keys = encode_keys(&node.partition, ctx, &all)?;
        let order_keys = encode_keys(&node.order, ctx, &all)?;
        let order_values = match &node.order[..] {
            [(e, _)] => Some(e.eval_batch(ctx, &all)?),
            _ => None,
        };
        let mut results: Vec<Column> = node.functions.iter().map(|f| Column::with_capacity(f.kind, all.rows)).collect();
        let arguments: Vec<Vec<Column>> = node
            .functions
            .iter()
            .map(|f| f.call.args.iter().map(|a| a.eval_batch(ctx, &all)).collect::<Result<_>>())
            .collect::<Result<_>>()?;
        let keeps = node.functions.iter().map(|f| keep(f, ctx, &all)).collect::<Result<Vec<_>>>()?;
        let mut start = 0;
        while start < all.rows {
            ctx.check_interrupt()?;
            let mut end = start + 1;
            while end < all.rows && partition_keys[end] == partition_keys[start] {
                end += 1;
            }
            let frames = Frames::new(&node, ctx, &order_keys[start..end], order_values.as_ref(), start)?;
            for (i, function) in node.functions.iter().enumerate() {
                let rows = PartitionRows { start, rows: end - start, arguments: &arguments[i], frames: &frames };
                let values = match &function.function {
                    WindowFunction::Window(f) => f(&function.call.context(ctx), &rows)?,
                    WindowFunction::Aggregate { make, strict } => {
                        aggregate(function, *make, *strict, ctx, &rows, keeps[i].as_deref())?
                    }
                };
                values.into_iter().for_each(|v| results[i].push(v));
            }
            start = end;
        }
        all.columns.extend(results);
        Ok(all)
    }
}

/// FILTER: which rows an aggregate takes.
fn keep(function: &WindowSpec, ctx: &ExecContext, all: &Batch) -> Result<Option<Vec<bool>>> {
    let Some(condition) = &function.filter else { return Ok(None) };
    let mut keep = vec![false; all.rows];
    match crate::execute::expression::filter(std::slice::from_ref(condition), ctx, all)? {
        None => keep.fill(true),
        Some(rows) => rows.iter().for_each(|&r| keep[r as usize] = true),
    }
    Ok(Some(keep))
}

struct PartitionRows<'a> {
    /// First row of the partition within the batch.
    start: usize,
    rows: usize,
    arguments: &'a [Column],
    frames: &'a Frames<'a>,
}

impl Partition for PartitionRows<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn argument(&self, row: usize, argument: usize) -> Result<Datum> {
        Ok(self.arguments[argument].get(self.start + row))
    }

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn peers(&self, row: usize) -> Range<usize> {
        self.frames.peers(row)
    }

    fn frame(&self, row: usize) -> Result<[Range<usize>; 3]> {
        self.frames.frame(row)
    }
}

/// An aggregate over each row's frame. A frame that grows at its end is continued, one that moves on at its start too when
/// the aggregate can forget; any other is computed anew.
fn aggregate(
    function: &WindowSpec,
    make: AggregateFn,
    strict: bool,
    ctx: &ExecContext,
    rows: &PartitionRows<'_>,
    keep: Option<&[bool]>,
) -> Result<Vec<Datum>> {
    let call = function.call.context(ctx);
    let args = |row: usize| -> Option<Vec<Datum>> {
        if keep.is_some_and(|k| !k[rows.start + row]) {
            return None;
        }
        let args: Vec<Datum> = rows.arguments.iter().map(|c| c.get(rows.start + row)).collect();
        (!strict || !args.iter().any(Datum::is_null)).then_some(args)
    };
    let mut out: Vec<Datum> = Vec::with_capacity(rows.rows);
    let mut state = make(&call)?;
    let mut covered: [Range<usize>; 3] = [0..0, 0..0, 0..0];
    for row in 0..rows.rows {
        let frame = rows.frame(row)?;
        if row > 0 && frame == covered {
            out.push(out[row - 1].clone());
            continue;
        }
        let simple = |f: &[Range<usize>; 3]| f[1].is_empty() && f[2].is_empty();
        let follows = simple(&frame) && simple(&covered) && frame[0].start >= covered[0].start && frame[0].end >= covered[0].end;
        let mut continued = follows && frame[0].start < covered[0].end;
        if continued {
            for gone in covered[0].start..frame[0].start {
                if let Some(args) = args(gone)
                    && !state.remove(&call, &args)?
                {
                    continued = false;
                    break;
                }
            }
        }
        if continued {
            for new in covered[0].end.max(frame[0].start)..frame[0].end {
                if let Some(args) = args(new) {
                    state.add(&call, &args)?;
                }
            }
        } else {
            state = make(&call)?;
            for new in frame.iter().flat_map(Clone::clone) {
                if let Some(args) = args(new) {
                    state.add(&call, &args)?;
                }
            }
        }
        covered = frame;
        out.push(state.finish(&call)?);
    }
    Ok(out)
}

impl Operator for WindowOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.done {
            self.done = true;
            let batch = self.compute(ctx)?;
            self.pending.put(batch);
        }
        Ok(self.pending.take(limit))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.done = false;
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
