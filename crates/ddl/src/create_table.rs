//! CREATE TABLE.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Column, Object, Persistence, Relation, RelationKind, Storage, Type, TypeKind, acl};
use melba_engine::RelationLockMode;
use melba_types::{Datum, DbError, Kind, Oid, Result, bail, err};
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt, TableLikeClause, node::Node as N};

use super::Ddl;
use super::column_constraints::check_column_constraints;
use super::inherit::Inheritance;
use super::naming::clip;
use super::partition_identity::refuse_identity;
use super::persistence::{access_method, engine_persistence};
use super::sequence::SequenceOptions;
use super::storage_parameters::ParametersOf;
use melba_parse::nodes::{inner, strings};

/// Most columns of a table (PostgreSQL's MaxHeapAttributeNumber).
const COLUMNS_MAX: usize = 1600;

/// A table being put together.
#[derive(Default)]
pub struct TableBuilder {
    /// The name of the table.
    pub table: String,
    pub columns: Vec<Column>,
    /// Constraints to add once the table exists, with the column they were written at.
    pub constraints: Vec<(Option<usize>, Constraint)>,
    /// Columns with a sequence to create: (column, options, identity).
    pub sequences: Vec<(usize, SequenceOptions, bool)>,
    /// Constraints copied by LIKE: (kind, text or index) are added by `constraint`.
    pub likes: Vec<(Oid, u32)>,
    /// Columns whose STORAGE is written.
    pub explicit_storage: Vec<usize>,
}

/// TableLikeOption bits as the grammar numbers them.
pub mod like {
    pub const COMMENTS: u32 = 1;
    pub const COMPRESSION: u32 = 2;
    pub const CONSTRAINTS: u32 = 4;
    pub const DEFAULTS: u32 = 8;
    pub const GENERATED: u32 = 16;
    pub const IDENTITY: u32 = 32;
    pub const INDEXES: u32 = 64;
    pub const STORAGE: u32 = 256;
}

impl Ddl<'_> {
    pub fn create_table(&self, s: &CreateStmt) -> Result<()> {
        let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE without a name"))?;
        refuse_unsupported(s)?;
        let (namespace, temporary) = self.relation_namespace(name)?;
        if self.relation_exists(namespace, &name.relname, s.if_not_exists)? {
            return Ok(());
        }
        let persistence = self.table_persistence(&name.relpersistence, temporary, &s.access_method)?;
        self.check_on_commit(s.oncommit(), persistence)?;
        let mut inheritance = self.inheritance(&s.inh_relations, s.partbound.is_some(), persistence)?;
        let mut builder = TableBuilder { table: name.relname.clone(), ..TableBuilder::default() };
        let of_type = match &s.of_typename {
            Some(name) => self.add_type_columns(&mut builder, name, &s.table_elts)?,
            None => Oid::INVALID,
        };
        for element in &s.table_elts {
            // Each name is compared with those before it.
            if builder.columns.len() > COLUMNS_MAX {
                break;
            }
            match inner(element)? {
                N::ColumnDef(_) if of_type.is_valid() => {}
                N::ColumnDef(def) if inheritance.is_partition => self.add_partition_column(&mut builder, def, &inheritance)?,
                N::ColumnDef(def) => self.add_column_definition(&mut builder, def)?,
                N::Constraint(c) => builder.constraints.push((None, (**c).clone())),
                N::TableLikeClause(like) => self.add_like(&mut builder, like)?,
                _ => return Err(DbError::unsupported("this table element")),
            }
        }
        if builder.columns.len() > COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS, "tables can have at most {COLUMNS_MAX} columns");
        }
        let parameters = if s.partspec.is_some() { ParametersOf::PartitionedTable } else { ParametersOf::Table };
        let options = parameters.new_list(&s.options)?;
        self.merge_columns(&mut inheritance, &mut builder)?;
        let relation = match &s.partspec {
            Some(_) => self.put_partitioned_table(namespace, &name.relname, persistence, builder.columns, options)?,
            None => self.put_table(namespace, &name.relname, persistence, builder.columns, options)?,
        };
        self.note_on_commit(relation, s.oncommit());
        if of_type.is_valid() {
            self.put_relation(Relation { of_type, ..(*self.relation(relation)?).clone() });
        }
        self.set_parents(relation, &inheritance)?;
        if let (Some(bound), [parent]) = (&s.partbound, &inheritance.parents[..]) {
            self.set_partition_bound(relation, parent, bound)?;
        }
        if let Some(spec) = &s.partspec {
            self.set_partition_key(relation, spec)?;
        }
        for (column, sequence, identity) in builder.sequences {
            self.create_owned_sequence("CREATE TABLE", relation, column, sequence, identity)?;
        }
        self.add_inherited_constraints(relation, &inheritance, &mut builder.constraints)?;
        // Foreign keys may refer to a key copied by LIKE.
        let is_foreign = |(_, c): &(Option<usize>, Constraint)| c.contype() == ConstrType::ConstrForeign;
        let (foreign, own): (Vec<_>, Vec<_>) = builder.constraints.into_iter().partition(is_foreign);
        self.add_constraints(relation, &own)?;
        for (source, bits) in builder.likes {
            self.copy_like(relation, source, bits)?;
        }
        self.add_constraints(relation, &foreign)?;
        if inheritance.is_partition {
            self.add_parent_indexes(relation)?;
            self.add_parent_foreign_keys(relation)?;
            self.add_parent_references(relation)?;
            self.add_parent_triggers(relation)?;
        }
        Ok(())
    }

    fn set_parents(&self, table: Oid, inheritance: &Inheritance) -> Result<()> {
        if !inheritance.parents.is_empty() {
            let parents = inheritance.parents.iter().map(|p| p.oid).collect();
            self.put_relation(Relation { parents, ..(*self.relation(table)?).clone() });
        }
        Ok(())
    }

    /// Whether the name is taken; an error unless IF NOT EXISTS, which makes it a notice.
    pub fn relation_exists(&self, namespace: Oid, name: &str, if_not_exists: bool) -> Result<bool> {
        if self.catalog().relation_by_name(namespace, name).is_none() {
            return Ok(false);
        }
        if if_not_exists {
            self.session.notice(
                err!(DUPLICATE_TABLE, "relation \"{name}\" already exists, skipping").severity(melba_types::Severity::Notice),
            );
            return Ok(true);
        }
        bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists")
    }

    /// Adds a column as CREATE TABLE or ADD COLUMN defines it, and collects the steps that must wait until the table exists.
    pub fn add_column_definition(&self, builder: &mut TableBuilder, def: &ColumnDef) -> Result<()> {
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
            None => self.type_from_name(type_name)?,
        };
        let mut column = self.new_column(&def.colname, ty, typmod)?;
        if let Some(collate) = &def.coll_clause {
            column.collation = self.collation(&strings(&collate.collname), ty, collate.location)?;
        }
        if !def.compression.is_empty() {
            column.compression = self.compression_method(&def.compression, &column)?;
        }
        if !def.storage_name.is_empty() {
            column.storage = self.storage_strategy(&def.storage_name, &column)?;
            builder.explicit_storage.push(at);
        }
        if serial.is_some() {
            column.not_null = true;
            builder.sequences.push((at, SequenceOptions::of_type(ty), false));
        }
        self.add_column_constraints(builder, def, &mut column, serial.is_some())?;
        builder.columns.push(column);
        Ok(())
    }

    /// A column as PARTITION OF adds to its parent's definition.
    fn add_partition_column(&self, builder: &mut TableBuilder, def: &ColumnDef, inheritance: &Inheritance) -> Result<()> {
        let mut columns = inheritance.parents.iter().flat_map(|p| p.columns.iter()).filter(|c| !c.dropped);
        let Some(column) = columns.find(|c| *c.name == *def.colname) else {
            bail!(UNDEFINED_COLUMN, "column \"{}\" does not exist", def.colname);
        };
        if builder.columns.iter().any(|c| *c.name == *def.colname) {
            bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", def.colname);
        }
        refuse_identity(def, "partitions")?;
        let mut column = Column { not_null: false, default: None, identity: 0, ..column.clone() };
        self.add_column_constraints(builder, def, &mut column, false)?;
        builder.columns.push(column);
        Ok(())
    }

    /// Collects the constraints written at the column that comes next.
    pub(super) fn add_column_constraints(
        &self,
        builder: &mut TableBuilder,
        def: &ColumnDef,
        column: &mut Column,
        is_serial: bool,
    ) -> Result<()> {
        let at = builder.columns.len();
        check_column_constraints(&builder.table, def, is_serial)?;
        for constraint in &def.constraints {
            let N::Constraint(constraint) = inner(constraint)? else { continue };
            match constraint.contype() {
                ConstrType::ConstrNull => {}
                // Written after their constraint, as separate nodes.
                ConstrType::ConstrAttrDeferrable => last_of(builder, at, constraint)?.deferrable = true,
                ConstrType::ConstrAttrNotDeferrable => last_of(builder, at, constraint)?.deferrable = false,
                ConstrType::ConstrAttrDeferred => last_of(builder, at, constraint)?.initdeferred = true,
                ConstrType::ConstrAttrImmediate => last_of(builder, at, constraint)?.initdeferred = false,
                ConstrType::ConstrAttrEnforced => last_of(builder, at, constraint)?.is_enforced = true,
                ConstrType::ConstrAttrNotEnforced => last_of(builder, at, constraint)?.is_enforced = false,
                ConstrType::ConstrIdentity => {
                    column.not_null = true;
                    column.identity = constraint.generated_when.as_bytes().first().copied().unwrap_or(b'a');
                    builder.sequences.push((at, self.sequence_options(&constraint.options, Some(column.ty))?, true));
                }
                ConstrType::ConstrNotnull => {
                    column.not_null = true;
                    builder.constraints.push((Some(at), (**constraint).clone()));
                }
                kind => {
                    if kind == ConstrType::ConstrGenerated {
                        column.generated = if constraint.generated_kind == "v" { b'v' } else { b's' };
                    }
                    builder.constraints.push((Some(at), (**constraint).clone()));
                }
            }
        }
        // An implicit NOT NULL counts beside an explicit one.
        let is_said = |(of, c): &(Option<usize>, Constraint)| *of == Some(at) && c.contype() == ConstrType::ConstrNotnull;
        if (is_serial || column.identity != 0) && !builder.constraints.iter().any(is_said) {
            builder.constraints.push((Some(at), not_null()));
        }
        Ok(())
    }

    /// A column with the defaults of its type.
    pub fn new_column(&self, name: &str, ty: Oid, typmod: i32) -> Result<Column> {
        let catalog = self.catalog();
        let t = catalog.type_(ty).ok_or_else(|| DbError::internal(format!("type {ty} is missing")))?;
        if t.type_kind == TypeKind::Pseudo {
            bail!(INVALID_TABLE_DEFINITION, "column \"{name}\" has pseudo-type {}", catalog.type_name(ty, self.path));
        }
        self.require_type(ty)?;
        Ok(Column { typmod, ..Column::of_type(clip(name, super::naming::NAME_BYTES_MAX), t) })
    }

    /// Creates the table's storage, row type and pg_class entry.
    pub fn put_table(
        &self,
        namespace: Oid,
        name: &str,
        persistence: Persistence,
        columns: Vec<Column>,
        options: Vec<Arc<str>>,
    ) -> Result<Oid> {
        let kinds: Vec<Kind> = columns.iter().map(|c| c.kind).collect();
        let tree = self.tx.engine.create_table_tree(&kinds, engine_persistence(persistence))?;
        let relation = self.bare_relation(namespace, name, RelationKind::Table, persistence, columns);
        let relation = Relation { storage: Storage::Tree(tree), access_method: access_method(persistence), options, ..relation };
        let oid = relation.oid;
        self.put_relation_with_row_type(relation)?;
        Ok(oid)
    }

    /// The same for a table whose rows are in its partitions.
    fn put_partitioned_table(
        &self,
        namespace: Oid,
        name: &str,
        persistence: Persistence,
        columns: Vec<Column>,
        options: Vec<Arc<str>>,
    ) -> Result<Oid> {
        if !options.is_empty() {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot specify storage parameters for a partitioned table")
                .hint("Specify storage parameters for its leaf partitions instead."));
        }
        let relation = self.bare_relation(namespace, name, RelationKind::PartitionedTable, persistence, columns);
        let oid = relation.oid;
        self.put_relation_with_row_type(relation)?;
        Ok(oid)
    }

    /// A pg_class entry with everything optional left out.
    pub fn bare_relation(
        &self,
        namespace: Oid,
        name: &str,
        kind: RelationKind,
        persistence: Persistence,
        columns: Vec<Column>,
    ) -> Relation {
        let oid = self.tx.new_oid();
        let acl = match kind {
            RelationKind::Sequence => self.catalog().initial_acl(AclKind::Sequence, self.user, namespace),
            RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Composite => None,
            _ => self.catalog().initial_acl(AclKind::Table, self.user, namespace),
        };
        Relation {
            kind,
            persistence,
            columns: columns.into(),
            acl,
            ..Relation::new(oid, clip(name, super::naming::NAME_BYTES_MAX), namespace, self.user)
        }
    }

    /// Records a relation together with its composite row type and the array over it.
    pub fn put_relation_with_row_type(&self, mut relation: Relation) -> Result<()> {
        let catalog = self.catalog();
        if !self.free_type_name(relation.namespace, &relation.name)? {
            return Err(err!(DUPLICATE_OBJECT, "type \"{}\" already exists", relation.name).hint(
                "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any \
                 existing type.",
            ));
        }
        let mut row_type = self.tx.new_oid();
        if relation.kind == RelationKind::Composite {
            // Here the relation is a part of the type, and comes after it.
            std::mem::swap(&mut relation.oid, &mut row_type);
            relation.file_node = relation.oid;
        }
        relation.row_type = row_type;
        let array = self.put_array_type(&relation.name, relation.namespace, row_type, b'd')?;
        let acl = match relation.kind {
            RelationKind::Composite => catalog.initial_acl(AclKind::Type, self.user, relation.namespace),
            _ => None,
        };
        let row = Type {
            oid: row_type,
            acl,
            name: relation.name.clone(),
            type_kind: TypeKind::Composite,
            category: b'C',
            array,
            relation: relation.oid,
            input: "record_in".into(),
            output: "record_out".into(),
            receive: "record_recv".into(),
            send: "record_send".into(),
            align: b'd',
            kind: Kind::Record,
            ..self.bare_type(relation.namespace)
        };
        self.tx.put(Object::Type(Arc::new(row)));
        self.tx.put(Object::Relation(Arc::new(relation)));
        Ok(())
    }

    fn add_like(&self, builder: &mut TableBuilder, clause: &TableLikeClause) -> Result<()> {
        let name = clause.relation.as_ref().ok_or_else(|| DbError::internal("LIKE without a name"))?;
        let source = self.open_relation(name, RelationLockMode::AccessShare).map_err(|e| e.at(name.location))?;
        if !matches!(
            source.kind,
            RelationKind::Table
                | RelationKind::PartitionedTable
                | RelationKind::View
                | RelationKind::MaterializedView
                | RelationKind::Composite
        ) {
            return Err(err!(WRONG_OBJECT_TYPE, "relation \"{}\" is invalid in LIKE clause", source.name)
                .detail(format!("This operation is not supported for {}.", super::index::plural(source.kind)))
                .at(name.location));
        }
        match source.kind {
            RelationKind::Composite => self.require_type(source.row_type)?,
            _ => self.require_columns(&source, &[], acl::SELECT)?,
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
                default_oid: if keep_default && column.default.is_some() { self.tx.new_oid() } else { Oid::INVALID },
                default_depends_on: if keep_default { column.default_depends_on.clone() } else { vec![] },
                generated: if on(like::GENERATED) { column.generated } else { 0 },
                identity: if on(like::IDENTITY) { column.identity } else { 0 },
                storage: if on(like::STORAGE) { column.storage } else { self.type_storage(column.ty) },
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
                builder.constraints.extend(self.not_null_like(&source, column).map(|c| (Some(builder.columns.len()), c)));
            }
            if copy.identity != 0 {
                let options = self.owned_sequence_options(&*self.topmost(&source)?, &column.name)?;
                builder.sequences.push((builder.columns.len(), options, true));
            }
            builder.columns.push(copy);
        }
        builder.likes.push((source.oid, clause.options));
        Ok(())
    }

    /// The NOT NULL constraint of a column as LIKE takes it over: with its name.
    fn not_null_like(&self, source: &Relation, column: &Column) -> Option<Constraint> {
        let catalog = self.catalog();
        let place = source.columns.iter().position(|c| c.name == column.name)?;
        let row = catalog.not_null_constraint(source, place as i16 + 1)?;
        Some(Constraint { conname: row.name.to_string(), is_no_inherit: row.no_inherit, ..not_null() })
    }

    fn type_storage(&self, ty: Oid) -> u8 {
        self.catalog().type_(ty).map_or(b'p', |t| t.storage)
    }
}

/// The constraint that an attribute node (DEFERRABLE, ...) follows.
fn last_of<'b>(builder: &'b mut TableBuilder, column: usize, attribute: &Constraint) -> Result<&'b mut Constraint> {
    let last = builder.constraints.iter_mut().rev().find(|(at, _)| *at == Some(column)).map(|(_, c)| c);
    use ConstrType::*;
    let is_enforcement = matches!(attribute.contype(), ConstrAttrEnforced | ConstrAttrNotEnforced);
    let allowed = |c: &&mut Constraint| match c.contype() {
        ConstrForeign => true,
        ConstrCheck => is_enforcement,
        ConstrPrimary | ConstrUnique | ConstrExclusion => !is_enforcement,
        _ => false,
    };
    let clause = match attribute.contype() {
        ConstrType::ConstrAttrDeferrable => "DEFERRABLE",
        ConstrType::ConstrAttrNotDeferrable => "NOT DEFERRABLE",
        ConstrType::ConstrAttrDeferred => "INITIALLY DEFERRED",
        ConstrType::ConstrAttrImmediate => "INITIALLY IMMEDIATE",
        ConstrType::ConstrAttrEnforced => "ENFORCED",
        _ => "NOT ENFORCED",
    };
    last.filter(allowed).ok_or_else(|| err!(SYNTAX_ERROR, "misplaced {clause} clause").at(attribute.location))
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
    if !s.tablespacename.is_empty() && s.tablespacename != "pg_default" {
        bail!(UNDEFINED_OBJECT, "tablespace \"{}\" does not exist", s.tablespacename);
    }
    Ok(())
}

/// An implicit NOT NULL constraint.
fn not_null() -> Constraint {
    Constraint {
        contype: ConstrType::ConstrNotnull as i32,
        is_enforced: true,
        initially_valid: true,
        location: -1,
        ..Constraint::default()
    }
}
