//! Operations on rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_types::row::RowLayout;
use melba_types::{Batch, Column, Csn, Datum, RowId, TreeId};

use super::{Latest, ReadView, Transaction};
use crate::RowBytes;
use crate::error::{EngineError, Result};
use crate::scan::{Morsel, TableScan, ZonePredicate};
use crate::tree::{TableTree, Tree};

fn table_of(tree: &Tree) -> Result<&TableTree> {
    tree.as_table().ok_or(EngineError::Misuse("not a table tree"))
}

impl Transaction {
    /// Adds a row, encoded by the tree's layout.
    pub fn insert(&self, tree: TreeId, row: &[u8]) -> Result<RowId> {
        let tree = self.tree(tree)?;
        let id = RowId(table_of(&tree)?.next_row.fetch_add(1, Ordering::Relaxed));
        self.put(&tree, id, Some(row.into()))?;
        Ok(id)
    }

    /// Replaces a row. The caller holds its lock.
    pub fn update(&self, tree: TreeId, id: RowId, row: &[u8]) -> Result<()> {
        let tree = self.tree(tree)?;
        self.put(&tree, id, Some(row.into()))
    }

    /// Removes a row. The caller holds its lock.
    pub fn delete(&self, tree: TreeId, id: RowId) -> Result<()> {
        let tree = self.tree(tree)?;
        self.put(&tree, id, None)
    }

    fn put(&self, tree: &Arc<Tree>, id: RowId, row: Option<RowBytes>) -> Result<()> {
        table_of(tree)?;
        self.change(|state| {
            let command = state.command;
            state.writes.put_row(command, tree, id, row);
            Ok(())
        })
    }

    /// Adds many rows; `batch` has a column for each of the layout's, in order. Their ids are consecutive.
    pub fn insert_batch(&self, tree: TreeId, batch: &Batch) -> Result<Range<RowId>> {
        let tree = self.tree(tree)?;
        let layout = self.layout_of(&tree)?;
        let first = table_of(&tree)?.next_row.fetch_add(batch.rows as u64, Ordering::Relaxed);
        let mut encoded = Vec::new();
        self.change(|state| {
            let command = state.command;
            for i in 0..batch.rows {
                encoded.clear();
                layout.encode(batch.row(i).iter(), &mut encoded);
                state.writes.put_row(command, &tree, RowId(first + i as u64), Some(encoded.as_slice().into()));
            }
            Ok(())
        })?;
        Ok(RowId(first)..RowId(first + batch.rows as u64))
    }

    /// A row as a view sees it.
    pub fn get(&self, view: ReadView, tree: TreeId, id: RowId) -> Result<Option<RowBytes>> {
        let tree = self.tree(tree)?;
        self.get_in(view, &tree, id)
    }

    fn get_in(&self, view: ReadView, tree: &Tree, id: RowId) -> Result<Option<RowBytes>> {
        if self.has_writes()
            && let Some(own) = self.state.lock().writes.row(tree.id, id, view.command)
        {
            return Ok(own.cloned());
        }
        Ok(table_of(tree)?.levels.read().version(&id, view.csn).and_then(|(_, row)| row))
    }

    /// Rows by id as columns: `projection` names columns of the layout; `missing` has, by column number, the values of columns
    /// that are newer than a row (those beyond its end are null). Returns the positions in `ids` of the rows that the view
    /// sees, and their columns.
    pub fn fetch(
        &self,
        view: ReadView,
        tree: TreeId,
        ids: &[RowId],
        projection: &[usize],
        missing: &[Datum],
    ) -> Result<(Vec<u32>, Vec<Column>)> {
        let tree = self.tree(tree)?;
        let layout = self.layout_of(&tree)?;
        let mut kept = Vec::with_capacity(ids.len());
        let mut columns = empty_columns(&layout, projection, ids.len())?;
        for (i, id) in ids.iter().enumerate() {
            if let Some(row) = self.get_in(view, &tree, *id)? {
                push_row(&layout, &row, projection, missing, &mut columns)?;
                kept.push(i as u32);
            }
        }
        Ok((kept, columns))
    }

    /// The newest state of a row: what to look at again after waiting for its lock.
    pub fn get_latest(&self, tree: TreeId, id: RowId) -> Result<Latest> {
        let tree = self.tree(tree)?;
        let newest = self.shared().snapshots.visible();
        let committed = table_of(&tree)?.levels.read().version(&id, newest);
        let (csn, mut row) = committed.unwrap_or((Csn(0), None));
        let mut own_command = None;
        if self.has_writes()
            && let Some((command, own)) = self.state.lock().writes.newest_row(tree.id, id)
        {
            own_command = Some(command);
            row = own.cloned();
        }
        Ok(Latest { row, csn, own_command })
    }

    /// All rows that a view sees, as batches of columns; `projection` and `missing` as for `fetch`. The predicates only let
    /// the scan leave out rows that cannot satisfy them; it may return others too. `morsel` limits it to a part of the table.
    pub fn scan(
        self: &Arc<Self>,
        view: ReadView,
        tree: TreeId,
        projection: &[usize],
        missing: &[Datum],
        predicates: &[ZonePredicate],
        morsel: Option<Morsel>,
    ) -> Result<TableScan> {
        let tree = self.tree(tree)?;
        table_of(&tree)?;
        let layout = self.layout_of(&tree)?;
        TableScan::open(Arc::clone(self), view, tree, layout, projection, missing, predicates, morsel)
    }

    /// Parts of a table of about equal size, at most `parts`, that together are all of it.
    pub fn morsels(&self, tree: TreeId, parts: usize) -> Result<Vec<Morsel>> {
        let tree = self.tree(tree)?;
        let rows = table_of(&tree)?.next_row.load(Ordering::Relaxed);
        Ok(Morsel::split(rows, parts))
    }

    /// Own rows for a scan, see `WriteSet::rows_from`.
    pub(crate) fn own_rows(
        &self,
        view: ReadView,
        tree: TreeId,
        from: RowId,
        limit: usize,
        out: &mut Vec<(RowId, Option<RowBytes>)>,
    ) {
        if self.has_writes() {
            self.state.lock().writes.rows_from(tree, from, view.command, limit, out);
        }
    }
}

/// Empty columns of the projected kinds.
pub(crate) fn empty_columns(layout: &RowLayout, projection: &[usize], rows: usize) -> Result<Vec<Column>> {
    projection
        .iter()
        .map(|&c| {
            let kind = layout.kinds().get(c).ok_or(EngineError::Misuse("a projection beyond the table's columns"))?;
            Ok(Column::with_capacity(*kind, rows))
        })
        .collect()
}

/// Appends a row's projected values.
pub(crate) fn push_row(
    layout: &RowLayout,
    row: &[u8],
    projection: &[usize],
    missing: &[Datum],
    columns: &mut [Column],
) -> Result<()> {
    let view = layout.view(row).ok_or_else(|| EngineError::Corrupt { what: "a stored row is malformed".into() })?;
    for (&c, column) in projection.iter().zip(columns) {
        view.push_to(c, missing.get(c).unwrap_or(&Datum::Null), column);
    }
    Ok(())
}
