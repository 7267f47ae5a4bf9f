//! pg_range: range types.

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes;
use crate::objects::TypeKind;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for ty in s.by_oid(|oid| s.catalog.type_(oid), s.catalog.types()) {
        if ty.type_kind != TypeKind::Range {
            continue;
        }
        let Some(range) = &ty.range else { continue };
        let subtype_diff = match ty.depends_on.iter().find(|d| d.class == classes::PG_PROC) {
            Some(function) => oid(function.object),
            None => regproc(&range.subtype_diff, s.catalog),
        };
        push!(
            out,
            [
                oid(ty.oid),
                oid(range.subtype),
                oid(range.multirange),
                oid(range.collation),
                oid(range.opclass),
                regproc(&range.canonical, s.catalog),
                subtype_diff.clone(),
            ]
        );
    }
}
