//! System relations whose rows never change: the seed's columns are the relation's.

use melba_types::{Datum, oids};

use super::{RelationRows, values};
use crate::classes;
use crate::objects::*;
use crate::seed::{Row, Seed, seed};
use crate::snapshot::Catalog;

fn find(name: &str) -> Option<Seed> {
    Some(match name {
        "pg_conversion" => seed!("pg_conversion"),
        "pg_language" => seed!("pg_language"),
        "pg_tablespace" => seed!("pg_tablespace"),
        "pg_ts_parser" => seed!("pg_ts_parser"),
        "pg_ts_template" => seed!("pg_ts_template"),
        _ => return None,
    })
}

/// Adds the rows of relation `name`; false when it has no seed.
pub(super) fn rows(name: &str, relation: &Relation, catalog: &Catalog, out: &mut RelationRows<'_>) -> bool {
    let Some(seed) = find(name) else { return false };
    for row in seed.rows() {
        let datum = |c: &Column| match &*c.name {
            "lanacl" => values::acl(&catalog.granted_acl(classes::PG_LANGUAGE, row.str("lanname")), catalog),
            _ => value(&row, c),
        };
        out.push(|at| datum(&relation.columns[at]));
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
