//! Finds the key that a foreign key refers to: in a partitioned table, the partition that has rows with such a key.

use std::sync::Arc;

use melba_catalog::Constraint;
use melba_expression::Evaluation;
use melba_types::{Datum, DbError, Oid, Result, TreeId};

use super::part_source::PartSource;
use super::partition::PartitionMap;
use super::target::TableTarget;

/// A key that a referenced row has, if there is one.
pub(super) struct ReferencedKey {
    /// The table that the row is in.
    pub table: Arc<TableTarget>,
    /// The unique index that the constraint relies on, or the table's part of it.
    pub index: TreeId,
    pub bytes: Vec<u8>,
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
        let part = |oid: &&Oid| catalog.relation(**oid).is_some_and(|i| i.parents.contains(&index));
        index = *below.indexes.iter().find(part).ok_or_else(lost)?;
        let renumbered = columns.iter().map(|c| below.number_of(&table.columns[*c as usize - 1].name));
        columns = renumbered.collect::<Option<_>>().ok_or_else(lost)?;
        table = below;
    }
    let target = target(table.oid)?;
    let index = target.indexes.iter().find(|i| i.oid == index).ok_or_else(lost)?;
    let mut bytes = Vec::new();
    for part in &index.parts {
        let PartSource::Column(column) = part.source else { return Err(lost()) };
        let at = columns.iter().position(|c| *c as usize - 1 == column).ok_or_else(lost)?;
        part.key.encode(&values[at], &mut bytes);
    }
    let index = index.tree;
    Ok(Some(ReferencedKey { table: target, index, bytes }))
}
