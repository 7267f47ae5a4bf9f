//! pg_relation_filenode and pg_filenode_relation: the number that a relation's storage has, which changes when it is written anew.

use melba_catalog::{Relation, RelationKind};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_relation_filenode", |c, a| {
        let relation = c.session.catalog().relation(super::oid_argument(a, 0));
        Ok(relation.and_then(|r| file_node(r)).map_or(Datum::Null, |node| Datum::Oid(node.0)))
    }),
    ("pg_filenode_relation", relation_of),
];

/// pg_default's name for itself in pg_class.
const OF_DATABASE: Oid = Oid(0);
const PG_DEFAULT: Oid = Oid(1663);
const PG_GLOBAL: Oid = Oid(1664);

/// Of system relations that PostgreSQL maps, which have none in pg_class, it is the OID, as in a new cluster.
fn file_node(relation: &Relation) -> Option<Oid> {
    let kinds =
        [RelationKind::Table, RelationKind::Index, RelationKind::Sequence, RelationKind::MaterializedView, RelationKind::Toast];
    let node = if relation.file_node.is_valid() { relation.file_node } else { relation.oid };
    kinds.contains(&relation.kind).then_some(node)
}

fn relation_of(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (tablespace, node) = (super::oid_argument(a, 0), super::oid_argument(a, 1));
    let catalog = call.session.catalog();
    let is_there = |r: &Relation| match catalog.is_shared_relation(r.oid) {
        true => tablespace == PG_GLOBAL,
        false => [OF_DATABASE, PG_DEFAULT].contains(&tablespace),
    };
    // A number that no relation has gotten since it was created is that of the OID.
    let own = catalog.relation(node).into_iter().chain(catalog.relations());
    let found = own.filter(|_| node.is_valid()).find(|r| file_node(r) == Some(node) && is_there(r));
    Ok(found.map_or(Datum::Null, |r| Datum::Oid(r.oid.0)))
}
