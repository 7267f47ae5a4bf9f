//! Tables that become or cease to be children: INHERIT, NO INHERIT, ATTACH PARTITION.

use std::sync::Arc;

use melba_catalog::{Column, Constraint as Row, ConstraintKind, Object, Persistence, Relation, RelationKind};
use melba_definition::context::Ddl;
use melba_definition::words::plural;
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::{PartitionBoundSpec, PartitionCmd, RangeVar};

use crate::dependents::drop_quietly;
use crate::partition::bound::{leaf_beyond_bounds, set_partition_bound};
use crate::partition::foreign_key::add_parent_foreign_keys;
use crate::partition::index::add_parent_indexes;
use crate::partition::referenced::add_parent_references;
use crate::table::inherit::different_generation;
use crate::table::relation::put_relation;
use crate::trigger::{add_parent_triggers, check_triggers_of_child, trigger_address};

/// ALTER TABLE ... INHERIT.
pub fn add_inherit(ddl: &Ddl<'_>, child: &Relation, name: &RangeVar) -> Result<()> {
    refuse_partition_inheritance(child)?;
    let parent = ddl.open_relation(name, RelationLockMode::ShareUpdateExclusive)?;
    ddl.require_owner(parent.owner, "table", &parent.name)?;
    if parent.kind != RelationKind::Table {
        if parent.is_partitioned() {
            bail!(WRONG_OBJECT_TYPE, "cannot inherit from partitioned table \"{}\"", parent.name);
        }
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", parent.name);
    }
    if parent.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "cannot inherit from a partition");
    }
    if parent.persistence == Persistence::Temporary && child.persistence != Persistence::Temporary {
        bail!(WRONG_OBJECT_TYPE, "cannot inherit from temporary relation \"{}\"", parent.name);
    }
    if child.parents.contains(&parent.oid) {
        bail!(DUPLICATE_TABLE, "relation \"{}\" would be inherited from more than once", parent.name);
    }
    check_acyclic(ddl, &parent, child)?;
    check_triggers_of_child(ddl, child, "an inheritance child", "in inheritance hierarchies")?;
    put_parent(ddl, child.oid, &parent)
}

/// ALTER TABLE ... NO INHERIT.
pub fn drop_inherit(ddl: &Ddl<'_>, child: &Relation, name: &RangeVar) -> Result<()> {
    if child.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of a partition");
    }
    let parent = ddl.open_relation(name, RelationLockMode::AccessShare)?;
    if !child.parents.contains(&parent.oid) {
        bail!(UNDEFINED_TABLE, "relation \"{}\" is not a parent of relation \"{}\"", parent.name, child.name);
    }
    remove_parent(ddl, child.oid, &parent)
}

fn check_acyclic(ddl: &Ddl<'_>, parent: &Relation, child: &Relation) -> Result<()> {
    if ddl.catalog().descendants(child.oid).contains(&parent.oid) {
        return Err(err!(DUPLICATE_TABLE, "circular inheritance not allowed")
            .detail(format!("\"{}\" is already a child of \"{}\".", parent.name, child.name)));
    }
    Ok(())
}

/// Merges a parent's columns and constraints into an existing table, which becomes its child.
fn put_parent(ddl: &Ddl<'_>, child: Oid, parent: &Relation) -> Result<()> {
    merge_into_columns(ddl, child, parent)?;
    merge_into_constraints(ddl, child, parent)?;
    let relation = ddl.relation(child)?;
    let mut parents = relation.parents.clone();
    parents.push(parent.oid);
    put_relation(ddl, Relation { parents, ..(*relation).clone() });
    Ok(())
}

fn merge_into_columns(ddl: &Ddl<'_>, child: Oid, parent: &Relation) -> Result<()> {
    let relation = ddl.relation(child)?;
    let catalog = ddl.catalog();
    let mut columns = relation.columns.to_vec();
    for (at, above) in parent.columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
        let name = &above.name;
        let Some(place) = columns.iter().position(|c| !c.dropped && c.name == *name) else {
            bail!(DATATYPE_MISMATCH, "child table is missing column \"{name}\"");
        };
        let own = &mut columns[place];
        if own.ty != above.ty || own.typmod != above.typmod {
            bail!(DATATYPE_MISMATCH, "child table \"{}\" has different type for column \"{name}\"", relation.name);
        }
        if own.collation != above.collation {
            bail!(COLLATION_MISMATCH, "child table \"{}\" has different collation for column \"{name}\"", relation.name);
        }
        if above.generated != 0 && own.generated == 0 {
            bail!(DATATYPE_MISMATCH, "column \"{name}\" in child table must be a generated column");
        }
        if above.generated != own.generated && above.generated != 0 {
            return Err(different_generation(SqlState::DATATYPE_MISMATCH, name, above.generated, own.generated));
        }
        if above.generated == 0 && own.generated != 0 {
            bail!(DATATYPE_MISMATCH, "column \"{name}\" in child table must not be a generated column");
        }
        if parent.is_partitioned() && own.identity != 0 {
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "table \"{}\" being attached contains an identity column \"{name}\"",
                relation.name
            )
            .detail("The new partition may not contain an identity column."));
        }
        let needs = catalog.not_null_constraint(parent, at as i16 + 1).is_some_and(|c| !c.no_inherit);
        let has = catalog.not_null_constraint(&relation, place as i16 + 1);
        if needs && has.is_none() {
            bail!(DATATYPE_MISMATCH, "column \"{name}\" in child table \"{}\" must be marked NOT NULL", relation.name);
        }
        own.inherited += 1;
        // A partition's columns belong only to its parent.
        own.local &= !parent.is_partitioned();
    }
    put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
    Ok(())
}

fn merge_into_constraints(ddl: &Ddl<'_>, child: Oid, parent: &Relation) -> Result<()> {
    let relation = ddl.relation(child)?;
    let catalog = ddl.catalog();
    let own: Vec<&Arc<Row>> = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).collect();
    for above in parent.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| !c.no_inherit) {
        let found = match above.kind {
            ConstraintKind::Check => own.iter().find(|c| c.kind == ConstraintKind::Check && c.name == above.name),
            ConstraintKind::NotNull => {
                let column = above.columns.first().map(|n| &parent.columns[*n as usize - 1].name);
                let same = |c: &&&Arc<Row>| {
                    c.kind == ConstraintKind::NotNull
                        && c.columns.first().map(|n| &relation.columns[*n as usize - 1].name) == column
                };
                own.iter().find(same)
            }
            _ => continue,
        };
        let Some(found) = found else {
            bail!(DATATYPE_MISMATCH, "child table is missing constraint \"{}\"", above.name);
        };
        if above.kind == ConstraintKind::Check && found.expression != above.expression {
            bail!(
                DATATYPE_MISMATCH,
                "child table \"{}\" has different definition for check constraint \"{}\"",
                relation.name,
                above.name
            );
        }
        if found.no_inherit {
            bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{}\" conflicts with non-inherited constraint on child table \"{}\"",
                found.name,
                relation.name
            );
        }
        if above.enforced && !found.enforced {
            bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{}\" conflicts with NOT ENFORCED constraint on child table \"{}\"",
                found.name,
                relation.name
            );
        }
        if above.validated && above.enforced && !found.validated {
            bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{}\" conflicts with NOT VALID constraint on child table \"{}\"",
                found.name,
                relation.name
            );
        }
        let local = found.local && !parent.is_partitioned();
        let row = Row { inherited: found.inherited + 1, local, ..(***found).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row)));
    }
    Ok(())
}

/// Columns and constraints from a parent are the child's own from now on.
pub fn remove_parent(ddl: &Ddl<'_>, child: Oid, parent: &Relation) -> Result<()> {
    let relation = ddl.relation(child)?;
    let catalog = ddl.catalog();
    let from_parent = |c: &Column| !c.dropped && parent.columns.iter().any(|p| !p.dropped && p.name == c.name);
    let freed = |c: &Column| match from_parent(c) && c.inherited > 0 {
        true => Column { inherited: c.inherited - 1, local: c.local || c.inherited == 1, ..c.clone() },
        false => c.clone(),
    };
    for row in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| c.inherited > 0) {
        let above = parent.constraints.iter().filter_map(|c| catalog.constraint(*c));
        let is_from = match row.kind {
            ConstraintKind::Check => above.into_iter().any(|p| p.kind == row.kind && p.name == row.name && !p.no_inherit),
            ConstraintKind::NotNull => {
                let name = row.columns.first().map(|n| &relation.columns[*n as usize - 1].name);
                let of = |p: &Arc<Row>| p.columns.first().map(|n| &parent.columns[*n as usize - 1].name) == name;
                above.into_iter().any(|p| p.kind == row.kind && !p.no_inherit && of(p))
            }
            _ => false,
        };
        if is_from {
            let inherited = row.inherited - 1;
            let row = Row { inherited, local: row.local || inherited == 0, ..(**row).clone() };
            ddl.tx().put(Object::Constraint(Arc::new(row)));
        }
    }
    let parents = relation.parents.iter().copied().filter(|p| *p != parent.oid).collect();
    let columns = relation.columns.iter().map(freed).collect();
    put_relation(ddl, Relation { parents, columns, ..(*relation).clone() });
    Ok(())
}

/// ALTER TABLE ... ATTACH PARTITION.
pub fn attach_partition(ddl: &Ddl<'_>, parent: &Relation, c: &PartitionCmd) -> Result<()> {
    let name = c.name.as_ref().ok_or_else(|| DbError::internal("ATTACH PARTITION without a table"))?;
    if !parent.is_partitioned() {
        return Err(err!(WRONG_OBJECT_TYPE, "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"", parent.name)
            .detail(format!("This operation is not supported for {}.", plural(parent.kind))));
    }
    let child = ddl.open_relation(name, RelationLockMode::AccessExclusive)?;
    check_attachable(ddl, parent, &child)?;
    let bound: &PartitionBoundSpec = c.bound.as_ref().ok_or_else(|| DbError::internal("ATTACH PARTITION without a bound"))?;
    put_parent(ddl, child.oid, parent)?;
    set_partition_bound(ddl, child.oid, parent, bound, true)?;
    if let Some(leaf) = leaf_beyond_bounds(ddl, child.oid)? {
        bail!(CHECK_VIOLATION, "partition constraint of relation \"{}\" is violated by some row", leaf.name);
    }
    add_parent_indexes(ddl, child.oid)?;
    add_parent_foreign_keys(ddl, child.oid)?;
    add_parent_references(ddl, child.oid)?;
    add_parent_triggers(ddl, child.oid)
}

fn check_attachable(ddl: &Ddl<'_>, parent: &Relation, child: &Relation) -> Result<()> {
    if child.foreign.is_some() {
        return Err(DbError::unsupported("a partition that is a foreign table"));
    }
    if !matches!(child.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        return Err(err!(WRONG_OBJECT_TYPE, "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"", child.name)
            .detail(format!("This operation is not supported for {}.", plural(child.kind))));
    }
    ddl.require_owner(child.owner, "table", &child.name)?;
    if child.of_type.is_valid() {
        bail!(WRONG_OBJECT_TYPE, "cannot attach a typed table as partition");
    }
    if child.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is already a partition", child.name);
    }
    if !child.parents.is_empty() {
        bail!(WRONG_OBJECT_TYPE, "cannot attach inheritance child as partition");
    }
    if !child.is_partitioned() && ddl.catalog().has_children(child.oid) {
        bail!(WRONG_OBJECT_TYPE, "cannot attach inheritance parent as partition");
    }
    check_acyclic(ddl, parent, child)?;
    check_triggers_of_child(ddl, child, "a partition", "on partitions")?;
    match (parent.persistence, child.persistence) {
        (Persistence::Temporary, Persistence::Temporary) => {}
        (Persistence::Temporary, _) => {
            bail!(WRONG_OBJECT_TYPE, "cannot attach a permanent relation as partition of temporary relation \"{}\"", parent.name)
        }
        (_, Persistence::Temporary) => {
            bail!(WRONG_OBJECT_TYPE, "cannot attach a temporary relation as partition of permanent relation \"{}\"", parent.name)
        }
        _ => {}
    }
    if let Some(own) = child.columns.iter().find(|c| !c.dropped && c.identity != 0) {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "table \"{}\" being attached contains an identity column \"{}\"",
            child.name,
            own.name
        )
        .detail("The new partition may not contain an identity column."));
    }
    let known = |c: &&Column| !parent.columns.iter().any(|p| !p.dropped && p.name == c.name);
    if let Some(extra) = child.columns.iter().filter(|c| !c.dropped).find(known) {
        return Err(err!(
            DATATYPE_MISMATCH,
            "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
            child.name,
            extra.name,
            parent.name
        )
        .detail("The new partition may contain only the columns present in parent."));
    }
    Ok(())
}

fn refuse_partition_inheritance(child: &Relation) -> Result<()> {
    if child.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of a partition");
    }
    if child.is_partitioned() {
        bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of partitioned table");
    }
    Ok(())
}

/// A table is no longer a partition: drops the triggers of its parent.
pub fn drop_parent_triggers(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let own = ddl.relation(partition)?;
    let copies = own.triggers.iter().filter_map(|t| catalog.trigger(*t)).filter(|t| t.parent.is_valid());
    copies.into_iter().try_for_each(|copy| drop_quietly(ddl, &[trigger_address(copy.oid)]))
}
