//! Plain objects that are built in.

use std::sync::Arc;

use melba_types::{Datum, oids};

use crate::classes;
use crate::objects::{Column, Relation};
use crate::plain::{PlainColumn, PlainObject, class_of_relation};
use crate::seed::{Row, Seed, seed};

/// The built-in objects. `relations`: the system relations.
pub(super) fn built_in(relations: &[Arc<Relation>]) -> Vec<Arc<PlainObject>> {
    let seeds: [(&str, Seed); 6] = [
        ("pg_am", seed!("pg_am")),
        ("pg_conversion", seed!("pg_conversion")),
        ("pg_language", seed!("pg_language")),
        ("pg_tablespace", seed!("pg_tablespace")),
        ("pg_ts_parser", seed!("pg_ts_parser")),
        ("pg_ts_template", seed!("pg_ts_template")),
    ];
    let mut all: Vec<Arc<PlainObject>> = Vec::new();
    for (name, seed) in seeds {
        let columns = relations.iter().find(|r| *r.name == *name).map(|r| r.columns.clone()).unwrap_or_default();
        let class = class_of_relation(name).unwrap_or_default();
        all.extend(seed.rows().map(|row| Arc::new(seeded(class, &row, &columns))));
    }
    let heap = all.iter().find(|o| (o.class, o.oid) == (classes::PG_AM, classes::HEAP)).cloned();
    all.extend(heap.map(|heap| Arc::new(PlainObject { oid: classes::MEMORY, name: "memory".into(), ..(*heap).clone() })));
    all
}

fn seeded(class: melba_types::Oid, row: &Row<'_>, columns: &[Column]) -> PlainObject {
    let mut object = PlainObject::new(row.oid("oid"), class, "", classes::POSTGRES_ROLE);
    for column in columns {
        match PlainColumn::of(&column.name) {
            PlainColumn::Name => object.name = row.text(&column.name),
            PlainColumn::Namespace => object.namespace = row.oid(&column.name),
            PlainColumn::Field => object.fields.push(seeded_value(row, column)),
            _ => {}
        }
    }
    object
}

fn seeded_value(row: &Row<'_>, column: &Column) -> Datum {
    match column.ty {
        oids::OID | oids::REGPROC => Datum::Oid(row.oid(&column.name).0),
        oids::BOOL => Datum::Bool(row.bool(&column.name)),
        oids::CHAR => Datum::Char(row.char(&column.name)),
        oids::INT4 => Datum::Int4(row.number(&column.name)),
        _ => Datum::Null,
    }
}
