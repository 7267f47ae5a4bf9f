//! pg_publication, pg_publication_rel and pg_publication_namespace.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes;
use crate::publications::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for publication in s.by_oid(|oid| publication(s.catalog, oid), publications(s.catalog)) {
        let does = |operation| bool(publication.operations.contains(operation));
        push!(
            out,
            [
                oid(publication.oid),
                text(&publication.name),
                oid(publication.owner),
                bool(publication.all_tables),
                does('i'),
                does('u'),
                does('d'),
                does('t'),
                bool(publication.via_root),
                char(publication.generated),
            ]
        );
    }
}

pub(super) fn table_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for member in members(s, classes::PG_CLASS) {
        push!(out, [oid(member.oid), oid(member.publication), oid(member.object), Datum::Null, Datum::Null]);
    }
}

pub(super) fn schema_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for member in members(s, classes::PG_NAMESPACE) {
        push!(out, [oid(member.oid), oid(member.publication), oid(member.object)]);
    }
}

fn members<'a>(s: &'a GeneratorInput<'_>, class: Oid) -> impl Iterator<Item = &'a PublicationMember> {
    let all = s.by_oid(|oid| publication_member(s.catalog, oid), publication_members(s.catalog));
    all.into_iter().map(|member| &**member).filter(move |member| member.class == class)
}
