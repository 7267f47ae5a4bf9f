//! The conditions of a scan. Those on a column with a dictionary or few possible values are evaluated once per entry instead of
//! once per row.

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
    /// The undecided conditions of the last piece, and the columns that they read.
    left: Vec<Expression>,
    columns_of_left: Vec<usize>,
    /// By column of `by_entries`: whether it was decided.
    is_decided: Vec<bool>,
    /// Of those that entries do not decide.
    passed: Passed,
}

/// The conditions that read one column and no other.
struct ByEntries {
    conditions: Vec<Expression>,
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
        for condition in &node.filter {
            let Some(column) = only_column(condition) else { continue };
            match by_entries.iter_mut().find(|by| by.column == column) {
                Some(by) => by.conditions.push(condition.clone()),
                None => by_entries.push(ByEntries { conditions: vec![condition.clone()], column, known: None }),
            }
        }
        let is_decided = vec![false; by_entries.len()];
        Conditions {
            by_entries,
            left: node.filter.clone(),
            columns_of_left: columns_of(&node.filter),
            is_decided,
            passed: Passed::default(),
        }
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

    /// Keeps the rows of a piece that pass by their entries. The conditions without entries are left.
    pub fn decide_by_entries(&mut self, node: &TableScanNode, ctx: &Evaluation, piece: &mut ScanPiece<'_>) -> Result<()> {
        let mut is_as_before = true;
        for (by, is_decided) in self.by_entries.iter_mut().zip(&mut self.is_decided) {
            if piece.batch().rows == 0 {
                break;
            }
            let now = by.decide(node.source.projection.len(), ctx, piece)?;
            is_as_before &= std::mem::replace(is_decided, now) == now;
        }
        if !is_as_before {
            let decided = |column| self.by_entries.iter().zip(&self.is_decided).any(|(by, is)| *is && by.column == column);
            let is_left = |condition: &&Expression| !only_column(condition).is_some_and(decided);
            self.left = node.filter.iter().filter(is_left).cloned().collect();
            self.columns_of_left = columns_of(&self.left);
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
