//! Sorting rows that come in the order of the first sort keys already: whole groups of rows with equal first keys are sorted one after
//! the other, so that LIMIT reads no further than it must.

use std::sync::Arc;

use melba_types::{BATCH_ROWS, Batch, Result};

use super::sort::{Collector, HEAP_ROWS_MAX, bound, encode_keys};
use crate::{ExecContext, Operator};
use melba_plan::node::SortNode;
use melba_spill::Sorted;

/// Rows that are asked for at first, unless fewer are wanted.
const FIRST_ROWS: usize = 64;

pub(super) struct IncrementalSortOp {
    node: Arc<SortNode>,
    input: Box<dyn Operator>,
    state: State,
}

#[derive(Default)]
struct State {
    is_begun: bool,
    /// How many rows are still wanted; `None`: all.
    left: Option<usize>,
    /// Rows to ask for next.
    want: usize,
    /// Rows of a group that comes after those that are sorted.
    pending: Option<Batch>,
    sorted: Option<Sorted>,
    at_end: bool,
}

impl IncrementalSortOp {
    pub fn new(node: Arc<SortNode>, ctx: &ExecContext) -> Result<IncrementalSortOp> {
        let input = ctx.build(&node.input)?;
        Ok(IncrementalSortOp { node, input, state: State::default() })
    }

    /// Reads the next groups, at least one, and sorts them.
    fn sort(&mut self, ctx: &ExecContext) -> Result<Sorted> {
        let (node, state) = (Arc::clone(&self.node), &mut self.state);
        let mut collector = Collector::new(&node, ctx, state.left, state.left.filter(|n| *n <= HEAP_ROWS_MAX), None);
        // The first keys of the rows that have been collected, as long as these are one group.
        let mut group: Option<Vec<u8>> = None;
        while let Some(batch) = next_rows(state, &mut *self.input, ctx)? {
            ctx.check_interrupt()?;
            let keys = encode_keys(&node.keys[..node.presorted], ctx, &batch)?;
            let last = keys.get(batch.rows - 1);
            let begin = (0..batch.rows).rposition(|row| keys.get(row) != last).map_or(0, |row| row + 1);
            if begin == 0 && group.as_deref().is_none_or(|group| group == last) {
                group = Some(last.to_vec());
                collector.push(ctx, batch)?;
                continue;
            }
            let rows: Vec<u32> = (0..batch.rows as u32).collect();
            let (ended, begun) = rows.split_at(begin);
            state.pending = Some(batch.take(begun));
            if begin > 0 {
                collector.push(ctx, batch.take(ended))?;
            }
            break;
        }
        collector.finish()?.finish()
    }
}

fn next_rows(state: &mut State, input: &mut dyn Operator, ctx: &ExecContext) -> Result<Option<Batch>> {
    if let Some(batch) = state.pending.take() {
        return Ok(Some(batch));
    }
    let batch = if state.at_end { None } else { input.next(ctx, state.want)? };
    state.at_end = batch.is_none();
    state.want = (state.want * 2).min(BATCH_ROWS);
    Ok(batch)
}

impl Operator for IncrementalSortOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.state.is_begun {
            let left = bound(&self.node, ctx)?;
            let want = left.unwrap_or(FIRST_ROWS).clamp(1, FIRST_ROWS);
            self.state = State { is_begun: true, left, want, ..State::default() };
        }
        loop {
            if let Some(sorted) = &mut self.state.sorted
                && let Some(batch) = sorted.next(limit.min(BATCH_ROWS))?
            {
                self.state.left = self.state.left.map(|left| left.saturating_sub(batch.rows));
                return Ok(Some(batch));
            }
            self.state.sorted = None;
            if self.state.left == Some(0) || self.state.at_end && self.state.pending.is_none() {
                return Ok(None);
            }
            self.state.sorted = Some(self.sort(ctx)?);
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.state = State::default();
        self.input.rescan(ctx)
    }
}
