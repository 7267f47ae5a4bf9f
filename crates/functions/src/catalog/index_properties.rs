//! What indexes and access methods can do: pg_indexam_has_property, pg_index_has_property, pg_index_column_has_property, by PostgreSQL's
//! names of properties. They tell of PostgreSQL's access methods, by which clients decide how to use an index.

use melba_catalog::classes::{BTREE, GIN, GIST, HASH};
use melba_catalog::{IndexInfo, Relation, RelationKind};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, DbError, Oid, Result};

const SPGIST: Oid = Oid(4000);
const BRIN: Oid = Oid(3580);
/// The support functions of gist's operator classes.
const COMPRESS: i16 = 3;
const DISTANCE: i16 = 8;
const FETCH: i16 = 9;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_indexam_has_property", |_, a| Ok(known(of_method(Oid(a[0].as_oid()), &name(&a[1]))))),
    ("pg_index_has_property", |c, a| Ok(index(c, &a[0]).map_or(Datum::Null, |r| known(of_index(r.access_method, &name(&a[1])))))),
    ("pg_index_column_has_property", of_column),
    ("pg_get_replica_identity_index", |c, a| {
        let catalog = c.session.catalog();
        let oid = super::oid_argument(a, 0);
        let table = catalog.relation(oid).ok_or_else(|| DbError::internal(format!("could not open relation with OID {oid}")))?;
        let index = replica_identity(table, |oid| catalog.relation(oid)?.index.as_deref());
        Ok(index.map_or(Datum::Null, |oid| Datum::Oid(oid.0)))
    }),
];

fn known(property: Option<bool>) -> Datum {
    property.map_or(Datum::Null, Datum::Bool)
}

fn name(argument: &Datum) -> String {
    argument.as_str().to_ascii_lowercase()
}

fn index<'a>(call: &CallInfo<'a>, argument: &Datum) -> Option<&'a Relation> {
    let relation = call.session.catalog().relation(Oid(argument.as_oid()))?;
    matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex).then_some(&**relation)
}

fn of_method(method: Oid, property: &str) -> Option<bool> {
    if ![BTREE, HASH, GIST, GIN, SPGIST, BRIN].contains(&method) {
        return None;
    }
    let methods: &[Oid] = match property {
        "can_order" | "can_unique" => &[BTREE],
        "can_multi_col" => &[BTREE, GIST, GIN, BRIN],
        "can_exclude" => &[BTREE, HASH, GIST, SPGIST],
        "can_include" => &[BTREE, GIST, SPGIST],
        _ => return None,
    };
    Some(methods.contains(&method))
}

fn of_index(method: Oid, property: &str) -> Option<bool> {
    let methods: &[Oid] = match property {
        "clusterable" => &[BTREE, GIST],
        "index_scan" => &[BTREE, HASH, GIST, SPGIST],
        "bitmap_scan" => &[BTREE, HASH, GIST, GIN, SPGIST, BRIN],
        "backward_scan" => &[BTREE, HASH],
        _ => return None,
    };
    Some(methods.contains(&method))
}

fn of_column(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let Some(relation) = index(call, &a[0]) else { return Ok(Datum::Null) };
    let Some(info) = &relation.index else { return Ok(Datum::Null) };
    let columns = 1..=(info.keys.len() + info.include.len()) as i32;
    let number = a[1].as_i32();
    Ok(match columns.contains(&number) {
        true => known(column_property(call, relation.access_method, info, number as usize - 1, &name(&a[2]))),
        false => Datum::Null,
    })
}

fn column_property(call: &CallInfo<'_>, method: Oid, info: &IndexInfo, column: usize, property: &str) -> Option<bool> {
    let key = info.keys.get(column);
    let is_ordered = method == BTREE;
    match property {
        "asc" => key.map(|k| is_ordered && !k.descending),
        "desc" => key.map(|k| is_ordered && k.descending),
        "nulls_first" => key.map(|k| is_ordered && k.nulls_first),
        "nulls_last" => key.map(|k| is_ordered && !k.nulls_first),
        "orderable" => Some(key.is_some() && is_ordered),
        "search_array" => key.map(|_| is_ordered),
        "search_nulls" => key.map(|_| [BTREE, GIST, SPGIST, BRIN].contains(&method)),
        "distance_orderable" => Some(key.is_some_and(|k| method == GIST && has_support(call, k.opclass, DISTANCE))),
        "returnable" => Some(match (method, key) {
            (GIST, Some(k)) => has_support(call, k.opclass, FETCH) || !has_support(call, k.opclass, COMPRESS),
            _ => [BTREE, GIST, SPGIST].contains(&method),
        }),
        _ => None,
    }
}

fn has_support(call: &CallInfo<'_>, class: Oid, number: i16) -> bool {
    let access = call.session.catalog().access_methods();
    access.class(class).is_some_and(|c| access.function(c.family, c.input_type, c.input_type, number).is_some())
}

/// The index whose columns identify a row for REPLICA IDENTITY: the chosen one, or by default the primary key.
fn replica_identity<'a>(table: &Relation, index: impl Fn(Oid) -> Option<&'a IndexInfo>) -> Option<Oid> {
    table.indexes.iter().copied().find(|oid| {
        index(*oid).is_some_and(|info| match table.replica_identity {
            b'd' => info.primary,
            b'i' => info.replica_identity,
            _ => false,
        })
    })
}
