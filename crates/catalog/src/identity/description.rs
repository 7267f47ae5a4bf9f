//! Objects as messages and pg_describe_object name them (PostgreSQL's getObjectDescription).

use melba_types::{Oid, oids};

use super::kind::relation_kind;
use super::parts::{column_name, membership, transform};
use super::seeded::{Member, SeededObject, member, seeded_object, seeded_object_by_name};
use crate::classes::*;
use crate::extended_statistics::statistics_are_visible;
use crate::foreign;
use crate::objects::*;
use crate::publications::{publication, publication_member};
use crate::rules::rule_name;
use crate::snapshot::Catalog;

/// An object as messages name it, with schemas where the search path does not find it; `None` when there is no such object.
pub fn describe(catalog: &Catalog, path: &[Oid], address: ObjectAddress) -> Option<String> {
    let oid = address.object;
    let relation = |oid| describe_relation(catalog, path, oid);
    Some(match address.class {
        PG_CLASS if address.sub != 0 => describe_column(catalog, path, address)?,
        PG_CLASS => relation(oid)?,
        PG_ATTRDEF => {
            let (r, at) = catalog.column_with_default(oid)?;
            let column = ObjectAddress { class: PG_CLASS, object: r.oid, sub: at as i32 + 1 };
            format!("default value for {}", describe_column(catalog, path, column)?)
        }
        PG_PROC => format!("function {}", catalog.function_signature(catalog.function(oid)?, path)),
        PG_TYPE => {
            catalog.type_(oid)?;
            format!("type {}", catalog.type_name(oid, path))
        }
        PG_CAST => {
            let c = catalog.cast_by_oid(oid)?;
            format!("cast from {} to {}", catalog.type_name(c.source, path), catalog.type_name(c.target, path))
        }
        PG_OPERATOR => format!("operator {}", catalog.operator_signature(catalog.operator(oid)?, path)),
        PG_CONSTRAINT => {
            let c = catalog.constraint(oid)?;
            match c.relation.is_valid() {
                true => format!("constraint {} on {}", c.name, relation(c.relation)?),
                false => format!("constraint {}", c.name),
            }
        }
        PG_REWRITE => {
            let (name, of) = rule_name(catalog, oid)?;
            format!("rule {name} on {}", relation(of)?)
        }
        PG_TRIGGER => {
            let t = catalog.trigger(oid)?;
            format!("trigger {} on {}", t.name, relation(t.table)?)
        }
        PG_POLICY => {
            let p = catalog.policy(oid)?;
            format!("policy {} on {}", p.name, relation(p.table)?)
        }
        PG_TRANSFORM => {
            let (_, language) = transform(catalog, oid)?;
            let ty = catalog.plain_object(PG_TRANSFORM, oid)?.oid_field(0);
            format!("transform for {} language {language}", catalog.type_name(ty, path))
        }
        PG_AMOP | PG_AMPROC => describe_member(catalog, path, address)?,
        PG_AUTH_MEMBERS => {
            let (member, role) = membership(catalog, oid)?;
            format!("membership of role {member} in role {role}")
        }
        PG_DEFAULT_ACL => describe_default_acl(catalog, catalog.default_acl_by_oid(oid)?),
        _ => describe_simple(catalog, path, address)?,
    })
}

/// Objects that a name finds, alone or in a schema.
fn describe_simple(catalog: &Catalog, path: &[Oid], address: ObjectAddress) -> Option<String> {
    let oid = address.object;
    Some(match address.class {
        PG_COLLATION => {
            let c = catalog.collation(oid)?;
            format!("collation {}", catalog.qualified(catalog.collation_is_visible(c, path), c.namespace, &c.name))
        }
        PG_TS_DICT => {
            catalog.text_search_dictionary(oid)?;
            format!("text search dictionary {}", regs_name(catalog, oids::REGDICTIONARY, oid, path)?)
        }
        PG_TS_CONFIG => {
            catalog.text_search_config(oid)?;
            format!("text search configuration {}", regs_name(catalog, oids::REGCONFIG, oid, path)?)
        }
        PG_STATISTIC_EXT => {
            let s = catalog.statistics_object(oid)?;
            let visible = statistics_are_visible(catalog, s, path);
            format!("statistics object {}", catalog.qualified(visible, s.namespace, &s.name))
        }
        PG_NAMESPACE => format!("schema {}", catalog.namespace(oid)?.name),
        PG_AUTHID => format!("role {}", catalog.role(oid)?.name),
        PG_PARAMETER_ACL => format!("parameter {}", catalog.granted(oid)?.name),
        PG_DATABASE => format!("database {}", catalog.database(oid)?.name),
        PG_EXTENSION => format!("extension {}", catalog.extension(oid)?.name),
        PG_EVENT_TRIGGER => format!("event trigger {}", catalog.event_trigger(oid)?.name),
        PG_PUBLICATION => format!("publication {}", publication(catalog, oid)?.name),
        PG_FOREIGN_DATA_WRAPPER => format!("foreign-data wrapper {}", foreign::wrapper(catalog, oid)?.name),
        PG_FOREIGN_SERVER => format!("server {}", foreign::server(catalog, oid)?.name),
        PG_USER_MAPPING => {
            let mapping = foreign::user_mapping(catalog, oid)?;
            let server = foreign::server(catalog, mapping.server)?;
            format!("user mapping for {} on server {}", foreign::mapped_user(catalog, mapping), server.name)
        }
        PG_PUBLICATION_NAMESPACE => {
            let member = publication_member(catalog, oid)?;
            let publication = &publication(catalog, member.publication)?.name;
            format!("publication of schema {} in publication {publication}", catalog.namespace(member.object)?.name)
        }
        PG_PUBLICATION_REL => {
            let member = publication_member(catalog, oid)?;
            let publication = &publication(catalog, member.publication)?.name;
            format!("publication of {} in publication {publication}", describe_relation(catalog, path, member.object)?)
        }
        PG_LARGEOBJECT => format!("large object {oid}"),
        _ => describe_seeded(catalog, path, address)?,
    })
}

/// The name of an object as its reg type prints it; `None` when there is no such object.
fn regs_name(catalog: &Catalog, ty: Oid, oid: Oid, path: &[Oid]) -> Option<String> {
    Some(catalog.reg_output(ty, oid, path)).filter(|name| *name != oid.to_string())
}

fn describe_seeded(catalog: &Catalog, path: &[Oid], address: ObjectAddress) -> Option<String> {
    let object = seeded_object(catalog, address)?;
    let SeededObject { namespace, name, method, .. } = object.clone();
    let kind = super::object_kind(catalog, address)?;
    let Some(namespace) = namespace else { return Some(format!("{kind} {name}")) };
    let found = seeded_object_by_name(catalog, address.class, path, &name, method);
    let shown = catalog.qualified(found == Some(object), namespace, &name);
    Some(match catalog.access_methods().method_name(method) {
        Some(method) => format!("{kind} {shown} for access method {method}"),
        None => format!("{kind} {shown}"),
    })
}

fn describe_relation(catalog: &Catalog, path: &[Oid], oid: Oid) -> Option<String> {
    let r = catalog.relation(oid)?;
    Some(format!("{} {}", relation_kind(r.kind), catalog.relation_name(r, path)))
}

fn describe_column(catalog: &Catalog, path: &[Oid], address: ObjectAddress) -> Option<String> {
    let column = column_name(catalog, address)?;
    Some(format!("column {column} of {}", describe_relation(catalog, path, address.object)?))
}

/// An operator or function of an operator family.
fn describe_member(catalog: &Catalog, path: &[Oid], address: ObjectAddress) -> Option<String> {
    let Member { family, left, right, number, object } = member(catalog, address)?;
    let family = describe_seeded(catalog, path, ObjectAddress { class: PG_OPFAMILY, object: family, sub: 0 })?;
    let (word, object) = match address.class {
        PG_AMOP => ("operator", catalog.operator_signature(catalog.operator(object)?, path)),
        _ => ("function", catalog.function_signature(catalog.function(object)?, path)),
    };
    let (left, right) = (catalog.type_name(left, path), catalog.type_name(right, path));
    Some(format!("{word} {number} ({left}, {right}) of {family}: {object}"))
}

/// Default privileges as messages about dependencies name them.
fn describe_default_acl(catalog: &Catalog, acl: &DefaultAcl) -> String {
    let what = match acl.letter {
        b'r' => "relations",
        b'S' => "sequences",
        b'f' => "functions",
        b'T' => "types",
        b'n' => "schemas",
        _ => "large objects",
    };
    let role = catalog.role(acl.role).map_or("?", |r| &r.name);
    let place = catalog.namespace(acl.namespace).map_or_else(String::new, |n| format!(" in schema {}", n.name));
    format!("default privileges on new {what} belonging to role {role}{place}")
}
