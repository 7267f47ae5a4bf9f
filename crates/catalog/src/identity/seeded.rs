//! Objects that no statement makes: their rows are in the seeds of their relations.

use melba_types::Oid;

use crate::classes::{self, *};
use crate::objects::ObjectAddress;
use crate::seed::{Row, Seed, seed};
use crate::snapshot::Catalog;

/// An object of a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeededObject {
    pub oid: Oid,
    /// `None` for objects outside of schemas.
    pub namespace: Option<Oid>,
    pub name: &'static str,
    /// The access method of an operator class or family; else 0.
    pub method: Oid,
}

/// The seed of a class, that of the extensions' rows, and the prefix of its columns' names.
fn seeds(class: Oid) -> Option<(Seed, Option<Seed>, &'static str)> {
    Some(match class {
        PG_CONVERSION => (seed!("pg_conversion"), None, "con"),
        PG_LANGUAGE => (seed!("pg_language"), None, "lan"),
        PG_TABLESPACE => (seed!("pg_tablespace"), None, "spc"),
        PG_TS_PARSER => (seed!("pg_ts_parser"), None, "prs"),
        PG_TS_TEMPLATE => (seed!("pg_ts_template"), None, "tmpl"),
        PG_OPCLASS => (seed!("pg_opclass"), Some(seed!("extension/pg_opclass")), "opc"),
        PG_OPFAMILY => (seed!("pg_opfamily"), Some(seed!("extension/pg_opfamily")), "opf"),
        _ => return None,
    })
}

/// The first object of a class that passes; those of extensions exist while the extension does.
fn find(catalog: &Catalog, class: Oid, test: impl Fn(&SeededObject) -> bool) -> Option<SeededObject> {
    let (own, of_extensions, prefix) = seeds(class)?;
    let object = |row: &Row<'_>| SeededObject {
        oid: row.oid("oid"),
        namespace: (!matches!(class, PG_LANGUAGE | PG_TABLESPACE)).then_some(PG_CATALOG),
        name: row.str(&format!("{prefix}name")),
        method: if matches!(class, PG_OPCLASS | PG_OPFAMILY) { row.oid(&format!("{prefix}method")) } else { Oid::INVALID },
    };
    let installed = |row: Row<'_>| {
        let object = object(&row);
        let extension = catalog.extension_of(ObjectAddress { class, object: object.oid, sub: 0 })?;
        Some(SeededObject { namespace: Some(extension.namespace), ..object })
    };
    let built_in = own.rows().map(|row| object(&row)).find(&test);
    built_in.or_else(|| of_extensions.iter().flat_map(Seed::rows).filter_map(installed).find(&test))
}

/// The object at an address, when its class has a seed.
pub fn seeded_object(catalog: &Catalog, address: ObjectAddress) -> Option<SeededObject> {
    find(catalog, address.class, |o| o.oid == address.object)
}

/// The object of a class with a name in one of the schemas, which are searched in order, or of a class without schemas.
/// `method`: that of an operator class or family, else 0.
pub fn seeded_object_by_name(catalog: &Catalog, class: Oid, schemas: &[Oid], name: &str, method: Oid) -> Option<SeededObject> {
    let named = |o: &SeededObject| o.name == name && o.method == method;
    match class {
        PG_LANGUAGE | PG_TABLESPACE => find(catalog, class, named),
        _ => schemas.iter().find_map(|n| find(catalog, class, |o| named(o) && o.namespace == Some(*n))),
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

fn find_member(class: Oid, test: impl Fn(Oid, &Member) -> bool) -> Option<(Oid, Member)> {
    let operators = class == classes::PG_AMOP;
    let (own, of_extensions) = match operators {
        true => (seed!("pg_amop"), seed!("extension/pg_amop")),
        false => (seed!("pg_amproc"), seed!("extension/pg_amproc")),
    };
    let member = |row: Row<'_>| {
        let prefix = if operators { "amop" } else { "amproc" };
        let column = |name: &str| format!("{prefix}{name}");
        let member = Member {
            family: row.oid(&column("family")),
            left: row.oid(&column("lefttype")),
            right: row.oid(&column("righttype")),
            number: row.number(&column(if operators { "strategy" } else { "num" })),
            object: row.oid(if operators { "amopopr" } else { "amproc" }),
        };
        (row.oid("oid"), member)
    };
    own.rows().chain(of_extensions.rows()).map(member).find(|(oid, m)| test(*oid, m))
}

pub(super) fn member(catalog: &Catalog, address: ObjectAddress) -> Option<Member> {
    let (_, found) = find_member(address.class, |oid, _| oid == address.object)?;
    seeded_object(catalog, ObjectAddress { class: PG_OPFAMILY, object: found.family, sub: 0 })?;
    Some(found)
}

/// The row of pg_amop or pg_amproc (`class`) for two types and a strategy or number.
pub fn family_member(class: Oid, family: Oid, types: (Oid, Oid), number: i16) -> Option<Oid> {
    let is = |m: &Member| (m.family, m.left, m.right, m.number) == (family, types.0, types.1, number);
    find_member(class, |_, m| is(m)).map(|(oid, _)| oid)
}
