//! The identity of objects: qualified, and the lists of names that find them again.

use melba_types::Oid;

use super::seeded::{Member, member, seeded_object};
use crate::classes::*;
use crate::foreign;
use crate::naming::quote_ident;
use crate::objects::*;
use crate::publications::{publication, publication_member};
use crate::regs::NameScope;
use crate::rules::rule_name;
use crate::snapshot::Catalog;

pub(super) struct Parts {
    pub identity: String,
    pub names: Vec<String>,
    pub arguments: Vec<String>,
}

impl Parts {
    /// An object with a name that stands alone.
    fn named(name: &str) -> Parts {
        Parts { identity: quote_ident(name).into_owned(), names: vec![name.to_owned()], arguments: Vec::new() }
    }

    /// `name on whole`, whose names are those of the whole and its own.
    fn on(name: &str, whole: Parts) -> Parts {
        let mut names = whole.names;
        names.push(name.to_owned());
        Parts { identity: format!("{} on {}", quote_ident(name), whole.identity), names, arguments: whole.arguments }
    }
}

pub(super) fn parts(catalog: &Catalog, scope: &NameScope<'_>, address: ObjectAddress) -> Option<Parts> {
    let oid = address.object;
    let relation = |oid| relation_parts(catalog, scope, oid);
    Some(match address.class {
        PG_CLASS if address.sub != 0 => column_parts(catalog, scope, address)?,
        PG_CLASS => relation(oid)?,
        PG_ATTRDEF => {
            let (r, at) = catalog.column_with_default(oid)?;
            let column = ObjectAddress { class: PG_CLASS, object: r.oid, sub: at as i32 + 1 };
            let column = column_parts(catalog, scope, column)?;
            Parts { identity: format!("for {}", column.identity), ..column }
        }
        PG_PROC => {
            let f = catalog.function(oid)?;
            let names = vec![catalog.namespace(f.namespace)?.name.to_string(), f.name.to_string()];
            let arguments = f.arg_types.iter().map(|t| catalog.type_name(*t, &[])).collect();
            Parts { identity: catalog.function_signature(f, &[]), names, arguments }
        }
        PG_OPERATOR => {
            let o = catalog.operator(oid)?;
            let names = vec![catalog.namespace(o.namespace)?.name.to_string(), o.name.to_string()];
            let operands = [o.left, o.right].into_iter().filter(|t| t.is_valid());
            let arguments = operands.map(|t| catalog.type_name(t, &[])).collect();
            Parts { identity: catalog.operator_signature(o, &[]), names, arguments }
        }
        PG_TYPE => type_parts(catalog, scope, oid)?,
        PG_CAST => {
            let c = catalog.cast_by_oid(oid)?;
            let (source, target) = (catalog.type_name(c.source, &[]), catalog.type_name(c.target, &[]));
            Parts { identity: format!("({source} AS {target})"), names: vec![source], arguments: vec![target] }
        }
        PG_CONSTRAINT => {
            let c = catalog.constraint(oid)?;
            if c.relation.is_valid() {
                return Some(Parts::on(&c.name, relation(c.relation)?));
            }
            let domain = type_parts(catalog, scope, c.domain)?;
            let identity = format!("{} on {}", quote_ident(&c.name), domain.identity);
            Parts { identity, names: domain.names, arguments: vec![c.name.to_string()] }
        }
        PG_REWRITE => {
            let (name, of) = rule_name(catalog, oid)?;
            Parts::on(name, relation(of)?)
        }
        PG_TRIGGER => {
            let t = catalog.trigger(oid)?;
            Parts::on(&t.name, relation(t.table)?)
        }
        PG_POLICY => {
            let p = catalog.policy(oid)?;
            Parts::on(&p.name, relation(p.table)?)
        }
        PG_TRANSFORM => {
            let (ty, language) = transform(catalog, oid)?;
            Parts { identity: format!("for {ty} on language {language}"), names: vec![ty], arguments: vec![language] }
        }
        PG_AMOP | PG_AMPROC => member_parts(catalog, address)?,
        PG_AUTH_MEMBERS => membership_parts(catalog, oid)?,
        PG_DEFAULT_ACL => default_acl_parts(catalog, scope, oid)?,
        PG_LARGEOBJECT => Parts::named(&oid.to_string()).unquoted(),
        _ => simple_parts(catalog, scope, address)?,
    })
}

impl Parts {
    fn unquoted(self) -> Parts {
        Parts { identity: self.names.concat(), ..self }
    }
}

/// Objects that a name finds, alone or in a schema.
fn simple_parts(catalog: &Catalog, scope: &NameScope<'_>, address: ObjectAddress) -> Option<Parts> {
    let oid = address.object;
    let in_schema = |namespace, name: &str| qualified_parts(catalog, scope, namespace, name);
    match address.class {
        PG_COLLATION => catalog.collation(oid).and_then(|c| in_schema(c.namespace, &c.name)),
        PG_TS_DICT => catalog.text_search_dictionary(oid).and_then(|d| in_schema(d.namespace, &d.name)),
        PG_TS_CONFIG => catalog.text_search_config(oid).and_then(|c| in_schema(c.namespace, &c.name)),
        PG_STATISTIC_EXT => catalog.statistics_object(oid).and_then(|s| in_schema(s.namespace, &s.name)),
        PG_NAMESPACE => schema_name(catalog, scope, oid).map(|n| Parts::named(&n)),
        PG_AUTHID => catalog.role(oid).map(|r| Parts::named(&r.name)),
        PG_PARAMETER_ACL => catalog.granted(oid).map(|g| Parts::named(&g.name)),
        PG_DATABASE => catalog.database(oid).map(|d| Parts::named(&d.name)),
        PG_EXTENSION => catalog.extension(oid).map(|e| Parts::named(&e.name)),
        PG_EVENT_TRIGGER => catalog.event_trigger(oid).map(|t| Parts::named(&t.name)),
        PG_PUBLICATION => publication(catalog, oid).map(|p| Parts::named(&p.name)),
        PG_FOREIGN_DATA_WRAPPER => foreign::wrapper(catalog, oid).map(|w| Parts::named(&w.name)),
        PG_FOREIGN_SERVER => foreign::server(catalog, oid).map(|s| Parts::named(&s.name)),
        PG_USER_MAPPING => {
            let mapping = foreign::user_mapping(catalog, oid)?;
            let (user, server) = (foreign::mapped_user(catalog, mapping), &foreign::server(catalog, mapping.server)?.name);
            let identity = format!("{user} on server {server}");
            Some(Parts { identity, names: vec![user], arguments: vec![server.to_string()] })
        }
        PG_PUBLICATION_REL | PG_PUBLICATION_NAMESPACE => member_of_publication(catalog, scope, oid),
        PG_OPCLASS | PG_OPFAMILY => {
            let object = seeded_object(catalog, address)?;
            let parts = in_schema(object.namespace?, &object.name)?;
            let method = catalog.access_methods().method_name(object.method)?;
            let mut names = vec![method.to_owned()];
            names.extend(parts.names);
            Some(Parts { identity: format!("{} USING {}", parts.identity, quote_ident(method)), names, arguments: Vec::new() })
        }
        _ => {
            let object = seeded_object(catalog, address)?;
            match object.namespace {
                Some(namespace) => in_schema(namespace, &object.name),
                None => Some(Parts::named(&object.name)),
            }
        }
    }
}

/// A table or a schema, and the publication that it belongs to.
fn member_of_publication(catalog: &Catalog, scope: &NameScope<'_>, oid: Oid) -> Option<Parts> {
    let member = publication_member(catalog, oid)?;
    let publication = &publication(catalog, member.publication)?.name;
    let of = simple_or_relation(catalog, scope, ObjectAddress { class: member.class, object: member.object, sub: 0 })?;
    let identity = format!("{} in publication {publication}", of.identity);
    Some(Parts { identity, names: of.names, arguments: vec![publication.to_string()] })
}

fn simple_or_relation(catalog: &Catalog, scope: &NameScope<'_>, address: ObjectAddress) -> Option<Parts> {
    match address.class {
        PG_CLASS => relation_parts(catalog, scope, address.object),
        _ => simple_parts(catalog, scope, address),
    }
}

/// The name of a schema; the session's own temporary schema is `pg_temp`.
fn schema_name(catalog: &Catalog, scope: &NameScope<'_>, namespace: Oid) -> Option<String> {
    if namespace.is_valid() && namespace == scope.temporary {
        return Some("pg_temp".to_owned());
    }
    catalog.namespace(namespace).map(|n| n.name.to_string())
}

fn qualified_parts(catalog: &Catalog, scope: &NameScope<'_>, namespace: Oid, name: &str) -> Option<Parts> {
    let schema = schema_name(catalog, scope, namespace)?;
    let identity = format!("{}.{}", quote_ident(&schema), quote_ident(name));
    Some(Parts { identity, names: vec![schema, name.to_owned()], arguments: Vec::new() })
}

fn relation_parts(catalog: &Catalog, scope: &NameScope<'_>, oid: Oid) -> Option<Parts> {
    let r = catalog.relation(oid)?;
    qualified_parts(catalog, scope, r.namespace, &r.name)
}

fn column_parts(catalog: &Catalog, scope: &NameScope<'_>, address: ObjectAddress) -> Option<Parts> {
    let column = column_name(catalog, address)?;
    let relation = relation_parts(catalog, scope, address.object)?;
    let identity = format!("{}.{}", relation.identity, quote_ident(column));
    let mut names = relation.names;
    names.push(column.to_owned());
    Some(Parts { identity, names, arguments: Vec::new() })
}

/// The name of the column at an address.
pub(super) fn column_name(catalog: &Catalog, address: ObjectAddress) -> Option<&str> {
    let place = usize::try_from(address.sub).ok()?.checked_sub(1)?;
    Some(&catalog.relation(address.object)?.columns.get(place)?.name)
}

fn type_parts(catalog: &Catalog, scope: &NameScope<'_>, oid: Oid) -> Option<Parts> {
    let namespace = catalog.type_(oid)?.namespace;
    let mut name = catalog.type_name(oid, &[]);
    if namespace == scope.temporary
        && let Some((_, rest)) = name.split_once('.')
    {
        name = format!("pg_temp.{rest}");
    }
    Some(Parts { identity: name.clone(), names: vec![name], arguments: Vec::new() })
}

/// An operator or function of an operator family.
fn member_parts(catalog: &Catalog, address: ObjectAddress) -> Option<Parts> {
    let Member { family, left, right, number, .. } = member(catalog, address)?;
    let word = if address.class == PG_AMOP { "operator" } else { "function" };
    let scope = NameScope { path: &[], user: Oid::INVALID, temporary: Oid::INVALID };
    let family = simple_parts(catalog, &scope, ObjectAddress { class: PG_OPFAMILY, object: family, sub: 0 })?;
    let types = [left, right].map(|t| catalog.type_name(t, &[]));
    let identity = format!("{word} {number} ({}) of {}", types.join(", "), family.identity);
    let mut names = family.names;
    names.push(number.to_string());
    Some(Parts { identity, names, arguments: types.into() })
}

/// No names find a membership again.
fn membership_parts(catalog: &Catalog, oid: Oid) -> Option<Parts> {
    let (member, role) = membership(catalog, oid)?;
    let identity = format!("membership of role {member} in role {role}");
    Some(Parts { identity, names: Vec::new(), arguments: Vec::new() })
}

/// The names of a transform's type and language.
pub(super) fn transform(catalog: &Catalog, oid: Oid) -> Option<(String, String)> {
    let transform = catalog.plain_object(PG_TRANSFORM, oid)?;
    let language = catalog.language_name(transform.oid_field(1))?;
    Some((catalog.type_name(transform.oid_field(0), &[]), language.to_owned()))
}

/// The names of a membership's member and of its role.
pub(super) fn membership(catalog: &Catalog, oid: Oid) -> Option<(&str, &str)> {
    let found = catalog.roles().find_map(|r| r.member_of.iter().find(|m| m.oid == oid).map(|m| (r, m)))?;
    Some((&found.0.name, &catalog.role(found.1.role)?.name))
}

fn default_acl_parts(catalog: &Catalog, scope: &NameScope<'_>, oid: Oid) -> Option<Parts> {
    let acl = catalog.default_acl_by_oid(oid)?;
    let role = catalog.role(acl.role)?;
    let mut identity = format!("for role {}", quote_ident(&role.name));
    let mut names = vec![role.name.to_string()];
    if acl.namespace.is_valid() {
        let schema = schema_name(catalog, scope, acl.namespace)?;
        identity += &format!(" in schema {}", quote_ident(&schema));
        names.push(schema);
    }
    identity += match acl.letter {
        b'r' => " on tables",
        b'S' => " on sequences",
        b'f' => " on functions",
        b'T' => " on types",
        b'n' => " on schemas",
        _ => " on large objects",
    };
    Some(Parts { identity, names, arguments: vec![char::from(acl.letter).to_string()] })
}
