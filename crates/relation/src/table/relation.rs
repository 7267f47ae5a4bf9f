//! New relations with their row types, and the columns of them (PostgreSQL's heap_create_with_catalog).

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Column, Object, Persistence, Relation, RelationKind, Type, TypeKind};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Kind, Oid, Result, bail, err};

use melba_definition::context::Ddl;
use melba_definition::naming::{NAME_BYTES_MAX, clip};
use melba_routine::array::{bare_type, free_type_name, put_array_type};
use melba_routine::shell::own_shell;

/// Whether the name is taken; an error unless IF NOT EXISTS, which makes it a notice.
pub fn relation_exists(ddl: &Ddl<'_>, namespace: Oid, name: &str, if_not_exists: bool) -> Result<bool> {
    if ddl.catalog().relation_by_name(namespace, name).is_none() {
        return Ok(false);
    }
    if if_not_exists {
        ddl.session().notice(
            err!(DUPLICATE_TABLE, "relation \"{name}\" already exists, skipping").severity(melba_types::Severity::Notice),
        );
        return Ok(true);
    }
    bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists")
}

/// A column with the defaults of its type.
pub fn new_column(ddl: &Ddl<'_>, name: &str, ty: Oid, typmod: i32) -> Result<Column> {
    let catalog = ddl.catalog();
    let t = catalog.type_(ty).ok_or_else(|| DbError::internal(format!("type {ty} is missing")))?;
    if t.type_kind == TypeKind::Pseudo {
        bail!(INVALID_TABLE_DEFINITION, "column \"{name}\" has pseudo-type {}", catalog.type_name(ty, ddl.path()));
    }
    ddl.require_type(ty)?;
    Ok(Column { typmod, ..Column::of_type(clip(name, NAME_BYTES_MAX), t) })
}

/// A pg_class entry with everything optional left out.
pub fn bare_relation(
    ddl: &Ddl<'_>,
    namespace: Oid,
    name: &str,
    kind: RelationKind,
    persistence: Persistence,
    columns: Vec<Column>,
) -> Relation {
    let oid = ddl.tx().new_oid();
    let acl = match kind {
        RelationKind::Sequence => initial_acl(&ddl.catalog(), AclKind::Sequence, ddl.user(), namespace),
        RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Composite => None,
        _ => initial_acl(&ddl.catalog(), AclKind::Table, ddl.user(), namespace),
    };
    Relation {
        kind,
        persistence,
        columns: columns.into(),
        acl,
        ..Relation::new(oid, clip(name, NAME_BYTES_MAX), namespace, ddl.user())
    }
}

/// Records a relation together with its composite row type and the array over it.
pub fn put_relation_with_row_type(ddl: &Ddl<'_>, mut relation: Relation) -> Result<()> {
    let catalog = ddl.catalog();
    let shell = own_shell(ddl, relation.namespace, &relation.name)?;
    if shell.is_none() && !free_type_name(ddl, relation.namespace, &relation.name)? {
        return Err(err!(DUPLICATE_OBJECT, "type \"{}\" already exists", relation.name).hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any \
             existing type.",
        ));
    }
    let mut row_type = shell.unwrap_or_else(|| ddl.tx().new_oid());
    if relation.kind == RelationKind::Composite && shell.is_none() {
        // Here the relation is a part of the type, and comes after it.
        std::mem::swap(&mut relation.oid, &mut row_type);
        relation.file_node = relation.oid;
    }
    relation.row_type = row_type;
    let array = put_array_type(ddl, &relation.name, relation.namespace, row_type, b'd')?;
    let acl = match relation.kind {
        RelationKind::Composite => initial_acl(&catalog, AclKind::Type, ddl.user(), relation.namespace),
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
        ..bare_type(ddl, relation.namespace)
    };
    ddl.tx().put(Object::Type(Arc::new(row)));
    ddl.tx().put(Object::Relation(Arc::new(relation)));
    Ok(())
}

pub fn type_storage(ddl: &Ddl<'_>, ty: Oid) -> u8 {
    ddl.catalog().type_(ty).map_or(b'p', |t| t.storage)
}

pub fn put_relation(ddl: &Ddl<'_>, relation: Relation) {
    ddl.tx().put(Object::Relation(Arc::new(relation)));
}

/// A table was counted: pg_class shows its size and that of its indexes, whatever an UPDATE has stated.
///
/// # Errors
/// Those of a wait for a lock.
pub fn forget_stated_sizes(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    for oid in std::iter::once(&table.oid).chain(&table.indexes) {
        if catalog.relation(*oid).is_some_and(|relation| relation.stated.is_some()) {
            ddl.lock_relation(*oid, RelationLockMode::ShareUpdateExclusive)?;
            put_relation(ddl, Relation { stated: None, ..(*ddl.relation(*oid)?).clone() });
        }
    }
    Ok(())
}
