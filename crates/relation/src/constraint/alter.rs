//! ALTER TABLE ... ALTER CONSTRAINT: whether a foreign key is deferrable and enforced, whether a NOT NULL is inherited.

use std::sync::Arc;

use melba_catalog::{Constraint as Row, ConstraintKind, Object, Relation};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::{Result, bail, err};
use pg_query::protobuf::AtAlterConstraint;

use crate::constraint::children::{drop_constraint_from_children, pass_constraints_on};
use crate::constraint::row::constraint_of;
use crate::partition::referenced::change_referenced_parts;
use crate::table::children::each_child;
use crate::table::rows::validate_foreign_key;

pub fn alter_constraint(ddl: &Ddl<'_>, relation: &Relation, c: &AtAlterConstraint, recurse: bool) -> Result<()> {
    if relation.is_partitioned() && !recurse {
        return Err(err!(INVALID_TABLE_DEFINITION, "constraint must be altered in child tables too")
            .hint("Do not specify the ONLY keyword."));
    }
    let row = constraint_of(ddl, relation, &c.conname)?;
    check_alterable(relation, &row, c)?;
    refuse_part(ddl, relation, &row)?;
    if c.alter_inheritability && row.no_inherit != c.noinherit {
        return alter_inheritability(ddl, relation, &row, c.noinherit);
    }
    alter_foreign_key(ddl, relation, &row, c)
}

/// A part of a partitioned table's constraint is altered with it.
fn refuse_part(ddl: &Ddl<'_>, relation: &Relation, row: &Row) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(mut above) = catalog.constraint(row.parent) else { return Ok(()) };
    while let Some(next) = catalog.constraint(above.parent) {
        above = next;
    }
    let (name, table) = (&row.name, &relation.name);
    let over = ddl.relation(above.relation)?;
    Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot alter constraint \"{name}\" on relation \"{table}\"")
        .detail(format!("Constraint \"{name}\" is derived from constraint \"{}\" of relation \"{}\".", above.name, over.name))
        .hint("You may alter the constraint it derives from instead."))
}

fn alter_foreign_key(ddl: &Ddl<'_>, relation: &Relation, row: &Row, c: &AtAlterConstraint) -> Result<()> {
    let begins = c.alter_enforceability && c.is_enforced && !row.enforced;
    let change = |row: &mut Row| {
        if c.alter_deferrability {
            (row.deferrable, row.initially_deferred) = (c.deferrable, c.initdeferred);
        }
        if c.alter_enforceability && row.enforced != c.is_enforced {
            (row.enforced, row.validated) = (c.is_enforced, c.is_enforced);
        }
    };
    let mut next = row.clone();
    change(&mut next);
    ddl.tx().put(Object::Constraint(Arc::new(next)));
    change_referenced_parts(ddl, row, &change);
    if begins {
        validate_foreign_key(ddl, row.oid)?;
    }
    if !relation.is_partitioned() {
        return Ok(());
    }
    let catalog = ddl.catalog();
    each_child(ddl, relation, RelationLockMode::ShareRowExclusive, |child| {
        let mut parts = child.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|p| p.parent == row.oid);
        parts.try_for_each(|part| alter_foreign_key(ddl, &child, part, c))
    })
}

/// The children of a table get a NOT NULL, or keep theirs as their own.
fn alter_inheritability(ddl: &Ddl<'_>, relation: &Relation, row: &Row, no_inherit: bool) -> Result<()> {
    if no_inherit {
        drop_constraint_from_children(ddl, relation, row, false)?;
    }
    ddl.tx().put(Object::Constraint(Arc::new(Row { no_inherit, ..row.clone() })));
    if no_inherit {
        return Ok(());
    }
    let others: Vec<_> = relation.constraints.iter().copied().filter(|c| *c != row.oid).collect();
    pass_constraints_on(ddl, relation, &others)
}

fn check_alterable(relation: &Relation, row: &Row, c: &AtAlterConstraint) -> Result<()> {
    let (name, table) = (&row.name, &relation.name);
    let is_foreign = row.kind == ConstraintKind::ForeignKey;
    if c.alter_deferrability && !is_foreign {
        bail!(WRONG_OBJECT_TYPE, "constraint \"{name}\" of relation \"{table}\" is not a foreign key constraint");
    }
    if c.alter_enforceability && !is_foreign {
        bail!(WRONG_OBJECT_TYPE, "cannot alter enforceability of constraint \"{name}\" of relation \"{table}\"");
    }
    if !c.alter_inheritability {
        return Ok(());
    }
    if row.kind != ConstraintKind::NotNull {
        bail!(WRONG_OBJECT_TYPE, "constraint \"{name}\" of relation \"{table}\" is not a not-null constraint");
    }
    if c.noinherit && relation.is_partitioned() {
        let what = format!("not-null constraint \"{name}\" on partitioned table \"{table}\"");
        bail!(FEATURE_NOT_SUPPORTED, "{what} cannot be NO INHERIT");
    }
    if c.noinherit && row.inherited > 0 {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot alter inherited constraint \"{name}\" on relation \"{table}\"");
    }
    Ok(())
}
