//! pg_authid: roles.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for role in s.by_oid(|oid| s.catalog.role(oid), s.catalog.roles()) {
        push!(
            out,
            [
                oid(role.oid),
                text(&role.name),
                bool(role.superuser),
                bool(role.inherit),
                bool(role.create_role),
                bool(role.create_db),
                bool(role.can_login),
                bool(role.replication),
                bool(role.bypass_rls),
                Datum::Int4(role.connection_limit),
                text_or_null(&role.password),
                role.valid_until.map_or(Datum::Null, Datum::Int8),
            ]
        );
    }
}
