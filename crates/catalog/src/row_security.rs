//! Whether row-level security of a table applies to a role, and by which policies.

use std::sync::Arc;

use melba_types::Oid;

use crate::classes;
use crate::objects::*;
use crate::privileges::RoleUse;
use crate::snapshot::Catalog;

/// A row of pg_policy.
#[derive(Clone, Debug)]
pub struct Policy {
    pub oid: Oid,
    pub name: Arc<str>,
    pub table: Oid,
    pub permissive: bool,
    /// 'r' SELECT, 'a' INSERT, 'w' UPDATE, 'd' DELETE, '*' all of them.
    pub command: u8,
    /// Whom it is for; 0 alone: everybody.
    pub roles: Vec<Oid>,
    /// USING: the rows that are visible.
    pub using: Option<Arc<str>>,
    /// WITH CHECK: which rows may be written.
    pub check: Option<Arc<str>>,
    /// The dependencies of the conditions.
    pub depends_on: Vec<ObjectAddress>,
}

/// pg_policy.polcmd.
pub mod policy_commands {
    pub const ALL: u8 = b'*';
    pub const SELECT: u8 = b'r';
    pub const INSERT: u8 = b'a';
    pub const UPDATE: u8 = b'w';
    pub const DELETE: u8 = b'd';
}

/// Whether policies restrict a role's access to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSecurity {
    /// The table has none.
    Off,
    /// It has, but the role bypasses it.
    Bypassed,
    Enforced {
        /// The role is the owner, for whom the table forces it.
        is_owner: bool,
    },
}

pub fn row_security(catalog: &Catalog, relation: &Relation, role: Oid) -> RowSecurity {
    if !relation.row_security || relation.oid.0 < classes::FIRST_USER_OID {
        return RowSecurity::Off;
    }
    if catalog.role(role).is_some_and(|r| r.superuser || r.bypass_rls) {
        return RowSecurity::Bypassed;
    }
    let is_owner = catalog.has_role(role, relation.owner, RoleUse::Inherit);
    match is_owner && !relation.force_row_security {
        true => RowSecurity::Bypassed,
        false => RowSecurity::Enforced { is_owner },
    }
}

/// Whether a role sees only some of a table's rows.
pub fn hides_rows(catalog: &Catalog, relation: &Relation, role: Oid) -> bool {
    matches!(row_security(catalog, relation, role), RowSecurity::Enforced { .. })
}

/// The policies of a table, by name.
pub fn policies_of(catalog: &Catalog, table: Oid) -> Vec<&Arc<Policy>> {
    let mut all: Vec<_> = catalog.policies.within(table).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The policies of a table that are for a command and for a role, by name.
pub fn policies_for(catalog: &Catalog, table: Oid, command: u8, role: Oid) -> Vec<&Arc<Policy>> {
    let is_for = |p: &&Arc<Policy>| {
        let of_role = |r: &Oid| !r.is_valid() || catalog.has_role(role, *r, RoleUse::Inherit);
        (p.command == policy_commands::ALL || p.command == command) && p.roles.iter().any(of_role)
    };
    policies_of(catalog, table).into_iter().filter(is_for).collect()
}
