//! Locks of operator families.

use std::sync::Arc;

use melba_catalog::{OperatorFamily, classes};
use melba_types::{Result, err};

use melba_definition::context::Ddl;

/// Keeps others from changing a family until the transaction ends; the row is the one current once the lock is held.
///
/// # Errors
/// 42704 when it was dropped meanwhile.
pub fn lock_family(ddl: &Ddl<'_>, family: &OperatorFamily) -> Result<Arc<OperatorFamily>> {
    ddl.lock_database_object(ddl.tx().database, classes::PG_OPFAMILY, family.oid)?;
    let now = ddl.catalog().access_methods().family(family.oid).cloned();
    now.ok_or_else(|| err!(UNDEFINED_OBJECT, "referenced operator family was concurrently dropped"))
}
