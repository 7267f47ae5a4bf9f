//! LOAD: modules of PostgreSQL that are part of the server; no libraries are loaded.

use melba_types::{DbError, Result, err};
use pg_query::protobuf::LoadStmt;

use super::ddl_context::Utility;

/// Loaded already.
const BUILT_IN: [&str; 3] = ["auto_explain", "pg_stat_statements", "plpgsql"];

pub(super) fn load(utility: &Utility<'_>, s: &LoadStmt) -> Result<()> {
    let name = s.filename.strip_prefix("$libdir/").unwrap_or(&s.filename);
    let name = name.strip_suffix(".so").unwrap_or(name);
    if !utility.lookup.is_superuser() {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "access to library \"{}\" is not allowed", s.filename));
    }
    match BUILT_IN.contains(&name) {
        true => Ok(()),
        false => Err(DbError::unsupported(format!("LOAD of the library \"{}\"", s.filename))),
    }
}
