//! Some rows of a scan, whose columns are read on demand: conditions exclude rows before the other columns are read.

use std::ops::Range;

use melba_segment::Coded;
use melba_store::Result;
use melba_types::{Batch, CodedStrings, Column, ColumnData, RowId};

use super::table::{ScanBatch, TableScan};

/// Rows between two that are wanted are read with them when they are fewer than this.
const GAP_ROWS: usize = 32;

/// Rows of a row group.
pub(super) struct Places {
    /// The ranges read of a column, ascending.
    pub ranges: Vec<Range<usize>>,
    /// Which of those rows are wanted; `None`: all.
    pub picks: Option<Vec<u32>>,
    /// Their numbers in the group; empty when they are all of one range.
    numbers: Vec<usize>,
}

impl Places {
    pub fn all(range: Range<usize>) -> Places {
        Places { ranges: vec![range], picks: None, numbers: Vec::new() }
    }

    /// Rows by ascending number, at least one.
    pub fn some(numbers: Vec<usize>) -> Places {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut picks = Vec::with_capacity(numbers.len());
        let mut before = 0;
        for &number in &numbers {
            match ranges.last_mut() {
                Some(last) if number < last.end + GAP_ROWS => last.end = number + 1,
                last => {
                    before += last.map_or(0, |last| last.len());
                    ranges.push(number..number + 1);
                }
            }
            let start = ranges.last().map_or(0, |last| last.start);
            picks.push((before + number - start) as u32);
        }
        let read: usize = ranges.iter().map(Range::len).sum();
        let picks = (picks.len() < read).then_some(picks);
        Places { ranges, picks, numbers }
    }

    pub fn rows(&self) -> usize {
        match (&self.picks, &self.numbers[..]) {
            (Some(picks), _) => picks.len(),
            (None, []) => self.ranges.iter().map(Range::len).sum(),
            (None, numbers) => numbers.len(),
        }
    }

    /// Those at some positions.
    fn take(&self, positions: &[u32]) -> Places {
        let first = self.ranges.first().map_or(0, |range| range.start);
        let number = |position: &u32| match &self.numbers[..] {
            [] => first + *position as usize,
            numbers => numbers[*position as usize],
        };
        Places::some(positions.iter().map(number).collect())
    }
}

/// Some rows of a scan: their ids, and the projected columns as far as they were read.
pub struct ScanPiece<'a> {
    scan: &'a mut TableScan,
    row_ids: Vec<RowId>,
    /// Columns that were not read are empty.
    batch: Batch,
    is_loaded: Vec<bool>,
    /// In their row group.
    places: Option<Places>,
}

impl<'a> ScanPiece<'a> {
    pub(super) fn new(scan: &'a mut TableScan, row_ids: Vec<RowId>, places: Places) -> ScanPiece<'a> {
        let columns = scan.projection.len();
        let batch = Batch { columns: vec![Column::new(ColumnData::Bool(Vec::new())); columns], rows: row_ids.len() };
        ScanPiece { scan, row_ids, batch, is_loaded: vec![false; columns], places: Some(places) }
    }

    /// Rows whose columns are all there.
    pub(super) fn loaded(scan: &'a mut TableScan, row_ids: Vec<RowId>, columns: Vec<Column>) -> ScanPiece<'a> {
        let is_loaded = vec![true; columns.len()];
        let batch = Batch { columns, rows: row_ids.len() };
        ScanPiece { scan, row_ids, batch, is_loaded, places: None }
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

    /// The rows, with the columns that were read; no caller may read the others.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Keeps the rows at some positions, ascending.
    pub fn keep(&mut self, positions: &[u32]) {
        self.row_ids = positions.iter().map(|&i| self.row_ids[i as usize]).collect();
        let columns = self.batch.columns.iter_mut().zip(&self.is_loaded).filter(|(_, is_loaded)| **is_loaded);
        columns.for_each(|(column, _)| *column = column.take(positions));
        self.batch.rows = positions.len();
        if let Some(places) = &mut self.places {
            *places = places.take(positions);
        }
    }

    /// The rows with all columns.
    pub fn finish(mut self) -> Result<ScanBatch> {
        (0..self.is_loaded.len()).try_for_each(|column| self.load(column))?;
        Ok(ScanBatch { row_ids: self.row_ids, columns: self.batch.columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_close_to_each_other_are_read_together() {
        let places = Places::some(vec![3, 5, 100, 101, 102 + GAP_ROWS]);
        assert_eq!(places.ranges, [3..6, 100..102, 102 + GAP_ROWS..103 + GAP_ROWS]);
        assert_eq!((places.picks.as_deref(), places.rows()), (Some(&[0, 2, 3, 4, 5][..]), 5));
        let fewer = places.take(&[2, 3]);
        assert_eq!((&fewer.ranges[..], fewer.picks.is_none(), fewer.rows()), (std::slice::from_ref(&(100..102)), true, 2));
        let all = Places::all(10..20);
        assert_eq!((all.rows(), all.take(&[0, 9]).ranges), (10, Places::all(10..20).ranges));
    }
}
