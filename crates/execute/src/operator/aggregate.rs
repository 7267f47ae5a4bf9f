//! Hash aggregation, with grouping sets, DISTINCT and ordered aggregates.
//!
//! The input is taken in passes. A pass collects groups until they fill their memory; from then on rows of groups that it does
//! not have are split into files by their key, and each file is a later pass. So all rows of a group are in one pass, in their
//! order. A team runs several later passes at a time, and splits all rows first when many groups of few rows are expected
//! (`scatter`).

mod by_codes;
mod by_group;
mod groups;
mod input;
mod merge;
mod pass;
mod scatter;
mod table;
mod word_map;

use std::sync::Arc;

use melba_types::{Batch, Kind, Result};

use self::groups::Groups;
use self::pass::{Done, Pass, Work};
use super::pending::Pending;
use crate::{ExecContext, Operator, parallel};
use melba_plan::NodeStorage;
use melba_plan::node::AggregateNode;
use melba_types::BATCH_ROWS;

/// Later passes that each thread of a team makes before results are read. More passes take more memory; with fewer the threads wait for
/// each other.
const PASSES_A_THREAD: usize = 2;

pub(super) struct AggregateOp {
    id: usize,
    node: Arc<AggregateNode>,
    kinds: Arc<[Kind]>,
    input: Box<dyn Operator>,
    started: bool,
    /// Results to compute, how many of them are, and the memory they hold.
    groups: Groups,
    at: usize,
    /// Results that a team has computed.
    rows: Vec<Batch>,
    held: Option<melba_engine::Held>,
    /// Passes still to make, the next one last.
    work: Vec<Work>,
    /// Passes that have been made, the next one last.
    ready: Vec<Done>,
    used: Used,
    pending: Pending,
}

/// For EXPLAIN ANALYZE.
#[derive(Default)]
struct Used {
    batches: u64,
    memory: u64,
    disk: u64,
}

impl AggregateOp {
    pub fn new(id: usize, node: Arc<AggregateNode>, kinds: Arc<[Kind]>, ctx: &ExecContext) -> Result<AggregateOp> {
        let input = ctx.build(&node.input)?;
        Ok(AggregateOp {
            id,
            node,
            kinds,
            input,
            started: false,
            groups: Groups::default(),
            at: 0,
            rows: Vec::new(),
            held: None,
            work: Vec::new(),
            ready: Vec::new(),
            used: Used::default(),
            pending: Pending::default(),
        })
    }

    /// Begins the next pass; false when there is none.
    fn pass(&mut self, ctx: &ExecContext) -> Result<bool> {
        self.held = None;
        (self.groups, self.at) = (Groups::default(), 0);
        let node = self.node.clone();
        if !self.started {
            self.started = true;
            let first = self.first(&node, ctx)?;
            self.ready.extend(first);
        }
        if self.ready.is_empty() {
            let passes = if node.workers == 0 { 1 } else { (node.workers + 1) * PASSES_A_THREAD };
            let some = self.work.split_off(self.work.len().saturating_sub(passes));
            let kinds = &self.kinds;
            let pass = |ctx: &ExecContext, work: Work| work.pass(&node, ctx)?.with_rows(&node, kinds, ctx);
            self.ready = parallel::each_of(ctx, node.workers, &node.input, some, pass)?;
        }
        let Some(done) = self.ready.pop() else { return Ok(false) };
        self.used.batches += 1 + done.work.len() as u64 - u64::from(self.used.batches > 0);
        self.used.memory = self.used.memory.max(done.memory as u64);
        self.used.disk += done.disk;
        self.work.extend(done.work.into_iter().rev());
        ctx.note_removed(self.id, done.left_out, 0);
        (self.groups, self.at, self.rows) = (done.groups, 0, done.rows);
        self.held = Some(done.held);
        if !node.groups.is_empty() {
            let Used { batches, memory, disk } = self.used;
            ctx.record_timing(self.id, |t| t.storage = Some(NodeStorage::HashAggregate { batches, memory, disk }));
        }
        Ok(true)
    }

    /// Takes the input: its groups, the next ones last; none when it has been split into work for later passes.
    fn first(&mut self, node: &AggregateNode, ctx: &ExecContext) -> Result<Vec<Done>> {
        let mut pass = Pass::new(node, ctx, 0..node.sets.len(), 0)?;
        match parallel::form(ctx, node.workers, &node.input, &mut *self.input)? {
            Some((team, workers)) => {
                ctx.record_timing(self.id, |t| t.workers = workers.count() as u64);
                if node.scatters > 0 {
                    (self.work, self.used.disk) = scatter::scatter(node, ctx, team, &workers)?;
                    self.used.batches = self.work.len() as u64;
                    return Ok(Vec::new());
                }
                let collect = |ctx: &ExecContext| {
                    let mut pass = Pass::new(node, ctx, 0..node.sets.len(), 0)?;
                    parallel::each_batch(ctx, &node.input, |batch| pass.take(&batch))?;
                    pass.into_partial()
                };
                let partials = parallel::run(ctx, team, &workers, collect)?;
                drop(workers);
                match merge::merge(node, &self.kinds, ctx, partials)? {
                    Ok(parts) => return Ok(parts),
                    Err(partials) => pass.take_partials(partials)?,
                }
            }
            None => pass.take_all(ctx, &mut *self.input)?,
        }
        Ok(vec![pass.finish()?])
    }
}

impl Operator for AggregateOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.pending.take(limit) {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.rows.pop() {
                self.pending.put(batch);
                continue;
            }
            let some = self.at..(self.at + BATCH_ROWS).min(self.groups.count);
            if some.is_empty() {
                match self.pass(ctx)? {
                    true => continue,
                    false => return Ok(None),
                }
            }
            self.at = some.end;
            let groups = some.len();
            let batch = self.groups.results(&self.node, &self.kinds, ctx, some)?;
            ctx.note_removed(self.id, groups, batch.rows);
            self.pending.put(batch);
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.started = false;
        (self.groups, self.at) = (Groups::default(), 0);
        self.rows.clear();
        self.held = None;
        self.work.clear();
        self.ready.clear();
        self.used = Used::default();
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
