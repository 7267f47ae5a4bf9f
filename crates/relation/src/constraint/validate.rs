//! ALTER TABLE ... VALIDATE CONSTRAINT and SET NOT NULL, in the children and partitions too.

use std::sync::Arc;

use melba_catalog::foreign_keys::foreign_keys;
use melba_catalog::{Constraint as Row, ConstraintKind, Relation};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::{Result, bail, err};

use crate::constraint::children::pass_constraints_on;
use crate::constraint::row::{add_not_null, constraint_of};
use crate::partition::referenced::change_referenced_parts;
use crate::table::children::{each_child, has_children};
use crate::table::rows::{check_existing_rows, check_no_nulls, validate_foreign_key};

pub fn validate_constraint(ddl: &Ddl<'_>, relation: &Relation, name: &str, recurse: bool) -> Result<()> {
    let row = constraint_of(ddl, relation, name)?;
    if !row.enforced {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot validate NOT ENFORCED constraint");
    }
    if row.validated {
        return Ok(());
    }
    validate_in_children(ddl, relation, &row, recurse)?;
    match row.kind {
        ConstraintKind::Check => check_existing_rows(ddl, &row)?,
        ConstraintKind::ForeignKey => validate_foreign_key(ddl, row.oid)?,
        ConstraintKind::NotNull => {
            row.columns.iter().try_for_each(|number| check_no_nulls(ddl, relation.oid, *number as usize - 1))?;
        }
        _ => bail!(
            WRONG_OBJECT_TYPE,
            "constraint \"{name}\" of relation \"{}\" is not a foreign key, check, or not-null constraint",
            relation.name
        ),
    }
    put_validated(ddl, &row);
    Ok(())
}

/// Notes that all rows have been found to satisfy a constraint.
pub fn put_validated(ddl: &Ddl<'_>, row: &Row) {
    ddl.tx().put(melba_catalog::Object::Constraint(Arc::new(Row { validated: true, ..row.clone() })));
    change_referenced_parts(ddl, row, &|part| part.validated = true);
}

/// VALIDATE CONSTRAINT of the keys of partitions that are parts of one.
pub fn validate_foreign_keys_below(ddl: &Ddl<'_>, relation: &Relation, row: &Row) -> Result<()> {
    let catalog = ddl.catalog();
    each_child(ddl, relation, RelationLockMode::ShareUpdateExclusive, |child| {
        let mut parts = foreign_keys(&catalog, &child).filter(|part| part.parent == row.oid);
        parts.try_for_each(|part| validate_constraint(ddl, &child, &part.name, true))
    })
}

/// SET NOT NULL.
pub fn set_not_null(ddl: &Ddl<'_>, relation: &Relation, at: usize, recurse: bool) -> Result<()> {
    let before = relation.constraints.clone();
    let existing = ddl.catalog().not_null_constraint(relation, at as i16 + 1).cloned();
    let alone = !recurse && has_children(ddl, relation);
    if existing.is_none() && alone && relation.is_partitioned() {
        return Err(err!(INVALID_TABLE_DEFINITION, "constraint must be added to child tables too")
            .hint("Do not specify the ONLY keyword."));
    }
    match existing {
        Some(existing) if existing.no_inherit && recurse => {
            let (name, table) = (&existing.name, &relation.name);
            let message = format!("cannot change NO INHERIT status of NOT NULL constraint \"{name}\" on relation \"{table}\"");
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}");
        }
        Some(existing) if !existing.validated => validate_constraint(ddl, relation, &existing.name, recurse),
        Some(_) => Ok(()),
        None => {
            check_no_nulls(ddl, relation.oid, at)?;
            // Of a parent alone: it is not for the children.
            add_not_null(ddl, relation.oid, at, None, alone)?;
            pass_constraints_on(ddl, &*ddl.relation(relation.oid)?, &before)
        }
    }
}

/// VALIDATE CONSTRAINT of a CHECK or NOT NULL: the children's first.
pub fn validate_in_children(ddl: &Ddl<'_>, relation: &Relation, row: &Row, recurse: bool) -> Result<()> {
    if row.kind == ConstraintKind::ForeignKey && relation.is_partitioned() {
        return validate_foreign_keys_below(ddl, relation, row);
    }
    if row.no_inherit || !matches!(row.kind, ConstraintKind::Check | ConstraintKind::NotNull) {
        return Ok(());
    }
    if !recurse && has_children(ddl, relation) {
        bail!(INVALID_TABLE_DEFINITION, "constraint must be validated on child tables too");
    }
    let column = row.columns.first().map(|n| relation.columns[*n as usize - 1].name.clone());
    each_child(ddl, relation, RelationLockMode::ShareUpdateExclusive, |child| {
        let catalog = ddl.catalog();
        let place = child.columns.iter().position(|c| !c.dropped && Some(&c.name) == column.as_ref());
        let not_null = place.and_then(|at| catalog.not_null_constraint(&child, at as i16 + 1));
        match (row.kind, not_null) {
            (ConstraintKind::NotNull, Some(own)) => validate_constraint(ddl, &child, &own.name, true),
            _ => validate_constraint(ddl, &child, &row.name, true),
        }
    })
}
