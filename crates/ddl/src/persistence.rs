//! What a restart keeps of a relation: UNLOGGED, TEMPORARY, the access method `memory`, and changing between them.
//!
//! PostgreSQL separates persistence and access method. Here a table of access method `memory` has a separate persistence, so
//! there are no unlogged or temporary ones of it.

use std::sync::Arc;

use melba_catalog::{Persistence, Relation, RelationKind, Storage, classes};
use melba_engine::SequenceId;
use melba_types::{DbError, Oid, Result, TreeId, bail};

use super::Ddl;
use super::alter_kind::refused_for_kind;

impl Ddl<'_> {
    /// The persistence of a new relation: `letter` is RangeVar's, the access method is that of USING.
    pub fn persistence(&self, letter: &str, temporary: bool, access_method: &str) -> Result<Persistence> {
        let persistence = match letter {
            _ if temporary => Persistence::Temporary,
            "u" => Persistence::Unlogged,
            _ => Persistence::Permanent,
        };
        if access_method.is_empty() || !self.is_memory(access_method)? {
            return Ok(persistence);
        }
        match persistence {
            Persistence::Unlogged => Err(DbError::unsupported("access method \"memory\" for an unlogged table")),
            Persistence::Temporary => Err(DbError::unsupported("access method \"memory\" for a temporary table")),
            Persistence::Permanent | Persistence::Memory => Ok(Persistence::Memory),
        }
    }

    /// The same for a table that may be of the default access method. Unlogged and temporary tables are then always on disk:
    /// memory was not requested for them.
    pub fn table_persistence(&self, letter: &str, temporary: bool, access_method: &str) -> Result<Persistence> {
        let persistence = self.persistence(letter, temporary, access_method)?;
        let by_default = access_method.is_empty() && persistence == Persistence::Permanent;
        Ok(if by_default && self.is_memory(&self.default_access_method())? { Persistence::Memory } else { persistence })
    }

    fn default_access_method(&self) -> String {
        self.session.setting("default_table_access_method").unwrap_or_default()
    }

    /// Whether the access method for tables is `memory` rather than `heap`.
    fn is_memory(&self, access_method: &str) -> Result<bool> {
        match access_method {
            "heap" => Ok(false),
            "memory" => Ok(true),
            other if self.catalog().access_methods().method_by_name(other).is_some() => {
                bail!(WRONG_OBJECT_TYPE, "access method \"{other}\" is not of type TABLE")
            }
            other => bail!(UNDEFINED_OBJECT, "access method \"{other}\" does not exist"),
        }
    }

    /// SET LOGGED, SET UNLOGGED of a table or a sequence.
    pub fn set_logged(&self, relation: &Relation, persistence: Persistence) -> Result<()> {
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
            Persistence::Permanent | Persistence::Unlogged => self.set_persistence(relation, persistence),
        }
    }

    /// SET ACCESS METHOD; an empty name is DEFAULT.
    pub fn set_access_method(&self, relation: &Relation, name: &str) -> Result<()> {
        let name = if name.is_empty() { self.default_access_method() } else { name.to_owned() };
        let memory = self.is_memory(&name)?;
        if !matches!(relation.kind, RelationKind::Table | RelationKind::MaterializedView) {
            return Err(refused_for_kind("SET ACCESS METHOD", relation));
        }
        match (relation.persistence, memory) {
            (Persistence::Memory, false) => self.set_persistence(relation, Persistence::Permanent),
            (Persistence::Permanent, true) => self.set_persistence(relation, Persistence::Memory),
            (Persistence::Unlogged, true) => Err(DbError::unsupported("access method \"memory\" for an unlogged table")),
            (Persistence::Temporary, true) => Err(DbError::unsupported("access method \"memory\" for a temporary table")),
            _ => Ok(()),
        }
    }

    fn set_persistence(&self, relation: &Relation, persistence: Persistence) -> Result<()> {
        if relation.persistence == persistence {
            return Ok(());
        }
        match relation.kind {
            RelationKind::Sequence => return self.move_sequence(relation, persistence),
            RelationKind::Table => {}
            _ => return Err(DbError::unsupported("changing the access method of a materialized view")),
        }
        self.check_persistence_references(relation, persistence)?;
        let before = self.target(relation.oid)?;
        self.rebuild(&before, relation.columns.to_vec(), persistence, &[])?;
        for column in relation.columns.iter().filter(|c| !c.dropped) {
            if let Some(sequence) = self.owned_sequence(relation, &column.name) {
                self.move_sequence(&sequence, persistence)?;
            }
        }
        Ok(())
    }

    /// Moves a sequence to new storage with the same state.
    fn move_sequence(&self, relation: &Relation, persistence: Persistence) -> Result<()> {
        let (Some(info), Storage::Sequence(old)) = (&relation.sequence, &relation.storage) else {
            return Err(DbError::internal("sequence without definition"));
        };
        let old = SequenceId(old.0);
        let state = self.tx.engine.sequence_state(old)?;
        let storage = self.new_sequence_storage(info, state, persistence)?;
        self.tx.engine.drop_sequence(old)?;
        self.put_relation(Relation { storage: Storage::Sequence(TreeId(storage.0)), persistence, ..relation.clone() });
        Ok(())
    }

    fn check_persistence_references(&self, relation: &Relation, persistence: Persistence) -> Result<()> {
        let catalog = self.catalog();
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
}

/// The word for a persistence in ALTER TABLE's messages.
fn word(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Permanent => "logged",
        Persistence::Unlogged => "unlogged",
        Persistence::Temporary => "temporary",
        Persistence::Memory => "memory",
    }
}

/// A foreign key may refer only to rows that persist as long as its own.
fn may_reference(from: Persistence, to: Persistence) -> bool {
    match from {
        Persistence::Permanent => to == Persistence::Permanent,
        Persistence::Unlogged => matches!(to, Persistence::Permanent | Persistence::Unlogged),
        Persistence::Temporary => to == Persistence::Temporary,
        Persistence::Memory => to != Persistence::Temporary,
    }
}

/// Refuses a new foreign key that may outlive the rows it references.
pub fn check_foreign_key_persistence(from: &Relation, to: &Relation) -> Result<()> {
    if may_reference(from.persistence, to.persistence) {
        return Ok(());
    }
    let (who, what) = match from.persistence {
        Persistence::Permanent => ("permanent", "permanent"),
        Persistence::Unlogged => ("unlogged", "permanent or unlogged"),
        Persistence::Temporary => ("temporary", "temporary"),
        Persistence::Memory => ("memory", "permanent, unlogged or memory"),
    };
    bail!(INVALID_TABLE_DEFINITION, "constraints on {who} tables may reference only {what} tables")
}

/// The access method that pg_class shows for a table.
pub fn access_method(persistence: Persistence) -> Oid {
    if persistence == Persistence::Memory { classes::MEMORY } else { classes::HEAP }
}

pub fn engine_persistence(persistence: Persistence) -> melba_engine::Persistence {
    match persistence {
        Persistence::Permanent => melba_engine::Persistence::Logged,
        Persistence::Unlogged => melba_engine::Persistence::Unlogged,
        Persistence::Temporary => melba_engine::Persistence::Temporary,
        Persistence::Memory => melba_engine::Persistence::Memory,
    }
}
