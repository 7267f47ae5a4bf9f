//! pg_foreign_data_wrapper, pg_foreign_server, pg_foreign_table and pg_user_mapping.

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::foreign::*;

pub(super) fn wrapper_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for wrapper in s.by_oid(|oid| wrapper(s.catalog, oid), wrappers(s.catalog)) {
        push!(
            out,
            [
                oid(wrapper.oid),
                text(&wrapper.name),
                oid(wrapper.owner),
                oid(wrapper.handler),
                oid(wrapper.validator),
                acl(&wrapper.acl, s.catalog),
                texts_or_null(&wrapper.options),
            ]
        );
    }
}

pub(super) fn server_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for server in s.by_oid(|oid| server(s.catalog, oid), servers(s.catalog)) {
        push!(
            out,
            [
                oid(server.oid),
                text(&server.name),
                oid(server.owner),
                oid(server.wrapper),
                text_or_null(&server.ty),
                text_or_null(&server.version),
                acl(&server.acl, s.catalog),
                texts_or_null(&server.options),
            ]
        );
    }
}

pub(super) fn mapping_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for mapping in s.by_oid(|oid| user_mapping(s.catalog, oid), user_mappings(s.catalog)) {
        push!(out, [oid(mapping.oid), oid(mapping.user), oid(mapping.server), texts_or_null(&mapping.options)]);
    }
}

pub(super) fn table_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for relation in s.by_oid(|oid| s.catalog.relation(oid), s.catalog.user_relations()) {
        if let Some(table) = &relation.foreign {
            push!(out, [oid(relation.oid), oid(table.server), texts_or_null(&table.options)]);
        }
    }
}
