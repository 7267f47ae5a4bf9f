//! Hash aggregation, with grouping sets, DISTINCT and ordered aggregates.
//!
//! The input is taken in passes. A pass collects groups until they fill their memory; from then on rows of groups that it does
//! not have are split into files by their key, and each file is a later pass. So all rows of a group are in one pass, in their
//! order.

mod by_group;
mod input;
mod pass;

use std::sync::Arc;

use melba_functions::Aggregate;
use melba_types::{Batch, Column, Datum, Kind, Result};

use self::pass::{Pass, Work};
use super::build;
use super::pending::Pending;
use crate::{ExecContext, Operator};
use melba_expression::filter;
use melba_plan::Storage;
use melba_plan::node::AggregateNode;
use melba_types::BATCH_ROWS;

/// State of one aggregate in one group.
struct State {
    aggregate: Box<dyn Aggregate>,
    /// What it held when it was last asked, if what it holds grows.
    memory: usize,
}

struct Group {
    /// Values of all grouping expressions; NULL for those not in the group's set.
    values: Vec<Datum>,
    set: usize,
    states: Vec<State>,
}

pub(super) struct AggregateOp {
    id: usize,
    node: Arc<AggregateNode>,
    kinds: Arc<[Kind]>,
    input: Box<dyn Operator>,
    started: bool,
    /// Results still to compute, and the memory they hold.
    groups: std::vec::IntoIter<Group>,
    held: Option<melba_engine::Held>,
    /// Passes still to make, the next one last.
    work: Vec<Work>,
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
        let input = build(&node.input, ctx)?;
        Ok(AggregateOp {
            id,
            node,
            kinds,
            input,
            started: false,
            groups: Vec::new().into_iter(),
            held: None,
            work: Vec::new(),
            used: Used::default(),
            pending: Pending::default(),
        })
    }

    /// Makes the next pass; false when there is none.
    fn pass(&mut self, ctx: &ExecContext) -> Result<bool> {
        self.held = None;
        let node = self.node.clone();
        let mut pass;
        if !self.started {
            self.started = true;
            pass = Pass::new(&node, ctx, 0..node.sets.len(), 0)?;
            while let Some(batch) = self.input.next(ctx, BATCH_ROWS)? {
                ctx.check_interrupt()?;
                pass.take(&batch)?;
            }
        } else {
            let Some(work) = self.work.pop() else { return Ok(false) };
            pass = Pass::new(&node, ctx, work.set..work.set + 1, work.level)?;
            let mut reader = work.run.reader();
            while let Some(batch) = reader.next_batch()? {
                ctx.check_interrupt()?;
                pass.take(&batch)?;
            }
        }
        let done = pass.finish()?;
        self.used.batches += 1 + done.work.len() as u64 - u64::from(self.used.batches > 0);
        self.used.memory = self.used.memory.max(done.memory as u64);
        self.used.disk += done.disk;
        self.work.extend(done.work.into_iter().rev());
        self.groups = done.groups.into_iter();
        self.held = Some(done.held);
        if !node.groups.is_empty() {
            let Used { batches, memory, disk } = self.used;
            ctx.record_timing(self.id, |t| t.storage = Some(Storage::HashAggregate { batches, memory, disk }));
        }
        Ok(true)
    }

    /// The output row of a group.
    fn result(&self, ctx: &ExecContext, group: &mut Group, columns: &mut [Column]) -> Result<()> {
        let node = &self.node;
        let mut at = 0;
        for value in std::mem::take(&mut group.values) {
            columns[at].push(value);
            at += 1;
        }
        for (spec, state) in node.aggregates.iter().zip(&group.states) {
            columns[at].push(state.aggregate.finish(&spec.call.context(ctx))?);
            at += 1;
        }
        for grouping in &node.groupings {
            let set = &node.sets[group.set];
            let mask = grouping.iter().fold(0i32, |mask, g| mask << 1 | i32::from(!set.contains(g)));
            columns[at].push(Datum::Int4(mask));
            at += 1;
        }
        Ok(())
    }
}

impl Operator for AggregateOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.pending.take(limit) {
                return Ok(Some(batch));
            }
            let mut some: Vec<Group> = self.groups.by_ref().take(BATCH_ROWS).collect();
            if some.is_empty() {
                match self.pass(ctx)? {
                    true => continue,
                    false => return Ok(None),
                }
            }
            let mut columns: Vec<Column> = self.kinds.iter().map(|k| Column::with_capacity(*k, some.len())).collect();
            for group in &mut some {
                self.result(ctx, group, &mut columns)?;
            }
            let batch = Batch { columns, rows: some.len() };
            match filter(&self.node.having, ctx, &batch)? {
                None => self.pending.put(batch),
                Some(rows) => self.pending.put(batch.take(&rows)),
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.started = false;
        self.groups = Vec::new().into_iter();
        self.held = None;
        self.work.clear();
        self.used = Used::default();
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
