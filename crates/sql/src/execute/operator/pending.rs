//! A batch that is given out in pieces.

use melba_types::{Batch, Column, Kind};

use crate::execute::stored;

/// Rows computed but not asked for yet.
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
        if self.batch.is_stored() { stored::rows_within(&self.batch, self.at).min(limit) } else { limit }
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
        let rows: Vec<u32> = (self.at as u32..(self.at + n) as u32).collect();
        self.at += n;
        let part = self.batch.take(&rows);
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

/// As `give`, for what a scan has read: no more rows than may be expanded together.
pub(crate) fn give_scanned(pending: &mut Pending, batch: Batch, limit: usize) -> Option<Batch> {
    if !batch.is_stored() {
        return give(pending, batch, limit);
    }
    pending.put(batch);
    pending.take(pending.rows_within(limit))
}

/// Appends the rows of a batch to another.
pub(crate) fn append(to: &mut Batch, from: Batch) {
    if to.rows == 0 {
        *to = from;
        return;
    }
    for (a, b) in to.columns.iter_mut().zip(&from.columns) {
        append_column(a, b);
    }
    to.rows += from.rows;
}

fn append_column(to: &mut Column, from: &Column) {
    use melba_types::ColumnData::*;
    if to.validity.is_none() && from.validity.is_none() {
        match (&mut to.data, &from.data) {
            (Bool(a), Bool(b)) => return a.extend_from_slice(b),
            (Int2(a), Int2(b)) => return a.extend_from_slice(b),
            (Int4(a), Int4(b)) => return a.extend_from_slice(b),
            (Int8(a), Int8(b)) => return a.extend_from_slice(b),
            (Float4(a), Float4(b)) => return a.extend_from_slice(b),
            (Float8(a), Float8(b)) => return a.extend_from_slice(b),
            (Oid(a), Oid(b)) => return a.extend_from_slice(b),
            (Datum(a), Datum(b)) => return a.extend_from_slice(b),
            (Text(a), Text(b)) | (Bytes(a), Bytes(b)) => return a.append(b),
            _ => {}
        }
    }
    for i in 0..from.len() {
        to.push(from.get(i));
    }
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
