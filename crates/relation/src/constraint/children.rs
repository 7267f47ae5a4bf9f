//! Changes of a table's constraints that reach its children.
//!
//! A child's column or constraint counts the parents that it comes from (`inherited`) and says whether it is also its own (`local`). A
//! column or constraint that a parent loses is dropped from the children too, once no parent has it and it is not their own.

use std::sync::Arc;

use melba_catalog::{Constraint as Row, ConstraintKind, Object, Relation};
use melba_definition::context::Ddl;
use melba_parse::nodes::strings;
use melba_types::{Oid, Result, bail};
use pg_query::protobuf::{ConstrType, Constraint};

use crate::remove::drop_constraint_row;
use crate::table::children::{EXCLUSIVE, each_child};
use crate::table::inherit::{check_mergeable, put_inherited_check, put_inherited_not_null};
use crate::table::rows::{check_existing_rows, check_no_nulls};

/// Adds to a child those NOT NULLs and CHECKs of its parent that are not among `old` and that it lacks; those that it has
/// count one parent more. Only the last column's, if `old` is empty.
pub fn inherit_new_constraints(ddl: &Ddl<'_>, child: Oid, parent: &Relation, old: &[Oid]) -> Result<()> {
    let catalog = ddl.catalog();
    let last = parent.columns.len() as i16;
    let is_new = |c: &&Arc<Row>| match old.is_empty() {
        true => c.columns == [last],
        false => !old.contains(&c.oid),
    };
    let above = parent.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| !c.no_inherit);
    for row in above.filter(is_new) {
        match row.kind {
            ConstraintKind::NotNull => inherit_not_null(ddl, child, parent, row)?,
            ConstraintKind::Check => inherit_check(ddl, child, row)?,
            _ => {}
        }
    }
    Ok(())
}

fn inherit_not_null(ddl: &Ddl<'_>, child: Oid, parent: &Relation, above: &Row) -> Result<()> {
    let relation = ddl.relation(child)?;
    let name = &parent.columns[above.columns[0] as usize - 1].name;
    let Some(at) = relation.columns.iter().position(|c| !c.dropped && c.name == *name) else { return Ok(()) };
    let catalog = ddl.catalog();
    if let Some(own) = catalog.not_null_constraint(&relation, at as i16 + 1) {
        if own.no_inherit {
            bail!(
                INVALID_OBJECT_DEFINITION,
                "cannot change NO INHERIT status of NOT NULL constraint \"{}\" on relation \"{}\"",
                own.name,
                relation.name
            );
        }
        let row = Row { inherited: own.inherited + 1, validated: own.validated || above.validated, ..(**own).clone() };
        if above.validated && !own.validated {
            check_no_nulls(ddl, child, at)?;
        }
        ddl.tx().put(Object::Constraint(Arc::new(row)));
        return Ok(());
    }
    if above.validated {
        check_no_nulls(ddl, child, at)?;
    }
    put_inherited_not_null(ddl, child, at, &above.name, (1, false), above.validated)
}

fn inherit_check(ddl: &Ddl<'_>, child: Oid, above: &Row) -> Result<()> {
    let relation = ddl.relation(child)?;
    let catalog = ddl.catalog();
    let own = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| c.name == above.name);
    if let Some(own) = own {
        if own.kind != ConstraintKind::Check || own.expression != above.expression {
            bail!(DUPLICATE_OBJECT, "constraint \"{}\" for relation \"{}\" already exists", above.name, relation.name);
        }
        if own.no_inherit {
            bail!(
                INVALID_OBJECT_DEFINITION,
                "constraint \"{}\" conflicts with non-inherited constraint on relation \"{}\"",
                above.name,
                relation.name
            );
        }
        refuse_weaker(own, above.validated, above.enforced, &relation)?;
        ddl.notice(format!("merging constraint \"{}\" with inherited definition", above.name));
        let row = Row { inherited: own.inherited + 1, local: own.local && !relation.is_partition(), ..(**own).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row)));
        return Ok(());
    }
    put_inherited_check(ddl, &relation, above, 1, false)?;
    let (relation, catalog) = (ddl.relation(child)?, ddl.catalog());
    let added = relation.constraints.last().and_then(|c| catalog.constraint(*c));
    match added.filter(|c| c.validated) {
        Some(added) => check_existing_rows(ddl, added),
        None => Ok(()),
    }
}

/// A primary key of a parent alone: the children's columns must be NOT NULL already.
pub fn check_children_not_null(ddl: &Ddl<'_>, relation: &Relation, c: &Constraint) -> Result<()> {
    for child in ddl.catalog().children(relation.oid) {
        let child = ddl.relation(child)?;
        for name in strings(&c.keys) {
            let column = child.columns.iter().find(|c| !c.dropped && *c.name == *name);
            if column.is_some_and(|c| !c.not_null) {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "column \"{name}\" of table \"{}\" is not marked NOT NULL", child.name);
            }
        }
    }
    Ok(())
}

/// A CHECK that is inherited becomes the table's own, too; whether it was one.
pub fn merge_own_check(ddl: &Ddl<'_>, relation: &Relation, c: &Constraint) -> Result<bool> {
    if c.contype() != ConstrType::ConstrCheck || c.conname.is_empty() {
        return Ok(false);
    }
    let catalog = ddl.catalog();
    let mut rows = relation.constraints.iter().filter_map(|c| catalog.constraint(*c));
    let is_its = |r: &&Arc<Row>| r.kind == ConstraintKind::Check && *r.name == *c.conname && r.inherited > 0 && !r.local;
    let Some(own) = rows.find(is_its) else { return Ok(false) };
    check_mergeable(ddl, relation, own, c)?;
    let begins = c.is_enforced && !own.enforced;
    if !begins {
        refuse_weaker(own, !c.skip_validation && c.is_enforced, c.is_enforced, relation)?;
    }
    ddl.notice(format!("merging constraint \"{}\" with inherited definition", own.name));
    let mut row = Row { local: !relation.is_partition(), ..(**own).clone() };
    if begins {
        (row.enforced, row.validated) = (true, true);
        check_existing_rows(ddl, &row)?;
    }
    ddl.tx().put(Object::Constraint(Arc::new(row)));
    Ok(true)
}

pub fn pass_constraints_on(ddl: &Ddl<'_>, parent: &Relation, before: &[Oid]) -> Result<()> {
    let before = if before.is_empty() { &[Oid::INVALID][..] } else { before };
    if parent.constraints.iter().all(|c| before.contains(c)) {
        return Ok(());
    }
    each_child(ddl, parent, EXCLUSIVE, |child| {
        inherit_new_constraints(ddl, child.oid, parent, before)?;
        pass_constraints_on(ddl, &*ddl.relation(child.oid)?, &child.constraints)
    })
}

/// DROP CONSTRAINT of a NOT NULL or CHECK, and DROP NOT NULL: the children's are dropped unless they have another origin.
pub fn drop_constraint_from_children(ddl: &Ddl<'_>, relation: &Relation, row: &Row, recurse: bool) -> Result<()> {
    if row.no_inherit || !matches!(row.kind, ConstraintKind::Check | ConstraintKind::NotNull) {
        return Ok(());
    }
    let column_of = |r: &Relation, c: &Row| c.columns.first().map(|n| r.columns[*n as usize - 1].name.clone());
    let column = column_of(relation, row);
    each_child(ddl, relation, EXCLUSIVE, |child| {
        let is_its = |c: &&Arc<Row>| {
            c.kind == row.kind
                && if row.kind == ConstraintKind::Check { c.name == row.name } else { column_of(&child, c) == column }
        };
        let catalog = ddl.catalog();
        let own = child.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(is_its);
        let Some(own) = own.filter(|c| c.inherited > 0) else { return Ok(()) };
        if recurse && own.inherited == 1 && !own.local {
            drop_constraint_from_children(ddl, &child, own, true)?;
            return drop_constraint_row(ddl, own);
        }
        let row = Row { inherited: own.inherited - 1, local: own.local || !recurse, ..(**own).clone() };
        ddl.tx().put(Object::Constraint(Arc::new(row)));
        Ok(())
    })
}

pub fn refuse_inherited_constraint(relation: &Relation, row: &Row) -> Result<()> {
    if row.inherited > 0 || row.parent.is_valid() {
        bail!(INVALID_TABLE_DEFINITION, "cannot drop inherited constraint \"{}\" of relation \"{}\"", row.name, relation.name);
    }
    Ok(())
}

/// A constraint that rows may not satisfy cannot stand for one that they do.
fn refuse_weaker(own: &Row, validated: bool, enforced: bool, relation: &Relation) -> Result<()> {
    let what = match () {
        () if enforced && !own.enforced => "NOT ENFORCED",
        () if validated && own.enforced && !own.validated => "NOT VALID",
        () => return Ok(()),
    };
    bail!(
        INVALID_OBJECT_DEFINITION,
        "constraint \"{}\" conflicts with {what} constraint on relation \"{}\"",
        own.name,
        relation.name
    )
}
