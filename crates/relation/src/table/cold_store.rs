//! The storage parameters cold_store and cold_after: who may set them, and for which tables (docs/design/cold.md).

use std::sync::Arc;

use melba_catalog::Persistence;
use melba_definition::context::Ddl;
use melba_definition::store_writers::{WRITERS, may_write};
use melba_parse::nodes::options;
use melba_types::{DbError, Result, err};
use pg_query::protobuf::Node;

use crate::table::storage_parameters::ParametersOf;

/// The parameters that a statement gives to a new table.
///
/// # Errors
/// Those of `ParametersOf::new_list` and `check_cold_store`.
pub fn new_parameters(ddl: &Ddl<'_>, of: ParametersOf, list: &[Node], persistence: Persistence) -> Result<Vec<Arc<str>>> {
    let parameters = of.new_list(list)?;
    check_cold_store(ddl, list, persistence)?;
    Ok(parameters)
}

/// Checks the parameters that a statement gives to a table.
///
/// # Errors
/// 42501 for users who may not write to stores; 0A000 for tables that a crash empties.
pub fn check_cold_store(ddl: &Ddl<'_>, list: &[Node], persistence: Persistence) -> Result<()> {
    if !options(list).any(|def| def.defname == "cold_store" && def.defnamespace.is_empty()) {
        return Ok(());
    }
    if persistence != Persistence::Permanent {
        return Err(DbError::unsupported("cold_store of tables that are not permanent"));
    }
    if may_write(ddl, ddl.user()) {
        return Ok(());
    }
    Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to move data to a file or an object store")
        .detail(format!("Only roles with privileges of the \"{WRITERS}\" role may set the cold_store of a table.")))
}
