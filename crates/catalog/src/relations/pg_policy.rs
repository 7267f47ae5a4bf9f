//! pg_policy: policies of row-level security.

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;
use crate::row_security::policies_of;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let policies: Vec<_> = match (s.oid(0), s.oid(2)) {
        (Some(oid), _) => s.catalog.policy(oid).into_iter().collect(),
        (None, Some(table)) => policies_of(s.catalog, table),
        _ => s.catalog.policies().collect(),
    };
    for policy in policies {
        push(policy, out);
    }
}

fn push(p: &Policy, out: &mut RelationRows<'_>) {
    push!(
        out,
        [
            oid(p.oid),
            text(&p.name),
            oid(p.table),
            char(p.command),
            bool(p.permissive),
            oids_or_null(&p.roles),
            text_or_null(&p.using),
            text_or_null(&p.check),
        ]
    );
}
