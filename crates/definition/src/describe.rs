//! Objects as messages about dependencies name them.

use melba_catalog::{ObjectAddress, identity};

use crate::context::Ddl;

/// An object as messages about dependencies name it.
pub fn describe(ddl: &Ddl<'_>, address: ObjectAddress) -> String {
    identity::describe(&ddl.catalog(), ddl.path(), address).unwrap_or_else(|| format!("object {}", address.object))
}
