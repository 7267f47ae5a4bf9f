//! DISTINCT, Append, INTERSECT and EXCEPT.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_types::{Batch, Result};

use super::build;
use super::pending::{Pending, give};
use crate::execute::key::KeyPart;
use crate::execute::{BATCH_ROWS, ExecContext, Operator};
use crate::plan::node::{DistinctNode, PlanNode, SetOpNode};
use crate::tree::SetOperation;

/// The equality key of row `i` over some columns.
pub(super) fn row_key(batch: &Batch, columns: impl Iterator<Item = usize>, parts: &[KeyPart], i: usize, out: &mut Vec<u8>) {
    out.clear();
    for (column, part) in columns.zip(parts) {
        part.encode(&batch.columns[column].get(i), out);
    }
}

pub(super) struct DistinctOp {
    node: Arc<DistinctNode>,
    input: Box<dyn Operator>,
    seen: HashSet<Box<[u8]>>,
    last: Option<Vec<u8>>,
}

impl DistinctOp {
    pub fn new(node: Arc<DistinctNode>, ctx: &ExecContext) -> Result<DistinctOp> {
        let input = build(&node.input, ctx)?;
        Ok(DistinctOp { node, input, seen: HashSet::new(), last: None })
    }
}

impl Operator for DistinctOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let mut key = Vec::new();
        while let Some(batch) = self.input.next(ctx, limit)? {
            let batch = ctx.expand_batch(batch, &self.node.input.kinds)?;
            let mut kept = Vec::new();
            for i in 0..batch.rows {
                row_key(&batch, self.node.columns.iter().copied(), &self.node.parts, i, &mut key);
                let new = if self.node.sorted {
                    let new = self.last.as_ref() != Some(&key);
                    self.last = Some(key.clone());
                    new
                } else if self.seen.contains(&key[..]) {
                    false
                } else {
                    self.seen.insert(key.as_slice().into())
                };
                if new {
                    kept.push(i as u32);
                }
            }
            ctx.check_interrupt()?;
            if kept.len() == batch.rows {
                return Ok(Some(batch));
            }
            if !kept.is_empty() {
                return Ok(Some(batch.take(&kept)));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.seen.clear();
        self.last = None;
        self.input.rescan(ctx)
    }
}

pub(super) struct AppendOp {
    inputs: Vec<Box<dyn Operator>>,
    at: usize,
}

impl AppendOp {
    pub fn new(nodes: Arc<Vec<PlanNode>>, ctx: &ExecContext) -> Result<AppendOp> {
        Ok(AppendOp { inputs: nodes.iter().map(|n| build(n, ctx)).collect::<Result<_>>()?, at: 0 })
    }
}

impl Operator for AppendOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if let Some(batch) = input.next(ctx, limit)? {
                return Ok(Some(batch));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.at = 0;
        self.inputs.iter_mut().try_for_each(|i| i.rescan(ctx))
    }
}

/// INTERSECT and EXCEPT: how often each row is on the right decides how often it passes from the left.
pub(super) struct SetOpOp {
    node: Arc<SetOpNode>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    counts: Option<HashMap<Box<[u8]>, usize>>,
    given: HashSet<Box<[u8]>>,
    pending: Pending,
}

impl SetOpOp {
    pub fn new(node: Arc<SetOpNode>, ctx: &ExecContext) -> Result<SetOpOp> {
        let left = build(&node.left, ctx)?;
        let right = build(&node.right, ctx)?;
        Ok(SetOpOp { node, left, right, counts: None, given: HashSet::new(), pending: Pending::default() })
    }

    fn count(&mut self, ctx: &ExecContext) -> Result<HashMap<Box<[u8]>, usize>> {
        let mut counts: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut key = Vec::new();
        while let Some(batch) = self.right.next(ctx, BATCH_ROWS)? {
            let batch = ctx.expand_batch(batch, &self.node.right.kinds)?;
            for i in 0..batch.rows {
                row_key(&batch, 0..batch.columns.len(), &self.node.parts, i, &mut key);
                *counts.entry_ref(&key[..]).or_insert(0) += 1;
            }
            ctx.check_interrupt()?;
        }
        Ok(counts)
    }

    /// Whether a left row with this key passes.
    fn passes(&mut self, key: &[u8]) -> bool {
        let Some(counts) = &mut self.counts else { return false };
        let keep = match (counts.get_mut(key), self.node.operation, self.node.all) {
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
        };
        keep && (self.node.all || self.given.insert(key.into()))
    }
}

impl Operator for SetOpOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        if self.counts.is_none() {
            self.counts = Some(self.count(ctx)?);
        }
        let parts = self.node.clone();
        let mut key = Vec::new();
        while let Some(batch) = self.left.next(ctx, BATCH_ROWS)? {
            let batch = ctx.expand_batch(batch, &self.node.left.kinds)?;
            let mut kept = Vec::new();
            for i in 0..batch.rows {
                row_key(&batch, 0..batch.columns.len(), &parts.parts, i, &mut key);
                if self.passes(&key) {
                    kept.push(i as u32);
                }
            }
            ctx.check_interrupt()?;
            if !kept.is_empty() {
                return Ok(give(&mut self.pending, batch.take(&kept), limit));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.counts = None;
        self.given.clear();
        self.pending.clear();
        self.left.rescan(ctx)?;
        self.right.rescan(ctx)
    }
}
