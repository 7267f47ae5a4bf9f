//! CREATE OPERATOR CLASS, CREATE and ALTER OPERATOR FAMILY.

mod members;
mod placed;

use std::sync::Arc;

use melba_catalog::{Object, ObjectAddress, OperatorClass, OperatorFamily, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterOpFamilyStmt, CreateOpClassItem, CreateOpClassStmt, CreateOpFamilyStmt, Node, TypeName};

use crate::dependents::drop_addresses;
use crate::family_lock::lock_family;
use crate::index::request::AccessMethod;

pub use members::NewMembers;
pub use placed::{Placed, dropped_placed, find_placed, give_placed, is_placed, move_placed, own_placed, rename_placed};

/// pg_query's numbers of the kinds of items.
const OPERATOR: i32 = 1;
const FUNCTION: i32 = 2;
const STORAGE: i32 = 3;

fn require_superuser(ddl: &Ddl<'_>, doing: &str) -> Result<()> {
    if ddl.is_superuser() {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to {doing}")
}

fn method_named(ddl: &Ddl<'_>, name: &str) -> Result<AccessMethod> {
    AccessMethod::of(&ddl.catalog(), name)
}

/// # Errors
/// 42704 when there is none.
pub fn named_class(ddl: &Ddl<'_>, names: &[&str], method: AccessMethod) -> Result<Arc<OperatorClass>> {
    let (schema, name) = ddl.qualified(names)?;
    let schemas = ddl.searched_schemas(schema)?;
    let found = ddl.catalog().find_operator_class(&schemas, method.oid, name).cloned();
    let (method, name) = (method.name, names.join("."));
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "operator class \"{name}\" does not exist for access method \"{method}\""))
}

/// # Errors
/// 42704 when there is none.
pub fn named_family(ddl: &Ddl<'_>, names: &[&str], method: AccessMethod) -> Result<Arc<OperatorFamily>> {
    let (schema, name) = ddl.qualified(names)?;
    let schemas = ddl.searched_schemas(schema)?;
    let found = ddl.catalog().find_operator_family(&schemas, method.oid, name).cloned();
    let (method, name) = (method.name, names.join("."));
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "operator family \"{name}\" does not exist for access method \"{method}\""))
}

fn items(nodes: &[Node]) -> Result<Vec<&CreateOpClassItem>> {
    let item = |node| match inner(node)? {
        N::CreateOpClassItem(item) => Ok(item),
        _ => Err(DbError::internal("an item of an operator class that is none")),
    };
    nodes.iter().map(item).collect()
}

pub fn create_class(ddl: &Ddl<'_>, s: &CreateOpClassStmt) -> Result<()> {
    let names = strings(&s.opclassname);
    let (schema, name) = ddl.qualified(&names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let method = method_named(ddl, &s.amname)?;
    require_superuser(ddl, "create an operator class")?;
    let datatype = s.datatype.as_ref().ok_or_else(|| DbError::internal("an operator class without a type"))?;
    // PostgreSQL reports no position here.
    let (input_type, _) = ddl.type_from_name(&TypeName { location: -1, ..datatype.clone() })?;
    let family = family_of_class(ddl, s, method, (namespace, name))?;
    let mut members = NewMembers::new(ddl, method, input_type);
    let mut key_type = Oid::INVALID;
    for item in items(&s.items)? {
        match (item.itemtype, &item.storedtype) {
            (STORAGE, Some(stored)) => {
                if key_type.is_valid() {
                    bail!(INVALID_OBJECT_DEFINITION, "storage type specified more than once");
                }
                (key_type, _) = ddl.type_from_name(stored)?;
            }
            _ => members.add(item)?,
        }
    }
    if key_type == input_type {
        key_type = Oid::INVALID;
    } else if key_type.is_valid() && method.is_of_values() {
        let method = method.name;
        bail!(INVALID_OBJECT_DEFINITION, "storage type cannot be different from data type for access method \"{method}\"");
    }
    if s.is_default {
        // One default class for each type. The number is another object's or none's: at worst, its statements wait without need.
        ddl.lock_database_object(ddl.tx().database, classes::PG_OPCLASS, input_type)?;
    }
    let catalog = ddl.catalog();
    if catalog.find_operator_class(&[namespace], method.oid, name).is_some() {
        bail!(DUPLICATE_OBJECT, "operator class \"{name}\" for access method \"{}\" already exists", method.name);
    }
    if s.is_default
        && let Some(default) = catalog.access_methods().default_class(method.oid, input_type)
        && catalog.class_namespace(default).is_some()
    {
        let shown = strings(&datatype.names).join(".");
        return Err(err!(DUPLICATE_OBJECT, "could not make operator class \"{name}\" be default for type {shown}")
            .detail(format!("Operator class \"{}\" already is the default.", default.name)));
    }
    let class = OperatorClass {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        method: method.oid,
        family: family.oid,
        input_type,
        is_default: s.is_default,
        key_type,
    };
    let oid = class.oid;
    ddl.tx().put(Object::OperatorClass(Arc::new(class)));
    members.put(family, oid)
}

/// The family that a class names, or one of its own name, which is created if need be.
fn family_of_class(
    ddl: &Ddl<'_>,
    s: &CreateOpClassStmt,
    method: AccessMethod,
    (namespace, name): (Oid, &str),
) -> Result<Arc<OperatorFamily>> {
    if !s.opfamilyname.is_empty() {
        let family = named_family(ddl, &strings(&s.opfamilyname), method)?;
        require_family_of_users(&family)?;
        return lock_family(ddl, &family);
    }
    match ddl.catalog().find_operator_family(&[namespace], method.oid, name) {
        Some(family) => {
            require_family_of_users(family)?;
            lock_family(ddl, family)
        }
        None => Ok(Arc::new(new_family(ddl, namespace, name, method))),
    }
}

fn new_family(ddl: &Ddl<'_>, namespace: Oid, name: &str, method: AccessMethod) -> OperatorFamily {
    OperatorFamily {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace,
        owner: ddl.user(),
        method: method.oid,
        operators: Vec::new(),
        functions: Vec::new(),
    }
}

/// # Errors
/// 0A000 for a family that is built in or an extension's.
fn require_family_of_users(family: &OperatorFamily) -> Result<()> {
    let of_users = classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID;
    match of_users.contains(&family.oid.0) {
        true => Ok(()),
        false => Err(DbError::unsupported(format!("changing operator family \"{}\", which is built in", family.name))),
    }
}

pub fn create_family(ddl: &Ddl<'_>, s: &CreateOpFamilyStmt) -> Result<()> {
    let names = strings(&s.opfamilyname);
    let (schema, name) = ddl.qualified(&names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let method = method_named(ddl, &s.amname)?;
    require_superuser(ddl, "create an operator family")?;
    if ddl.catalog().find_operator_family(&[namespace], method.oid, name).is_some() {
        bail!(DUPLICATE_OBJECT, "operator family \"{name}\" for access method \"{}\" already exists", method.name);
    }
    ddl.tx().put(Object::OperatorFamily(Arc::new(new_family(ddl, namespace, name, method))));
    Ok(())
}

pub fn alter_family(ddl: &Ddl<'_>, s: &AlterOpFamilyStmt) -> Result<()> {
    let method = method_named(ddl, &s.amname)?;
    let family = named_family(ddl, &strings(&s.opfamilyname), method)?;
    require_superuser(ddl, "alter an operator family")?;
    if s.is_drop {
        let family = lock_family(ddl, &family)?;
        return drop_members(ddl, s, method, &family);
    }
    let mut members = NewMembers::new(ddl, method, Oid::INVALID);
    for item in items(&s.items)? {
        if item.itemtype == STORAGE {
            bail!(SYNTAX_ERROR, "STORAGE cannot be specified in ALTER OPERATOR FAMILY");
        }
        members.add(item)?;
    }
    require_family_of_users(&family)?;
    members.refuse_existing(&family)?;
    members.put(lock_family(ddl, &family)?, Oid::INVALID)
}

/// ALTER OPERATOR FAMILY ... DROP.
fn drop_members(ddl: &Ddl<'_>, s: &AlterOpFamilyStmt, method: AccessMethod, family: &OperatorFamily) -> Result<()> {
    let mut dropped: Vec<(bool, Oid, Oid, i16)> = Vec::new();
    for item in items(&s.items)? {
        let is_operator = item.itemtype == OPERATOR;
        let number = members::number_of(method, item)?;
        let (left, right) = members::types_of(ddl, &item.class_args)?;
        let one = (is_operator, left, right, number);
        if dropped.contains(&one) {
            return Err(members::repeated(ddl, one));
        }
        dropped.push(one);
    }
    let mut addresses = Vec::new();
    for (is_operator, left, right, number) in dropped {
        let is_it = |l, r, n| (l, r, n) == (left, right, number);
        let found = match is_operator {
            true => family.operators.iter().find(|m| is_it(m.left, m.right, m.strategy)).map(|m| (classes::PG_AMOP, m.oid)),
            false => family.functions.iter().find(|m| is_it(m.left, m.right, m.number)).map(|m| (classes::PG_AMPROC, m.oid)),
        };
        let shown = members::shown(ddl, (is_operator, left, right, number), ",");
        let missing =
            || DbError::new(SqlState::UNDEFINED_OBJECT, format!("{shown} does not exist in operator family \"{}\"", family.name));
        let (class, object) = found.ok_or_else(missing)?;
        addresses.push(ObjectAddress { class, object, sub: 0 });
    }
    require_family_of_users(family)?;
    addresses.into_iter().try_for_each(|address| drop_addresses(ddl, &[address], false))
}
