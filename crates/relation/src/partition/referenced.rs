//! Foreign keys to partitioned tables: they have a part for each partition of the table that they refer to.

use std::sync::Arc;

use melba_catalog::foreign_keys::{is_referenced_part, referenced_parts, referencing_keys};
use melba_catalog::{Constraint as Row, FIRES_ON_ORIGIN, ForeignKeyInfo, Object, Relation};
use melba_definition::context::Ddl;
use melba_definition::naming::object_name;
use melba_engine::RelationLockMode;
use melba_table::check_removal;
use melba_types::{DbError, Oid, Result};

use crate::constraint::row::put_constraint;
use crate::remove::drop_constraint_row;
use crate::table::children::each_child;
use crate::table::rows::exec_context;

/// Creates the parts of a new foreign key. `name`: the beginning of their names.
pub fn add_referenced_parts(ddl: &Ddl<'_>, key: &Row, name: &str) -> Result<()> {
    let Some(info) = &key.foreign_key else { return Ok(()) };
    let referenced = ddl.relation(info.referenced_table)?;
    if !referenced.is_partitioned() {
        return Ok(());
    }
    each_child(ddl, &referenced, RelationLockMode::ShareRowExclusive, |partition| {
        add_referenced_part(ddl, key, name, &referenced, &partition)
    })
}

fn add_referenced_part(ddl: &Ddl<'_>, key: &Row, name: &str, referenced: &Relation, partition: &Relation) -> Result<()> {
    let Some(info) = &key.foreign_key else { return Ok(()) };
    let catalog = ddl.catalog();
    let lost = || DbError::internal(format!("partition \"{}\" lacks a column or index of its parent", partition.name));
    let number = |n: &i16| partition.number_of(&referenced.columns[*n as usize - 1].name);
    let referenced_columns = info.referenced_columns.iter().map(number).collect::<Option<Vec<_>>>().ok_or_else(lost)?;
    let is_part = |oid: &&Oid| catalog.relation(**oid).is_some_and(|i| i.parents.contains(&key.index));
    let index = *partition.indexes.iter().find(is_part).ok_or_else(lost)?;
    let info = ForeignKeyInfo { referenced_table: partition.oid, referenced_columns, ..(**info).clone() };
    let part = Row {
        oid: ddl.tx().new_oid(),
        name: unused_part_name(ddl, key.namespace, name).into(),
        index,
        foreign_key: Some(Arc::new(info)),
        parent: key.oid,
        local: false,
        inherited: 1,
        no_inherit: false,
        check_enabled: FIRES_ON_ORIGIN,
        action_enabled: FIRES_ON_ORIGIN,
        ..key.clone()
    };
    put_constraint(ddl, (*ddl.relation(key.relation)?).clone(), part.clone());
    add_referenced_parts(ddl, &part, name)
}

/// The name of a part of a constraint, where the constraint's is taken.
pub fn unused_part_name(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> String {
    let catalog = ddl.catalog();
    let names = (1..).map(|n: u64| object_name(name, None, &n.to_string()));
    let mut unused = names.filter(|name| catalog.constraint_by_name(namespace, name).is_none());
    unused.next().expect("one number after all constraints is unused")
}

/// The foreign keys to the parent of a new partition get parts for it.
pub fn add_parent_references(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    for parent in &ddl.relation(partition)?.parents {
        let (catalog, parent) = (ddl.catalog(), ddl.relation(*parent)?);
        for key in referencing_keys(&catalog, parent.oid) {
            add_referenced_part(ddl, key, &key.name, &parent, &*ddl.relation(partition)?)?;
        }
    }
    Ok(())
}

/// A former partition loses its parts of the foreign keys to its parent.
pub fn drop_parent_references(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for part in catalog.referencing_constraints(partition).into_iter().filter(|key| is_referenced_part(&catalog, key)) {
        ddl.lock_relation(part.relation, RelationLockMode::AccessExclusive)?;
        drop_part(ddl, part)?;
    }
    Ok(())
}

/// 23503 when rows refer to those of a partition that is to leave.
pub fn check_parent_references(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    for part in catalog.referencing_constraints(partition).into_iter().filter(|key| is_referenced_part(&catalog, key)) {
        ddl.lock_relation(part.relation, RelationLockMode::Share)?;
        check_removal(&exec_context(ddl), &ddl.tx().engine, part)?;
    }
    Ok(())
}

/// Drops the parts of a foreign key, which becomes one itself of that of a partitioned table.
pub fn drop_referenced_parts(ddl: &Ddl<'_>, key: &Row) -> Result<()> {
    referenced_parts(&ddl.catalog(), key).into_iter().try_for_each(|part| drop_part(ddl, part))
}

fn drop_part(ddl: &Ddl<'_>, part: &Row) -> Result<()> {
    drop_referenced_parts(ddl, part)?;
    drop_constraint_row(ddl, part)
}

/// Does the same to all parts of a foreign key.
pub fn change_referenced_parts(ddl: &Ddl<'_>, key: &Row, change: &dyn Fn(&mut Row)) {
    for part in referenced_parts(&ddl.catalog(), key) {
        let mut next = (**part).clone();
        change(&mut next);
        change_referenced_parts(ddl, part, change);
        ddl.tx().put(Object::Constraint(Arc::new(next)));
    }
}
