//! The words for kinds of objects.

use melba_types::Oid;

use crate::classes::*;
use crate::objects::*;
use crate::snapshot::Catalog;

/// Kinds of objects that are one for a class.
const KINDS: &[(Oid, &str)] = &[
    (PG_TYPE, "type"),
    (PG_CAST, "cast"),
    (PG_COLLATION, "collation"),
    (PG_CONVERSION, "conversion"),
    (PG_ATTRDEF, "default value"),
    (PG_LANGUAGE, "language"),
    (PG_LARGEOBJECT, "large object"),
    (PG_OPERATOR, "operator"),
    (PG_OPCLASS, "operator class"),
    (PG_OPFAMILY, "operator family"),
    (PG_AM, "access method"),
    (PG_AMOP, "operator of access method"),
    (PG_AMPROC, "function of access method"),
    (PG_REWRITE, "rule"),
    (PG_TRIGGER, "trigger"),
    (PG_NAMESPACE, "schema"),
    (PG_STATISTIC_EXT, "statistics object"),
    (PG_TS_PARSER, "text search parser"),
    (PG_TS_DICT, "text search dictionary"),
    (PG_TS_TEMPLATE, "text search template"),
    (PG_TS_CONFIG, "text search configuration"),
    (PG_AUTHID, "role"),
    (PG_AUTH_MEMBERS, "role membership"),
    (PG_DATABASE, "database"),
    (PG_TABLESPACE, "tablespace"),
    (PG_FOREIGN_DATA_WRAPPER, "foreign-data wrapper"),
    (PG_FOREIGN_SERVER, "server"),
    (PG_USER_MAPPING, "user mapping"),
    (PG_DEFAULT_ACL, "default acl"),
    (PG_EXTENSION, "extension"),
    (PG_EVENT_TRIGGER, "event trigger"),
    (PG_PARAMETER_ACL, "parameter ACL"),
    (PG_POLICY, "policy"),
    (PG_PUBLICATION, "publication"),
    (PG_PUBLICATION_NAMESPACE, "publication namespace"),
    (PG_PUBLICATION_REL, "publication relation"),
    (PG_SUBSCRIPTION, "subscription"),
    (PG_TRANSFORM, "transform"),
];

/// The kind of an object as pg_identify_object names it, whether or not the object exists; `None` for a class that has no objects.
pub fn object_kind(catalog: &Catalog, address: ObjectAddress) -> Option<String> {
    let oid = address.object;
    let word = match address.class {
        PG_CLASS => {
            let word = catalog.relation(oid).map_or("relation", |r| relation_kind(r.kind));
            // Without the relation, its column is not looked at.
            let of_column = address.sub != 0 && catalog.relation(oid).is_some();
            return Some(if of_column { format!("{word} column") } else { word.to_owned() });
        }
        PG_PROC => match catalog.function(oid).map(|f| f.kind) {
            Some(FunctionKind::Aggregate) => "aggregate",
            Some(FunctionKind::Procedure) => "procedure",
            Some(FunctionKind::Function | FunctionKind::Window) => "function",
            None => "routine",
        },
        PG_CONSTRAINT => match catalog.constraint(oid) {
            Some(c) if c.relation.is_valid() => "table constraint",
            Some(_) => "domain constraint",
            None => "constraint",
        },
        class => KINDS.iter().find(|(c, _)| *c == class)?.1,
    };
    Some(word.to_owned())
}

pub(super) fn relation_kind(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Table | RelationKind::PartitionedTable => "table",
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        RelationKind::Sequence => "sequence",
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Composite => "composite type",
        RelationKind::Toast => "toast table",
        RelationKind::ForeignTable => "foreign table",
    }
}
