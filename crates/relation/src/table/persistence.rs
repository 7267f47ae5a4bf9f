//! What a restart keeps of a relation: UNLOGGED, TEMPORARY, the access method `memory`, and changing between them.
//!
//! PostgreSQL separates persistence and access method. Here a table of access method `memory` has a separate persistence, so
//! there are no unlogged or temporary ones of it.

use melba_catalog::{Persistence, Relation, classes};
use melba_types::{DbError, Oid, Result, bail};

use melba_definition::context::Ddl;

/// The persistence of a new relation: `letter` is RangeVar's, the access method is that of USING.
pub fn persistence(ddl: &Ddl<'_>, letter: &str, temporary: bool, access_method: &str) -> Result<Persistence> {
    let persistence = match letter {
        _ if temporary => Persistence::Temporary,
        "u" => Persistence::Unlogged,
        _ => Persistence::Permanent,
    };
    if access_method.is_empty() || !is_memory(ddl, access_method)? {
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
pub fn table_persistence(ddl: &Ddl<'_>, letter: &str, temporary: bool, access_method: &str) -> Result<Persistence> {
    let persistence = persistence(ddl, letter, temporary, access_method)?;
    let by_default = access_method.is_empty() && persistence == Persistence::Permanent;
    Ok(if by_default && is_memory(ddl, &default_access_method(ddl))? { Persistence::Memory } else { persistence })
}

pub fn default_access_method(ddl: &Ddl<'_>) -> String {
    ddl.session().setting("default_table_access_method").unwrap_or_default()
}

/// Whether the access method for tables is `memory` rather than `heap`.
pub fn is_memory(ddl: &Ddl<'_>, access_method: &str) -> Result<bool> {
    match access_method {
        "heap" => Ok(false),
        "memory" => Ok(true),
        other if ddl.catalog().access_methods().method_by_name(other).is_some() => {
            bail!(WRONG_OBJECT_TYPE, "access method \"{other}\" is not of type TABLE")
        }
        other => bail!(UNDEFINED_OBJECT, "access method \"{other}\" does not exist"),
    }
}

/// The word for a persistence in ALTER TABLE's messages.
pub fn word(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::Permanent => "logged",
        Persistence::Unlogged => "unlogged",
        Persistence::Temporary => "temporary",
        Persistence::Memory => "memory",
    }
}

/// A foreign key may refer only to rows that persist as long as its own.
pub fn may_reference(from: Persistence, to: Persistence) -> bool {
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
