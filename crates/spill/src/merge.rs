//! Sorted rows, in memory and in runs, read as one.

use melba_types::merge_heap::{MergeHeap, head};
use melba_types::{BATCH_ROWS, Batch, ByteStrings, Column, ColumnData, DbError, Result};

use super::order::OrderedRow;
use super::{Run, RunReader};

/// Batches that are read for one answer, at most; their rows are copied into it.
const BATCHES_READ_MAX: usize = 16;

/// Rows in memory, in order.
#[derive(Default)]
pub(super) struct Ordered {
    /// By column, by list.
    columns: Vec<Vec<Column>>,
    keys: Vec<ByteStrings>,
    parts: Vec<Vec<OrderedRow>>,
    /// The part that is read, and how far.
    part: usize,
    at: usize,
}

impl Ordered {
    /// `parts`: places in the lists of batches and keys, in order.
    pub fn new(batches: Vec<Batch>, keys: Vec<ByteStrings>, parts: Vec<Vec<OrderedRow>>) -> Ordered {
        let width = batches.first().map_or(0, |batch| batch.columns.len());
        let mut columns: Vec<Vec<Column>> = (0..width).map(|_| Vec::with_capacity(batches.len())).collect();
        for batch in batches {
            columns.iter_mut().zip(batch.columns).for_each(|(lists, column)| lists.push(column));
        }
        Ordered { columns, keys, parts, part: 0, at: 0 }
    }

    /// Skips at most `rows` of the next rows; returns how many.
    pub fn skip(&mut self, rows: usize) -> usize {
        let mut left = rows;
        while left > 0
            && let Some(part) = self.parts.get_mut(self.part)
        {
            let some = left.min(part.len() - self.at);
            (self.at, left) = (self.at + some, left - some);
            if self.at == part.len() {
                *part = Vec::new();
                (self.part, self.at) = (self.part + 1, 0);
            }
        }
        rows - left
    }

    /// The next rows, their keys as a last column if wanted.
    ///
    /// # Errors
    /// XX000 when rows have lost their keys.
    pub fn next(&mut self, limit: usize, with_keys: bool) -> Result<Option<Batch>> {
        while let Some(part) = self.parts.get_mut(self.part)
            && self.at == part.len()
        {
            // Entries that have been read are of no use.
            *part = Vec::new();
            (self.part, self.at) = (self.part + 1, 0);
        }
        let Some(part) = self.parts.get(self.part) else { return Ok(None) };
        let some = &part[self.at..self.at.saturating_add(limit).min(part.len())];
        let picks: Vec<(u32, u32)> = some.iter().map(|e| (e.list, e.row)).collect();
        let mut columns: Vec<Column> = self.columns.iter().map(|lists| Column::gather(lists, &picks)).collect();
        if with_keys {
            let keys = ByteStrings::gather(|list| self.keys.get(list as usize), &picks);
            columns.push(Column::new(ColumnData::Bytes(keys.ok_or_else(without_keys)?)));
        }
        self.at += some.len();
        Ok(Some(Batch { columns, rows: picks.len() }))
    }
}

/// Several inputs in order, read as one. The last column of their batches is the key.
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    /// Where the keys of all begin to differ.
    from: usize,
    /// Cursors with rows left.
    heap: MergeHeap,
    /// Those that cursors, and the answer in the making, point into.
    batches: Vec<Batch>,
}

struct Cursor {
    input: Input,
    batch: usize,
    row: usize,
}

enum Input {
    Run(RunReader),
    Memory(Ordered),
}

impl Input {
    fn next_batch(&mut self) -> Result<Option<Batch>> {
        let batch = match self {
            Input::Run(reader) => reader.next_batch()?,
            Input::Memory(rows) => rows.next(BATCH_ROWS, true)?,
        };
        match batch.as_ref().map(|batch| batch.columns.last().map(|c| &c.data)) {
            None | Some(Some(ColumnData::Bytes(_))) => Ok(batch),
            _ => Err(without_keys()),
        }
    }
}

/// Rows without their keys have no order.
pub(super) fn without_keys() -> DbError {
    DbError::internal("sorted rows without their keys")
}

/// The key that a cursor is at.
fn key<'a>(cursors: &[Cursor], batches: &'a [Batch], cursor: u32) -> &'a [u8] {
    let Cursor { batch, row, .. } = &cursors[cursor as usize];
    match batches[*batch].columns.last().map(|c| &c.data) {
        Some(ColumnData::Bytes(keys)) => keys.get(*row),
        // `next_batch` refuses such batches.
        _ => &[],
    }
}

impl Merge {
    /// Of nothing yet; `from`: where the keys of all begin to differ.
    pub fn new(from: usize) -> Merge {
        Merge { cursors: Vec::new(), from, heap: MergeHeap::default(), batches: Vec::new() }
    }

    pub fn add_run(&mut self, run: &Run) -> Result<()> {
        self.add(Input::Run(run.reader()))
    }

    pub fn add_memory(&mut self, rows: Ordered) -> Result<()> {
        self.add(Input::Memory(rows))
    }

    fn add(&mut self, mut input: Input) -> Result<()> {
        if let Some(batch) = input.next_batch()? {
            self.cursors.push(Cursor { input, batch: self.batches.len(), row: 0 });
            self.batches.push(batch);
        }
        Ok(())
    }

    /// After all inputs were added.
    pub fn begin(&mut self) {
        let key = |cursor| key(&self.cursors, &self.batches, cursor);
        self.heap = MergeHeap::new((0..self.cursors.len() as u32).map(|i| (i, head(key(i), self.from))), key);
    }

    /// The next rows, some at least while there are any.
    pub fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let mut picks: Vec<(u32, u32)> = Vec::new();
        while picks.len() < limit
            && !self.has_read_many()
            && let Some(pick) = self.step()?
        {
            picks.push(pick);
        }
        if picks.is_empty() {
            return Ok(None);
        }
        let width = self.batches.first().map_or(0, |batch| batch.columns.len());
        let column = |i: usize| Column::gather(&self.batches.iter().map(|b| &b.columns[i]).collect::<Vec<&Column>>(), &picks);
        let batch = Batch { columns: (0..width).map(column).collect(), rows: picks.len() };
        self.drop_read();
        Ok(Some(batch))
    }

    /// Whether many batches have been read since the last answer: long rows are alone in their batches.
    fn has_read_many(&self) -> bool {
        self.batches.len() >= self.cursors.len() + BATCHES_READ_MAX
    }

    /// Where the next row is.
    fn step(&mut self) -> Result<Option<(u32, u32)>> {
        let Some(top) = self.heap.least() else { return Ok(None) };
        let cursor = &mut self.cursors[top as usize];
        let pick = (cursor.batch as u32, cursor.row as u32);
        let ended = !cursor.advance(&mut self.batches)?;
        let key = |cursor| key(&self.cursors, &self.batches, cursor);
        match ended {
            true => self.heap.remove(key),
            false => self.heap.advance(head(key(top), self.from), key),
        }
        Ok(Some(pick))
    }

    /// Skips at most `rows` of the next rows; returns how many.
    pub fn skip(&mut self, rows: usize) -> Result<usize> {
        let mut skipped = 0;
        while skipped < rows && self.step()?.is_some() {
            skipped += 1;
            if self.has_read_many() {
                self.drop_read();
            }
        }
        self.drop_read();
        Ok(skipped)
    }

    /// Forgets batches that have been read.
    fn drop_read(&mut self) {
        if self.batches.len() <= self.cursors.len() {
            return;
        }
        let mut read = std::mem::take(&mut self.batches);
        for cursor in self.heap.inputs() {
            let cursor = &mut self.cursors[cursor as usize];
            self.batches.push(std::mem::take(&mut read[cursor.batch]));
            cursor.batch = self.batches.len() - 1;
        }
    }
}

impl Cursor {
    /// Goes to the next row; false at the end.
    fn advance(&mut self, batches: &mut Vec<Batch>) -> Result<bool> {
        self.row += 1;
        if self.row >= batches[self.batch].rows {
            let Some(batch) = self.input.next_batch()? else { return Ok(false) };
            (self.batch, self.row) = (batches.len(), 0);
            batches.push(batch);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Keys;
    use super::*;

    #[test]
    fn rows_that_have_lost_their_keys_are_an_error() {
        let batch = Batch { columns: vec![Column::new(ColumnData::Int4(vec![7]))], rows: 1 };
        let mut keys = ByteStrings::default();
        keys.push(b"seven");
        let parts = Keys { lists: &[keys], rows: 1, shared: 0 }.order_groups();
        let rows = || Ordered::new(vec![batch.clone()], vec![], vec![parts.clone()]);
        assert!(rows().next(1, false).unwrap().is_some());
        assert!(rows().next(1, true).is_err());
        assert!(Merge::new(0).add_memory(rows()).is_err());
    }
}
