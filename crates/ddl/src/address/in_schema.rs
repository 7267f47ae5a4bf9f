//! Addresses of objects that a schema and a name find, and of default privileges.

use melba_catalog::identity::seeded_object_by_name;
use melba_catalog::{ObjectAddress, classes};
use melba_types::{Oid, Result, bail, err};

use super::{NamedObject, at};

pub(super) fn collation(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (schemas, name) = n.searched(n.names)?;
    let catalog = n.ddl.catalog();
    let found = catalog.find_collation(&schemas, name).map(|c| c.oid);
    let shown = n.names.join(".");
    let missing = || err!(UNDEFINED_OBJECT, "collation \"{shown}\" for encoding \"UTF8\" does not exist");
    Ok(at(classes::PG_COLLATION, found.ok_or_else(missing)?))
}

pub(super) fn statistics_object(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (schemas, name) = n.searched(n.names)?;
    let catalog = n.ddl.catalog();
    let found = schemas.iter().find_map(|s| catalog.statistics_object_by_name(*s, name)).map(|s| s.oid);
    Ok(at(classes::PG_STATISTIC_EXT, found.ok_or_else(|| n.missing(&n.names.join(".")))?))
}

pub(super) fn text_search(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (schemas, name) = n.searched(n.names)?;
    let catalog = n.ddl.catalog();
    let (class, found) = match n.word {
        "text search dictionary" => (classes::PG_TS_DICT, catalog.find_text_search_dictionary(&schemas, name).map(|o| o.oid)),
        _ => (classes::PG_TS_CONFIG, catalog.find_text_search_config(&schemas, name).map(|o| o.oid)),
    };
    Ok(at(class, found.ok_or_else(|| n.missing(&n.names.join(".")))?))
}

/// Conversions, and the parsers and templates of text search.
pub(super) fn seeded(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let class = match n.word {
        "conversion" => classes::PG_CONVERSION,
        "text search parser" => classes::PG_TS_PARSER,
        _ => classes::PG_TS_TEMPLATE,
    };
    let (schemas, name) = n.searched(n.names)?;
    let found = seeded_object_by_name(&n.ddl.catalog(), class, &schemas, name, Oid::INVALID);
    Ok(at(class, found.ok_or_else(|| n.missing(&n.names.join(".")))?.oid))
}

/// Operator classes and families, whose first name is the access method.
pub(super) fn of_access_method(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let class = if n.word == "operator class" { classes::PG_OPCLASS } else { classes::PG_OPFAMILY };
    access_method_object(n, class, n.names).map(|object| at(class, object))
}

pub(super) fn access_method_object(n: &NamedObject<'_>, class: Oid, names: &[&str]) -> Result<Oid> {
    let [method, names @ ..] = names else { bail!(INVALID_PARAMETER_VALUE, "name list length must be at least 2") };
    let catalog = n.ddl.catalog();
    let oid = catalog.access_methods().method_by_name(method);
    let oid = oid.ok_or_else(|| err!(UNDEFINED_OBJECT, "access method \"{method}\" does not exist"))?;
    if matches!(oid, classes::HEAP | classes::MEMORY) {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "access method \"{method}\" is not of type INDEX");
    }
    let (schemas, name) = n.searched(names)?;
    let found = seeded_object_by_name(&catalog, class, &schemas, name, oid).map(|o| o.oid);
    let (word, shown) = (if class == classes::PG_OPCLASS { "operator class" } else { "operator family" }, names.join("."));
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "{word} \"{shown}\" does not exist for access method \"{method}\""))
}

/// A role, and a schema when there is a second name; the argument is the letter of pg_default_acl.defaclobjtype.
pub(super) fn default_acl(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let catalog = n.ddl.catalog();
    let letter = n.arguments[0].bytes().next().unwrap_or(0);
    let plural = match letter {
        b'r' => "tables",
        b'S' => "sequences",
        b'f' => "functions",
        b'T' => "types",
        b'n' => "schemas",
        b'L' => "large objects",
        _ => {
            let shown = n.arguments[0].chars().next().map_or_else(String::new, String::from);
            return Err(err!(INVALID_PARAMETER_VALUE, "unrecognized default ACL object type \"{shown}\"")
                .hint("Valid object types are \"r\", \"S\", \"f\", \"T\", \"n\", \"L\"."));
        }
    };
    let (user, schema) = (n.names[0], n.names.get(1));
    let role = catalog.role_by_name(user).map(|r| r.oid);
    let namespace = match schema {
        Some(name) => catalog.namespace_by_name(name).map(|n| n.oid),
        None => Some(Oid::INVALID),
    };
    let place = (role, namespace);
    let found = catalog.default_acls().find(|d| place == (Some(d.role), Some(d.namespace)) && d.letter == letter);
    let within = schema.map_or_else(String::new, |s| format!(" in schema \"{s}\""));
    let missing = || err!(UNDEFINED_OBJECT, "default ACL for user \"{user}\"{within} on {plural} does not exist");
    Ok(at(classes::PG_DEFAULT_ACL, found.ok_or_else(missing)?.oid))
}

/// A schema in a publication.
pub(super) fn published(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let schema = n.ddl.namespace(n.names[0])?;
    let member = n.member_of_publication(classes::PG_NAMESPACE, schema.oid)?;
    let (name, of) = (n.names[0], n.arguments[0]);
    member.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication schema \"{name}\" in publication \"{of}\" does not exist"))
}
