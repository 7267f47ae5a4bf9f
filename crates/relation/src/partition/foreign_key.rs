//! Foreign keys of partitioned tables: one on each partition, which may have existed before.

use std::sync::Arc;

use melba_catalog::foreign_keys::foreign_keys;
use melba_catalog::{Constraint as Row, ConstraintKind, ForeignKeyInfo, Object, Relation};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::{Oid, Result, bail};

use crate::constraint::row::{bare_constraint, put_constraint};
use crate::partition::referenced::{add_referenced_parts, drop_referenced_parts, unused_part_name};
use crate::table::children::each_child;
use crate::table::rows::validate_foreign_key;

/// Adds a key like it to every partition of a foreign key's table.
pub fn pass_foreign_key_on(ddl: &Ddl<'_>, row: &Row) -> Result<()> {
    let table = ddl.relation(row.relation)?;
    if !table.is_partitioned() {
        return Ok(());
    }
    each_child(ddl, &table, RelationLockMode::ShareRowExclusive, |child| inherit_foreign_key(ddl, &child, &table, row))
}

/// Adds the foreign keys of its parents to a partition.
pub fn add_parent_foreign_keys(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for parent in &ddl.relation(partition)?.parents {
        let parent = ddl.relation(*parent)?;
        for row in foreign_keys(&catalog, &parent) {
            if row.foreign_key.as_ref().is_some_and(|key| key.referenced_table == partition) {
                let (name, table) = (&row.name, &ddl.relation(partition)?.name);
                let what = format!("cannot attach table \"{table}\" as a partition because it is referenced by foreign key");
                bail!(FEATURE_NOT_SUPPORTED, "{what} \"{name}\"");
            }
            lock_referenced(ddl, row)?;
            inherit_foreign_key(ddl, &*ddl.relation(partition)?, &parent, row)?;
        }
    }
    Ok(())
}

/// A transaction that deletes referenced rows waits for the partition, because its plan does not know the partition's rows.
fn lock_referenced(ddl: &Ddl<'_>, key: &Row) -> Result<()> {
    let Some(info) = &key.foreign_key else { return Ok(()) };
    let tables = ddl.catalog().descendants(info.referenced_table);
    tables.into_iter().try_for_each(|table| ddl.lock_relation(table, RelationLockMode::ShareRowExclusive))
}

/// Makes a key of a partition a part of its parent's, or makes one.
fn inherit_foreign_key(ddl: &Ddl<'_>, partition: &Relation, parent: &Relation, above: &Row) -> Result<()> {
    let catalog = ddl.catalog();
    let number = |n: &i16| {
        let name = &parent.columns[*n as usize - 1].name;
        partition.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
    };
    let Some(info) = &above.foreign_key else { return Ok(()) };
    let columns: Vec<i16> = above.columns.iter().map(number).collect();
    let delete_set_columns = info.delete_set_columns.iter().map(number).collect();
    let info = ForeignKeyInfo { delete_set_columns, ..(**info).clone() };
    let fits = |own: &&Arc<Row>| !own.parent.is_valid() && own.columns == columns && is_alike(own, above, &info);
    if let Some(own) = foreign_keys(&catalog, partition).find(fits) {
        if own.enforced != above.enforced {
            let (name, own, table) = (&above.name, &own.name, &partition.name);
            let what =
                format!("constraint \"{name}\" enforceability conflicts with constraint \"{own}\" on relation \"{table}\"");
            bail!(INVALID_OBJECT_DEFINITION, "{what}");
        }
        drop_referenced_parts(ddl, own)?;
        if above.validated && !own.validated {
            validate_foreign_key(ddl, own.oid)?;
        }
        let validated = own.validated || above.validated;
        let row = Row { parent: above.oid, inherited: 1, local: false, validated, ..(**own).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row)));
        return Ok(());
    }
    let is_taken = partition.constraints.iter().filter_map(|c| catalog.constraint(*c)).any(|c| c.name == above.name);
    let name = if is_taken { unused_part_name(ddl, partition.namespace, &above.name) } else { above.name.to_string() };
    let row = Row {
        columns,
        index: above.index,
        foreign_key: Some(Arc::new(info)),
        deferrable: above.deferrable,
        initially_deferred: above.initially_deferred,
        enforced: above.enforced,
        validated: above.validated,
        local: false,
        inherited: 1,
        no_inherit: false,
        parent: above.oid,
        ..bare_constraint(ddl, partition, &name, ConstraintKind::ForeignKey)?
    };
    put_constraint(ddl, partition.clone(), row.clone());
    if row.validated {
        validate_foreign_key(ddl, row.oid)?;
    }
    pass_foreign_key_on(ddl, &row)
}

/// A former partition keeps its foreign keys as its own.
pub fn detach_foreign_keys(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    for row in foreign_keys(&catalog, table).filter(|row| row.parent.is_valid()) {
        let row = Row { parent: Oid::INVALID, inherited: 0, local: true, ..(**row).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row.clone())));
        add_referenced_parts(ddl, &row, &row.name)?;
    }
    Ok(())
}

/// Whether a key of a partition is equivalent to its parent's; `info` is the parent's in the partition's columns.
fn is_alike(own: &Row, above: &Row, info: &ForeignKeyInfo) -> bool {
    let Some(key) = &own.foreign_key else { return false };
    key.referenced_table == info.referenced_table
        && key.referenced_columns == info.referenced_columns
        && (key.on_update, key.on_delete, key.match_type) == (info.on_update, info.on_delete, info.match_type)
        && key.delete_set_columns == info.delete_set_columns
        && key.operators == info.operators
        && (own.deferrable, own.initially_deferred) == (above.deferrable, above.initially_deferred)
}
