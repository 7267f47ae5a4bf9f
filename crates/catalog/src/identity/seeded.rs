//! Objects that no statement makes, whose rows are in the seeds of their relations; and operator classes and families.

use std::sync::Arc;

use melba_types::Oid;

use crate::classes::*;
use crate::objects::{ObjectAddress, OperatorClass, OperatorFamily};
use crate::seed::{Row, Seed, seed};
use crate::snapshot::Catalog;

/// An object of a seed, or an operator class or family.
#[derive(Clone, Debug, PartialEq)]
pub struct SeededObject {
    pub oid: Oid,
    /// `None` for objects outside of schemas.
    pub namespace: Option<Oid>,
    pub name: Arc<str>,
    /// The access method of an operator class or family; else 0.
    pub method: Oid,
}

/// The seed of a class, and the prefix of its columns' names.
fn seed_of(class: Oid) -> Option<(Seed, &'static str)> {
    Some(match class {
        PG_CONVERSION => (seed!("pg_conversion"), "con"),
        PG_LANGUAGE => (seed!("pg_language"), "lan"),
        PG_TABLESPACE => (seed!("pg_tablespace"), "spc"),
        PG_TS_PARSER => (seed!("pg_ts_parser"), "prs"),
        PG_TS_TEMPLATE => (seed!("pg_ts_template"), "tmpl"),
        _ => return None,
    })
}

/// The first object of a class that passes.
fn find(class: Oid, test: impl Fn(&SeededObject) -> bool) -> Option<SeededObject> {
    let (seed, prefix) = seed_of(class)?;
    let object = |row: Row<'_>| SeededObject {
        oid: row.oid("oid"),
        namespace: (!matches!(class, PG_LANGUAGE | PG_TABLESPACE)).then_some(PG_CATALOG),
        name: row.text(&format!("{prefix}name")),
        method: Oid::INVALID,
    };
    seed.rows().map(object).find(&test)
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
        class => find(class, |o| o.oid == address.object),
    }
}

/// The object of a class with a name in one of the schemas, which are searched in order, or of a class without schemas.
/// `method`: that of an operator class or family, else 0.
pub fn seeded_object_by_name(catalog: &Catalog, class: Oid, schemas: &[Oid], name: &str, method: Oid) -> Option<SeededObject> {
    let named = |o: &SeededObject| *o.name == *name;
    match class {
        PG_OPCLASS => of_class(catalog, catalog.find_operator_class(schemas, method, name)?),
        PG_OPFAMILY => of_family(catalog, catalog.find_operator_family(schemas, method, name)?),
        PG_LANGUAGE | PG_TABLESPACE => find(class, named),
        _ => schemas.iter().find_map(|n| find(class, |o| named(o) && o.namespace == Some(*n))),
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
