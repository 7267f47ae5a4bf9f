//! Finds the key that a foreign key refers to: in a partitioned table, the partition that has rows with such a key.

use std::sync::Arc;

use melba_catalog::{Constraint, ForeignKeyInfo};
use melba_engine::{Isolation, Transaction};
use melba_expression::Evaluation;
use melba_types::{Datum, DbError, Oid, Result, RowId, TreeId, bail};

use super::error;
use super::part_source::PartSource;
use super::partition::PartitionMap;
use super::target::{IndexPart, TableTarget};

/// # Errors
/// XX000 of a constraint that is no foreign key.
pub(super) fn key_of(constraint: &Constraint) -> Result<&Arc<ForeignKeyInfo>> {
    constraint.foreign_key.as_ref().ok_or_else(|| DbError::internal("foreign key without a definition"))
}

/// A row has changed since it was found: a transaction that keeps a snapshot fails, any fails when the row has moved.
///
/// # Errors
/// 40001.
pub(super) fn refuse_newer(txn: &Transaction, tree: TreeId, row: RowId) -> Result<()> {
    if txn.isolation() != Isolation::ReadCommitted {
        bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
    }
    let latest = txn.get_latest(tree, row)?;
    if txn.has_moved(tree, row, &latest) {
        return Err(error::moved());
    }
    Ok(())
}

/// A key that a referenced row has, if there is one.
pub(super) struct ReferencedKey {
    /// The table that the row is in.
    pub table: Arc<TableTarget>,
    /// The unique index that the constraint relies on, or the table's part of it.
    pub index: TreeId,
    pub bytes: Vec<u8>,
}

/// The table and the index that have keys with certain values of the referenced columns.
pub(super) struct ReferencedIndex {
    pub table: Arc<TableTarget>,
    /// The place of the index among the table's.
    pub index: usize,
    /// The place of each part of its key among the referenced columns.
    pub order: Vec<usize>,
}

/// The place of a key with these values of the referenced columns; `None`: no partition may have it. `target`: of a table.
///
/// # Errors
/// XX000 when the catalog contradicts itself.
pub(super) fn place_of(
    ctx: &Evaluation,
    target: impl FnOnce(Oid) -> Result<Arc<TableTarget>>,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<ReferencedKey>> {
    let Some(found) = index_of(ctx, target, constraint, values)? else { return Ok(None) };
    let index = &found.table.indexes[found.index];
    let mut bytes = Vec::new();
    for (part, at) in index.parts.iter().zip(&found.order) {
        part.key.encode(&values[*at], &mut bytes);
    }
    Ok(Some(ReferencedKey { index: index.tree, table: found.table, bytes }))
}

/// The same before the key's bytes are made.
///
/// # Errors
/// XX000 when the catalog contradicts itself.
pub(super) fn index_of(
    ctx: &Evaluation,
    target: impl FnOnce(Oid) -> Result<Arc<TableTarget>>,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<ReferencedIndex>> {
    let lost = || DbError::internal(format!("foreign key \"{}\" has lost its index", constraint.name));
    let key = constraint.foreign_key.as_ref().ok_or_else(lost)?;
    let catalog = ctx.catalog();
    let mut table = catalog.relation(key.referenced_table).ok_or_else(lost)?;
    let (mut index, mut columns) = (constraint.index, key.referenced_columns.clone());
    while table.is_partitioned() {
        let map = PartitionMap::new(catalog, table)?;
        let value = |column: i16| Ok(values[columns.iter().position(|c| *c == column).ok_or_else(lost)?].clone());
        // A unique key of a partitioned table has all columns of its partition key.
        let routed = map.key().columns.iter().map(|c| value(c.column)).collect::<Result<Vec<_>>>()?;
        let Some(partition) = map.find(&*ctx.session, &routed)? else { return Ok(None) };
        let below = catalog.relation(partition).ok_or_else(lost)?;
        // Whatever the snapshot: the detach looks for rows that refer to its rows only once.
        if below.detach_pending {
            return Ok(None);
        }
        let part = |oid: &&Oid| catalog.relation(**oid).is_some_and(|i| i.parents.contains(&index));
        index = *below.indexes.iter().find(part).ok_or_else(lost)?;
        let renumbered = columns.iter().map(|c| below.number_of(&table.columns[*c as usize - 1].name));
        columns = renumbered.collect::<Option<_>>().ok_or_else(lost)?;
        table = below;
    }
    let table = target(table.oid)?;
    let index = table.indexes.iter().position(|i| i.oid == index).ok_or_else(lost)?;
    let place = |part: &IndexPart| match part.source {
        PartSource::Column(column) => columns.iter().position(|c| *c as usize - 1 == column).ok_or_else(lost),
        PartSource::Expression(_) => Err(lost()),
    };
    let order = table.indexes[index].parts.iter().map(place).collect::<Result<_>>()?;
    Ok(Some(ReferencedIndex { table, index, order }))
}
