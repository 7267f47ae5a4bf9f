//! pg_shdepend: the objects in this database that roles own or have privileges on. The bootstrap superuser is pinned and not listed.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes;
use crate::role_uses::{RoleUseKind, role_uses};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for found in role_uses(s.catalog) {
        let is_shared = [classes::PG_DATABASE, classes::PG_PARAMETER_ACL, classes::PG_TABLESPACE].contains(&found.object.class);
        push!(
            out,
            [
                oid(if is_shared { Oid::INVALID } else { s.catalog.database_oid() }),
                oid(found.object.class),
                oid(found.object.object),
                Datum::Int4(found.object.sub),
                oid(classes::PG_AUTHID),
                oid(found.role),
                char(match found.how {
                    RoleUseKind::Owner => b'o',
                    RoleUseKind::Acl => b'a',
                    RoleUseKind::Policy => b'r',
                }),
            ]
        );
    }
}
