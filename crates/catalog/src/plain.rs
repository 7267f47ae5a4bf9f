//! Objects that are no more than a row of their system relation: no part of the server but statements about objects looks at them.
//!
//! Those of pg_ts_parser and pg_ts_template are all built in, as are tablespaces and languages, whose rows statements may change.

use std::sync::Arc;

use melba_types::{Datum, Oid};

use crate::classes;
use crate::objects::{Acl, ObjectAddress};

/// A row of a system relation.
#[derive(Clone, Debug)]
pub struct PlainObject {
    pub oid: Oid,
    /// The system relation.
    pub class: Oid,
    /// That of a transform is made of the OIDs of its type and language (`transform_name`).
    pub name: Arc<str>,
    /// 0 for objects outside of schemas.
    pub namespace: Oid,
    pub owner: Oid,
    pub acl: Acl,
    /// `name=value`: the options of a tablespace. Of the row of pg_db_role_setting, the settings of all roles in all databases.
    pub options: Vec<Arc<str>>,
    /// The values of the other columns, in their order.
    pub fields: Vec<Datum>,
    pub depends_on: Vec<ObjectAddress>,
}

/// What a column of such a row has.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum PlainColumn {
    Oid,
    Name,
    Namespace,
    Owner,
    Acl,
    Options,
    Field,
}

impl PlainColumn {
    pub(crate) fn of(name: &str) -> PlainColumn {
        match name {
            "oid" => PlainColumn::Oid,
            _ if name.ends_with("name") => PlainColumn::Name,
            _ if name.ends_with("namespace") => PlainColumn::Namespace,
            _ if name.ends_with("owner") => PlainColumn::Owner,
            _ if name.ends_with("acl") => PlainColumn::Acl,
            _ if name.ends_with("options") => PlainColumn::Options,
            _ => PlainColumn::Field,
        }
    }
}

/// The system relations of plain objects.
const RELATIONS: [(&str, Oid); 7] = [
    ("pg_am", classes::PG_AM),
    ("pg_conversion", classes::PG_CONVERSION),
    ("pg_language", classes::PG_LANGUAGE),
    ("pg_tablespace", classes::PG_TABLESPACE),
    ("pg_transform", classes::PG_TRANSFORM),
    ("pg_ts_parser", classes::PG_TS_PARSER),
    ("pg_ts_template", classes::PG_TS_TEMPLATE),
];

/// The class of a system relation of plain objects.
pub(crate) fn class_of_relation(name: &str) -> Option<Oid> {
    RELATIONS.iter().find(|(relation, _)| *relation == name).map(|(_, class)| *class)
}

impl PlainObject {
    /// An object with nothing but a name and an owner.
    pub fn new(oid: Oid, class: Oid, name: impl Into<Arc<str>>, owner: Oid) -> PlainObject {
        PlainObject {
            oid,
            class,
            name: name.into(),
            namespace: Oid::INVALID,
            owner,
            acl: None,
            options: Vec::new(),
            fields: Vec::new(),
            depends_on: Vec::new(),
        }
    }

    pub fn address(&self) -> ObjectAddress {
        ObjectAddress { class: self.class, object: self.oid, sub: 0 }
    }

    /// The schema of an object that is in one.
    pub fn schema(&self) -> Option<Oid> {
        Some(self.namespace).filter(|namespace| namespace.is_valid())
    }

    /// A field that is an OID.
    pub fn oid_field(&self, place: usize) -> Oid {
        match self.fields.get(place) {
            Some(Datum::Oid(oid)) => Oid(*oid),
            _ => Oid::INVALID,
        }
    }
}

/// The name under which a transform is found.
pub fn transform_name(ty: Oid, language: Oid) -> String {
    format!("{ty} {language}")
}
