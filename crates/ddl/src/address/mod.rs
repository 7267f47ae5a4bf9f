//! The address of an object from its kind, names and arguments, as pg_get_object_address takes them.
//!
//! The lists are those that `melba_catalog::identity` gives. Nothing but USAGE on a named schema is checked.

mod in_schema;
mod on_relation;
mod typed;

use std::sync::Arc;

use melba_catalog::foreign::{server_by_name, user_mapping_of, wrapper_by_name};
use melba_catalog::identity::seeded_object_by_name;
use melba_catalog::publications::{publication_by_name, publication_members};
use melba_catalog::{ObjectAddress, Relation, classes};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, bail, err};

use melba_definition::context::Ddl;
use melba_definition::naming::range_var;

type Find = fn(&NamedObject<'_>) -> Result<ObjectAddress>;

/// How many names a kind takes.
#[derive(Clone, Copy, PartialEq)]
enum NameCount {
    AtLeast(usize),
    One,
    /// One, the name of a type or an OID: the first check of all.
    OneText,
}

/// A kind of object, how many names and arguments it takes, and its lookup.
#[derive(Clone, Copy)]
struct AddressedKind {
    word: &'static str,
    names: NameCount,
    arguments: Option<usize>,
    find: Find,
}

const fn kind(word: &'static str, names: NameCount, arguments: Option<usize>, find: Find) -> AddressedKind {
    AddressedKind { word, names, arguments, find }
}

const ANY: NameCount = NameCount::AtLeast(1);

const KINDS: &[AddressedKind] = &[
    kind("table", ANY, None, on_relation::relation),
    kind("index", ANY, None, on_relation::relation),
    kind("sequence", ANY, None, on_relation::relation),
    kind("view", ANY, None, on_relation::relation),
    kind("materialized view", ANY, None, on_relation::relation),
    kind("foreign table", ANY, None, on_relation::relation),
    kind("table column", ANY, None, on_relation::column),
    kind("foreign table column", ANY, None, on_relation::column),
    kind("default value", ANY, None, on_relation::column_default),
    kind("rule", ANY, None, on_relation::part),
    kind("trigger", ANY, None, on_relation::part),
    kind("table constraint", ANY, None, on_relation::part),
    kind("policy", ANY, None, on_relation::part),
    kind("publication relation", ANY, Some(1), on_relation::published),
    kind("aggregate", ANY, None, typed::routine),
    kind("function", ANY, None, typed::routine),
    kind("procedure", ANY, None, typed::routine),
    kind("operator", ANY, Some(2), typed::operator),
    kind("type", NameCount::OneText, None, typed::type_),
    kind("cast", NameCount::OneText, Some(1), typed::cast),
    kind("transform", NameCount::OneText, Some(1), typed::transform),
    kind("domain constraint", NameCount::OneText, Some(1), typed::domain_constraint),
    kind("operator of access method", NameCount::AtLeast(3), Some(2), typed::family_member),
    kind("function of access method", NameCount::AtLeast(3), Some(2), typed::family_member),
    kind("large object", NameCount::OneText, None, large_object),
    kind("collation", ANY, None, in_schema::collation),
    kind("statistics object", ANY, None, in_schema::statistics_object),
    kind("conversion", ANY, None, in_schema::seeded),
    kind("text search parser", ANY, None, in_schema::seeded),
    kind("text search dictionary", ANY, None, in_schema::text_search),
    kind("text search template", ANY, None, in_schema::seeded),
    kind("text search configuration", ANY, None, in_schema::text_search),
    kind("operator class", NameCount::AtLeast(2), None, in_schema::of_access_method),
    kind("operator family", NameCount::AtLeast(2), None, in_schema::of_access_method),
    kind("default acl", ANY, Some(1), in_schema::default_acl),
    kind("publication namespace", NameCount::One, Some(1), in_schema::published),
    kind("user mapping", NameCount::One, Some(1), user_mapping),
];

/// Kinds of objects that one name finds.
const UNQUALIFIED: &[&str] = &[
    "access method",
    "database",
    "event trigger",
    "extension",
    "foreign-data wrapper",
    "server",
    "language",
    "parameter ACL",
    "publication",
    "role",
    "schema",
    "subscription",
    "tablespace",
];

/// Kinds that pg_identify_object names and no lookup takes.
const UNSUPPORTED: &[&str] = &[
    "toast table",
    "composite type",
    "index column",
    "sequence column",
    "toast table column",
    "view column",
    "materialized view column",
    "composite type column",
    "role membership",
];

/// The object that the lists name. The caller checks that a large object exists.
///
/// # Errors
/// 22023 for another kind or lists of another length; those of the lookup of the kind, as 42P01 and 42704 for what does not exist.
pub fn object_address(ddl: &Ddl<'_>, word: &str, names: &[Option<&str>], arguments: &[Option<&str>]) -> Result<ObjectAddress> {
    let of_one_name = || UNQUALIFIED.iter().find(|w| **w == word).map(|w| kind(w, NameCount::One, None, unqualified));
    let Some(kind) = KINDS.iter().find(|k| k.word == word).copied().or_else(of_one_name) else {
        let how = if UNSUPPORTED.contains(&word) { "unsupported" } else { "unrecognized" };
        bail!(INVALID_PARAMETER_VALUE, "{how} object type \"{word}\"");
    };
    if kind.names == NameCount::OneText && names.len() != 1 {
        return Err(wrong_length("name", "exactly", 1));
    }
    if kind.word == "large object" && names == [None] {
        bail!(INVALID_PARAMETER_VALUE, "large object OID may not be null");
    }
    let names = without_nulls(names)?;
    if names.is_empty() {
        return Err(wrong_length("name", "at least", 1));
    }
    let arguments = without_nulls(arguments)?;
    match kind.names {
        NameCount::AtLeast(least) if names.len() < least => return Err(wrong_length("name", "at least", least)),
        NameCount::One if names.len() != 1 => return Err(wrong_length("name", "exactly", 1)),
        _ => {}
    }
    if let Some(exactly) = kind.arguments.filter(|n| *n != arguments.len()) {
        return Err(wrong_length("argument", "exactly", exactly));
    }
    (kind.find)(&NamedObject { ddl, word, names: &names, arguments: &arguments })
}

fn wrong_length(list: &str, how: &str, length: usize) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "{list} list length must be {how} {length}")
}

fn without_nulls<'a>(list: &[Option<&'a str>]) -> Result<Vec<&'a str>> {
    let all: Option<Vec<&str>> = list.iter().copied().collect();
    all.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "name or argument lists may not contain nulls"))
}

/// What a lookup gets.
struct NamedObject<'a> {
    ddl: &'a Ddl<'a>,
    /// The kind.
    word: &'a str,
    names: &'a [&'a str],
    arguments: &'a [&'a str],
}

fn at(class: Oid, object: Oid) -> ObjectAddress {
    ObjectAddress { class, object, sub: 0 }
}

impl NamedObject<'_> {
    /// The relation of a list of names, locked.
    fn open(&self, names: &[&str]) -> Result<Arc<Relation>> {
        let target = range_var(names)?;
        if self.ddl.find_relation(&target)?.is_none()
            && let [.., schema, _] = names
        {
            self.ddl.searched_schemas(Some(schema))?;
        }
        self.ddl.open_relation(&target, RelationLockMode::AccessShare)
    }

    /// The schemas in which a list of names is searched, and the name in them.
    fn searched<'n>(&self, names: &[&'n str]) -> Result<(Vec<Oid>, &'n str)> {
        let (schema, name) = self.ddl.qualified(names)?;
        Ok((self.ddl.searched_schemas(schema)?, name))
    }

    /// The row of a table or schema in the publication that the argument names; `None`: it does not belong to it.
    fn member_of_publication(&self, class: Oid, object: Oid) -> Result<Option<ObjectAddress>> {
        let (catalog, name) = (self.ddl.catalog(), self.arguments[0]);
        let publication = publication_by_name(&catalog, name);
        let publication = publication.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication \"{name}\" does not exist"))?;
        let wanted = (publication.oid, class, object);
        let found = publication_members(&catalog).find(|m| (m.publication, m.class, m.object) == wanted);
        Ok(found.map(|member| member.address()))
    }

    fn missing(&self, name: &str) -> DbError {
        err!(UNDEFINED_OBJECT, "{} \"{name}\" does not exist", self.word)
    }
}

/// Objects outside of schemas. Of granted parameters there are none.
fn unqualified(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (catalog, name) = (n.ddl.catalog(), n.names[0]);
    let seeded = |class| seeded_object_by_name(&catalog, class, &[], name, Oid::INVALID).map(|o| o.oid);
    let (class, found) = match n.word {
        "access method" => (classes::PG_AM, catalog.access_methods().method_by_name(name)),
        "database" => {
            let found = catalog.database_by_name(name).map(|d| d.oid);
            let found = found.ok_or_else(|| err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist"))?;
            (classes::PG_DATABASE, Some(found))
        }
        "schema" => (classes::PG_NAMESPACE, Some(n.ddl.namespace(name)?.oid)),
        "publication" => (classes::PG_PUBLICATION, publication_by_name(&catalog, name).map(|p| p.oid)),
        "foreign-data wrapper" => (classes::PG_FOREIGN_DATA_WRAPPER, wrapper_by_name(&catalog, name).map(|w| w.oid)),
        "server" => (classes::PG_FOREIGN_SERVER, server_by_name(&catalog, name).map(|s| s.oid)),
        "event trigger" => (classes::PG_EVENT_TRIGGER, catalog.event_trigger_by_name(name).map(|t| t.oid)),
        "extension" => (classes::PG_EXTENSION, catalog.extension_by_name(name).map(|e| e.oid)),
        "language" => (classes::PG_LANGUAGE, seeded(classes::PG_LANGUAGE)),
        "role" => (classes::PG_AUTHID, catalog.role_by_name(name).map(|r| r.oid)),
        "tablespace" => (classes::PG_TABLESPACE, seeded(classes::PG_TABLESPACE)),
        _ => (Oid::INVALID, None),
    };
    found.map(|object| at(class, object)).ok_or_else(|| n.missing(name))
}

fn large_object(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let text = n.names[0];
    let object = text.parse().map_err(|_| err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type oid: \"{text}\""))?;
    Ok(at(classes::PG_LARGEOBJECT, Oid(object)))
}

fn user_mapping(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (user, server, catalog) = (n.names[0], n.arguments[0], n.ddl.catalog());
    let role = if user == "public" { Some(Oid::INVALID) } else { catalog.role_by_name(user).map(|role| role.oid) };
    if let Some(role) = role {
        let Some(found) = server_by_name(&catalog, server) else { bail!(UNDEFINED_OBJECT, "server \"{server}\" does not exist") };
        if let Some(mapping) = user_mapping_of(&catalog, role, found.oid) {
            return Ok(at(classes::PG_USER_MAPPING, mapping.oid));
        }
    }
    bail!(UNDEFINED_OBJECT, "user mapping for user \"{user}\" on server \"{server}\" does not exist")
}
