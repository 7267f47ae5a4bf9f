//! pg_auth_members: which role is a member of which.

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let roles: Vec<_> = s.catalog.roles().collect();
    let mut all: Vec<_> = roles.iter().flat_map(|r| r.member_of.iter().map(|m| (r.oid, m))).collect();
    all.sort_by_key(|(_, m)| m.oid);
    for (member, m) in all {
        push!(out, [oid(m.oid), oid(m.role), oid(member), oid(m.grantor), bool(m.admin), bool(m.inherit), bool(m.set)]);
    }
}
