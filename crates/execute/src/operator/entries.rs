//! The conditions of a scan. Those on a column with a dictionary or few possible values are evaluated once per entry instead of
//! once per row, and those that the scan itself has decided not at all.

use std::sync::Arc;

use melba_engine::{Coded, ScanPiece};
use melba_expression::{Evaluation, Expression, filter};
use melba_plan::node::TableScanNode;
use melba_types::{Batch, Column, ColumnData, Datum, DbError, Result};

use super::partial::passing_rows;
use super::passed::Passed;
use crate::ExecContext;

/// The conditions of a scan.
pub(super) struct Conditions {
    by_entries: Vec<ByEntries>,
    /// By predicate of the scan: the condition that it is, if it is one.
    by_scan: Vec<Option<usize>>,
    /// The undecided conditions of the last piece, and the columns that they read.
    left: Vec<Expression>,
    columns_of_left: Vec<usize>,
    /// By condition: whether it was decided for the last piece without reading its column.
    is_decided: Vec<bool>,
    /// Of those that entries do not decide.
    passed: Passed,
}

/// The conditions that read one column and no other.
struct ByEntries {
    conditions: Vec<Expression>,
    /// Their numbers in the filter.
    numbers: Vec<usize>,
    /// Of the projection.
    column: usize,
    known: Option<Known>,
}

/// The results for some entries.
struct Known {
    entries: Arc<Column>,
    /// Whether each entry passes, and then whether NULL does; `None`: one of them fails, which need not be an error of the rows.
    passes: Option<Vec<bool>>,
}

impl Conditions {
    pub fn new(node: &TableScanNode) -> Conditions {
        let mut by_entries: Vec<ByEntries> = Vec::new();
        for (number, condition) in node.filter.iter().enumerate() {
            let Some(column) = only_column(condition) else { continue };
            match by_entries.iter_mut().find(|by| by.column == column) {
                Some(by) => {
                    by.conditions.push(condition.clone());
                    by.numbers.push(number);
                }
                None => {
                    by_entries.push(ByEntries { conditions: vec![condition.clone()], numbers: vec![number], column, known: None })
                }
            }
        }
        let is_decided = vec![false; node.filter.len()];
        Conditions {
            by_entries,
            by_scan: vec![],
            left: node.filter.clone(),
            columns_of_left: columns_of(&node.filter),
            is_decided,
            passed: Passed::default(),
        }
    }

    /// A scan was opened, whose first predicates are these conditions.
    pub fn open(&mut self, by_scan: Vec<Option<usize>>) {
        self.by_scan = by_scan;
    }

    /// Parameters have changed.
    pub fn forget(&mut self) {
        self.by_entries.iter_mut().for_each(|by| by.known = None);
        self.passed.fade();
    }

    /// Whether a filter with such results had better come before the conditions that are left.
    pub fn come_after(&self, filter: Passed) -> bool {
        !self.left.is_empty() && filter.is_sharper_than(self.passed)
    }

    /// Keeps the rows of a piece that pass by their entries. The conditions that are decided neither so nor by the scan are left.
    pub fn decide_by_entries(&mut self, node: &TableScanNode, ctx: &Evaluation, piece: &mut ScanPiece<'_>) -> Result<()> {
        let mut is_decided = vec![false; node.filter.len()];
        for (predicate, condition) in self.by_scan.iter().enumerate() {
            condition.iter().for_each(|condition| is_decided[*condition] |= piece.satisfies(predicate));
        }
        for by in &mut self.by_entries {
            if piece.batch().rows == 0 {
                return Ok(());
            }
            if !by.numbers.iter().all(|number| is_decided[*number]) && by.decide(node.source.projection.len(), ctx, piece)? {
                by.numbers.iter().for_each(|number| is_decided[*number] = true);
            }
        }
        if is_decided != self.is_decided {
            let is_left = |(_, is_decided): &(&Expression, &bool)| !**is_decided;
            self.left = node.filter.iter().zip(&is_decided).filter(is_left).map(|(condition, _)| condition.clone()).collect();
            self.columns_of_left = columns_of(&self.left);
            self.is_decided = is_decided;
        }
        Ok(())
    }

    /// Keeps the rows that pass the conditions left; returns the error that follows them.
    pub fn decide_by_rows(&mut self, ctx: &ExecContext, piece: &mut ScanPiece<'_>) -> Result<Option<DbError>> {
        self.columns_of_left.iter().try_for_each(|column| piece.load(*column))?;
        let tested = piece.batch().rows;
        let (passing, failed) = passing_rows(&self.left, ctx, piece.batch())?;
        self.passed.note(tested, passing.as_ref().map_or(tested, Vec::len));
        if let Some(rows) = passing {
            piece.keep(&rows);
        }
        Ok(failed)
    }
}

fn columns_of(conditions: &[Expression]) -> Vec<usize> {
    let mut columns = Vec::new();
    conditions.iter().for_each(|condition| condition.columns(&mut columns));
    columns
}

/// The column that a condition is about, if that is all that it reads. Functions that a user wrote are called for rows only.
fn only_column(condition: &Expression) -> Option<usize> {
    match columns_of(std::slice::from_ref(condition))[..] {
        [column] if condition.is_parallel_safe() => Some(column),
        _ => None,
    }
}

impl ByEntries {
    /// Leaves the rows that pass; false when the piece has no entries for it, or one of them fails. `width`: columns of the projection.
    fn decide(&mut self, width: usize, ctx: &Evaluation, piece: &mut ScanPiece<'_>) -> Result<bool> {
        let Some(coded) = piece.coded(self.column)? else { return Ok(false) };
        if !self.known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.entries, &coded.entries)) {
            // A failing entry may be of rows that no view sees, or that another condition excludes.
            let passes = self.ask(width, ctx, &coded.entries).ok();
            self.known = Some(Known { entries: coded.entries.clone(), passes });
        }
        let Some(passes) = self.known.as_ref().and_then(|known| known.passes.as_ref()) else { return Ok(false) };
        let rows = passing(&coded, passes);
        if rows.len() < coded.codes.len() {
            piece.keep(&rows);
        }
        Ok(true)
    }

    /// Whether each entry passes, and NULL.
    fn ask(&self, width: usize, ctx: &Evaluation, entries: &Column) -> Result<Vec<bool>> {
        let mut column = entries.clone();
        column.push(Datum::Null);
        let rows = column.len();
        let mut columns = vec![Column::new(ColumnData::Bool(Vec::new())); width];
        columns[self.column] = column;
        let Some(passing) = filter(&self.conditions, ctx, &Batch { columns, rows })? else {
            return Ok(vec![true; rows]);
        };
        let mut passes = vec![false; rows];
        passing.iter().for_each(|&row| passes[row as usize] = true);
        Ok(passes)
    }
}

/// The rows whose entries pass.
fn passing(coded: &Coded, passes: &[bool]) -> Vec<u32> {
    let null = passes.len() - 1;
    let mut rows = vec![0; coded.codes.len()];
    let mut count = 0;
    let mut put = |row: usize, entry: usize| {
        rows[count] = row as u32;
        count += usize::from(passes[entry]);
    };
    match &coded.validity {
        None => coded.codes.iter().enumerate().for_each(|(row, code)| put(row, *code as usize)),
        Some(validity) => {
            let entries = coded.codes.iter().enumerate();
            entries.for_each(|(row, code)| put(row, if validity.get(row) { *code as usize } else { null }));
        }
    }
    rows.truncate(count);
    rows
}
