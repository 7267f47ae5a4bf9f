//! Addresses of types, and of objects that types tell apart.

use std::sync::Arc;

use melba_catalog::identity::{describe, family_member as find_member};
use melba_catalog::{NameScope, ObjectAddress, Type, classes, regs};
use melba_routine::find::{RoutineName, find_routine};
use melba_routine::operator::named_operator;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{self, Node, ObjectType, ObjectWithArgs, TypeName};

use super::in_schema::access_method_object;
use super::{NamedObject, at};
use crate::plain::find_transform;
use crate::types::domain::domain_constraint_by_name;

/// The type that a text names.
fn type_of_text(n: &NamedObject<'_>, text: &str) -> Result<Oid> {
    let within = NameScope { path: n.ddl.path(), user: n.ddl.user(), temporary: n.ddl.temporary() };
    regs::parse_type(&n.ddl.catalog(), text, &within)
}

fn types_of_arguments(n: &NamedObject<'_>) -> Result<Vec<Oid>> {
    n.arguments.iter().map(|text| type_of_text(n, text)).collect()
}

/// A name with types, as statements have it.
fn with_types(n: &NamedObject<'_>) -> Result<Node> {
    n.searched(n.names)?;
    let type_node = |ty: Oid| {
        let name = TypeName { type_oid: ty.0, typemod: -1, location: -1, ..TypeName::default() };
        Node { node: Some(N::TypeName(name)) }
    };
    let objargs = types_of_arguments(n)?.into_iter().map(type_node).collect();
    let name_node = |name: &&str| Node { node: Some(N::String(protobuf::String { sval: (*name).to_owned() })) };
    let objname = n.names.iter().map(name_node).collect();
    Ok(Node { node: Some(N::ObjectWithArgs(ObjectWithArgs { objname, objargs, ..ObjectWithArgs::default() })) })
}

pub(super) fn routine(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let kind = match n.word {
        "aggregate" => ObjectType::ObjectAggregate,
        "procedure" => ObjectType::ObjectProcedure,
        _ => ObjectType::ObjectFunction,
    };
    let node = with_types(n)?;
    let name = RoutineName::of(kind, Some(&node)).ok_or_else(|| DbError::internal("a routine without a name"))?;
    Ok(at(classes::PG_PROC, find_routine(n.ddl, &name)?.oid))
}

pub(super) fn operator(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    Ok(at(classes::PG_OPERATOR, named_operator(n.ddl, Some(&with_types(n)?))?.oid))
}

pub(super) fn type_(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    Ok(at(classes::PG_TYPE, type_of_text(n, n.names[0])?))
}

pub(super) fn cast(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (source, target) = (type_of_text(n, n.names[0])?, type_of_text(n, n.arguments[0])?);
    let catalog = n.ddl.catalog();
    let name = |ty| catalog.type_name(ty, n.ddl.path());
    let missing = || err!(UNDEFINED_OBJECT, "cast from type {} to type {} does not exist", name(source), name(target));
    Ok(at(classes::PG_CAST, catalog.cast(source, target).ok_or_else(missing)?.oid))
}

pub(super) fn transform(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (name, found) = find_transform(n.ddl, type_of_text(n, n.names[0])?, n.arguments[0])?;
    found.map(|transform| transform.address()).ok_or_else(|| err!(UNDEFINED_OBJECT, "transform {name} does not exist"))
}

pub(super) fn domain_constraint(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let text = n.names[0];
    let oid = type_of_text(n, text)?;
    let catalog = n.ddl.catalog();
    let is_domain = |ty: &&Arc<Type>| ty.domain.is_some();
    let domain = catalog.type_(oid).filter(is_domain);
    let domain = domain.ok_or_else(|| err!(WRONG_OBJECT_TYPE, "\"{text}\" is not a domain"))?;
    Ok(at(classes::PG_CONSTRAINT, domain_constraint_by_name(n.ddl, domain, n.arguments[0])?.oid))
}

/// An operator or function of an operator family: the last name is its number.
pub(super) fn family_member(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let [family @ .., number] = n.names else { return Err(DbError::internal("an operator family without a name")) };
    let family = access_method_object(n, classes::PG_OPFAMILY, family)?;
    // As C's atoi: the digits at the beginning.
    let digits = number.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: i16 = digits[..end].parse().unwrap_or(0);
    let types = types_of_arguments(n)?;
    let class = if n.word.starts_with("operator") { classes::PG_AMOP } else { classes::PG_AMPROC };
    if let Some(found) = find_member(&n.ddl.catalog(), class, family, (types[0], types[1]), number) {
        return Ok(at(class, found));
    }
    let word = if class == classes::PG_AMOP { "operator" } else { "function" };
    let family = describe(&n.ddl.catalog(), n.ddl.path(), at(classes::PG_OPFAMILY, family)).unwrap_or_default();
    bail!(UNDEFINED_OBJECT, "{word} {number} ({}) of {family} does not exist", n.arguments.join(", "))
}
