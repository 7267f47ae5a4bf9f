//! What objects are called, by their address: for people ([`describe`]), and for programs ([`identify`]), whose names
//! `pg_get_object_address` turns back into the address. (PostgreSQL's objectaddress.c.)
//!
//! Large objects are not in the catalog: the caller knows whether one exists.

mod description;
mod kind;
mod parts;
mod seeded;

pub use description::describe;
pub use kind::object_kind;
pub use seeded::{SeededObject, family_member, seeded_object, seeded_object_by_name};

use melba_types::Oid;

use crate::classes;
use crate::naming::quote_ident;
use crate::objects::*;
use crate::regs::NameScope;
use crate::snapshot::Catalog;

/// The row of pg_identify_object, and the lists of pg_identify_object_as_address.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectIdentity {
    /// The object's schema, quoted.
    pub schema: Option<String>,
    /// Its name, quoted, where the name and the schema find no other object of its class.
    pub name: Option<String>,
    pub identity: String,
    /// What pg_get_object_address takes.
    pub names: Vec<String>,
    pub arguments: Vec<String>,
}

/// The names of an object; `None` when there is no such object.
pub fn identify(catalog: &Catalog, scope: &NameScope<'_>, address: ObjectAddress) -> Option<ObjectIdentity> {
    let parts = parts::parts(catalog, scope, address)?;
    let (namespace, name) = placed(catalog, address);
    let schema = namespace.and_then(|n| catalog.namespace(n)).map(|n| quote_ident(&n.name).into_owned());
    let name = name.map(|n| quote_ident(&n).into_owned());
    Some(ObjectIdentity { schema, name, identity: parts.identity, names: parts.names, arguments: parts.arguments })
}

/// The schema of an object, and its name where that is unique for its class.
fn placed(catalog: &Catalog, address: ObjectAddress) -> (Option<Oid>, Option<String>) {
    let in_schema = |namespace: Oid, name: &str| (Some(namespace), Some(name.to_owned()));
    let alone = |name: Option<&str>| (None, name.map(str::to_owned));
    match catalog.object(address) {
        Some(Object::Relation(o)) => in_schema(o.namespace, &o.name),
        Some(Object::Type(o)) => in_schema(o.namespace, &o.name),
        Some(Object::Collation(o)) => in_schema(o.namespace, &o.name),
        Some(Object::TextSearchDictionary(o)) => in_schema(o.namespace, &o.name),
        Some(Object::TextSearchConfig(o)) => in_schema(o.namespace, &o.name),
        Some(Object::OperatorFamily(o)) => in_schema(o.namespace, &o.name),
        Some(Object::OperatorClass(o)) => in_schema(o.namespace, &o.name),
        Some(Object::ExtendedStatistics(o)) => in_schema(o.namespace, &o.name),
        Some(Object::Function(o)) => (Some(o.namespace), None),
        Some(Object::Operator(o)) => (Some(o.namespace), None),
        Some(Object::Constraint(o)) => (Some(o.namespace), None),
        Some(Object::Namespace(o)) => alone(Some(&o.name)),
        Some(Object::EventTrigger(o)) => alone(Some(&o.name)),
        Some(Object::Publication(o)) => alone(Some(&o.name)),
        Some(Object::Extension(o)) => alone(Some(&o.name)),
        Some(Object::Plain(o)) if o.class == classes::PG_TRANSFORM => (None, None),
        Some(Object::Plain(o)) => (o.schema(), Some(o.name.to_string())),
        Some(Object::Role(o)) => alone(Some(&o.name)),
        Some(Object::Database(o)) => alone(Some(&o.name)),
        Some(_) => (None, None),
        None => match seeded_object(catalog, address) {
            Some(o) => (o.namespace, Some(o.name.to_string())),
            None => (None, None),
        },
    }
}

#[cfg(test)]
mod tests;
