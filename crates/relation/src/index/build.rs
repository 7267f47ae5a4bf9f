//! Creates an index and fills it.

use std::sync::Arc;

use melba_catalog::{Catalog, IndexInfo, IndexKey, OperatorClass, Relation, RelationKind, Storage, classes};
use melba_definition::context::Ddl;
use melba_fmgr::GinColumn;
use melba_fmgr::order::{equality_collation, is_pattern_family, ordered_by_function};
use melba_types::{DbError, Oid, Result, bail, err, oids};

use crate::index::fill::fill_index;
use crate::index::request::{AccessMethod, IndexRequest, KEYS_MAX, KeyRequest, index_column_names, no_default_class};
use crate::partition::index::check_partitioned_key;
use crate::table::persistence::engine_persistence;
use crate::table::relation::{bare_relation, forget_stated_sizes, new_column, put_relation};
use crate::table::rows::check_no_nulls;

fn check_request(ddl: &Ddl<'_>, relation: &Relation, request: &IndexRequest) -> Result<()> {
    check_partitioned_key(relation, request)?;
    if request.keys.len() + request.include.len() > KEYS_MAX {
        bail!(TOO_MANY_COLUMNS, "cannot use more than {KEYS_MAX} columns in an index");
    }
    if ddl.catalog().relation_by_name(relation.namespace, &request.name).is_some() {
        bail!(DUPLICATE_TABLE, "relation \"{}\" already exists", request.name);
    }
    Ok(())
}

/// Creates the index and fills it from the table's rows. Returns its OID.
pub fn build_index(ddl: &Ddl<'_>, relation: &Relation, request: IndexRequest) -> Result<Oid> {
    let table_tree = match relation.storage {
        Storage::Tree(tree) => Some(tree),
        _ if relation.is_partitioned() => None,
        _ => return Err(DbError::internal("index on a relation without storage")),
    };
    check_request(ddl, relation, &request)?;
    let names = index_column_names(relation, &request.keys, &request.include);
    let mut columns = Vec::new();
    let mut keys = Vec::new();
    for (key, name) in request.keys.iter().zip(&names) {
        let key = resolve_key(ddl, relation, key, request.method)?;
        columns.push(new_column(ddl, name, column_type(ddl, &key), column_typmod(ddl, relation, &key))?);
        keys.push(key);
    }
    let has_order = has_key_order(ddl, &request, &keys)?;
    for (number, name) in request.include.iter().zip(names.iter().skip(keys.len())) {
        let included = &relation.columns[*number as usize - 1];
        columns.push(new_column(ddl, name, included.ty, included.typmod)?);
    }
    if request.primary {
        for key in &keys {
            check_no_nulls(ddl, relation.oid, key.column as usize - 1)?;
        }
    }
    let info = IndexInfo {
        table: relation.oid,
        keys,
        include: request.include,
        unique: request.unique,
        primary: request.primary,
        nulls_not_distinct: request.nulls_not_distinct,
        valid: true,
        clustered: false,
        replica_identity: false,
        predicate: request.predicate,
        constraint: request.constraint,
        deferrable: request.deferrable,
    };
    if info.is_inverted(request.method.oid) {
        // Partitioned tables have no tree that would be filled.
        GinColumn::of_index(&ddl.catalog(), &info)?;
    }
    let (kind, storage) = match table_tree {
        Some(_) if request.method.oid == classes::BRIN || !has_order => (RelationKind::Index, Storage::None),
        Some(tree) => {
            let tree = ddl.tx().engine.create_index_tree(tree, engine_persistence(relation.persistence))?;
            (RelationKind::Index, Storage::Tree(tree))
        }
        None => (RelationKind::PartitionedIndex, Storage::None),
    };
    let index = Relation {
        storage,
        index: Some(Arc::new(info)),
        owner: relation.owner,
        access_method: request.method.oid,
        options: request.options,
        depends_on: request.depends_on,
        ..bare_relation(ddl, relation.namespace, &request.name, kind, relation.persistence, columns)
    };
    let oid = index.oid;
    put_relation(ddl, index);
    if table_tree.is_some() {
        fill_index(ddl, oid, request.concurrently)?;
        // Building it has counted the table's rows.
        forget_stated_sizes(ddl, relation)?;
    }
    Ok(oid)
}

/// Whether keys have the order of an index's classes. An index without that order has no entries, and is never used.
///
/// # Errors
/// 0A000 where such an index would have to find equal values.
fn has_key_order(ddl: &Ddl<'_>, request: &IndexRequest, keys: &[IndexKey]) -> Result<bool> {
    let catalog = ddl.catalog();
    for key in keys {
        let Some(class) = catalog.access_methods().class(key.opclass) else { continue };
        let is_kept = matches!(class.method, classes::BTREE | classes::HASH);
        match require_key_order(&catalog, class, key.ty) {
            Ok(()) => {}
            Err(_) if is_kept && catalog.keys_may_have_order(class, key.ty) => {}
            Err(_) if is_kept && !request.unique && !request.primary && !request.constraint.is_valid() => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// The type of an index's column: of a GIN index, that of the keys of its values; of a hash index, that of PostgreSQL's hash codes.
pub fn column_type(ddl: &Ddl<'_>, key: &IndexKey) -> Oid {
    let catalog = ddl.catalog();
    let class = catalog.access_methods().class(key.opclass);
    match class.filter(|class| class.method == classes::GIN).map(|class| (class.key_type, class.input_type)) {
        None if class.is_some_and(|class| class.method == classes::HASH) => oids::INT4,
        Some((oids::ANYELEMENT, oids::ANYARRAY)) => catalog.array_element(catalog.base_type(key.ty)).unwrap_or(key.ty),
        Some((kept, _)) if kept.is_valid() => kept,
        _ => key.ty,
    }
}

/// The type modifier of an index's column: that of the table's column where it has its type.
pub fn column_typmod(ddl: &Ddl<'_>, table: &Relation, key: &IndexKey) -> i32 {
    let column = usize::try_from(key.column - 1).ok().and_then(|at| table.columns.get(at));
    column.filter(|column| column.ty == column_type(ddl, key)).map_or(-1, |column| column.typmod)
}

/// An operator class that a statement names, for a type.
///
/// # Errors
/// 42804 when it is for another type.
pub fn accepting_class(ddl: &Ddl<'_>, opclass: Oid, ty: Oid) -> Result<Oid> {
    let catalog = ddl.catalog();
    if let Some(class) = catalog.access_methods().class(opclass)
        && !catalog.is_binary_coercible(ty, class.input_type)
    {
        let name = catalog.type_name(ty, ddl.path());
        bail!(DATATYPE_MISMATCH, "operator class \"{}\" does not accept data type {name}", class.name);
    }
    Ok(opclass)
}

/// # Errors
/// 0A000 for an operator class that compares bytes, by a collation that has different texts equal.
fn refuse_pattern_class(catalog: &Catalog, opclass: Oid, collation: Oid) -> Result<()> {
    let class = catalog.access_methods().class(opclass);
    match class.filter(|class| class.method == classes::BTREE && is_pattern_family(class.family)) {
        Some(class) if equality_collation(catalog, collation).is_valid() => {
            bail!(FEATURE_NOT_SUPPORTED, "nondeterministic collations are not supported for operator class \"{}\"", class.name)
        }
        _ => Ok(()),
    }
}

/// # Errors
/// 0A000 for a class of users whose order keys do not have.
pub fn require_key_order(catalog: &Catalog, class: &OperatorClass, ty: Oid) -> Result<()> {
    let has_keys = matches!(class.method, classes::BTREE | classes::HASH);
    if let Some(class) = catalog.ordering_function(ty) {
        return Err(ordered_by_function(&class));
    }
    if has_keys && !catalog.keys_have_order(class, ty)
        || !has_keys && class.oid >= Oid(classes::FIRST_USER_OID) && class.oid < Oid(classes::FIRST_EXTENSION_OID)
    {
        return Err(ordered_by_function(class));
    }
    Ok(())
}

pub fn resolve_key(ddl: &Ddl<'_>, relation: &Relation, key: &KeyRequest, method: AccessMethod) -> Result<IndexKey> {
    let catalog = ddl.catalog();
    let (ty, collation) = match &key.expression {
        Some((_, ty, collation)) => (*ty, *collation),
        None => {
            let column = &relation.columns[key.column as usize - 1];
            if column.generated == b'v' {
                bail!(FEATURE_NOT_SUPPORTED, "indexes on virtual generated columns are not supported");
            }
            (column.ty, column.collation)
        }
    };
    let opclass = match key.opclass {
        Some(opclass) => accepting_class(ddl, opclass, ty)?,
        None => {
            let class = catalog.default_operator_class(method.oid, ty).map(|c| c.oid);
            class.ok_or_else(|| no_default_class(ddl, ty, method.name))?
        }
    };
    let collation_of_key = key.collation.unwrap_or(collation);
    let is_collatable = catalog.type_(ty).is_some_and(|t| t.collation.is_valid());
    if is_collatable && !collation_of_key.is_valid() {
        return Err(err!(INDETERMINATE_COLLATION, "could not determine which collation to use for index expression")
            .hint("Use the COLLATE clause to set the collation explicitly."));
    }
    refuse_pattern_class(&catalog, opclass, collation_of_key)?;
    Ok(IndexKey {
        column: key.column,
        expression: key.expression.as_ref().map(|e| e.0.clone()),
        ty,
        collation: collation_of_key,
        natural_collation: collation,
        opclass,
        descending: key.descending,
        nulls_first: key.nulls_first,
    })
}
