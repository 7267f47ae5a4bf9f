//! Some rows of a scan, whose columns are read on demand: conditions exclude rows before the other columns are read.

use std::borrow::Cow;
use std::ops::Range;

use melba_segment::Coded;
use melba_store::Result;
use melba_types::{Batch, CodedStrings, Column, ColumnData, Csn, RowId};

use super::table::{ScanBatch, TableScan};

/// Rows between two that are wanted are read with them when they are fewer than this.
const GAP_ROWS: u32 = 32;

/// Rows of a row group.
pub(super) struct Places {
    /// The ranges read of a column, ascending.
    pub ranges: Vec<Range<usize>>,
    /// Which of those rows are wanted, ascending; `None`: all.
    pub picks: Option<Vec<u32>>,
}

impl Places {
    pub fn all(range: Range<usize>) -> Places {
        Places { ranges: vec![range], picks: None }
    }

    /// The rows with these numbers and `base` more, ascending; at least one.
    pub fn some(base: usize, numbers: &[u32]) -> Places {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut picks = Vec::with_capacity(numbers.len());
        let (mut from, mut read) = (0, 0);
        while from < numbers.len() {
            let end = run_end(numbers, from);
            let (first, last) = (numbers[from], numbers[end - 1]);
            picks.extend(numbers[from..end].iter().map(|number| number - first + read));
            ranges.push(base + first as usize..base + last as usize + 1);
            (from, read) = (end, read + last - first + 1);
        }
        let picks = (picks.len() < read as usize).then_some(picks);
        Places { ranges, picks }
    }

    pub fn rows(&self) -> usize {
        self.picks.as_ref().map_or_else(|| self.ranges.iter().map(Range::len).sum(), Vec::len)
    }

    /// The positions of those rows that are among some, given by their numbers among all that are read, ascending.
    pub fn positions(&self, numbers: Vec<u32>) -> Vec<u32> {
        let Some(picks) = &self.picks else { return numbers };
        let mut numbers = numbers.into_iter().peekable();
        let mut positions = Vec::new();
        for (position, pick) in (0..).zip(picks) {
            while numbers.next_if(|number| number < pick).is_some() {}
            if numbers.peek() == Some(pick) {
                positions.push(position);
            }
        }
        positions
    }

    /// Those at some positions, ascending.
    pub fn take(&self, positions: &[u32]) -> Places {
        let places: Cow<'_, [u32]> = match &self.picks {
            Some(picks) => positions.iter().map(|position| picks[*position as usize]).collect(),
            None => positions.into(),
        };
        if let [range] = &self.ranges[..] {
            return Places::some(range.start, &places);
        }
        // Where the place's range begins among the rows that are read.
        let (mut ranges, mut before) = (self.ranges.iter().peekable(), 0);
        let number = |place: &u32| {
            let place = *place as usize;
            while let Some(past) = ranges.next_if(|range| place >= before + range.len()) {
                before += past.len();
            }
            ranges.peek().map_or(0, |range| range.start + place - before) as u32
        };
        Places::some(0, &places.iter().map(number).collect::<Vec<u32>>())
    }
}

/// Behind the last of the numbers from `from` on that have no gap between them. Most are compared many at a time.
fn run_end(numbers: &[u32], from: usize) -> usize {
    const BLOCK: usize = 32;
    let is_gap = |before: &u32, number: &u32| number - before > GAP_ROWS;
    let mut at = from + 1;
    while let (Some(before), Some(some)) = (numbers.get(at - 1..at - 1 + BLOCK), numbers.get(at..at + BLOCK)) {
        if before.iter().zip(some).fold(false, |any, (before, number)| any | is_gap(before, number)) {
            break;
        }
        at += BLOCK;
    }
    let gap = numbers[at - 1..].windows(2).position(|two| is_gap(&two[0], &two[1]));
    gap.map_or(numbers.len(), |gap| at + gap)
}

/// Some rows of a scan: their ids, and the projected columns as far as they were read.
pub struct ScanPiece<'a> {
    scan: &'a mut TableScan,
    /// `None`: they were not read.
    row_ids: Option<Vec<RowId>>,
    /// Columns that were not read are empty.
    batch: Batch,
    is_loaded: Vec<bool>,
    /// In their row group.
    places: Option<Places>,
}

impl<'a> ScanPiece<'a> {
    pub(super) fn new(scan: &'a mut TableScan, row_ids: Option<Vec<RowId>>, places: Places) -> ScanPiece<'a> {
        let columns = scan.projection.len();
        let batch = Batch { columns: vec![Column::new(ColumnData::Bool(Vec::new())); columns], rows: places.rows() };
        ScanPiece { scan, row_ids, batch, is_loaded: vec![false; columns], places: Some(places) }
    }

    /// Rows whose columns are all there.
    pub(super) fn loaded(scan: &'a mut TableScan, row_ids: Vec<RowId>, columns: Vec<Column>) -> ScanPiece<'a> {
        let is_loaded = vec![true; columns.len()];
        let batch = Batch { columns, rows: row_ids.len() };
        ScanPiece { scan, row_ids: Some(row_ids), batch, is_loaded, places: None }
    }

    /// Reads a column of the projection, if it was not read yet.
    pub fn load(&mut self, column: usize) -> Result<()> {
        if let (false, Some(places)) = (self.is_loaded[column], &self.places)
            && self.batch.rows > 0
        {
            self.batch.columns[column] = self.scan.read_column(column, places)?;
            self.is_loaded[column] = true;
        }
        Ok(())
    }

    /// A column of the projection by its dictionary; `None` when it has none, or was read already.
    pub fn coded(&mut self, column: usize) -> Result<Option<Coded>> {
        match &self.places {
            Some(places) if !self.is_loaded[column] && self.batch.rows > 0 => self.scan.read_codes(column, places),
            _ => Ok(None),
        }
    }

    /// Reads a column of strings by its dictionary, if it has one and was not read yet.
    pub fn load_coded(&mut self, column: usize) -> Result<()> {
        let Some(Coded { entries, codes, validity }) = self.coded(column)? else { return Ok(()) };
        if let Some(strings) = CodedStrings::new(entries, codes) {
            self.batch.columns[column] = Column { data: ColumnData::Coded(strings), validity };
            self.is_loaded[column] = true;
        }
        Ok(())
    }

    /// Whether all rows are known to satisfy the n-th predicate of the scan, those that were left out before included.
    pub fn satisfies(&self, predicate: usize) -> bool {
        self.scan.satisfies(predicate)
    }

    /// See `TableScan::take_left_out`.
    pub fn take_left_out(&mut self) -> usize {
        self.scan.take_left_out()
    }

    /// The rows, with the columns that were read; no caller may read the others.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Keeps the rows at some positions, ascending.
    pub fn keep(&mut self, positions: &[u32]) {
        if let Some(row_ids) = &mut self.row_ids {
            *row_ids = positions.iter().map(|&i| row_ids[i as usize]).collect();
        }
        let columns = self.batch.columns.iter_mut().zip(&self.is_loaded).filter(|(_, is_loaded)| **is_loaded);
        columns.for_each(|(column, _)| *column = column.take(positions));
        self.batch.rows = positions.len();
        if let Some(places) = &mut self.places {
            *places = places.take(positions);
        }
    }

    /// The ids of the rows, ascending.
    pub fn row_ids(&mut self) -> Result<&[RowId]> {
        if self.row_ids.is_none() {
            self.row_ids = Some(match &self.places {
                Some(places) if self.batch.rows > 0 => self.scan.read_row_ids(places)?,
                _ => Vec::new(),
            });
        }
        Ok(self.row_ids.as_deref().unwrap_or_default())
    }

    /// Positions, ascending, of the rows whose versions are newer than a commit, and of those of the transaction itself.
    pub fn newer_than(&mut self, csn: Csn) -> Result<Vec<u32>> {
        match &self.places {
            Some(_) if self.batch.rows == 0 => Ok(Vec::new()),
            Some(places) => self.scan.newer_places(places, csn),
            None => Ok(self.scan.newer_in_memory(self.row_ids.as_deref().unwrap_or_default(), csn)),
        }
    }

    /// All columns of the rows.
    pub fn columns(self) -> Result<Vec<Column>> {
        let all = self.is_loaded.len();
        self.first_columns(all)
    }

    /// The first `n` columns of the rows.
    pub fn first_columns(mut self, n: usize) -> Result<Vec<Column>> {
        (0..n).try_for_each(|column| self.load(column))?;
        self.batch.columns.truncate(n);
        Ok(self.batch.columns)
    }

    /// The rows with all columns and their ids.
    pub fn finish(mut self) -> Result<ScanBatch> {
        let row_ids = match (self.row_ids.take(), &self.places) {
            (Some(row_ids), _) => row_ids,
            (None, Some(places)) if self.batch.rows > 0 => self.scan.read_row_ids(places)?,
            (None, _) => Vec::new(),
        };
        Ok(ScanBatch { row_ids, columns: self.columns()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_close_to_each_other_are_read_together() {
        const GAP: usize = GAP_ROWS as usize;
        let places = Places::some(2, &[1, 3, 98, 99, 100 + GAP_ROWS]);
        assert_eq!(places.ranges, [3..6, 100..102, 102 + GAP..103 + GAP]);
        assert_eq!((places.picks.as_deref(), places.rows()), (Some(&[0, 2, 3, 4, 5][..]), 5));
        let fewer = places.take(&[2, 3]);
        assert_eq!((&fewer.ranges[..], fewer.picks.is_none(), fewer.rows()), (std::slice::from_ref(&(100..102)), true, 2));
        let all = Places::all(10..20);
        assert_eq!((all.rows(), all.take(&[0, 9]).ranges), (10, Places::all(10..20).ranges));
        let all = Places::all(100..356);
        // Gaps that are too short.
        let most: Vec<u32> = (3..256).filter(|position| !(40..60).contains(position)).collect();
        let dense = all.take(&most);
        assert_eq!((&dense.ranges[..], dense.rows()), (std::slice::from_ref(&(103..356)), most.len()));
        assert_eq!(dense.picks.as_ref().map(|picks| (picks[36], picks[37])), Some((36, 57)));
        // What is left of those that are left has the same numbers as when it is taken at once.
        for places in [&places, &dense, &all, &all.take(&[0, 1, 2, 90, 91, 250, 255])] {
            let numbers = |places: &Places| -> Vec<usize> {
                let read: Vec<usize> = places.ranges.iter().cloned().flatten().collect();
                places.picks.as_ref().map_or(read.clone(), |picks| picks.iter().map(|pick| read[*pick as usize]).collect())
            };
            let before = numbers(places);
            assert_eq!(before.len(), places.rows());
            for step in [1, 2, 3, 4, 5, 6, 31, 32, 33, 34, 100] {
                let positions: Vec<u32> = (0..before.len() as u32).step_by(step).collect();
                let expected: Vec<usize> = positions.iter().map(|position| before[*position as usize]).collect();
                assert_eq!(numbers(&places.take(&positions)), expected);
            }
        }
    }
}
