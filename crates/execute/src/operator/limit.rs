//! LIMIT, OFFSET, FETCH FIRST ... WITH TIES.

use std::sync::Arc;

use melba_types::{Batch, Result};

use super::sort::{encode_keys, row_count};
use crate::{ExecContext, Operator};
use melba_plan::node::LimitNode;
use melba_types::BATCH_ROWS;

/// Rows that are skipped between two checks for a cancel.
const SKIPPED_AT_A_TIME: usize = 1 << 16;

pub(super) struct LimitOp {
    node: Arc<LimitNode>,
    input: Box<dyn Operator>,
    started: bool,
    skip: usize,
    /// Rows still to return; `None` without limit.
    left: Option<usize>,
    /// WITH TIES: the key of the last row within the limit.
    last: Option<Vec<u8>>,
    done: bool,
}

impl LimitOp {
    pub fn new(node: Arc<LimitNode>, ctx: &ExecContext) -> Result<LimitOp> {
        let input = ctx.build(&node.input)?;
        Ok(LimitOp { node, input, started: false, skip: 0, left: None, last: None, done: false })
    }

    fn start(&mut self, ctx: &ExecContext) -> Result<()> {
        self.started = true;
        self.skip = self.node.offset.as_ref().map(|o| row_count(o, ctx, "OFFSET")).transpose()?.flatten().unwrap_or(0);
        self.left = self.node.limit.as_ref().map(|l| row_count(l, ctx, "LIMIT")).transpose()?.flatten();
        Ok(())
    }

    /// Rows after the limit that equal its last one.
    fn ties(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let (Some(keys), Some(last)) = (&self.node.ties, &self.last) else { return Ok(None) };
        let Some(batch) = self.input.next(ctx, 1)? else { return Ok(None) };
        let key = encode_keys(keys, ctx, &batch)?;
        Ok((key.get(0) == &last[..]).then_some(batch))
    }
}

impl Operator for LimitOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.started {
            self.start(ctx)?;
        }
        if self.done {
            return Ok(None);
        }
        if self.left == Some(0) {
            let ties = self.ties(ctx)?;
            self.done = ties.is_none();
            return Ok(ties);
        }
        while self.skip > 0 {
            let skipped = self.input.skip(ctx, self.skip.min(SKIPPED_AT_A_TIME))?;
            if skipped > 0 {
                self.skip -= skipped;
                ctx.check_interrupt()?;
                continue;
            }
            let Some(batch) = self.input.next(ctx, self.skip.min(BATCH_ROWS))? else {
                self.done = true;
                return Ok(None);
            };
            self.skip -= batch.rows.min(self.skip);
        }
        let want = self.left.map_or(limit, |left| left.min(limit));
        let Some(batch) = self.input.next(ctx, want)? else {
            self.done = true;
            return Ok(None);
        };
        if let Some(left) = &mut self.left {
            *left -= batch.rows.min(*left);
            if *left == 0
                && let Some(keys) = &self.node.ties
            {
                let keys = encode_keys(keys, ctx, &batch)?;
                self.last = batch.rows.checked_sub(1).map(|at| keys.get(at).to_vec());
            }
        }
        Ok(Some(batch))
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.started = false;
        self.done = false;
        self.last = None;
        self.input.rescan(ctx)
    }
}
