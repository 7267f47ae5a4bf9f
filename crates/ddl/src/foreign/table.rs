//! CREATE FOREIGN TABLE, what ALTER does with one, and IMPORT FOREIGN SCHEMA.

use std::sync::Arc;

use melba_catalog::foreign::{require_handler, server};
use melba_catalog::{ColumnOptions, ForeignServer, ForeignTable, Persistence, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::inner;
use melba_relation::constraint::add::add_constraints;
use melba_relation::constraint::row::is_system_column;
use melba_relation::table::builder::TableBuilder;
use melba_relation::table::create::{COLUMNS_MAX, add_column_definition};
use melba_relation::table::relation::{bare_relation, put_relation, put_relation_with_row_type, relation_exists};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateForeignTableStmt, ImportForeignSchemaStmt, Node};

use super::options::changed;
use super::server::{existing_server, locked_server, require_usage, wrapper_of};

pub fn create_foreign_table(ddl: &Ddl<'_>, s: &CreateForeignTableStmt) -> Result<()> {
    let table = s.base_stmt.as_ref().ok_or_else(|| DbError::internal("CREATE FOREIGN TABLE without a table"))?;
    let name = table.relation.as_ref().ok_or_else(|| DbError::internal("CREATE FOREIGN TABLE without a name"))?;
    if table.partbound.is_some() {
        return Err(DbError::unsupported("a partition that is a foreign table"));
    }
    if !table.inh_relations.is_empty() {
        return Err(DbError::unsupported("a foreign table that inherits"));
    }
    let (namespace, temporary) = ddl.relation_namespace(name).map_err(|e| e.at(name.location))?;
    if relation_exists(ddl, namespace, &name.relname, table.if_not_exists)? {
        return Ok(());
    }
    let persistence = if temporary { Persistence::Temporary } else { Persistence::Permanent };
    let mut builder = TableBuilder { table: name.relname.clone(), ..TableBuilder::default() };
    let mut with_options = Vec::new();
    for element in &table.table_elts {
        // Each name is compared with those before it.
        if builder.columns.len() > COLUMNS_MAX {
            break;
        }
        match inner(element)? {
            N::ColumnDef(def) => {
                if is_system_column(&def.colname) {
                    bail!(DUPLICATE_COLUMN, "column name \"{}\" conflicts with a system column name", def.colname);
                }
                add_column_definition(ddl, &mut builder, def)?;
                if !def.fdwoptions.is_empty() {
                    with_options.push((builder.columns.len() as i16, &def.fdwoptions[..]));
                }
            }
            N::Constraint(c) => builder.constraints.push((None, (**c).clone())),
            _ => return Err(DbError::unsupported("LIKE in CREATE FOREIGN TABLE")),
        }
    }
    if builder.columns.len() > COLUMNS_MAX {
        bail!(TOO_MANY_COLUMNS, "tables can have at most {COLUMNS_MAX} columns");
    }
    refuse_parts(&builder)?;
    let server = locked_server(ddl, &s.servername)?;
    require_usage(ddl, &server)?;
    let validator = wrapper_of(ddl, &server)?.validator;
    let options = changed(ddl, classes::PG_FOREIGN_TABLE, validator, &[], &s.options)?;
    let mut columns = Vec::with_capacity(with_options.len());
    for (column, list) in with_options {
        columns.push(ColumnOptions { column, options: changed(ddl, classes::PG_ATTRIBUTE, validator, &[], list)? });
    }
    let relation = bare_relation(ddl, namespace, &name.relname, RelationKind::ForeignTable, persistence, builder.columns);
    let foreign = Some(Arc::new(ForeignTable { server: server.oid, options, columns }));
    let relation = Relation { foreign, file_node: Oid::INVALID, replica_identity: b'n', ..relation };
    let oid = relation.oid;
    put_relation_with_row_type(ddl, relation)?;
    add_constraints(ddl, oid, &builder.constraints)
}

/// # Errors
/// 0A000 for parts of a definition that foreign tables do not have.
fn refuse_parts(builder: &TableBuilder) -> Result<()> {
    builder.constraints.iter().try_for_each(|(_, c)| refuse_constraint(c))?;
    if builder.columns.iter().any(|column| column.generated != 0) {
        return Err(DbError::unsupported("a foreign table with generated columns"));
    }
    if !builder.sequences.is_empty() {
        return Err(DbError::unsupported("a foreign table with identity or serial columns"));
    }
    Ok(())
}

/// # Errors
/// 0A000 for a constraint that rows elsewhere cannot be held to.
pub fn refuse_constraint(c: &Constraint) -> Result<()> {
    let what = match c.contype() {
        ConstrType::ConstrPrimary => "primary key",
        ConstrType::ConstrUnique => "unique",
        ConstrType::ConstrExclusion => "exclusion",
        ConstrType::ConstrForeign => "foreign key",
        _ => return Ok(()),
    };
    Err(err!(FEATURE_NOT_SUPPORTED, "{what} constraints are not supported on foreign tables").at(c.location))
}

/// # Errors
/// 0A000 for a column that foreign tables do not have.
pub fn refuse_column(ddl: &Ddl<'_>, def: &ColumnDef) -> Result<()> {
    let mut builder = TableBuilder::default();
    add_column_definition(ddl, &mut builder, def)?;
    refuse_parts(&builder)
}

fn foreign_table(relation: &Relation) -> Result<&Arc<ForeignTable>> {
    relation.foreign.as_ref().ok_or_else(|| err!(WRONG_OBJECT_TYPE, "\"{}\" is not a foreign table", relation.name))
}

fn put_foreign(ddl: &Ddl<'_>, relation: &Relation, foreign: ForeignTable) {
    put_relation(ddl, Relation { foreign: Some(Arc::new(foreign)), ..relation.clone() });
}

/// ALTER FOREIGN TABLE ... OPTIONS (...).
pub fn alter_table_options(ddl: &Ddl<'_>, relation: &Relation, list: &[Node]) -> Result<()> {
    let table = foreign_table(relation)?;
    let validator = validator_of(ddl, table)?;
    let options = changed(ddl, classes::PG_FOREIGN_TABLE, validator, &table.options, list)?;
    put_foreign(ddl, relation, ForeignTable { options, ..(**table).clone() });
    Ok(())
}

/// ALTER FOREIGN TABLE ... ALTER COLUMN ... OPTIONS (...).
pub fn alter_column_options(ddl: &Ddl<'_>, relation: &Relation, name: &str, list: &[Node]) -> Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let table = foreign_table(relation)?;
    let Some(column) = relation.number_of(name) else {
        if is_system_column(name) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot alter system column \"{name}\"");
        }
        bail!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name);
    };
    let validator = validator_of(ddl, table)?;
    let options = changed(ddl, classes::PG_ATTRIBUTE, validator, table.column_options(column), list)?;
    let mut columns: Vec<ColumnOptions> = table.columns.iter().filter(|c| c.column != column).cloned().collect();
    if !options.is_empty() {
        columns.push(ColumnOptions { column, options });
    }
    put_foreign(ddl, relation, ForeignTable { columns, ..(**table).clone() });
    Ok(())
}

fn validator_of(ddl: &Ddl<'_>, table: &ForeignTable) -> Result<Oid> {
    Ok(wrapper_of(ddl, &*server_of(ddl, table)?)?.validator)
}

fn server_of(ddl: &Ddl<'_>, table: &ForeignTable) -> Result<Arc<ForeignServer>> {
    let found = server(&ddl.catalog(), table.server).cloned();
    found.ok_or_else(|| DbError::internal("a foreign table without its server"))
}

/// No wrapper can say which tables there are.
pub fn import_schema(ddl: &Ddl<'_>, s: &ImportForeignSchemaStmt) -> Result<()> {
    let server = existing_server(ddl, &s.server_name)?;
    require_usage(ddl, &server)?;
    ddl.namespace(&s.local_schema)?;
    let wrapper = wrapper_of(ddl, &server)?;
    require_handler(&ddl.catalog(), server.oid)?;
    bail!(FDW_NO_SCHEMAS, "foreign-data wrapper \"{}\" does not support IMPORT FOREIGN SCHEMA", wrapper.name)
}
