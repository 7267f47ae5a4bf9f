//! ALTER TABLE ... SET LOGGED, SET UNLOGGED and SET ACCESS METHOD.

use std::sync::Arc;

use melba_catalog::{Persistence, Relation, RelationKind, Storage};
use melba_definition::context::{Ddl, RewriteReason};
use melba_engine::SequenceId;
use melba_types::{DbError, Oid, Result, TreeId, bail};

use crate::sequence::{new_sequence_storage, owned_sequence};
use crate::table::alter_kind::refused_for_kind;
use crate::table::persistence::{default_access_method, is_memory, may_reference, word};
use crate::table::relation::put_relation;
use crate::table::rewrite::rebuild;
use crate::table::rows::table_target;

/// SET LOGGED, SET UNLOGGED of a table or a sequence.
pub fn set_logged(ddl: &Ddl<'_>, relation: &Relation, persistence: Persistence) -> Result<()> {
    if !matches!(relation.kind, RelationKind::Table | RelationKind::Sequence) {
        let action = if persistence == Persistence::Permanent { "SET LOGGED" } else { "SET UNLOGGED" };
        return Err(refused_for_kind(action, relation));
    }
    match relation.persistence {
        Persistence::Temporary => {
            let name = &relation.name;
            bail!(INVALID_TABLE_DEFINITION, "cannot change logged status of table \"{name}\" because it is temporary")
        }
        Persistence::Memory => Err(DbError::unsupported("SET LOGGED or UNLOGGED for access method \"memory\"")),
        Persistence::Permanent | Persistence::Unlogged => set_persistence(ddl, relation, persistence),
    }
}

/// SET ACCESS METHOD; an empty name is DEFAULT.
pub fn set_access_method(ddl: &Ddl<'_>, relation: &Relation, name: &str) -> Result<()> {
    let name = if name.is_empty() { default_access_method(ddl) } else { name.to_owned() };
    let memory = is_memory(ddl, &name)?;
    if !matches!(relation.kind, RelationKind::Table | RelationKind::MaterializedView) {
        return Err(refused_for_kind("SET ACCESS METHOD", relation));
    }
    match (relation.persistence, memory) {
        (Persistence::Memory, false) => set_persistence(ddl, relation, Persistence::Permanent),
        (Persistence::Permanent, true) => set_persistence(ddl, relation, Persistence::Memory),
        (Persistence::Unlogged, true) => Err(DbError::unsupported("access method \"memory\" for an unlogged table")),
        (Persistence::Temporary, true) => Err(DbError::unsupported("access method \"memory\" for a temporary table")),
        _ => Ok(()),
    }
}

fn set_persistence(ddl: &Ddl<'_>, relation: &Relation, persistence: Persistence) -> Result<()> {
    if relation.persistence == persistence {
        return Ok(());
    }
    match relation.kind {
        RelationKind::Sequence => return move_sequence(ddl, relation, persistence),
        RelationKind::Table => {}
        _ => return Err(DbError::unsupported("changing the access method of a materialized view")),
    }
    let has_cold_store = relation.options.iter().any(|option| option.starts_with("cold_store="));
    if has_cold_store && persistence != Persistence::Permanent {
        return Err(DbError::unsupported("cold_store of tables that are not permanent"));
    }
    check_persistence_references(ddl, relation, persistence)?;
    ddl.rewriting(relation.oid, RewriteReason::Persistence)?;
    let before = table_target(ddl, relation.oid)?;
    rebuild(ddl, &before, relation.columns.to_vec(), persistence, &[])?;
    for column in relation.columns.iter().filter(|c| !c.dropped) {
        if let Some(sequence) = owned_sequence(ddl, relation, &column.name) {
            move_sequence(ddl, &sequence, persistence)?;
        }
    }
    Ok(())
}

/// Moves a sequence to new storage with the same state.
fn move_sequence(ddl: &Ddl<'_>, relation: &Relation, persistence: Persistence) -> Result<()> {
    let (Some(info), Storage::Sequence(old)) = (&relation.sequence, &relation.storage) else {
        return Err(DbError::internal("sequence without definition"));
    };
    let old = SequenceId(old.0);
    let state = ddl.tx().engine.sequence_state(old)?;
    let storage = new_sequence_storage(ddl, info, state, persistence)?;
    ddl.tx().engine.drop_sequence(old)?;
    put_relation(ddl, Relation { storage: Storage::Sequence(TreeId(storage.0)), persistence, ..relation.clone() });
    Ok(())
}

fn check_persistence_references(ddl: &Ddl<'_>, relation: &Relation, persistence: Persistence) -> Result<()> {
    let catalog = ddl.catalog();
    let find = |oid: Oid| catalog.relation(oid).filter(|r| r.oid != relation.oid).cloned();
    let own = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)?.foreign_key.as_ref());
    let referenced: Vec<Arc<Relation>> = own.filter_map(|key| find(key.referenced_table)).collect();
    let referencing = catalog.referencing_constraints(relation.oid);
    let referencing: Vec<Arc<Relation>> = referencing.into_iter().filter_map(|c| find(c.relation)).collect();
    let refused = |other: &Relation| {
        bail!(
            INVALID_TABLE_DEFINITION,
            "could not change table \"{}\" to {} because it references {} table \"{}\"",
            relation.name,
            word(persistence),
            word(other.persistence),
            other.name
        )
    };
    match referenced.iter().find(|other| !may_reference(persistence, other.persistence)) {
        Some(other) => refused(other),
        None => referencing.iter().find(|o| !may_reference(o.persistence, persistence)).map_or(Ok(()), |o| refused(o)),
    }
}
