//! Scans by GIN indexes: the row ids of all entries that the conditions demand are gathered first, then rows are fetched in their order.

use std::ops::{Bound, Range};
use std::sync::Arc;

use melba_engine::{Held, IndexScan};
use melba_fmgr::GinColumn;
use melba_fmgr::gin::GinQuery;
use melba_plan::node::BitmapScanNode;
use melba_types::limits::check_stack;
use melba_types::{BATCH_ROWS, Batch, Result, RowId};

use super::note_scan;
use super::pending::{Pending, give_filtered};
use super::table_scan::outputs;
use crate::{ExecContext, Operator};

pub(super) struct BitmapScanOp {
    id: usize,
    node: Arc<BitmapScanNode>,
    /// The rows still to fetch, once they are known, and the account of them.
    found: Option<(std::vec::IntoIter<RowId>, Held)>,
    pending: Pending,
    /// Rows fetched at once; grows.
    batch: usize,
}

/// Rows of the first batch.
const FIRST_ROWS: usize = 64;

impl BitmapScanOp {
    pub fn new(id: usize, node: Arc<BitmapScanNode>) -> BitmapScanOp {
        BitmapScanOp { id, node, found: None, pending: Pending::default(), batch: FIRST_ROWS }
    }

    /// The rows that meet all conditions as far as entries tell.
    fn find(&self, ctx: &ExecContext) -> Result<Vec<RowId>> {
        let mut found: Option<Vec<RowId>> = None;
        let mut everything = None;
        for condition in &self.node.conditions {
            let value = condition.value.eval_row(ctx, &[])?;
            if value.is_null() {
                return Ok(Vec::new());
            }
            let query = condition.column.query(condition.strategy, &value, &*ctx.session)?;
            if query == GinQuery::ALL {
                everything = Some(&condition.column);
                continue;
            }
            let rows = self.rows_of(ctx, &condition.column, &query)?;
            found = Some(match found {
                Some(found) => common(found, &rows),
                None => rows,
            });
        }
        match (found, everything) {
            (Some(found), _) => Ok(found),
            (None, Some(column)) => self.rows_of(ctx, column, &GinQuery::ALL),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The rows, in order, that have what a query demands.
    fn rows_of(&self, ctx: &ExecContext, column: &GinColumn, query: &GinQuery) -> Result<Vec<RowId>> {
        check_stack()?;
        ctx.check_interrupt()?;
        match query {
            GinQuery::Key(key) => {
                let entry = column.entry(key);
                let txn = ctx.transaction();
                self.collect(ctx, txn.index(self.node.tree).lookup(ctx.view(), &entry)?)
            }
            GinQuery::Prefix(prefix) => {
                let mut rows = Vec::new();
                for range in column.with_prefix(prefix) {
                    rows.extend(self.between(ctx, &range)?);
                }
                Ok(in_order(rows))
            }
            GinQuery::And(parts) if parts.is_empty() => self.between(ctx, &column.all()),
            GinQuery::And(parts) => {
                let mut parts = parts.iter().filter(|part| **part != GinQuery::ALL);
                let Some(first) = parts.next() else { return self.rows_of(ctx, column, &GinQuery::ALL) };
                let mut rows = self.rows_of(ctx, column, first)?;
                for part in parts {
                    if rows.is_empty() {
                        break;
                    }
                    rows = common(rows, &self.rows_of(ctx, column, part)?);
                }
                Ok(rows)
            }
            GinQuery::Or(parts) => self.rows_of_some(ctx, column, parts, 1),
            GinQuery::AtLeast(count, parts) => self.rows_of_some(ctx, column, parts, *count),
        }
    }

    /// The rows, in order, that at least `count` of the parts give.
    fn rows_of_some(&self, ctx: &ExecContext, column: &GinColumn, parts: &[GinQuery], count: usize) -> Result<Vec<RowId>> {
        let mut all = Vec::new();
        for part in parts {
            all.extend(self.rows_of(ctx, column, part)?);
        }
        all.sort_unstable();
        Ok(all.chunk_by(|a, b| a == b).filter(|equal| equal.len() >= count).map(|equal| equal[0]).collect())
    }

    /// The rows, in order, of all entries in a range.
    fn between(&self, ctx: &ExecContext, range: &Range<Vec<u8>>) -> Result<Vec<RowId>> {
        let (start, end) = (Bound::Included(&range.start[..]), Bound::Excluded(&range.end[..]));
        self.collect(ctx, ctx.transaction().index(self.node.tree).scan(ctx.view(), start, end, false)?)
    }

    fn collect(&self, ctx: &ExecContext, mut scan: IndexScan) -> Result<Vec<RowId>> {
        let mut rows = Vec::new();
        let mut held = ctx.resources().held();
        while scan.next_rows(BATCH_ROWS, &mut rows)? {
            ctx.check_interrupt()?;
            held.set(rows.capacity() * size_of::<RowId>())?;
        }
        note_scan(ctx, self.node.tree, 1, rows.len());
        ctx.record_timing(self.id, |t| t.searches += 1);
        Ok(in_order(rows))
    }

    /// The next rows before the filter; `None` at the end.
    fn read(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let node = self.node.clone();
        let source = &node.source;
        let (mut found, held) = match self.found.take() {
            Some(found) => found,
            None => {
                let found = self.find(ctx)?;
                let mut held = ctx.resources().held();
                held.set(found.capacity() * size_of::<RowId>())?;
                (found.into_iter(), held)
            }
        };
        let mut batch = None;
        while batch.is_none() && found.len() > 0 {
            let ids: Vec<RowId> = found.by_ref().take(self.batch).collect();
            self.batch = (self.batch * 4).min(BATCH_ROWS);
            let (kept, columns) = ctx.transaction().fetch(ctx.view(), source.tree, &ids, &source.projection, &source.missing)?;
            if !kept.is_empty() {
                let ids: Vec<RowId> = kept.iter().map(|&i| ids[i as usize]).collect();
                batch = Some(outputs(ctx, source, &ids, columns)?);
            }
        }
        self.found = Some((found, held));
        Ok(batch)
    }
}

impl Operator for BitmapScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(self.pending.rows_within(limit)) {
            return Ok(Some(batch));
        }
        loop {
            let Some(batch) = self.read(ctx)? else { return Ok(None) };
            let passed = give_filtered(&mut self.pending, (self.id, &self.node.filter), ctx, batch, limit)?;
            if passed.is_some() {
                return Ok(passed);
            }
        }
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.found = None;
        self.batch = FIRST_ROWS;
        self.pending.clear();
        Ok(())
    }
}

fn in_order(mut rows: Vec<RowId>) -> Vec<RowId> {
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The rows that are in both lists, which are in order.
fn common(mut rows: Vec<RowId>, others: &[RowId]) -> Vec<RowId> {
    let mut rest = others;
    rows.retain(|row| {
        rest = &rest[rest.partition_point(|other| other < row)..];
        rest.first() == Some(row)
    });
    rows
}
