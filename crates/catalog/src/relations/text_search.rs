//! pg_ts_config, pg_ts_config_map and pg_ts_dict.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

pub(super) fn config_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for c in s.by_oid(|oid| s.catalog.text_search_config(oid), s.catalog.text_search_configs()) {
        push!(out, [oid(c.oid), text(&c.name), oid(c.namespace), oid(c.owner), oid(c.parser)]);
    }
}

pub(super) fn map_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for c in s.catalog.text_search_configs() {
        for mapping in &c.map {
            for (number, dictionary) in (1..).zip(&mapping.dictionaries) {
                push!(out, [oid(c.oid), Datum::Int4(mapping.token_type), Datum::Int4(number), oid(*dictionary)]);
            }
        }
    }
}

pub(super) fn dictionary_rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for d in s.by_oid(|oid| s.catalog.text_search_dictionary(oid), s.catalog.text_search_dictionaries()) {
        push!(out, [oid(d.oid), text(&d.name), oid(d.namespace), oid(d.owner), oid(d.template), text_or_null(&d.options)]);
    }
}
