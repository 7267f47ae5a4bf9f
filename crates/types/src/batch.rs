//! Columns of equal length: operators pass them on.

use std::ops::Range;

use crate::column::{Column, ColumnData};
use crate::datum::Datum;

/// Rows of a batch when nothing limits them.
pub const BATCH_ROWS: usize = 2048;

/// Columns of equal length. `rows` is explicit because a batch may have no columns.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub columns: Vec<Column>,
    pub rows: usize,
}

impl Batch {
    pub fn new(columns: Vec<Column>, rows: usize) -> Batch {
        debug_assert!(columns.iter().all(|c| c.len() == rows));
        Batch { columns, rows }
    }

    /// Appends the rows of another batch with columns of the same kinds.
    pub fn append(&mut self, from: Batch) {
        if self.rows == 0 {
            *self = from;
            return;
        }
        for (a, b) in self.columns.iter_mut().zip(&from.columns) {
            a.append(b);
        }
        self.rows += from.rows;
    }

    /// Appends the rows of others with columns of the same kinds, for which room is made at once.
    pub fn append_all(&mut self, batches: Vec<Batch>) {
        let mut batches = batches.into_iter().filter(|batch| batch.rows > 0).collect::<Vec<_>>().into_iter();
        if self.rows == 0
            && let Some(first) = batches.next()
        {
            *self = first;
        }
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.reserve(batches.as_slice().iter().map(|batch| &batch.columns[i]));
        }
        batches.for_each(|batch| self.append(batch));
    }

    pub fn take(&self, indices: &[u32]) -> Batch {
        Batch { columns: self.columns.iter().map(|c| c.take(indices)).collect(), rows: indices.len() }
    }

    /// The rows of a range. Columns that are not `needed`, when that is given, stay empty; no caller may read them.
    pub fn slice(&self, rows: Range<usize>, needed: Option<&[usize]>) -> Batch {
        let count = rows.len();
        let column = |(i, column): (usize, &Column)| match needed {
            Some(needed) if !needed.contains(&i) => Column::new(ColumnData::Bool(Vec::new())),
            _ => column.slice(rows.clone()),
        };
        Batch { columns: self.columns.iter().enumerate().map(column).collect(), rows: count }
    }

    /// Whether some column may hold values in stored form.
    pub fn is_stored(&self) -> bool {
        self.columns.iter().any(Column::is_stored)
    }

    /// Memory in use, about.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Batch>() + self.columns.iter().map(Column::memory_bytes).sum::<usize>()
    }

    /// Bytes of all strings.
    pub fn string_bytes(&self) -> usize {
        let bytes = |column: &Column| match &column.data {
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.bytes.len(),
            _ => 0,
        };
        self.columns.iter().map(bytes).sum()
    }

    /// Row `i` as datums.
    pub fn row(&self, i: usize) -> Vec<Datum> {
        self.columns.iter().map(|c| c.get(i)).collect()
    }
}
