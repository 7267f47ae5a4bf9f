//! Types that a statement names to change them.

use std::sync::Arc;

use melba_catalog::{Type, classes};
use melba_parse::nodes::strings;
use melba_types::{Result, err};
use pg_query::protobuf::Node;
use pg_query::protobuf::node::Node as N;

use melba_definition::context::Ddl;

/// The type that a statement names.
pub fn named_type(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<Type>> {
    let names = match object.and_then(|n| n.node.as_ref()) {
        Some(N::List(list)) => strings(&list.items),
        Some(N::TypeName(name)) => strings(&name.names),
        _ => vec![],
    };
    let found = type_named(ddl, &names)?;
    match object.and_then(|n| n.node.as_ref()) {
        Some(N::TypeName(name)) if !name.array_bounds.is_empty() => {
            let array = ddl.catalog().type_(found.array).cloned();
            array.ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}[]\" does not exist", names.join(".")))
        }
        _ => Ok(found),
    }
}

/// The same; others cannot change or drop it until the transaction ends.
pub fn open_type(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<Type>> {
    locked(ddl, || named_type(ddl, object))
}

/// The type of a name; others cannot change or drop it until the transaction ends.
pub fn open_type_named(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<Type>> {
    locked(ddl, || type_named(ddl, names))
}

fn locked(ddl: &Ddl<'_>, find: impl Fn() -> Result<Arc<Type>>) -> Result<Arc<Type>> {
    let mut found = find()?;
    loop {
        ddl.lock_database_object(ddl.tx().database, classes::PG_TYPE, found.oid)?;
        // During the wait, the name may have got another type.
        let now = find()?;
        if now.oid == found.oid {
            return Ok(now);
        }
        found = now;
    }
}

/// The type of a name, which may have a schema before it.
pub fn type_named(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<Type>> {
    let (schema, name) = ddl.qualified(names)?;
    let catalog = ddl.catalog();
    let found = ddl.searched_schemas(schema)?.iter().find_map(|ns| catalog.type_by_name(*ns, name));
    found.cloned().ok_or_else(|| err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", names.join(".")))
}

/// # Errors
/// 42704 for a shell.
pub fn require_defined(ddl: &Ddl<'_>, ty: &Type) -> Result<()> {
    match ty.defined {
        true => Ok(()),
        false => Err(err!(UNDEFINED_OBJECT, "type \"{}\" is only a shell", ddl.catalog().type_name(ty.oid, ddl.path()))),
    }
}
