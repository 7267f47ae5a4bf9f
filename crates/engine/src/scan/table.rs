//! The scan of a table tree.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Column, Datum, RowId};

use super::{Morsel, ZonePredicate};
use crate::RowBytes;
use crate::error::Result;
use crate::tree::{TableLevels, Tree};
use crate::txn::{ReadView, Transaction};

/// Rows taken from memory at a time, under one lock.
const MEMORY_BATCH_ROWS: usize = 1024;

/// Some rows: their ids and the projected columns.
#[derive(Clone, Debug)]
pub struct ScanBatch {
    pub row_ids: Vec<RowId>,
    pub columns: Vec<Column>,
}

/// A scan in progress.
pub struct TableScan {
    txn: Arc<Transaction>,
    view: ReadView,
    tree: Arc<Tree>,
    layout: Arc<RowLayout>,
    projection: Vec<usize>,
    missing: Vec<Datum>,
    levels: TableLevels,
    morsel: Morsel,
    memory: MemoryCursor,
}

/// Rows of one source: id and, unless deleted, bytes.
type Rows = Vec<(RowId, Option<RowBytes>)>;

/// Walks the own changes and the memory tables, merged.
struct MemoryCursor {
    next: RowId,
    done: bool,
    own: Rows,
    active: Rows,
}

impl TableScan {
    #[expect(clippy::too_many_arguments, reason = "the parts of one scan, named by its only caller")]
    pub(crate) fn open(
        txn: Arc<Transaction>,
        view: ReadView,
        tree: Arc<Tree>,
        layout: Arc<RowLayout>,
        projection: &[usize],
        missing: &[Datum],
        _predicates: &[ZonePredicate],
        morsel: Option<Morsel>,
    ) -> Result<TableScan> {
        let levels = tree.as_table().map(|t| t.levels.read().clone());
        let levels = levels.ok_or(crate::error::EngineError::Misuse("not a table tree"))?;
        let morsel = morsel.unwrap_or(Morsel::ALL);
        let memory = MemoryCursor { next: morsel.from, done: false, own: Vec::new(), active: Vec::new() };
        Ok(TableScan {
            txn,
            view,
            tree,
            layout,
            projection: projection.to_vec(),
            missing: missing.to_vec(),
            levels,
            morsel,
            memory,
        })
    }

    /// The next rows; never an empty batch.
    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn next(&mut self) -> Result<Option<ScanBatch>> {
        while !self.memory.done {
            let mut batch =
                ScanBatch { row_ids: Vec::new(), columns: crate::txn::empty_columns(&self.layout, &self.projection, 0)? };
            for (id, row) in self.memory_batch() {
                if let Some(row) = row {
                    crate::txn::push_row(&self.layout, &row, &self.projection, &self.missing, &mut batch.columns)?;
                    batch.row_ids.push(id);
                }
            }
            if !batch.row_ids.is_empty() {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The next rows of memory, tombstones included, own changes first in right.
    fn memory_batch(&mut self) -> Rows {
        let cursor = &mut self.memory;
        cursor.own.clear();
        cursor.active.clear();
        self.txn.own_rows(self.view, self.tree.id, cursor.next, MEMORY_BATCH_ROWS, &mut cursor.own);
        {
            let map = self.levels.active.map.read();
            for (id, chain) in map.range(cursor.next..self.morsel.to) {
                if let Some(version) = chain.visible(self.view.csn) {
                    cursor.active.push((*id, version.value.clone()));
                    if cursor.active.len() == MEMORY_BATCH_ROWS {
                        break;
                    }
                }
            }
        }
        // A source that filled its share may have more behind its last row; nothing beyond that is known yet.
        let mut end = self.morsel.to;
        for source in [&cursor.own, &cursor.active] {
            if source.len() == MEMORY_BATCH_ROWS
                && let Some((last, _)) = source.last()
            {
                end = end.min(RowId(last.0 + 1));
            }
        }
        cursor.done = end == self.morsel.to;
        cursor.next = end;
        merge(&cursor.own, &cursor.active, end)
    }
}

/// Both lists in order up to `end`; of equal ids the first list's.
fn merge(newer: &Rows, older: &Rows, end: RowId) -> Rows {
    let mut out = Vec::with_capacity(newer.len() + older.len());
    let (mut a, mut b) = (newer.iter().peekable(), older.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some((x, _)), Some((y, _))) => {
                if x == y {
                    b.next();
                }
                if x <= y { a.next() } else { b.next() }
            }
            (Some(_), None) => a.next(),
            (None, _) => b.next(),
        };
        match next {
            Some(row) if row.0 < end => out.push(row.clone()),
            _ => return out,
        }
    }
}
