//! The rows of inputs that have an order, in this order.

use std::sync::Arc;

use melba_engine::Held;
use melba_plan::node::AppendNode;
use melba_types::merge_heap::{MergeHeap, head};
use melba_types::{BATCH_ROWS, Batch, ByteStrings, Column, Result};

use super::sort::encode_keys;
use crate::{ExecContext, Operator};

/// How many rows are asked of an input at first: a LIMIT may want few. Each further time it is twice as many.
const FIRST_ROWS: usize = 8;
/// The inputs' rows together are about as many as a batch has, but each input is asked for this many.
const INPUT_ROWS_MIN: usize = 64;

pub(super) struct MergeAppendOp {
    node: Arc<AppendNode>,
    inputs: Vec<Input>,
    heap: MergeHeap,
    has_begun: bool,
    /// The input with the least key has no rows left of those that it gave.
    is_least_read: bool,
    /// The memory of the rows that inputs gave.
    held: Option<Held>,
}

/// An input, the rows that it gave last, and the next of them.
struct Input {
    operator: Box<dyn Operator>,
    rows: Batch,
    keys: ByteStrings,
    at: usize,
    wanted: usize,
}

impl Input {
    fn key(&self) -> &[u8] {
        self.keys.get(self.at)
    }

    /// The first eight bytes of the key.
    fn head(&self) -> u64 {
        head(self.key(), 0)
    }

    fn column(&self, at: usize) -> Option<&Column> {
        self.rows.columns.get(at)
    }

    /// Gets the next rows, at most `limit`; false at the end.
    fn fill(&mut self, node: &AppendNode, ctx: &ExecContext, limit: usize) -> Result<bool> {
        let rows = self.operator.next(ctx, self.wanted.min(limit))?;
        self.wanted = (self.wanted * 2).min((BATCH_ROWS / node.inputs.len().max(1)).max(INPUT_ROWS_MIN));
        let found = rows.is_some();
        self.rows = rows.unwrap_or_default();
        self.keys = if found { encode_keys(&node.merge, ctx, &self.rows)? } else { ByteStrings::default() };
        self.at = 0;
        Ok(found)
    }
}

impl MergeAppendOp {
    pub fn new(node: Arc<AppendNode>, ctx: &ExecContext) -> Result<MergeAppendOp> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            let (rows, keys) = (Batch::default(), ByteStrings::default());
            inputs.push(Input { operator: ctx.build(input)?, rows, keys, at: 0, wanted: FIRST_ROWS });
        }
        Ok(MergeAppendOp { node, inputs, heap: MergeHeap::default(), has_begun: false, is_least_read: false, held: None })
    }

    /// The first rows of all inputs that need to be read.
    fn begin(&mut self, ctx: &ExecContext, limit: usize) -> Result<()> {
        let active = self.node.pruning.as_ref().map(|pruning| pruning.members(ctx)).transpose()?;
        let mut with_rows = Vec::new();
        for (at, input) in self.inputs.iter_mut().enumerate() {
            ctx.check_interrupt()?;
            if active.as_ref().is_none_or(|active| active[at]) && input.fill(&self.node, ctx, limit)? {
                with_rows.push(at as u32);
            }
        }
        let heads = with_rows.into_iter().map(|at| (at, self.inputs[at as usize].head()));
        self.heap = MergeHeap::new(heads, |input| self.inputs[input as usize].key());
        self.has_begun = true;
        Ok(())
    }

    /// Gets further rows of the input with the least key, whose rows have been read.
    fn fill_least(&mut self, ctx: &ExecContext, limit: usize) -> Result<()> {
        let Some(least) = self.heap.least() else { return Ok(()) };
        let found = self.inputs[least as usize].fill(&self.node, ctx, limit)?;
        let key = |input: u32| self.inputs[input as usize].key();
        match found {
            true => self.heap.advance(self.inputs[least as usize].head(), key),
            false => self.heap.remove(key),
        }
        self.is_least_read = false;
        Ok(())
    }

    fn hold(&mut self, ctx: &ExecContext) -> Result<()> {
        let bytes = self.inputs.iter().map(|input| input.rows.memory_bytes() + input.keys.bytes.len()).sum();
        self.held.get_or_insert_with(|| ctx.resources().held()).set(bytes)?;
        Ok(())
    }

    /// The places of the next rows, until an input has to be asked for more.
    fn picks(&mut self, limit: usize) -> Vec<(u32, u32)> {
        let mut picks = Vec::new();
        while picks.len() < limit
            && let Some(least) = self.heap.least()
        {
            let input = &mut self.inputs[least as usize];
            picks.push((least, input.at as u32));
            input.at += 1;
            self.is_least_read = input.at == input.rows.rows;
            if self.is_least_read {
                break;
            }
            let head = input.head();
            self.heap.advance(head, |input| self.inputs[input as usize].key());
        }
        picks
    }
}

impl Operator for MergeAppendOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let limit = limit.min(BATCH_ROWS);
        if !self.has_begun {
            self.begin(ctx, limit)?;
            self.hold(ctx)?;
        } else if self.is_least_read {
            self.fill_least(ctx, limit)?;
            self.hold(ctx)?;
        }
        let picks = self.picks(limit);
        let Some(&(first, _)) = picks.first() else { return Ok(None) };
        let width = self.inputs[first as usize].rows.columns.len();
        let column = |at: usize| {
            let some = &self.inputs[first as usize].rows.columns[at];
            // An input without rows has no columns; another's stands for one that no pick is of.
            let of = |input| Input::column(input, at).unwrap_or(some);
            Column::gather(&self.inputs.iter().map(of).collect::<Vec<&Column>>(), &picks)
        };
        Ok(Some(Batch { columns: (0..width).map(column).collect(), rows: picks.len() }))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.has_begun = false;
        self.is_least_read = false;
        self.heap = MergeHeap::default();
        for input in &mut self.inputs {
            (input.rows, input.keys, input.wanted) = (Batch::default(), ByteStrings::default(), FIRST_ROWS);
            input.operator.rescan(ctx)?;
        }
        Ok(())
    }
}
