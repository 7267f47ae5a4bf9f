//! EXPLAIN ANALYZE: counts and times the calls of operators, and counts what they read and write.

use std::time::Duration;

use melba_engine::{IoCounts, io_counts};
use melba_types::{Batch, Result};

use super::team::BuiltTables;
use super::{ExecContext, Operator};

pub(crate) struct InstrumentOp {
    id: usize,
    inner: Box<dyn Operator>,
}

impl InstrumentOp {
    pub fn new(id: usize, inner: Box<dyn Operator>) -> InstrumentOp {
        InstrumentOp { id, inner }
    }

    /// Counts a call that began at `start` and returned `rows` rows.
    fn record(&self, ctx: &ExecContext, (start, before): (Duration, IoCounts), rows: usize) {
        let spent = ctx.session.monotonic().saturating_sub(start);
        let io = io_counts::counted().since(&before);
        ctx.record_timing(self.id, |t| {
            t.io.add(&io);
            t.total += spent;
            if !t.started {
                t.started = true;
                t.loops += 1;
                t.startup += spent;
            }
            t.rows += rows as u64;
        });
    }
}

impl Operator for InstrumentOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let start = (ctx.session.monotonic(), io_counts::counted());
        let result = self.inner.next(ctx, limit);
        self.record(ctx, start, result.as_ref().ok().and_then(|b| b.as_ref()).map_or(0, |b| b.rows));
        result
    }

    fn skip(&mut self, ctx: &ExecContext, limit: usize) -> Result<usize> {
        let start = (ctx.session.monotonic(), io_counts::counted());
        let result = self.inner.skip(ctx, limit);
        self.record(ctx, start, result.as_ref().map_or(0, |rows| *rows));
        result
    }

    fn share(&mut self, ctx: &ExecContext, tables: &mut BuiltTables) -> Result<bool> {
        self.inner.share(ctx, tables)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        if !ctx.is_between_parts() {
            ctx.record_timing(self.id, |t| t.started = false);
        }
        self.inner.rescan(ctx)
    }
}
