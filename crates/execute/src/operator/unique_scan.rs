//! Index scans by the whole key of a unique index: one row at most, so no scan is set up.

use std::sync::Arc;

use melba_types::{Batch, Column, Datum, DbError, Result};

use super::index_scan::{not_a_key, push_key};
use super::note_scan;
use super::table_scan::{outputs, source_row};
use crate::{ExecContext, Operator};
use melba_expression::filter;
use melba_plan::node::{IndexArm, IndexScanNode, KeyMatch};

/// Room for a key of a few numbers.
const KEY_BYTES: usize = 32;

pub(super) struct UniqueScanOp {
    id: usize,
    node: Arc<IndexScanNode>,
    done: bool,
}

impl UniqueScanOp {
    /// Of a node with one arm, which is unique.
    pub fn new(id: usize, node: Arc<IndexScanNode>) -> UniqueScanOp {
        UniqueScanOp { id, node, done: false }
    }

    fn find_row(&self, ctx: &ExecContext) -> Result<Option<Vec<Datum>>> {
        let (source, view) = (&self.node.source, ctx.view());
        let arm = &self.node.arms[0];
        let Some(key) = key(arm, ctx)? else { return Ok(None) };
        let found = ctx.transaction().index(arm.tree).find(view, &key)?;
        note_scan(ctx, arm.tree, 1, found.is_some().into());
        ctx.record_timing(self.id, |t| t.searches += 1);
        let Some(id) = found else { return Ok(None) };
        let mut row = Vec::with_capacity(source.projection.len());
        if !ctx.transaction().fetch_values(view, source.tree, id, &source.projection, &source.missing, &mut row)? {
            return Ok(None);
        }
        let row = source_row(ctx, source, row, id, None)?;
        for condition in &self.node.filter {
            if !condition.holds(ctx, &row)? {
                ctx.note_removed(self.id, 1, 0);
                return Ok(None);
            }
        }
        Ok(Some(row))
    }

    fn find(&self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let (source, view) = (&self.node.source, ctx.view());
        let arm = &self.node.arms[0];
        let Some(key) = key(arm, ctx)? else { return Ok(None) };
        let found = ctx.transaction().index(arm.tree).find(view, &key)?;
        note_scan(ctx, arm.tree, 1, found.is_some().into());
        ctx.record_timing(self.id, |t| t.searches += 1);
        let Some(id) = found else { return Ok(None) };
        let columns = match &self.node.covered {
            Some(covered) => {
                let mut columns: Vec<Column> = covered.kinds.iter().map(|kind| Column::with_capacity(*kind, 1)).collect();
                push_key(&arm.parts, &covered.places, &key, &mut columns).ok_or_else(not_a_key)?;
                columns
            }
            None => match ctx.transaction().fetch_row(view, source.tree, id, &source.projection, &source.missing)? {
                Some(columns) => columns,
                None => return Ok(None),
            },
        };
        let batch = outputs(ctx, source, &[id], columns)?;
        let passes = filter(&self.node.filter, ctx, &batch)?.is_none_or(|rows| !rows.is_empty());
        ctx.note_removed(self.id, 1, passes.into());
        Ok(passes.then_some(batch))
    }
}

/// The key; `None` when part of it is NULL, which nothing equals.
fn key(arm: &IndexArm, ctx: &ExecContext) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::with_capacity(KEY_BYTES);
    for (part, matched) in arm.parts.iter().zip(&arm.matches) {
        let KeyMatch::Equal(value) = matched else {
            return Err(DbError::internal("a unique key that is not given by equalities"));
        };
        let value = value.eval_row(ctx, &[])?;
        if value.is_null() {
            return Ok(None);
        }
        part.encode(&value, &mut key);
    }
    Ok(Some(key))
}

impl Operator for UniqueScanOp {
    fn next(&mut self, ctx: &ExecContext, _limit: usize) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.done, true) { Ok(None) } else { self.find(ctx) }
    }

    fn next_row(&mut self, ctx: &ExecContext) -> Option<Result<Option<Vec<Datum>>>> {
        Some(if std::mem::replace(&mut self.done, true) { Ok(None) } else { self.find_row(ctx) })
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.done = false;
        Ok(())
    }
}
