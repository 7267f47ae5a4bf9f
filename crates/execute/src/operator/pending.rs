//! A batch that is returned in pieces.

use melba_types::{Batch, Column, Kind, Result};

use crate::ExecContext;
use melba_expression::{Expression, expand, filter};

/// Rows computed but not requested yet.
#[derive(Default)]
pub(crate) struct Pending {
    batch: Batch,
    at: usize,
}

impl Pending {
    pub fn put(&mut self, batch: Batch) {
        self.batch = batch;
        self.at = 0;
    }

    pub fn clear(&mut self) {
        self.put(Batch::default());
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.batch.rows
    }

    /// How many of the next `limit` rows may be expanded together.
    pub fn rows_within(&self, limit: usize) -> usize {
        if self.batch.is_stored() { expand::rows_within(&self.batch, self.at).min(limit) } else { limit }
    }

    /// The next rows, at most `limit`.
    pub fn take(&mut self, limit: usize) -> Option<Batch> {
        let left = self.batch.rows.saturating_sub(self.at);
        if left == 0 {
            return None;
        }
        if self.at == 0 && left <= limit {
            return Some(std::mem::take(&mut self.batch));
        }
        let n = left.min(limit);
        let part = self.batch.slice(self.at..self.at + n, None);
        self.at += n;
        if self.is_empty() {
            self.clear();
        }
        Some(part)
    }
}

/// A batch that passes through, if it is small enough, or its first rows, the rest being kept.
pub(crate) fn give(pending: &mut Pending, batch: Batch, limit: usize) -> Option<Batch> {
    if batch.rows <= limit {
        return Some(batch);
    }
    pending.put(batch);
    pending.take(limit)
}

/// Like `give`, for rows of a scan: no more rows than may be expanded together.
pub(crate) fn give_scanned(pending: &mut Pending, batch: Batch, limit: usize) -> Option<Batch> {
    if !batch.is_stored() {
        return give(pending, batch, limit);
    }
    pending.put(batch);
    pending.take(pending.rows_within(limit))
}

/// The rows of a batch of the scan `node` that meet the conditions, as `give_scanned` returns them; `None` when none does.
pub(crate) fn give_filtered(
    pending: &mut Pending,
    (node, conditions): (usize, &[Expression]),
    ctx: &ExecContext,
    batch: Batch,
    limit: usize,
) -> Result<Option<Batch>> {
    let Some(rows) = filter(conditions, ctx, &batch)? else { return Ok(give_scanned(pending, batch, limit)) };
    ctx.note_removed(node, batch.rows, rows.len());
    if rows.is_empty() {
        ctx.check_interrupt()?;
        return Ok(None);
    }
    let batch = batch.take(&rows);
    Ok(give_scanned(pending, batch, limit))
}

/// A batch of rows given as datums.
pub(crate) fn batch_of(kinds: &[Kind], rows: &[Vec<melba_types::Datum>]) -> Batch {
    let mut columns: Vec<Column> = kinds.iter().map(|k| Column::with_capacity(*k, rows.len())).collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value.clone());
        }
    }
    Batch { columns, rows: rows.len() }
}

/// Columns of nulls.
pub(crate) fn nulls(kinds: &[Kind], rows: usize) -> Vec<Column> {
    kinds
        .iter()
        .map(|k| {
            let mut column = Column::with_capacity(*k, rows);
            for _ in 0..rows {
                column.push_null();
            }
            column
        })
        .collect()
}
