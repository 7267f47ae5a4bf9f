//! Marks on a table's indexes: CLUSTER ON and REPLICA IDENTITY. Neither changes how Melba works, but tools read them.

use std::sync::Arc;

use melba_catalog::{IndexInfo, Relation, classes};
use melba_definition::context::Ddl;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::ReplicaIdentityStmt;

use crate::table::relation::put_relation;

/// CLUSTER ON an index, or SET WITHOUT CLUSTER.
pub fn cluster_on(ddl: &Ddl<'_>, table: &Relation, index: Option<&str>) -> Result<()> {
    let chosen = index.map(|name| index_of(ddl, table, name)).transpose()?;
    if let Some(index) = &chosen
        && [classes::GIN, classes::HASH, classes::BRIN].contains(&index.access_method)
    {
        let name = &index.name;
        bail!(FEATURE_NOT_SUPPORTED, "cannot cluster on index \"{name}\" because access method does not support clustering");
    }
    if let Some(index) = &chosen
        && index.index.as_ref().is_some_and(|i| i.predicate.is_some())
    {
        bail!(FEATURE_NOT_SUPPORTED, "cannot cluster on partial index \"{}\"", index.name);
    }
    let chosen = chosen.map(|index| index.oid);
    mark_indexes(ddl, table, |oid, info| IndexInfo { clustered: chosen == Some(oid), ..info.clone() })
}

pub fn set_replica_identity(ddl: &Ddl<'_>, table: &Relation, s: &ReplicaIdentityStmt) -> Result<()> {
    let letter = s.identity_type.bytes().next().unwrap_or(b'd');
    let chosen = match letter {
        b'i' => Some(replica_index(ddl, table, &s.name)?),
        _ => None,
    };
    put_relation(ddl, Relation { replica_identity: letter, ..table.clone() });
    mark_indexes(ddl, table, |oid, info| IndexInfo { replica_identity: chosen == Some(oid), ..info.clone() })
}

/// The index by name, if it identifies every row.
fn replica_index(ddl: &Ddl<'_>, table: &Relation, name: &str) -> Result<Oid> {
    let index = index_of(ddl, table, name)?;
    let Some(info) = &index.index else { return Ok(index.oid) };
    let why = match info {
        i if !i.unique => Some("non-unique"),
        i if i.deferrable => Some("non-immediate"),
        i if i.keys.iter().any(|k| k.column == 0) => Some("expression"),
        i if i.predicate.is_some() => Some("partial"),
        _ => None,
    };
    if let Some(why) = why {
        bail!(WRONG_OBJECT_TYPE, "cannot use {why} index \"{name}\" as replica identity");
    }
    let columns = info.keys.iter().map(|k| &table.columns[k.column as usize - 1]);
    if let Some(column) = columns.into_iter().find(|c| !c.not_null) {
        bail!(
            WRONG_OBJECT_TYPE,
            "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
            column.name
        );
    }
    Ok(index.oid)
}

fn index_of(ddl: &Ddl<'_>, table: &Relation, name: &str) -> Result<Arc<Relation>> {
    let catalog = ddl.catalog();
    let found = table.indexes.iter().filter_map(|oid| catalog.relation(*oid)).find(|i| *i.name == *name);
    if let (None, Some(other)) = (found, catalog.relation_by_name(table.namespace, name)) {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index for table \"{}\"", other.name, table.name);
    }
    found.cloned().ok_or_else(|| err!(UNDEFINED_OBJECT, "index \"{name}\" for table \"{}\" does not exist", table.name))
}

fn mark_indexes(ddl: &Ddl<'_>, table: &Relation, marked: impl Fn(Oid, &IndexInfo) -> IndexInfo) -> Result<()> {
    let catalog = ddl.catalog();
    for index in table.indexes.iter().filter_map(|oid| catalog.relation(*oid)) {
        if let Some(info) = &index.index {
            put_relation(ddl, Relation { index: Some(Arc::new(marked(index.oid, info))), ..(**index).clone() });
        }
    }
    Ok(())
}
