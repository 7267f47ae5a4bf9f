//! Typed tables: CREATE TABLE ... OF, ALTER TABLE ... OF and NOT OF, and the effects of ALTER TYPE on the tables of a type.

use std::sync::Arc;

use melba_catalog::{Column, ObjectAddress, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_parse::nodes::inner;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterTableCmd, AlterTableType as At, ColumnDef, DropBehavior, Node, TypeName};

use crate::constraint::column::add_column_constraints;
use crate::partition::identity::refuse_identity;
use crate::table::builder::TableBuilder;
use crate::table::relation::{new_column, put_relation};

/// The stand-alone composite type that a table is of.
///
/// # Errors
/// 42809 when it is another one, 42501 without USAGE on it.
fn table_type(ddl: &Ddl<'_>, name: &TypeName) -> Result<Arc<Relation>> {
    let (ty, _) = ddl.type_from_name(name)?;
    let catalog = ddl.catalog();
    let found = catalog.type_(ty).filter(|t| t.domain.is_none()).and_then(|t| catalog.relation(t.relation));
    let shown = || catalog.type_name(ty, ddl.path());
    match found {
        Some(relation) if relation.kind == RelationKind::Composite => {
            ddl.require_type(ty)?;
            Ok(relation.clone())
        }
        Some(_) => Err(err!(WRONG_OBJECT_TYPE, "type {} is the row type of another table", shown())
            .detail("A typed table must use a stand-alone composite type created with CREATE TYPE.")),
        None => bail!(WRONG_OBJECT_TYPE, "type {} is not a composite type", shown()),
    }
}

/// The columns of CREATE TABLE ... OF, with the additions of `elements`; the type.
pub fn add_type_columns(ddl: &Ddl<'_>, builder: &mut TableBuilder, name: &TypeName, elements: &[Node]) -> Result<Oid> {
    let of = table_type(ddl, name)?;
    let mut options: Vec<&ColumnDef> = Vec::new();
    for element in elements {
        let N::ColumnDef(def) = inner(element)? else { continue };
        if !of.columns.iter().any(|c| !c.dropped && *c.name == *def.colname) {
            bail!(UNDEFINED_COLUMN, "column \"{}\" does not exist", def.colname);
        }
        if options.iter().any(|o| o.colname == def.colname) {
            bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", def.colname);
        }
        refuse_identity(def, "typed tables")?;
        options.push(def);
    }
    for column in of.columns.iter().filter(|c| !c.dropped) {
        let mut own = Column { collation: column.collation, ..new_column(ddl, &column.name, column.ty, column.typmod)? };
        if let Some(def) = options.iter().find(|o| *o.colname == *column.name) {
            add_column_constraints(ddl, builder, def, &mut own, false)?;
        }
        builder.columns.push(own);
    }
    Ok(of.row_type)
}

/// ALTER TABLE ... OF.
pub fn set_table_type(ddl: &Ddl<'_>, relation: &Relation, name: &TypeName) -> Result<()> {
    let of = table_type(ddl, name)?;
    if !relation.parents.is_empty() {
        bail!(WRONG_OBJECT_TYPE, "typed tables cannot inherit");
    }
    let mut own = relation.columns.iter().filter(|c| !c.dropped);
    for wanted in of.columns.iter().filter(|c| !c.dropped) {
        let name = &wanted.name;
        let Some(column) = own.next() else { bail!(DATATYPE_MISMATCH, "table is missing column \"{name}\"") };
        if column.name != *name {
            bail!(DATATYPE_MISMATCH, "table has column \"{}\" where type requires \"{name}\"", column.name);
        }
        if (column.ty, column.typmod, column.collation) != (wanted.ty, wanted.typmod, wanted.collation) {
            bail!(DATATYPE_MISMATCH, "table \"{}\" has different type for column \"{name}\"", relation.name);
        }
    }
    if let Some(extra) = own.next() {
        bail!(DATATYPE_MISMATCH, "table has extra column \"{}\"", extra.name);
    }
    put_relation(ddl, Relation { of_type: of.row_type, ..relation.clone() });
    Ok(())
}

/// ALTER TABLE ... NOT OF.
pub fn clear_table_type(ddl: &Ddl<'_>, relation: &Relation) -> Result<()> {
    if !relation.of_type.is_valid() {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a typed table", relation.name);
    }
    put_relation(ddl, Relation { of_type: Oid::INVALID, ..relation.clone() });
    Ok(())
}

/// The tables of a composite type whose attributes change, locked; an error unless they are to change, too.
pub fn typed_tables(ddl: &Ddl<'_>, relation: &Relation, cascade: bool) -> Result<Vec<Oid>> {
    if relation.kind != RelationKind::Composite {
        return Ok(Vec::new());
    }
    let catalog = ddl.catalog();
    let ty = ObjectAddress { class: classes::PG_TYPE, object: relation.row_type, sub: 0 };
    let mut tables: Vec<Oid> = catalog.dependents(ty).map(|d| d.dependent.object).collect();
    tables.retain(|t| catalog.relation(*t).is_some_and(|t| t.of_type == relation.row_type));
    tables.sort_unstable();
    tables.dedup();
    if !tables.is_empty() && !cascade {
        let name = &relation.name;
        return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot alter type \"{name}\" because it is the type of a typed table")
            .hint("Use ALTER ... CASCADE to alter the typed tables too."));
    }
    tables.iter().try_for_each(|t| ddl.lock_relation(*t, RelationLockMode::AccessExclusive))?;
    Ok(tables)
}

/// The columns of a typed table are those of its type.
pub fn check_typed(relation: &Relation, command: &AlterTableCmd) -> Result<()> {
    if !relation.of_type.is_valid() {
        return Ok(());
    }
    match command.subtype() {
        At::AtAddColumn => bail!(WRONG_OBJECT_TYPE, "cannot add column to typed table"),
        At::AtDropColumn => bail!(WRONG_OBJECT_TYPE, "cannot drop column from typed table"),
        At::AtAlterColumnType => bail!(WRONG_OBJECT_TYPE, "cannot alter column type of typed table"),
        At::AtAddInherit | At::AtDropInherit => bail!(WRONG_OBJECT_TYPE, "cannot change inheritance of typed table"),
        _ => Ok(()),
    }
}

/// Whether a command changes the attributes of a composite type, and whether its tables are to follow.
pub fn cascades(commands: &[&AlterTableCmd]) -> Option<bool> {
    let of_attributes = |c: &&&AlterTableCmd| matches!(c.subtype(), At::AtAddColumn | At::AtDropColumn | At::AtAlterColumnType);
    let mut changes = commands.iter().filter(of_attributes).peekable();
    changes.peek()?;
    Some(changes.all(|c| c.behavior() == DropBehavior::DropCascade))
}
