//! DISTINCT, Append, INTERSECT and EXCEPT.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_engine::Held;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Result};

use super::dedup::Dedup;
use super::pending::{Pending, give};
use super::sort::encode_keys;
use crate::key_overhead::KEY_OVERHEAD_BYTES;
use crate::{ExecContext, Operator};
use melba_plan::node::{AppendNode, DistinctNode, SetOpNode};
use melba_spill::{Partitions, Run, RunReader};
use melba_tree::SetOperation;
use melba_types::BATCH_ROWS;

pub(super) struct DistinctOp {
    id: usize,
    node: Arc<DistinctNode>,
    input: Box<dyn Operator>,
    dedup: Dedup,
    /// The rows of a later pass.
    run: Option<RunReader>,
    last: Option<Vec<u8>>,
    pending: Pending,
}

impl DistinctOp {
    pub fn new(id: usize, node: Arc<DistinctNode>, ctx: &ExecContext) -> Result<DistinctOp> {
        let input = ctx.build(&node.input)?;
        Ok(DistinctOp { id, node, input, dedup: Dedup::default(), run: None, last: None, pending: Pending::default() })
    }

    /// The first of each run of equal rows.
    fn first_rows(&mut self, keys: &ByteStrings) -> Vec<u32> {
        let mut kept = Vec::new();
        for i in 0..keys.len() {
            if self.last.as_deref() != Some(keys.get(i)) {
                self.last = Some(keys.get(i).to_vec());
                kept.push(i as u32);
            }
        }
        kept
    }

    /// Begins the next pass; false when there is none.
    fn next_pass(&mut self, ctx: &ExecContext) -> Result<bool> {
        if self.node.sorted {
            return Ok(false);
        }
        self.run = self.dedup.next_pass()?;
        let storage = self.dedup.storage();
        ctx.record_timing(self.id, |t| t.storage = Some(storage));
        Ok(self.run.is_some())
    }
}

impl Operator for DistinctOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        loop {
            let next = match &mut self.run {
                Some(reader) => reader.next_batch()?,
                None => self.input.next(ctx, limit)?,
            };
            let Some(batch) = next else {
                match self.next_pass(ctx)? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let keys_of = |batch: &Batch| encode_keys(&self.node.keys, ctx, batch);
            // Rows are passed on in stored form.
            let keys = match batch.is_stored() {
                true => keys_of(&ctx.expand_batch(batch.clone(), &self.node.input.kinds)?)?,
                false => keys_of(&batch)?,
            };
            let kept = if self.node.sorted { self.first_rows(&keys) } else { self.dedup.take(ctx, &batch, &keys)? };
            ctx.check_interrupt()?;
            if !kept.is_empty() {
                let batch = if kept.len() == batch.rows { batch } else { batch.take(&kept) };
                return Ok(give(&mut self.pending, batch, limit));
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.dedup = Dedup::default();
        self.run = None;
        self.last = None;
        self.pending.clear();
        self.input.rescan(ctx)
    }
}

pub(super) struct AppendOp {
    node: Arc<AppendNode>,
    inputs: Vec<Box<dyn Operator>>,
    /// The inputs that are read; determined at the first request for rows.
    active: Option<Vec<bool>>,
    at: usize,
}

impl AppendOp {
    pub fn new(node: Arc<AppendNode>, ctx: &ExecContext) -> Result<AppendOp> {
        let inputs = node.inputs.iter().map(|n| ctx.build(n)).collect::<Result<_>>()?;
        Ok(AppendOp { node, inputs, active: None, at: 0 })
    }
}

impl Operator for AppendOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(pruning) = self.node.pruning.as_ref().filter(|_| self.active.is_none()) {
            self.active = Some(pruning.members(ctx)?);
        }
        while let Some(input) = self.inputs.get_mut(self.at) {
            let is_active = self.active.as_ref().is_none_or(|active| active[self.at]);
            if is_active && let Some(batch) = input.next(ctx, limit)? {
                return Ok(Some(batch));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.at = 0;
        self.active = None;
        self.inputs.iter_mut().try_for_each(|i| i.rescan(ctx))
    }
}

/// INTERSECT and EXCEPT: how often each row is on the right decides how often it passes from the left.
///
/// Keys of the right side that do not fit are split by hash with their counts, and so is the left side: each pair of parts is
/// processed separately.
pub(super) struct SetOpOp {
    node: Arc<SetOpNode>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// Where the left rows come from, when not from the input.
    run: Option<RunReader>,
    counts: Option<HashMap<Box<[u8]>, usize>>,
    held: Option<Held>,
    /// Without ALL: each passing row once; and the rows of its later passes.
    dedup: Dedup,
    passed: Option<RunReader>,
    work: Vec<SetOpWork>,
    pending: Pending,
}

/// Left rows, and keys of right rows with their counts.
struct SetOpWork {
    left: Run,
    right: Run,
    level: u32,
}

impl SetOpOp {
    pub fn new(node: Arc<SetOpNode>, ctx: &ExecContext) -> Result<SetOpOp> {
        let left = ctx.build(&node.left)?;
        let right = ctx.build(&node.right)?;
        Ok(SetOpOp {
            node,
            left,
            right,
            run: None,
            counts: None,
            held: None,
            dedup: Dedup::default(),
            passed: None,
            work: Vec::new(),
            pending: Pending::default(),
        })
    }

    fn next_left(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        match &mut self.run {
            Some(reader) => reader.next_batch(),
            None => match self.left.next(ctx, BATCH_ROWS)? {
                Some(batch) => ctx.expand_batch(batch, &self.node.left.kinds).map(Some),
                None => Ok(None),
            },
        }
    }

    fn next_right(&mut self, ctx: &ExecContext, run: &mut Option<RunReader>) -> Result<Option<Counted>> {
        match run {
            Some(reader) => reader.next_batch()?.map(Counted::read).transpose(),
            None => {
                let Some(batch) = self.right.next(ctx, BATCH_ROWS)? else { return Ok(None) };
                let batch = ctx.expand_batch(batch, &self.node.right.kinds)?;
                let keys = encode_keys(&self.node.keys, ctx, &batch)?;
                Ok(Some(Counted { keys, counts: vec![1; batch.rows] }))
            }
        }
    }

    /// Counts the keys of the right side. When they do not fit, both sides are split instead.
    fn count(&mut self, ctx: &ExecContext, right: Option<&Run>, level: u32) -> Result<()> {
        let mut counts: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut held = ctx.resources().held();
        let mut bytes = 0;
        let mut reader = right.map(Run::reader);
        let mut elsewhere: Option<Partitions> = None;
        while let Some(some) = self.next_right(ctx, &mut reader)? {
            ctx.check_interrupt()?;
            if let Some(elsewhere) = &mut elsewhere {
                some.split(elsewhere)?;
                continue;
            }
            for (i, n) in some.counts.iter().enumerate() {
                let (key, known) = (some.keys.get(i), counts.len());
                *counts.entry_ref(key).or_insert(0) += *n as usize;
                if counts.len() > known {
                    bytes += key.len() + KEY_OVERHEAD_BYTES;
                }
            }
            if !ctx.resources().holds(&mut held, bytes, ctx.resources().hash_bytes) {
                let mut all = Counted::default();
                std::mem::take(&mut counts).into_iter().for_each(|(key, n)| all.push(&key, n));
                let mut new = Partitions::new(ctx.resources(), ctx.resources().hash_bytes, level)?;
                all.split(&mut new)?;
                elsewhere = Some(new);
                held.set(0)?;
            }
        }
        if let Some(rights) = elsewhere {
            self.split_left(ctx, rights, level)?;
        }
        (self.counts, self.held) = (Some(counts), Some(held));
        Ok(())
    }

    fn split_left(&mut self, ctx: &ExecContext, rights: Partitions, level: u32) -> Result<()> {
        let node = self.node.clone();
        let mut lefts = Partitions::new(ctx.resources(), ctx.resources().hash_bytes, level)?;
        while let Some(batch) = self.next_left(ctx)? {
            ctx.check_interrupt()?;
            let keys = encode_keys(&node.keys, ctx, &batch)?;
            let parts: Vec<u32> = (0..batch.rows).map(|i| lefts.part_of(keys.get(i))).collect();
            lefts.push(batch, &parts)?;
        }
        let pairs = lefts.finish()?.into_iter().zip(rights.finish()?).filter(|(left, _)| left.rows > 0);
        self.work.extend(pairs.map(|(left, right)| SetOpWork { left, right, level: level + 1 }));
        Ok(())
    }

    /// Whether a left row with this key passes, duplicates aside.
    fn passes(&mut self, key: &[u8]) -> bool {
        let Some(counts) = &mut self.counts else { return false };
        match (counts.get_mut(key), self.node.operation, self.node.all) {
            (Some(n), SetOperation::Intersect, true) if *n > 0 => {
                *n -= 1;
                true
            }
            (Some(n), SetOperation::Except, true) if *n > 0 => {
                *n -= 1;
                false
            }
            (found, SetOperation::Intersect, false) => found.is_some(),
            (found, SetOperation::Except, false) => found.is_none(),
            (_, SetOperation::Except, true) => true,
            _ => false,
        }
    }

    /// The rows of a batch that pass; `judged`: they did so already, only duplicates are to be found.
    fn passing(&mut self, ctx: &ExecContext, batch: Batch, judged: bool) -> Result<Batch> {
        let node = self.node.clone();
        let mut keys = encode_keys(&node.keys, ctx, &batch)?;
        let mut batch = batch;
        if !judged {
            let kept: Vec<u32> = (0..batch.rows as u32).filter(|i| self.passes(keys.get(*i as usize))).collect();
            if kept.len() < batch.rows {
                batch = batch.take(&kept);
                let mut fewer = ByteStrings::default();
                kept.iter().for_each(|i| fewer.push(keys.get(*i as usize)));
                keys = fewer;
            }
        }
        if node.all {
            return Ok(batch);
        }
        let kept = self.dedup.take(ctx, &batch, &keys)?;
        Ok(if kept.len() < batch.rows { batch.take(&kept) } else { batch })
    }

    /// After the last row of a pass: begins the next one; false when there is none.
    fn next_pass(&mut self, ctx: &ExecContext) -> Result<bool> {
        if !self.node.all {
            self.passed = self.dedup.next_pass()?;
            if self.passed.is_some() {
                return Ok(true);
            }
        }
        let Some(SetOpWork { left, right, level }) = self.work.pop() else { return Ok(false) };
        self.dedup = Dedup::default();
        (self.counts, self.held, self.run) = (None, None, Some(left.reader()));
        self.count(ctx, Some(&right), level)?;
        Ok(true)
    }
}

/// Keys of right rows, and how often each occurs.
#[derive(Default)]
struct Counted {
    keys: ByteStrings,
    counts: Vec<i64>,
}

impl Counted {
    fn push(&mut self, key: &[u8], n: usize) {
        self.keys.push(key);
        self.counts.push(n as i64);
    }

    fn split(self, to: &mut Partitions) -> Result<()> {
        let rows = self.counts.len();
        let parts: Vec<u32> = (0..rows).map(|i| to.part_of(self.keys.get(i))).collect();
        let columns = vec![Column::new(ColumnData::Bytes(self.keys)), Column::new(ColumnData::Int8(self.counts))];
        to.push(Batch { columns, rows }, &parts)
    }

    /// Reads rows that `split` wrote.
    fn read(batch: Batch) -> Result<Counted> {
        let mut columns = batch.columns.into_iter().map(|c| c.data);
        match (columns.next(), columns.next()) {
            (Some(ColumnData::Bytes(keys)), Some(ColumnData::Int8(counts))) => Ok(Counted { keys, counts }),
            _ => Err(melba_types::DbError::internal("counted keys are no longer what was written")),
        }
    }
}

impl Operator for SetOpOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        if self.counts.is_none() {
            self.count(ctx, None, 0)?;
        }
        loop {
            let (next, judged) = match &mut self.passed {
                Some(reader) => (reader.next_batch()?, true),
                None => (self.next_left(ctx)?, false),
            };
            let Some(batch) = next else {
                match self.next_pass(ctx)? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let batch = self.passing(ctx, batch, judged)?;
            ctx.check_interrupt()?;
            if batch.rows > 0 {
                return Ok(give(&mut self.pending, batch, limit));
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        (self.counts, self.held, self.run, self.passed) = (None, None, None, None);
        self.dedup = Dedup::default();
        self.work.clear();
        self.pending.clear();
        self.left.rescan(ctx)?;
        self.right.rescan(ctx)
    }
}
