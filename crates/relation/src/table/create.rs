//! CREATE TABLE.

use melba_catalog::{Column, Relation, RelationKind, Storage, acl};
use melba_definition::context::Ddl;
use melba_definition::expression::{compression_method, storage_strategy};
use melba_definition::words::plural;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{inner, strings};
use melba_types::{Datum, DbError, Kind, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt, Node, TableLikeClause};

use crate::constraint::add::add_constraints;
use crate::constraint::column::add_column_constraints;
use crate::partition::bound::{set_partition_bound, set_partition_key};
use crate::partition::foreign_key::add_parent_foreign_keys;
use crate::partition::identity::{refuse_identity, topmost};
use crate::partition::index::add_parent_indexes;
use crate::partition::referenced::add_parent_references;
use crate::sequence::{SequenceOptions, create_owned_sequence, owned_sequence_options};
use crate::table::builder::{TableBuilder, like, not_null};
use crate::table::cold_store::new_parameters;
use crate::table::inherit::{Inheritance, add_inherited_constraints, inheritance, merge_columns};
use crate::table::like::copy_like;
use crate::table::on_commit::{check_on_commit, note_on_commit};
use crate::table::persistence::{access_method, engine_persistence, table_persistence};
use crate::table::relation::{
    bare_relation, new_column, put_relation, put_relation_with_row_type, relation_exists, type_storage,
};
use crate::table::storage_parameters::ParametersOf;
use crate::table::typed::add_type_columns;
use crate::trigger::add_parent_triggers;

/// Most columns of a table (PostgreSQL's MaxHeapAttributeNumber).
pub const COLUMNS_MAX: usize = 1600;

pub fn create_table(ddl: &Ddl<'_>, s: &CreateStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE without a name"))?;
    refuse_unsupported(s)?;
    let (namespace, temporary) = ddl.relation_namespace(name).map_err(|e| e.at(name.location))?;
    if relation_exists(ddl, namespace, &name.relname, s.if_not_exists)? {
        return Ok(());
    }
    let persistence = table_persistence(ddl, &name.relpersistence, temporary, &s.access_method)?;
    check_on_commit(s.oncommit(), persistence)?;
    let mut inheritance = inheritance(ddl, &s.inh_relations, s.partbound.is_some(), persistence)?;
    let mut builder = TableBuilder { table: name.relname.clone(), ..TableBuilder::default() };
    let of_type = match &s.of_typename {
        Some(name) => add_type_columns(ddl, &mut builder, name, &s.table_elts)?,
        None => Oid::INVALID,
    };
    add_elements(ddl, &mut builder, &s.table_elts, of_type, &inheritance)?;
    let (kind, parameters) = match s.partspec {
        Some(_) => (RelationKind::PartitionedTable, ParametersOf::PartitionedTable),
        None => (RelationKind::Table, ParametersOf::Table),
    };
    let options = new_parameters(ddl, parameters, &s.options, persistence)?;
    merge_columns(ddl, &mut inheritance, &mut builder)?;
    let relation = Relation { options, ..bare_relation(ddl, namespace, &name.relname, kind, persistence, builder.columns) };
    let relation = match kind {
        RelationKind::PartitionedTable => put_partitioned_table(ddl, relation)?,
        _ => put_table(ddl, relation)?,
    };
    note_on_commit(ddl, relation, s.oncommit());
    if of_type.is_valid() {
        put_relation(ddl, Relation { of_type, ..(*ddl.relation(relation)?).clone() });
    }
    set_parents(ddl, relation, &inheritance)?;
    if let (Some(bound), [parent]) = (&s.partbound, &inheritance.parents[..]) {
        set_partition_bound(ddl, relation, parent, bound, false)?;
    }
    if let Some(spec) = &s.partspec {
        set_partition_key(ddl, relation, spec)?;
    }
    for (column, sequence, identity) in builder.sequences {
        create_owned_sequence(ddl, "CREATE TABLE", relation, column, sequence, identity)?;
    }
    add_inherited_constraints(ddl, relation, &inheritance, &mut builder.constraints)?;
    // A table without rows satisfies them.
    builder.constraints.iter_mut().for_each(|(_, c)| c.skip_validation = false);
    // Foreign keys may refer to a key copied by LIKE.
    let is_foreign = |(_, c): &(Option<usize>, Constraint)| c.contype() == ConstrType::ConstrForeign;
    let (foreign, own): (Vec<_>, Vec<_>) = builder.constraints.into_iter().partition(is_foreign);
    add_constraints(ddl, relation, &own)?;
    for (source, bits) in builder.likes {
        copy_like(ddl, relation, source, bits)?;
    }
    add_constraints(ddl, relation, &foreign)?;
    if inheritance.is_partition {
        add_parent_indexes(ddl, relation)?;
        add_parent_foreign_keys(ddl, relation)?;
        add_parent_references(ddl, relation)?;
        add_parent_triggers(ddl, relation)?;
    }
    Ok(())
}

/// Adds the columns and constraints of a definition. `of_type`: the type that the columns are of, or 0.
fn add_elements(
    ddl: &Ddl<'_>,
    builder: &mut TableBuilder,
    elements: &[Node],
    of_type: Oid,
    inheritance: &Inheritance,
) -> Result<()> {
    for element in elements {
        // Each name is compared with those before it.
        if builder.columns.len() > COLUMNS_MAX {
            break;
        }
        match inner(element)? {
            N::ColumnDef(_) if of_type.is_valid() => {}
            N::ColumnDef(def) if inheritance.is_partition => add_partition_column(ddl, builder, def, inheritance)?,
            N::ColumnDef(def) => add_column_definition(ddl, builder, def)?,
            N::Constraint(c) => builder.constraints.push((None, (**c).clone())),
            N::TableLikeClause(like) => add_like(ddl, builder, like)?,
            _ => return Err(DbError::unsupported("this table element")),
        }
    }
    if builder.columns.len() > COLUMNS_MAX {
        bail!(TOO_MANY_COLUMNS, "tables can have at most {COLUMNS_MAX} columns");
    }
    Ok(())
}

fn set_parents(ddl: &Ddl<'_>, table: Oid, inheritance: &Inheritance) -> Result<()> {
    if !inheritance.parents.is_empty() {
        let parents = inheritance.parents.iter().map(|p| p.oid).collect();
        put_relation(ddl, Relation { parents, ..(*ddl.relation(table)?).clone() });
    }
    Ok(())
}

/// Adds a column as CREATE TABLE or ADD COLUMN defines it, and collects the steps that must wait until the table exists.
pub fn add_column_definition(ddl: &Ddl<'_>, builder: &mut TableBuilder, def: &ColumnDef) -> Result<()> {
    if builder.columns.iter().any(|c| *c.name == *def.colname) {
        bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", def.colname);
    }
    let at = builder.columns.len();
    let type_name = def.type_name.as_ref().ok_or_else(|| DbError::internal("column without a type"))?;
    let serial = match strings(&type_name.names).as_slice() {
        [name] => serial_type(name),
        _ => None,
    };
    let (ty, typmod) = match serial {
        Some(ty) => (ty, -1),
        None => ddl.type_from_name(type_name)?,
    };
    let mut column = new_column(ddl, &def.colname, ty, typmod)?;
    if let Some(collate) = &def.coll_clause {
        column.collation = ddl.collation(&strings(&collate.collname), ty, collate.location)?;
    }
    if !def.compression.is_empty() {
        column.compression = compression_method(ddl, &def.compression, &column)?;
    }
    if !def.storage_name.is_empty() {
        column.storage = storage_strategy(ddl, &def.storage_name, &column)?;
        builder.explicit_storage.push(at);
    }
    if serial.is_some() {
        column.not_null = true;
        builder.sequences.push((at, SequenceOptions::of_type(ty), false));
    }
    add_column_constraints(ddl, builder, def, &mut column, serial.is_some())?;
    builder.columns.push(column);
    Ok(())
}

/// A column as PARTITION OF adds to its parent's definition.
fn add_partition_column(ddl: &Ddl<'_>, builder: &mut TableBuilder, def: &ColumnDef, inheritance: &Inheritance) -> Result<()> {
    let mut columns = inheritance.parents.iter().flat_map(|p| p.columns.iter()).filter(|c| !c.dropped);
    let Some(column) = columns.find(|c| *c.name == *def.colname) else {
        bail!(UNDEFINED_COLUMN, "column \"{}\" does not exist", def.colname);
    };
    if builder.columns.iter().any(|c| *c.name == *def.colname) {
        bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", def.colname);
    }
    refuse_identity(def, "partitions")?;
    let mut column = Column { not_null: false, default: None, identity: 0, ..column.clone() };
    add_column_constraints(ddl, builder, def, &mut column, false)?;
    builder.columns.push(column);
    Ok(())
}

/// Creates the table's storage, row type and pg_class entry.
pub fn put_table(ddl: &Ddl<'_>, relation: Relation) -> Result<Oid> {
    let Relation { oid, persistence, .. } = relation;
    let kinds: Vec<Kind> = relation.columns.iter().map(|c| c.kind).collect();
    let tree = ddl.tx().engine.create_table_tree(&kinds, engine_persistence(persistence))?;
    let relation = Relation { storage: Storage::Tree(tree), access_method: access_method(persistence), ..relation };
    put_relation_with_row_type(ddl, relation)?;
    Ok(oid)
}

/// The same for a table whose rows are in its partitions.
fn put_partitioned_table(ddl: &Ddl<'_>, relation: Relation) -> Result<Oid> {
    if !relation.options.is_empty() {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot specify storage parameters for a partitioned table")
            .hint("Specify storage parameters for its leaf partitions instead."));
    }
    let oid = relation.oid;
    put_relation_with_row_type(ddl, relation)?;
    Ok(oid)
}

fn add_like(ddl: &Ddl<'_>, builder: &mut TableBuilder, clause: &TableLikeClause) -> Result<()> {
    let name = clause.relation.as_ref().ok_or_else(|| DbError::internal("LIKE without a name"))?;
    let source = ddl.open_relation(name, RelationLockMode::AccessShare).map_err(|e| e.at(name.location))?;
    if !matches!(
        source.kind,
        RelationKind::Table
            | RelationKind::PartitionedTable
            | RelationKind::View
            | RelationKind::MaterializedView
            | RelationKind::Composite
            | RelationKind::ForeignTable
    ) {
        return Err(err!(WRONG_OBJECT_TYPE, "relation \"{}\" is invalid in LIKE clause", source.name)
            .detail(format!("This operation is not supported for {}.", plural(source.kind)))
            .at(name.location));
    }
    match source.kind {
        RelationKind::Composite => ddl.require_type(source.row_type)?,
        _ => ddl.require_columns(&source, &[], acl::SELECT)?,
    }
    let on = |bit| clause.options & bit != 0;
    for column in source.columns.iter().filter(|c| !c.dropped) {
        if builder.columns.iter().any(|c| c.name == column.name) {
            bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", column.name);
        }
        let generated = column.generated != 0;
        let keep_default = if generated { on(like::GENERATED) } else { on(like::DEFAULTS) };
        let copy = Column {
            default: if keep_default { column.default.clone() } else { None },
            default_oid: if keep_default && column.default.is_some() { ddl.tx().new_oid() } else { Oid::INVALID },
            default_depends_on: if keep_default { ddl.usable(column.default_depends_on.clone())? } else { vec![] },
            generated: if on(like::GENERATED) { column.generated } else { 0 },
            identity: if on(like::IDENTITY) { column.identity } else { 0 },
            storage: if on(like::STORAGE) { column.storage } else { type_storage(ddl, column.ty) },
            compression: if on(like::COMPRESSION) { column.compression } else { 0 },
            missing: Datum::Null,
            acl: None,
            options: vec![],
            statistics_target: None,
            inherited: 0,
            local: true,
            ..column.clone()
        };
        if column.not_null {
            builder.constraints.extend(not_null_like(ddl, &source, column).map(|c| (Some(builder.columns.len()), c)));
        }
        if copy.identity != 0 {
            let options = owned_sequence_options(ddl, &*topmost(ddl, &source)?, &column.name)?;
            builder.sequences.push((builder.columns.len(), options, true));
        }
        builder.columns.push(copy);
    }
    builder.likes.push((source.oid, clause.options));
    Ok(())
}

/// The NOT NULL constraint of a column as LIKE takes it over: with its name.
fn not_null_like(ddl: &Ddl<'_>, source: &Relation, column: &Column) -> Option<Constraint> {
    let catalog = ddl.catalog();
    let place = source.columns.iter().position(|c| c.name == column.name)?;
    let row = catalog.not_null_constraint(source, place as i16 + 1)?;
    Some(Constraint { conname: row.name.to_string(), is_no_inherit: row.no_inherit, ..not_null() })
}

/// The integer type behind serial, bigserial and smallserial.
pub fn serial_type(name: &str) -> Option<Oid> {
    use melba_types::oids;
    Some(match name {
        "serial" | "serial4" => oids::INT4,
        "bigserial" | "serial8" => oids::INT8,
        "smallserial" | "serial2" => oids::INT2,
        _ => return None,
    })
}

fn refuse_unsupported(s: &CreateStmt) -> Result<()> {
    let mut columns = s.table_elts.iter().filter_map(|element| match &element.node {
        Some(N::ColumnDef(def)) => Some(def),
        _ => None,
    });
    if columns.any(|def| !def.fdwoptions.is_empty()) {
        let name = s.relation.as_ref().map_or("", |name| &name.relname);
        bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a foreign table");
    }
    if !s.tablespacename.is_empty() && s.tablespacename != "pg_default" {
        bail!(UNDEFINED_OBJECT, "tablespace \"{}\" does not exist", s.tablespacename);
    }
    Ok(())
}
