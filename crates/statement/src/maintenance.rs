//! CHECKPOINT, REINDEX and CLUSTER. Segments are merged in the background, so the last two have nothing to rebuild: only
//! privileges, targets and locks remain.

use melba_catalog::{Relation, RelationKind, Storage, acl, classes};
use melba_definition::lookup::Lookup;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{option_bool, option_text, options};
use melba_relation::index::marks::cluster_on;
use melba_tree::permissions::denied;
use melba_types::{Result, SqlState, bail, err};
use pg_query::protobuf::{CheckPointStmt, ClusterStmt, RangeVar, ReindexObjectType, ReindexStmt};

use super::ddl_context::Utility;
use super::vacuum::everything;

/// CHECKPOINT: when it returns, recovery would find everything committed before it in segments.
pub(super) fn checkpoint(utility: &Utility<'_>, _: &CheckPointStmt) -> Result<()> {
    let lookup = &utility.lookup;
    if !lookup.has_privileges_of(classes::PG_CHECKPOINT) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to execute CHECKPOINT command")
            .detail("Only roles with privileges of the \"pg_checkpoint\" role may execute this command."));
    }
    lookup.tx().cluster().engine.checkpoint()?;
    Ok(())
}

/// Whether REINDEX has CONCURRENTLY.
fn is_concurrent(s: &ReindexStmt) -> Result<bool> {
    let mut concurrently = false;
    for def in options(&s.params) {
        match def.defname.as_str() {
            "concurrently" => concurrently = option_bool(def)?,
            "verbose" => drop(option_bool(def)?),
            "tablespace" => match option_text(def).as_deref() {
                None | Some("" | "pg_default") => {}
                Some(name) => bail!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist"),
            },
            name => return Err(err!(SYNTAX_ERROR, "unrecognized REINDEX option \"{name}\"").at(def.location)),
        }
    }
    Ok(concurrently)
}

pub(super) fn reindex(utility: &Utility<'_>, s: &ReindexStmt) -> Result<()> {
    let lookup = &utility.lookup;
    use ReindexObjectType::*;
    let concurrently = is_concurrent(s)?;
    match s.kind() {
        ReindexObjectIndex => reindex_index(lookup, name_of(s.relation.as_ref())?, concurrently)?,
        ReindexObjectTable => reindex_table(lookup, name_of(s.relation.as_ref())?, concurrently)?,
        ReindexObjectSchema => {
            let namespace = lookup.namespace(&s.name)?;
            lookup.require_owner(namespace.owner, "schema", &s.name)?;
            reindex_all(lookup, concurrently, |r| r.namespace == namespace.oid)?;
        }
        kind => {
            let catalog = lookup.catalog();
            let Some(database) = catalog.database(lookup.tx().database) else { return Ok(()) };
            if !s.name.is_empty() && s.name != *database.name {
                bail!(FEATURE_NOT_SUPPORTED, "can only reindex the currently open database");
            }
            lookup.require_owner(database.owner, "database", &database.name)?;
            if kind == ReindexObjectSystem && concurrently {
                bail!(FEATURE_NOT_SUPPORTED, "cannot reindex system catalogs concurrently");
            }
            if kind != ReindexObjectSystem {
                reindex_all(lookup, concurrently, |_| true)?;
            }
        }
    }
    Ok(())
}

fn name_of(name: Option<&RangeVar>) -> Result<&RangeVar> {
    name.ok_or_else(|| err!(INTERNAL_ERROR, "the statement names no relation"))
}

/// The locks on a table and on its indexes.
fn modes(concurrently: bool) -> (RelationLockMode, RelationLockMode) {
    match concurrently {
        true => (RelationLockMode::ShareUpdateExclusive, RelationLockMode::ShareUpdateExclusive),
        false => (RelationLockMode::Share, RelationLockMode::AccessExclusive),
    }
}

fn may_maintain(lookup: &Lookup<'_>, table: &Relation) -> bool {
    lookup.catalog().has_relation_privileges(lookup.user(), table, acl::MAINTAIN)
}

fn refuse_system(relation: &Relation, concurrently: bool) -> Result<()> {
    if concurrently && relation.oid.0 < classes::FIRST_USER_OID {
        bail!(FEATURE_NOT_SUPPORTED, "cannot reindex system catalogs concurrently");
    }
    Ok(())
}

fn reindex_index(lookup: &Lookup<'_>, name: &RangeVar, concurrently: bool) -> Result<()> {
    let index = lookup.find_relation(name)?.ok_or_else(|| lookup.undefined_relation(name))?;
    let Some(info) = &index.index else { bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", index.name) };
    let table = lookup.relation(info.table)?;
    if !may_maintain(lookup, &table) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for index {}", index.name);
    }
    refuse_system(&index, concurrently)?;
    let (of_table, of_index) = modes(concurrently);
    lookup.lock_relation(table.oid, of_table)?;
    lookup.open_relation(name, of_index).map(drop)
}

fn reindex_table(lookup: &Lookup<'_>, name: &RangeVar, concurrently: bool) -> Result<()> {
    let table = maintained(lookup, name)?;
    refuse_system(&table, concurrently)?;
    lookup.open_relation(name, modes(concurrently).0)?;
    let catalog = lookup.catalog();
    let members = catalog.descendants(table.oid);
    let members: Vec<&Relation> = match table.is_partitioned() {
        true => members.iter().filter_map(|oid| Some(&**catalog.relation(*oid)?)).collect(),
        false => vec![&table],
    };
    if !table.is_partitioned() && table.indexes.is_empty() {
        let message = match concurrently {
            true => "has no indexes that can be reindexed concurrently",
            false => "has no indexes to reindex",
        };
        lookup.notice(format!("table \"{}\" {message}", table.name));
    }
    members.into_iter().try_for_each(|member| lock_indexes(lookup, member, concurrently))
}

/// A table that the user may rebuild.
fn maintained(lookup: &Lookup<'_>, name: &RangeVar) -> Result<std::sync::Arc<Relation>> {
    let table = lookup.find_relation(name)?.ok_or_else(|| lookup.undefined_relation(name))?;
    let tables = [RelationKind::Table, RelationKind::MaterializedView, RelationKind::PartitionedTable, RelationKind::Toast];
    if !tables.contains(&table.kind) {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table or materialized view", table.name);
    }
    if may_maintain(lookup, &table) { Ok(table) } else { Err(denied(&table)) }
}

fn lock_indexes(lookup: &Lookup<'_>, table: &Relation, concurrently: bool) -> Result<()> {
    // System relations are views of the catalog, which has separate locks.
    if matches!(table.storage, Storage::System(_)) {
        return Ok(());
    }
    let (of_table, of_index) = modes(concurrently);
    lookup.lock_relation(table.oid, of_table)?;
    table.indexes.iter().try_for_each(|index| lookup.lock_relation(*index, of_index))
}

fn reindex_all(lookup: &Lookup<'_>, concurrently: bool, wanted: impl Fn(&Relation) -> bool) -> Result<()> {
    let mut tables = everything(lookup).into_iter().filter(|table| wanted(table) && may_maintain(lookup, table));
    tables.try_for_each(|table| lock_indexes(lookup, &table, concurrently))
}

/// CLUSTER: rows are kept in the order of insertion; there is no other order.
pub(super) fn cluster(utility: &Utility<'_>, s: &ClusterStmt) -> Result<()> {
    let lookup = &utility.lookup;
    for def in options(&s.params) {
        match def.defname.as_str() {
            "verbose" => drop(option_bool(def)?),
            name => return Err(err!(SYNTAX_ERROR, "unrecognized CLUSTER option \"{name}\"").at(def.location)),
        }
    }
    let Some(name) = &s.relation else {
        cluster_all(lookup)?;
        return Ok(());
    };
    maintained(lookup, name)?;
    let table = lookup.open_target(name)?;
    match s.indexname.as_str() {
        "" if !is_clustered(lookup, &table) => {
            bail!(UNDEFINED_OBJECT, "there is no previously clustered index for table \"{}\"", table.name)
        }
        "" => {}
        index => cluster_on(&utility.ddl(), &table, Some(index))?,
    }
    for index in &table.indexes {
        lookup.lock_relation(*index, RelationLockMode::AccessExclusive)?;
    }
    Ok(())
}

fn is_clustered(lookup: &Lookup<'_>, table: &Relation) -> bool {
    let catalog = lookup.catalog();
    let mut indexes = table.indexes.iter().filter_map(|oid| catalog.relation(*oid));
    indexes.any(|index| index.index.as_ref().is_some_and(|i| i.clustered))
}

/// Every table with a marked index, of those that are the user's to rebuild.
fn cluster_all(lookup: &Lookup<'_>) -> Result<()> {
    let catalog = lookup.catalog();
    let mut tables: Vec<_> = catalog.user_relations().filter(|r| is_clustered(lookup, r)).collect();
    tables.sort_by_key(|r| r.oid);
    for table in tables {
        if may_maintain(lookup, table) {
            lookup.lock_relation(table.oid, RelationLockMode::AccessExclusive)?;
        } else {
            let message = format!("permission denied to cluster \"{}\", skipping it", table.name);
            lookup.warning(SqlState::WARNING, message);
        }
    }
    Ok(())
}
