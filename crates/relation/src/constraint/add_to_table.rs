//! ALTER TABLE ... ADD CONSTRAINT, in the children too.

use std::sync::Arc;

use melba_catalog::{Constraint as Row, ConstraintKind, Relation};
use melba_definition::context::Ddl;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::{ConstrType, Constraint};

use crate::constraint::add::add_constraints_to;
use crate::constraint::children::{check_children_not_null, merge_own_check, pass_constraints_on};
use crate::constraint::row::{add_not_null, add_not_null_unchecked, column_numbers};
use crate::table::children::has_children;
use crate::table::rows::{check_existing_rows, check_no_nulls, look_for_nulls};

const INHERIT_HINT: &str =
    "You might need to make the existing constraint inheritable using ALTER TABLE ... ALTER CONSTRAINT ... INHERIT.";

pub const VALIDATE_HINT: &str = "You might need to validate it using ALTER TABLE ... VALIDATE CONSTRAINT.";

/// Adds a constraint to one table; if `recurse`, keys of a partitioned table are added to its partitions.
pub fn add_table_constraint(ddl: &Ddl<'_>, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
    let relation = &*ddl.relation(table)?;
    if c.contype() == ConstrType::ConstrNotnull {
        let columns = column_numbers(relation, &melba_parse::nodes::strings(&c.keys), false)?;
        for number in columns {
            let at = number as usize - 1;
            if let Some(existing) = ddl.catalog().not_null_constraint(relation, number) {
                check_same_not_null(relation, existing, c)?;
                let own = Row { local: true, ..(**existing).clone() };
                ddl.tx().put(melba_catalog::Object::Constraint(Arc::new(own)));
                continue;
            }
            let name = (!c.conname.is_empty()).then(|| c.conname.clone());
            if c.skip_validation {
                add_not_null_unchecked(ddl, relation.oid, at, name, c.is_no_inherit)?;
            } else {
                check_no_nulls(ddl, relation.oid, at)?;
                add_not_null(ddl, relation.oid, at, name, c.is_no_inherit)?;
            }
        }
        return Ok(());
    }
    add_validated(ddl, table, column, c, recurse)
}

/// Adds a constraint and checks the existing rows.
pub fn add_validated(ddl: &Ddl<'_>, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
    let relation = ddl.relation(table)?;
    let unmarked = if c.contype() == ConstrType::ConstrPrimary && c.indexname.is_empty() {
        let mut keys = match column {
            Some(column) => vec![column as i16 + 1],
            None => column_numbers(&relation, &melba_parse::nodes::strings(&c.keys), true)?,
        };
        keys.iter().try_for_each(|number| check_key_column(ddl, &relation, *number))?;
        keys.retain(|number| !ddl.catalog().is_never_null(&relation, *number as usize - 1));
        keys
    } else {
        Vec::new()
    };
    let before: Vec<Oid> = relation.constraints.clone();
    add_constraints_to(ddl, table, &[(column, c.clone())], recurse)?;
    unmarked.iter().try_for_each(|number| look_for_nulls(ddl, table, *number as usize - 1))?;
    let catalog = ddl.catalog();
    for oid in ddl.relation(table)?.constraints.iter().filter(|o| !before.contains(o)) {
        if let Some(row) = catalog.constraint(*oid)
            && row.kind == ConstraintKind::Check
            && row.validated
        {
            check_existing_rows(ddl, row)?;
        }
    }
    Ok(())
}

/// A primary key's columns are NOT NULL in all rows, the children's too.
fn check_key_column(ddl: &Ddl<'_>, relation: &Relation, number: i16) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(row) = catalog.not_null_constraint(relation, number) else { return Ok(()) };
    let (marked, hint) = match () {
        () if row.no_inherit => ("NO INHERIT", INHERIT_HINT),
        () if !row.validated => ("NOT VALID", VALIDATE_HINT),
        () => return Ok(()),
    };
    let (name, table) = (&relation.columns[number as usize - 1].name, &relation.name);
    let detail = format!("The constraint \"{}\" on column \"{name}\" of table \"{table}\", marked {marked}, is ", row.name);
    Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot create primary key on column \"{name}\"")
        .detail(detail + "incompatible with a primary key.")
        .hint(hint))
}

/// Refuses a NOT NULL constraint that differs from the column's.
fn check_same_not_null(relation: &Relation, existing: &Row, c: &Constraint) -> Result<()> {
    let (own, table) = (&existing.name, &relation.name);
    if existing.no_inherit != c.is_no_inherit {
        let message = format!("cannot change NO INHERIT status of NOT NULL constraint \"{own}\" on relation \"{table}\"");
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(INHERIT_HINT));
    }
    if !c.skip_validation && !existing.validated {
        let message = format!("incompatible NOT VALID constraint \"{own}\" on relation \"{table}\"");
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(VALIDATE_HINT));
    }
    if !c.conname.is_empty() && *c.conname != **own {
        let column = existing.columns.first().map_or("", |n| &relation.columns[*n as usize - 1].name);
        let message = format!("cannot create not-null constraint \"{}\" on column \"{column}\" of table \"{table}\"", c.conname);
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}")
            .detail(format!("A not-null constraint named \"{own}\" already exists for this column.")));
    }
    Ok(())
}

/// ADD CONSTRAINT: NOT NULL and CHECK are added to the children.
pub fn add_constraint_everywhere(ddl: &Ddl<'_>, table: Oid, column: Option<usize>, c: &Constraint, recurse: bool) -> Result<()> {
    let relation = ddl.relation(table)?;
    let inherited = matches!(c.contype(), ConstrType::ConstrCheck | ConstrType::ConstrNotnull) && !c.is_no_inherit;
    if !recurse && c.contype() == ConstrType::ConstrPrimary && c.indexname.is_empty() {
        check_children_not_null(ddl, &relation, c)?;
    }
    if inherited && !recurse && has_children(ddl, &relation) {
        bail!(INVALID_TABLE_DEFINITION, "constraint must be added to child tables too");
    }
    if merge_own_check(ddl, &relation, c)? {
        return Ok(());
    }
    let before = relation.constraints.clone();
    add_table_constraint(ddl, table, column, c, recurse)?;
    let parent = ddl.relation(table)?;
    match has_children(ddl, &parent) {
        true => pass_constraints_on(ddl, &parent, &before),
        false => Ok(()),
    }
}
