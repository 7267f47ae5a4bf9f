//! System relations whose rows never change: the seed's columns are the relation's.

use melba_types::{Datum, oids};

use super::{EqFilter, Rows, values};
use crate::objects::*;
use crate::seed::{Row, Seed, seed};

fn find(name: &str) -> Option<Seed> {
    Some(match name {
        "pg_amop" => seed!("pg_amop"),
        "pg_amproc" => seed!("pg_amproc"),
        "pg_conversion" => seed!("pg_conversion"),
        "pg_extension" => seed!("pg_extension"),
        "pg_language" => seed!("pg_language"),
        "pg_opclass" => seed!("pg_opclass"),
        "pg_opfamily" => seed!("pg_opfamily"),
        "pg_tablespace" => seed!("pg_tablespace"),
        "pg_ts_config" => seed!("pg_ts_config"),
        "pg_ts_config_map" => seed!("pg_ts_config_map"),
        "pg_ts_dict" => seed!("pg_ts_dict"),
        "pg_ts_parser" => seed!("pg_ts_parser"),
        "pg_ts_template" => seed!("pg_ts_template"),
        _ => return None,
    })
}

/// Adds the rows of relation `name`; false when it has no seed.
pub(super) fn rows(name: &str, relation: &Relation, filters: &[EqFilter], out: &mut Rows<'_>) -> bool {
    let Some(seed) = find(name) else { return false };
    for row in seed.rows() {
        let values: Vec<Datum> = relation.columns.iter().map(|c| value(&row, c)).collect();
        if filters.iter().all(|f| values.get(f.column).is_some_and(|v| super::equal(v, &f.value))) {
            out.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            out.rows += 1;
        }
    }
    true
}

fn value(row: &Row<'_>, column: &Column) -> Datum {
    if row.optional(&column.name).is_none() {
        return Datum::Null;
    }
    match column.ty {
        oids::OID | oids::REGPROC => values::seed_oid(row, &column.name),
        oids::BOOL => Datum::Bool(row.bool(&column.name)),
        oids::CHAR => Datum::Char(row.char(&column.name)),
        oids::INT2 => Datum::Int2(row.number(&column.name)),
        oids::INT4 => Datum::Int4(row.number(&column.name)),
        oids::OID_ARRAY => values::oids_or_null(&row.oids(&column.name)),
        oids::TEXT_ARRAY => values::texts_or_null(&row.texts(&column.name)),
        _ => Datum::Text(row.text(&column.name)),
    }
}
