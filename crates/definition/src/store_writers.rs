//! The right to write to object stores and the server's files with the server's rights.

use melba_catalog::privileges::RoleUse;
use melba_types::Oid;

use crate::context::Ddl;

/// The role whose members may.
pub const WRITERS: &str = "pg_write_server_files";

/// Whether a role may.
pub fn may_write(ddl: &Ddl<'_>, user: Oid) -> bool {
    let catalog = ddl.catalog();
    catalog.role_by_name(WRITERS).is_some_and(|role| catalog.has_role(user, role.oid, RoleUse::Inherit))
}
