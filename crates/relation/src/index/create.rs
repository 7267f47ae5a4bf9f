//! CREATE INDEX and the indexes behind PRIMARY KEY and UNIQUE.

use std::sync::Arc;

use melba_catalog::{IndexInfo, ObjectAddress, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, stored_expression};
use melba_definition::naming::{column_part, unused_relation_name};
use melba_definition::words::plural;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::Node;
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{IndexElem, IndexStmt, SortByDir, SortByNulls};

use crate::constraint::row::column_numbers;
use crate::index::build::{build_index, resolve_key};
use crate::index::request::{AccessMethod, IndexRequest, KeyRequest, index_column_names};
use crate::operator_class::named_class;
use crate::partition::index::index_partitions;
use crate::table::relation::{put_relation, relation_exists};
use crate::table::truncate::refuse_pending_events;

/// CONCURRENTLY keeps writers out only at its end (`catch_up`).
pub fn lock_of(s: &IndexStmt) -> RelationLockMode {
    if s.concurrent { RelationLockMode::ShareUpdateExclusive } else { RelationLockMode::Share }
}

pub fn create_index(ddl: &Ddl<'_>, s: &IndexStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE INDEX without a table"))?;
    let relation = ddl.open_target(name)?;
    let kinds = [RelationKind::Table, RelationKind::MaterializedView, RelationKind::PartitionedTable];
    if !kinds.contains(&relation.kind) {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot create index on relation \"{}\"", relation.name)
            .detail(format!("This operation is not supported for {}.", plural(relation.kind))));
    }
    ddl.require_own_relation(&relation)?;
    refuse_pending_events(ddl, &relation, "CREATE INDEX")?;
    let method = access_method(ddl, s)?;
    if !s.table_space.is_empty() && s.table_space != "pg_default" {
        bail!(UNDEFINED_OBJECT, "tablespace \"{}\" does not exist", s.table_space);
    }
    let options = method.parameters().new_list(&s.options)?;
    let mut depends_on = Vec::new();
    let keys = key_requests(ddl, &relation, s, method, &mut depends_on)?;
    let mut include = Vec::new();
    for element in &s.index_including_params {
        if let N::IndexElem(element) = inner(element)? {
            if element.expr.is_some() {
                bail!(FEATURE_NOT_SUPPORTED, "expressions are not supported in included columns");
            }
            let found = column_numbers(&relation, &[&element.name], false);
            include.extend(found.map_err(|_| err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", element.name))?);
        }
    }
    let predicate = match s.where_clause.as_deref() {
        Some(node) => Some(index_predicate(ddl, node, &relation, &mut depends_on)?),
        None => None,
    };
    let index_name = if s.idxname.is_empty() {
        index_name(ddl, &relation, &keys, &include, "idx")
    } else {
        if relation_exists(ddl, relation.namespace, &s.idxname, s.if_not_exists)? {
            return Ok(());
        }
        s.idxname.clone()
    };
    let request = IndexRequest {
        keys,
        include,
        unique: s.unique,
        nulls_not_distinct: s.nulls_not_distinct,
        predicate,
        options,
        method,
        depends_on,
        concurrently: s.concurrent,
        ..IndexRequest::named(index_name)
    };
    if relation.is_partitioned() && s.concurrent {
        bail!(FEATURE_NOT_SUPPORTED, "cannot create index on partitioned table \"{}\" concurrently", relation.name);
    }
    let index = build_index(ddl, &relation, request)?;
    if name.inh {
        return index_partitions(ddl, index);
    }
    invalidate_partitioned_index(ddl, index)
}

/// ON ONLY: partitions must have their own.
pub fn invalidate_partitioned_index(ddl: &Ddl<'_>, index: Oid) -> Result<()> {
    let relation = ddl.relation(index)?;
    let Some(info) = &relation.index else { return Ok(()) };
    if ddl.relation(info.table)?.is_partitioned() && ddl.catalog().has_children(info.table) {
        let info = Arc::new(IndexInfo { valid: false, ..(**info).clone() });
        put_relation(ddl, Relation { index: Some(info), ..(*relation).clone() });
    }
    Ok(())
}

/// The access method that a statement names.
///
/// # Errors
/// 42704 for an unknown one, 0A000 for what it cannot do.
fn access_method(ddl: &Ddl<'_>, s: &IndexStmt) -> Result<AccessMethod> {
    let method = AccessMethod::of(&ddl.catalog(), &s.access_method)?;
    if method.name == "spgist" {
        return Err(DbError::unsupported(format!("access method \"{}\"", method.name)));
    }
    method.check_index(s)?;
    Ok(method)
}

fn key_requests(
    ddl: &Ddl<'_>,
    relation: &Relation,
    s: &IndexStmt,
    method: AccessMethod,
    depends_on: &mut Vec<ObjectAddress>,
) -> Result<Vec<KeyRequest>> {
    let mut keys = Vec::new();
    for element in &s.index_params {
        if let N::IndexElem(element) = inner(element)? {
            let key = key_request(ddl, relation, element, method, depends_on)?;
            // The operator class is checked before the options.
            resolve_key(ddl, relation, &key, method)?;
            if !method.is_ordered() && element.ordering() != SortByDir::SortbyDefault {
                bail!(FEATURE_NOT_SUPPORTED, "access method \"{}\" does not support ASC/DESC options", method.name);
            }
            if !method.is_ordered() && element.nulls_ordering() != SortByNulls::SortbyNullsDefault {
                bail!(FEATURE_NOT_SUPPORTED, "access method \"{}\" does not support NULLS FIRST/LAST options", method.name);
            }
            keys.push(key);
        }
    }
    Ok(keys)
}

pub fn key_request(
    ddl: &Ddl<'_>,
    relation: &Relation,
    element: &IndexElem,
    method: AccessMethod,
    depends_on: &mut Vec<ObjectAddress>,
) -> Result<KeyRequest> {
    let mut key = KeyRequest::column(0);
    // COLLATE around the expression is the key's.
    let (mut expression, mut own_collation) = (element.expr.as_deref(), None);
    while let Some(N::CollateClause(clause)) = expression.and_then(|node| node.node.as_ref()) {
        own_collation.get_or_insert(&clause.collname);
        expression = clause.arg.as_deref();
    }
    match expression {
        None => {
            key.column = column_numbers(relation, &[&element.name], false)
                .map_err(|e| DbError::new(e.sqlstate(), format!("column \"{}\" does not exist", element.name)))?[0]
        }
        Some(node) => {
            let stored = stored_expression(ddl, node, relation, Use::IndexExpression, None)?;
            depends_on.extend(column_addresses(relation, &stored.columns));
            depends_on.extend(stored.depends_on);
            key.name = melba_analyze::suggested_name(node);
            match stored.column_only {
                // (a) is the column itself.
                Some(column) => key.column = column,
                None => key.expression = Some((stored.text, stored.ty, stored.collation)),
            }
        }
    }
    let collation = if element.collation.is_empty() { own_collation } else { Some(&element.collation) };
    if let Some(collation) = collation {
        let ty = match &key.expression {
            Some((_, ty, _)) => *ty,
            None => relation.columns[key.column as usize - 1].ty,
        };
        key.collation = Some(ddl.collation(&strings(collation), ty, -1)?);
    }
    if !element.opclass.is_empty() {
        let name = strings(&element.opclass);
        key.opclass = Some(named_class(ddl, &name, method)?.oid);
        if !element.opclassopts.is_empty() && matches!(method.name, "gist" | "brin") {
            return Err(DbError::unsupported(format!("options of an operator class of {}", method.name)));
        }
        if !element.opclassopts.is_empty() {
            bail!(INVALID_PARAMETER_VALUE, "operator class {} has no options", name.join("."));
        }
    }
    key.descending = element.ordering() == SortByDir::SortbyDesc;
    key.nulls_first = match element.nulls_ordering() {
        SortByNulls::SortbyNullsFirst => true,
        SortByNulls::SortbyNullsLast => false,
        _ => key.descending,
    };
    Ok(key)
}

/// The predicate of a partial index as the catalog keeps it.
pub fn index_predicate(ddl: &Ddl<'_>, node: &Node, relation: &Relation, depends_on: &mut Vec<ObjectAddress>) -> Result<Arc<str>> {
    let stored = stored_expression(ddl, node, relation, Use::IndexPredicate, None)?;
    depends_on.extend(column_addresses(relation, &stored.columns));
    depends_on.extend(stored.depends_on);
    Ok(stored.text)
}

pub fn index_name(ddl: &Ddl<'_>, relation: &Relation, keys: &[KeyRequest], include: &[i16], label: &str) -> String {
    let names: Vec<String> = index_column_names(relation, keys, include);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    unused_relation_name(&ddl.catalog(), relation.namespace, &relation.name, Some(&column_part(&names)), label)
}

/// Columns that an expression or predicate reads: the index is dropped with them.
fn column_addresses(relation: &Relation, columns: &[i16]) -> impl Iterator<Item = ObjectAddress> {
    columns.iter().map(|number| ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: i32::from(*number) })
}
