//! Names and array types of new types.

use std::sync::Arc;

use melba_catalog::{Object, Type, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_definition::naming::{NAME_BYTES_MAX, clip};
use melba_types::{Kind, Oid, Result, bail};

use super::shell::own_shell;

/// A pg_type row with everything optional left out.
pub fn bare_type(ddl: &Ddl<'_>, namespace: Oid) -> Type {
    Type {
        oid: Oid::INVALID,
        name: "".into(),
        namespace,
        owner: ddl.user(),
        type_kind: TypeKind::Base,
        category: b'U',
        preferred: false,
        length: -1,
        by_value: false,
        align: b'i',
        storage: b'x',
        delimiter: b',',
        defined: true,
        element: Oid::INVALID,
        array: Oid::INVALID,
        collation: Oid::INVALID,
        input: "-".into(),
        output: "-".into(),
        receive: "-".into(),
        send: "-".into(),
        typmod_in: "-".into(),
        typmod_out: "-".into(),
        subscript: "-".into(),
        relation: Oid::INVALID,
        domain: None,
        labels: vec![],
        range: None,
        acl: None,
        kind: Kind::Bytes,
        depends_on: vec![],
        base: None,
    }
}

/// Whether a name can be given to a new type. An array type that has it gets another one.
pub fn free_type_name(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Result<bool> {
    let catalog = ddl.catalog();
    let Some(taken) = catalog.type_by_name(namespace, name) else { return Ok(true) };
    let is_generated = taken.category == b'A' && catalog.type_(taken.element).is_some_and(|e| e.array == taken.oid);
    if !is_generated || taken.oid.0 < classes::FIRST_USER_OID {
        return Ok(false);
    }
    let array = Type { name: array_type_name(ddl, name, namespace).into(), ..(**taken).clone() };
    ddl.tx().put(Object::Type(Arc::new(array)));
    Ok(true)
}

/// `_name`, with a number when that is taken.
pub fn array_type_name(ddl: &Ddl<'_>, name: &str, namespace: Oid) -> String {
    let catalog = ddl.catalog();
    let attempt = |suffix: &str| {
        let name = format!("_{}{suffix}", clip(name, NAME_BYTES_MAX - 1 - suffix.len()));
        catalog.type_by_name(namespace, &name).is_none().then_some(name)
    };
    let numbered = || (1..).find_map(|n: u32| attempt(&format!("_{n}")));
    attempt("").or_else(numbered).expect("there are more numbers than types")
}

/// The array type over a new type.
pub fn put_array_type(ddl: &Ddl<'_>, name: &str, namespace: Oid, element: Oid, align: u8) -> Result<Oid> {
    let array_name = array_type_name(ddl, name, namespace);
    let oid = ddl.tx().new_oid();
    let array = Type {
        oid,
        name: array_name.into(),
        category: b'A',
        align,
        element,
        input: "array_in".into(),
        output: "array_out".into(),
        receive: "array_recv".into(),
        send: "array_send".into(),
        subscript: "array_subscript_handler".into(),
        kind: Kind::Array,
        ..bare_type(ddl, namespace)
    };
    ddl.tx().put(Object::Type(Arc::new(array)));
    Ok(oid)
}

/// The schema and the name of a new type, and the shell that it completes.
pub fn new_type_name<'n>(ddl: &Ddl<'_>, names: &[&'n str]) -> Result<(Oid, &'n str, Option<Oid>)> {
    let (schema, name) = ddl.qualified(names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let shell = own_shell(ddl, namespace, name)?;
    if shell.is_none() && !free_type_name(ddl, namespace, name)? {
        bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
    }
    Ok((namespace, name, shell))
}
