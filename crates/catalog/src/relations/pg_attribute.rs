//! pg_attribute: columns, the system columns of tables, and the columns of indexes.

use melba_types::{Datum, Oid, oids};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::objects::*;
use crate::snapshot::Catalog;

/// The columns that every table has, last number first.
const SYSTEM_COLUMNS: [(i16, &str, Oid); 6] = [
    (-6, "tableoid", oids::OID),
    (-5, "cmax", oids::CID),
    (-4, "xmax", oids::XID),
    (-3, "cmin", oids::CID),
    (-2, "xmin", oids::XID),
    (-1, "ctid", oids::TID),
];

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let relations: Vec<_> = match s.oid(0) {
        Some(oid) => s.catalog.relation(oid).into_iter().collect(),
        None => s.catalog.relations().collect(),
    };
    for relation in relations {
        if has_system_columns(relation.kind) {
            for (number, name, ty) in SYSTEM_COLUMNS {
                system_column(s.catalog, relation.oid, number, name, ty, out);
            }
        }
        match &relation.index {
            Some(index) if relation.columns.is_empty() => index_columns(s.catalog, relation, index, out),
            _ => {
                for (i, column) in relation.columns.iter().enumerate() {
                    user_column(s.catalog, relation, i + 1, column, out);
                }
            }
        }
    }
}

fn has_system_columns(kind: RelationKind) -> bool {
    use RelationKind::*;
    matches!(kind, Table | MaterializedView | PartitionedTable | Toast | Sequence | ForeignTable)
}

fn user_column(catalog: &Catalog, relation: &Relation, number: usize, c: &Column, out: &mut RelationRows<'_>) {
    let foreign = || relation.foreign.as_ref().map_or(&[][..], |table| table.column_options(number as i16));
    let ty = || catalog.type_(c.ty);
    let missing = || if c.missing.is_null() { Datum::Null } else { array_of_one(c.ty, c.missing.clone()) };
    push!(
        out,
        [
            oid(relation.oid),
            if c.dropped { Datum::text(format!("........pg.dropped.{number}........")) } else { text(&c.name) },
            oid(if c.dropped { Oid::INVALID } else { c.ty }),
            Datum::Int2(ty().map_or(-1, |t| t.length)),
            int2(number),
            Datum::Int4(c.typmod),
            int2(usize::from(ty().is_some_and(|t| &*t.subscript == "array_subscript_handler"))),
            bool(ty().is_some_and(|t| t.by_value)),
            char(ty().map_or(b'i', |t| t.align)),
            char(c.storage),
            char(c.compression),
            bool(c.not_null),
            bool(c.default.is_some() && !c.dropped),
            bool(!c.missing.is_null()),
            char(c.identity),
            char(c.generated),
            bool(c.dropped),
            bool(c.local),
            Datum::Int2(c.inherited),
            oid(c.collation),
            c.statistics_target.map_or(Datum::Null, Datum::Int2),
            acl(&c.acl, catalog),
            texts_or_null(&c.options),
            texts_or_null(foreign()),
            missing(),
        ]
    );
}

fn system_column(catalog: &Catalog, relation: Oid, number: i16, name: &'static str, ty: Oid, out: &mut RelationRows<'_>) {
    let Some(ty) = catalog.type_(ty) else { return };
    push!(
        out,
        [
            oid(relation),
            Datum::text(name),
            oid(ty.oid),
            Datum::Int2(ty.length),
            Datum::Int2(number),
            Datum::Int4(-1),
            Datum::Int2(0),
            bool(ty.by_value),
            char(ty.align),
            char(b'p'),
            char(0),
            bool(true),
            bool(false),
            bool(false),
            char(0),
            char(0),
            bool(false),
            bool(true),
            Datum::Int2(0),
            Datum::Oid(0),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]
    );
}

/// An index's columns are named after the table's; expressions are `expr`, `expr1`, ...
fn index_columns(catalog: &Catalog, relation: &Relation, index: &IndexInfo, out: &mut RelationRows<'_>) {
    let table = catalog.relation(index.table);
    let table_column = |number: i16| table.and_then(|t| t.columns.get(usize::try_from(number).ok()?.checked_sub(1)?));
    let mut expressions = 0;
    let mut number = 0;
    let mut push = |column: Column| {
        number += 1;
        user_column(catalog, relation, number, &column, out);
    };
    for key in &index.keys {
        let of_table = table_column(key.column);
        let name = of_table.map_or_else(
            || {
                expressions += 1;
                if expressions == 1 { "expr".into() } else { format!("expr{}", expressions - 1).into() }
            },
            |c| c.name.clone(),
        );
        if let Some(ty) = catalog.type_(key.ty) {
            push(Column { typmod: of_table.map_or(-1, |c| c.typmod), collation: key.collation, ..Column::of_type(name, ty) });
        }
    }
    for column in index.include.iter().filter_map(|number| table_column(*number)) {
        if let Some(ty) = catalog.type_(column.ty) {
            push(Column { typmod: column.typmod, collation: column.collation, ..Column::of_type(column.name.clone(), ty) });
        }
    }
}
