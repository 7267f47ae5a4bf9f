//! Conditions of a scan that a column's dictionary decides: evaluated once an entry in place of once a row.

use std::sync::Arc;

use melba_engine::{Coded, ScanPiece};
use melba_expression::{Evaluation, Expression, filter};
use melba_plan::node::TableScanNode;
use melba_types::{Batch, Column, ColumnData, Datum, Kind, Result};

/// The conditions of a scan.
pub(super) struct Conditions {
    by_entries: Vec<ByEntries>,
    /// The other ones, when there are some by entries, and the columns that they read.
    others: Vec<Expression>,
    columns_of_others: Vec<usize>,
    /// Columns that all of them read.
    columns: Vec<usize>,
}

/// A condition on one column.
struct ByEntries {
    condition: Expression,
    /// Of the projection.
    column: usize,
    known: Option<Known>,
}

/// What is known of a dictionary.
struct Known {
    entries: Arc<Column>,
    /// Whether each entry passes, and then whether NULL does; `None`: one of them fails, which says nothing of the rows.
    passes: Option<Vec<bool>>,
}

impl Conditions {
    pub fn new(node: &TableScanNode) -> Conditions {
        let by_entries = |condition: &Expression| {
            let column = string_column(node, condition)?;
            Some(ByEntries { condition: condition.clone(), column, known: None })
        };
        let by_entries: Vec<ByEntries> = node.filter.iter().filter_map(by_entries).collect();
        let is_other = |condition: &&Expression| !by_entries.is_empty() && string_column(node, condition).is_none();
        let others: Vec<Expression> = node.filter.iter().filter(is_other).cloned().collect();
        let (columns_of_others, columns) = (columns_of(&others), columns_of(&node.filter));
        Conditions { by_entries, others, columns_of_others, columns }
    }

    /// Parameters have changed.
    pub fn forget(&mut self) {
        self.by_entries.iter_mut().for_each(|by| by.known = None);
    }

    /// Leaves the rows of a piece that pass by their entries. The conditions that are still to be asked, and the columns they read.
    pub fn decide_by_entries<'a>(
        &'a mut self,
        node: &'a TableScanNode,
        ctx: &Evaluation,
        piece: &mut ScanPiece<'_>,
    ) -> Result<(&'a [Expression], &'a [usize])> {
        let mut is_decided = !self.by_entries.is_empty();
        for by in &mut self.by_entries {
            is_decided &= by.decide(node.source.projection.len(), ctx, piece)?;
        }
        Ok(if is_decided { (&self.others, &self.columns_of_others) } else { (&node.filter, &self.columns) })
    }
}

fn columns_of(conditions: &[Expression]) -> Vec<usize> {
    let mut columns = Vec::new();
    conditions.iter().for_each(|condition| condition.columns(&mut columns));
    columns
}

/// The column of strings that a condition is about, if that is all that it reads.
fn string_column(node: &TableScanNode, condition: &Expression) -> Option<usize> {
    let [column] = columns_of(std::slice::from_ref(condition))[..] else { return None };
    matches!(node.source.kinds[column], Kind::Text | Kind::Bytes).then_some(column)
}

impl ByEntries {
    /// Leaves the rows that pass; false when the piece has no dictionary for it, or an entry fails. `width`: columns of the projection.
    fn decide(&mut self, width: usize, ctx: &Evaluation, piece: &mut ScanPiece<'_>) -> Result<bool> {
        if piece.batch().rows == 0 {
            return Ok(true);
        }
        let Some(coded) = piece.coded(self.column)? else { return Ok(false) };
        if !self.known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.entries, &coded.entries)) {
            // An entry that fails may be of rows that nobody sees, or that another condition leaves out.
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
        let Some(passing) = filter(std::slice::from_ref(&self.condition), ctx, &Batch { columns, rows })? else {
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
    for (row, code) in coded.codes.iter().enumerate() {
        let entry = match &coded.validity {
            Some(validity) if !validity.get(row) => null,
            _ => *code as usize,
        };
        rows[count] = row as u32;
        count += usize::from(passes[entry]);
    }
    rows.truncate(count);
    rows
}
