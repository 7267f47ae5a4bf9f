//! Schemas into and out of which no object moves.

use melba_catalog::classes;
use melba_types::{Oid, Result, bail};

use crate::context::Ddl;

/// A temporary object stays temporary, and toast tables move with their tables.
pub fn refuse_special_schema(ddl: &Ddl<'_>, from: Oid, to: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let is_temporary = |oid: Oid| catalog.namespace(oid).is_some_and(|n| n.name.starts_with("pg_temp_"));
    if is_temporary(from) || is_temporary(to) {
        bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of temporary schemas");
    }
    if from == classes::PG_TOAST || to == classes::PG_TOAST {
        bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of TOAST schema");
    }
    Ok(())
}
