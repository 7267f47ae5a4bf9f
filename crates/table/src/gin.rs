//! The entries of a GIN index: several a row, one for each key of its values.

use std::sync::Arc;

use melba_engine::Transaction;
use melba_expression::Evaluation;
use melba_types::{Datum, Result, RowId};

use super::target::IndexTarget;

/// The row's entries in order, each once; none when the index leaves the row out.
pub fn gin_entries(ctx: &Evaluation, index: &IndexTarget, row: &[Datum]) -> Result<Vec<Vec<u8>>> {
    let mut entries = Vec::new();
    if index.has_row(ctx, row)? {
        for (column, value) in index.gin.iter().zip(index.values(ctx, row)?) {
            column.entries(&value, &mut entries)?;
        }
    }
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Enters a new row.
pub(super) fn enter(ctx: &Evaluation, txn: &Arc<Transaction>, index: &IndexTarget, row: &[Datum], id: RowId) -> Result<()> {
    for entry in gin_entries(ctx, index, row)? {
        txn.index(index.tree).insert(&entry, id)?;
    }
    Ok(())
}

/// Removes a row.
pub(super) fn remove(ctx: &Evaluation, txn: &Arc<Transaction>, index: &IndexTarget, row: &[Datum], id: RowId) -> Result<()> {
    for entry in gin_entries(ctx, index, row)? {
        txn.index(index.tree).delete(&entry, id)?;
    }
    Ok(())
}

/// Replaces the entries that one version of a row has and the other has not.
pub(super) fn reenter(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    index: &IndexTarget,
    (old, new): (&[Datum], &[Datum]),
    id: RowId,
) -> Result<()> {
    let (before, after) = (gin_entries(ctx, index, old)?, gin_entries(ctx, index, new)?);
    for entry in before.iter().filter(|entry| after.binary_search(entry).is_err()) {
        txn.index(index.tree).delete(entry, id)?;
    }
    for entry in after.iter().filter(|entry| before.binary_search(entry).is_err()) {
        txn.index(index.tree).insert(entry, id)?;
    }
    Ok(())
}
