//! ALTER TABLE ... ADD COLUMN and DROP COLUMN, in the children too.

use melba_catalog::{Column, ObjectAddress, Relation, RelationKind, Storage, classes};
use melba_definition::context::Ddl;
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::{AlterTableCmd, ColumnDef, ConstrType, Constraint, DropBehavior};

use crate::constraint::add::set_column_expression;
use crate::constraint::add_to_table::{add_constraint_everywhere, add_validated};
use crate::constraint::children::{inherit_new_constraints, pass_constraints_on};
use crate::constraint::column::{constraints_of, with_constraints};
use crate::constraint::row::{add_not_null, is_system_column};
use crate::dependents::drop_addresses;
use crate::partition::bound::refuse_partition_column;
use crate::sequence::create_owned_sequence;
use crate::stored_text::{print_texts, read_naming_texts, rewriting_lists};
use crate::table::alter_column::refuse_own_rows;
use crate::table::builder::TableBuilder;
use crate::table::children::{EXCLUSIVE, change_column, each_child, has_children};
use crate::table::column_uses::{has_expressions, refuse_used_row_type};
use crate::table::create::add_column_definition;
use crate::table::relation::put_relation;
use crate::table::rewrite::fill_new_column;
use crate::table::rows::check_no_nulls;

pub fn add_column(ddl: &Ddl<'_>, relation: &Relation, def: &ColumnDef, if_not_exists: bool) -> Result<()> {
    if is_system_column(&def.colname) {
        bail!(DUPLICATE_COLUMN, "column name \"{}\" conflicts with a system column name", def.colname);
    }
    if relation.columns.iter().any(|c| *c.name == *def.colname && !c.dropped) {
        let message = format!("column \"{}\" of relation \"{}\" already exists", def.colname, relation.name);
        if if_not_exists {
            ddl.session().notice(err!(DUPLICATE_COLUMN, "{message}, skipping").severity(melba_types::Severity::Notice));
            return Ok(());
        }
        bail!(DUPLICATE_COLUMN, "{message}");
    }
    let mut builder = TableBuilder { table: relation.name.to_string(), ..TableBuilder::default() };
    add_column_definition(ddl, &mut builder, def)?;
    let column = builder.columns.pop().ok_or_else(|| DbError::internal("no column"))?;
    refuse_own_rows(ddl, relation, column.ty)?;
    let at = relation.columns.len();
    let kind = column.kind;
    let mut columns = relation.columns.to_vec();
    let not_null = column.not_null;
    columns.push(Column { not_null: false, ..column });
    let texts = read_naming_texts(ddl, relation.oid, &[&def.colname])?;
    put_relation(ddl, Relation { columns: columns.into(), ..relation.clone() });
    print_texts(ddl, texts)?;
    if let Storage::Tree(tree) = relation.storage {
        ddl.tx().engine.extend_table_tree(tree, &[kind])?;
    }
    for (_, options, identity) in builder.sequences {
        create_owned_sequence(ddl, "ALTER TABLE", relation.oid, at, options, identity)?;
    }
    // The default is first: existing rows get it.
    let is_default = |c: &Constraint| matches!(c.contype(), ConstrType::ConstrDefault | ConstrType::ConstrGenerated);
    for (_, c) in builder.constraints.iter().filter(|(_, c)| is_default(c)) {
        set_column_expression(ddl, relation.oid, at, c)?;
    }
    let added = &ddl.relation(relation.oid)?.columns[at];
    if added.default.is_some() || added.identity != 0 {
        // Values that columns of that type hold would lack it.
        refuse_used_row_type(ddl, relation)?;
    }
    fill_new_column(ddl, relation.oid, at)?;
    if not_null {
        let named = builder.constraints.iter().find(|(_, c)| c.contype() == ConstrType::ConstrNotnull);
        let name = named.map(|(_, c)| c.conname.clone()).filter(|n| !n.is_empty());
        check_no_nulls(ddl, relation.oid, at)?;
        add_not_null(ddl, relation.oid, at, name, false)?;
    }
    for (_, c) in builder.constraints.iter().filter(|(_, c)| !is_default(c) && c.contype() != ConstrType::ConstrNotnull) {
        add_validated(ddl, relation.oid, Some(at), c, true)?;
    }
    Ok(())
}

pub fn drop_column(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd) -> Result<()> {
    let Some(at) = relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else {
        if is_system_column(&c.name) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot drop system column \"{}\"", c.name);
        }
        if c.missing_ok {
            ddl.notice(format!("column \"{}\" of relation \"{}\" does not exist, skipping", c.name, relation.name));
            return Ok(());
        }
        bail!(UNDEFINED_COLUMN, "column \"{}\" of relation \"{}\" does not exist", c.name, relation.name);
    };
    // Values that are stored have their fields by place, and would be taken for others.
    if refuse_used_row_type(ddl, relation).is_err() {
        return Err(DbError::unsupported("dropping a column of a row type that columns of tables have"));
    }
    if relation.kind == RelationKind::Composite && has_expressions(ddl, relation.row_type) {
        return Err(DbError::unsupported("dropping an attribute of a type that stored expressions use"));
    }
    let address = ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: at as i32 + 1 };
    rewriting_lists(ddl, relation.oid, || drop_addresses(ddl, &[address], c.behavior() == DropBehavior::DropCascade))
}

/// ADD COLUMN.
pub fn add_column_everywhere(
    ddl: &Ddl<'_>,
    relation: &Relation,
    def: &ColumnDef,
    if_not_exists: bool,
    recurse: bool,
) -> Result<()> {
    if relation.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "cannot add column to a partition");
    }
    if !has_children(ddl, relation) {
        return add_column(ddl, relation, def, if_not_exists);
    }
    let exists = relation.columns.iter().any(|c| !c.dropped && *c.name == *def.colname);
    if !recurse && !exists {
        bail!(INVALID_TABLE_DEFINITION, "column must be added to child tables too");
    }
    if exists {
        return add_column(ddl, relation, def, if_not_exists);
    }
    if !relation.is_partitioned() && constraints_of(def).any(|c| c.contype() == ConstrType::ConstrIdentity) {
        bail!(INVALID_TABLE_DEFINITION, "cannot recursively add identity column to table that has child tables");
    }
    // Keys of a partitioned table need the column in the partitions.
    let is_key = |c: &Constraint| matches!(c.contype(), ConstrType::ConstrPrimary | ConstrType::ConstrUnique);
    add_column(ddl, relation, &with_constraints(def, |c| !is_key(c)), false)?;
    let parent = ddl.relation(relation.oid)?;
    each_child(ddl, relation, EXCLUSIVE, |child| add_column_to_child(ddl, &child, &parent, def))?;
    let at = parent.columns.len() - 1;
    for key in constraints_of(def).filter(|c| is_key(c)) {
        add_constraint_everywhere(ddl, parent.oid, Some(at), key, true)?;
    }
    Ok(())
}

fn add_column_to_child(ddl: &Ddl<'_>, child: &Relation, parent: &Relation, def: &ColumnDef) -> Result<()> {
    let Some(above) = parent.columns.iter().rfind(|c| *c.name == *def.colname) else { return Ok(()) };
    if let Some(at) = child.columns.iter().position(|c| !c.dropped && *c.name == *def.colname) {
        let own = &child.columns[at];
        if own.ty != above.ty || own.typmod != above.typmod {
            bail!(DATATYPE_MISMATCH, "child table \"{}\" has different type for column \"{}\"", child.name, def.colname);
        }
        if own.collation != above.collation {
            bail!(COLLATION_MISMATCH, "child table \"{}\" has different collation for column \"{}\"", child.name, def.colname);
        }
        ddl.notice(format!("merging definition of column \"{}\" for child \"{}\"", def.colname, child.name));
        change_column(ddl, child, at, |c| c.inherited += 1);
        inherit_new_constraints(ddl, child.oid, parent, &[])?;
        return pass_constraints_on(ddl, &*ddl.relation(child.oid)?, &child.constraints);
    }
    let is_own =
        |c: &Constraint| matches!(c.contype(), ConstrType::ConstrDefault | ConstrType::ConstrGenerated | ConstrType::ConstrNull);
    add_column(ddl, child, &with_constraints(def, is_own), false)?;
    let added = ddl.relation(child.oid)?;
    let at = added.columns.len() - 1;
    change_column(ddl, &added, at, |c| (c.inherited, c.local, c.identity) = (1, false, above.identity));
    if above.identity != 0 {
        fill_new_column(ddl, child.oid, at)?;
    }
    inherit_new_constraints(ddl, child.oid, parent, &[])?;
    let child = ddl.relation(child.oid)?;
    each_child(ddl, &child, EXCLUSIVE, |grandchild| add_column_to_child(ddl, &grandchild, &child, def))
}

/// DROP COLUMN.
pub fn drop_column_everywhere(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
    let Some(at) = relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else {
        return drop_column(ddl, relation, c);
    };
    if relation.columns[at].inherited > 0 {
        bail!(INVALID_TABLE_DEFINITION, "cannot drop inherited column \"{}\"", c.name);
    }
    refuse_partition_column(ddl, relation, at, "drop")?;
    drop_from_children(ddl, relation, c, recurse)?;
    drop_column(ddl, &*ddl.relation(relation.oid)?, c)
}

fn drop_from_children(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
    if relation.is_partitioned() && !recurse && has_children(ddl, relation) {
        return Err(err!(INVALID_TABLE_DEFINITION, "cannot drop column from only the partitioned table when partitions exist")
            .hint("Do not specify the ONLY keyword."));
    }
    each_child(ddl, relation, EXCLUSIVE, |child| {
        let Some(at) = child.columns.iter().position(|col| *col.name == *c.name && !col.dropped) else { return Ok(()) };
        let own = &child.columns[at];
        if recurse && own.inherited == 1 && !own.local {
            refuse_partition_column(ddl, &child, at, "drop")?;
            drop_from_children(ddl, &child, c, true)?;
            return drop_column(ddl, &*ddl.relation(child.oid)?, c);
        }
        change_column(ddl, &child, at, |own| {
            own.inherited -= 1;
            own.local |= !recurse;
        });
        Ok(())
    })
}
