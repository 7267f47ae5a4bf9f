//! The system relations whose rows are plain objects.

use melba_types::Datum;

use super::{RelationRows, values};
use crate::objects::*;
use crate::plain::{PlainColumn, class_of_relation};
use crate::snapshot::Catalog;

/// Adds the rows of relation `name`; false when its rows are no plain objects.
pub(super) fn rows(name: &str, relation: &Relation, catalog: &Catalog, out: &mut RelationRows<'_>) -> bool {
    let Some(class) = class_of_relation(name) else { return false };
    let columns: Vec<PlainColumn> = relation.columns.iter().map(|c| PlainColumn::of(&c.name)).collect();
    let fields = |at: usize| columns[..at].iter().filter(|c| **c == PlainColumn::Field).count();
    for object in catalog.plain_objects_of(class) {
        out.push(|at| match columns[at] {
            PlainColumn::Oid => values::oid(object.oid),
            PlainColumn::Name => values::text(&object.name),
            PlainColumn::Namespace => values::oid(object.namespace),
            PlainColumn::Owner => values::oid(object.owner),
            PlainColumn::Acl => values::acl(&object.acl, catalog),
            PlainColumn::Options => values::texts_or_null(&object.options),
            PlainColumn::Field => object.fields.get(fields(at)).cloned().unwrap_or(Datum::Null),
        });
    }
    true
}
