//! Plain objects, and operator classes and families.

use std::sync::Arc;

use melba_types::Oid;

use crate::classes::*;
use crate::objects::{ObjectAddress, OperatorClass, OperatorFamily, PlainObject};
use crate::snapshot::Catalog;

/// A plain object, or an operator class or family.
#[derive(Clone, Debug, PartialEq)]
pub struct SeededObject {
    pub oid: Oid,
    /// `None` for objects outside of schemas.
    pub namespace: Option<Oid>,
    pub name: Arc<str>,
    /// The access method of an operator class or family; else 0.
    pub method: Oid,
}

/// The first plain object of a class that passes.
fn find(catalog: &Catalog, class: Oid, test: impl Fn(&PlainObject) -> bool) -> Option<SeededObject> {
    let found = catalog.plain_objects_of(class).find(|object| test(object))?;
    Some(SeededObject { oid: found.oid, namespace: found.schema(), name: found.name.clone(), method: Oid::INVALID })
}

fn of_class(catalog: &Catalog, c: &OperatorClass) -> Option<SeededObject> {
    let namespace = Some(catalog.class_namespace(c)?);
    Some(SeededObject { oid: c.oid, namespace, name: c.name.clone(), method: c.method })
}

fn of_family(catalog: &Catalog, f: &OperatorFamily) -> Option<SeededObject> {
    let namespace = Some(catalog.family_namespace(f)?);
    Some(SeededObject { oid: f.oid, namespace, name: f.name.clone(), method: f.method })
}

/// The object at an address, when its class has a seed.
pub fn seeded_object(catalog: &Catalog, address: ObjectAddress) -> Option<SeededObject> {
    match address.class {
        PG_OPCLASS => of_class(catalog, catalog.access_methods().class(address.object)?),
        PG_OPFAMILY => of_family(catalog, catalog.access_methods().family(address.object)?),
        class => find(catalog, class, |o| o.oid == address.object),
    }
}

/// The object of a class with a name in one of the schemas, which are searched in order, or of a class without schemas.
/// `method`: that of an operator class or family, else 0.
pub fn seeded_object_by_name(catalog: &Catalog, class: Oid, schemas: &[Oid], name: &str, method: Oid) -> Option<SeededObject> {
    let named = |o: &PlainObject| *o.name == *name;
    match class {
        PG_OPCLASS => of_class(catalog, catalog.find_operator_class(schemas, method, name)?),
        PG_OPFAMILY => of_family(catalog, catalog.find_operator_family(schemas, method, name)?),
        PG_AM | PG_LANGUAGE | PG_TABLESPACE => find(catalog, class, named),
        _ => schemas.iter().find_map(|n| find(catalog, class, |o| named(o) && o.namespace == *n)),
    }
}

/// A row of pg_amop or pg_amproc: an operator or function in an operator family.
pub(super) struct Member {
    pub family: Oid,
    pub left: Oid,
    pub right: Oid,
    /// The strategy of an operator, the number of a support function.
    pub number: i16,
    pub object: Oid,
}

/// The OIDs of the members that a family has in pg_amop or pg_amproc (`class`), and what they are.
fn members(class: Oid, family: &OperatorFamily) -> Vec<(Oid, Member)> {
    let of = family.oid;
    match class {
        PG_AMOP => family
            .operators
            .iter()
            .map(|m| (m.oid, Member { family: of, left: m.left, right: m.right, number: m.strategy, object: m.operator }))
            .collect(),
        _ => family
            .functions
            .iter()
            .map(|m| (m.oid, Member { family: of, left: m.left, right: m.right, number: m.number, object: m.function }))
            .collect(),
    }
}

pub(super) fn member(catalog: &Catalog, address: ObjectAddress) -> Option<Member> {
    let has = |f: &&Arc<OperatorFamily>| members(address.class, f).iter().any(|(oid, _)| *oid == address.object);
    let family = catalog.access_methods().families().find(has)?;
    catalog.family_namespace(family)?;
    members(address.class, family).into_iter().find(|(oid, _)| *oid == address.object).map(|(_, member)| member)
}

/// The row of pg_amop or pg_amproc (`class`) for two types and a strategy or number.
pub fn family_member(catalog: &Catalog, class: Oid, family: Oid, types: (Oid, Oid), number: i16) -> Option<Oid> {
    let is = |m: &Member| (m.left, m.right, m.number) == (types.0, types.1, number);
    members(class, catalog.access_methods().family(family)?).into_iter().find(|(_, m)| is(m)).map(|(oid, _)| oid)
}
