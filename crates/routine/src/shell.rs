//! Shell types: types that have only a name yet, for the functions by which a base type is then made.

use std::sync::Arc;

use melba_catalog::{Object, Type, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::strings;
use melba_types::{Kind, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::TypeName;

use super::array::bare_type;

/// CREATE TYPE with a name alone.
pub fn put_shell(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Oid {
    let oid = ddl.tx().new_oid();
    let shell = Type {
        oid,
        name: name.into(),
        type_kind: TypeKind::Pseudo,
        category: b'P',
        length: 4,
        by_value: true,
        storage: b'p',
        defined: false,
        input: "shell_in".into(),
        output: "shell_out".into(),
        kind: Kind::Text,
        ..bare_type(ddl, namespace)
    };
    ddl.tx().put(Object::Type(Arc::new(shell)));
    oid
}

/// The shell that a new type of the name completes.
///
/// # Errors
/// 42501 for a shell of another role, even for superusers.
pub fn own_shell(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Result<Option<Oid>> {
    let catalog = ddl.catalog();
    match catalog.type_by_name(namespace, name).filter(|ty| !ty.defined) {
        Some(shell) if shell.owner != ddl.user() => bail!(INSUFFICIENT_PRIVILEGE, "must be owner of type {name}"),
        shell => Ok(shell.map(|shell| shell.oid)),
    }
}

/// The shell of a name; `None`: another type has it, or none.
pub fn named_shell(ddl: &Ddl<'_>, name: &TypeName) -> Result<Option<Oid>> {
    let found = ddl.with_context(|c| c.lookup_type_name(name)).map_err(melba_types::DbError::without_position)?;
    Ok(found.filter(|ty| !ty.defined).map(|ty| ty.oid))
}

fn shown(ddl: &Ddl<'_>, name: &TypeName) -> Result<String> {
    ddl.with_context(|c| Ok(c.type_name_text(name)))
}

/// The shell that a parameter of a function is of. `language`: the function's; `None`: it is an aggregate.
///
/// # Errors
/// 42P13 for functions LANGUAGE sql, and for aggregates.
pub fn shell_argument(ddl: &Ddl<'_>, name: &TypeName, language: Option<Oid>) -> Result<Option<Oid>> {
    let Some(shell) = named_shell(ddl, name)? else { return Ok(None) };
    let shown = shown(ddl, name)?;
    let refused = |who| Err(err!(INVALID_FUNCTION_DEFINITION, "{who} cannot accept shell type {shown}").at(name.location));
    match language {
        None => return refused("aggregate"),
        Some(classes::SQL_LANGUAGE) => return refused("SQL function"),
        Some(_) => {}
    }
    let notice = err!(WRONG_OBJECT_TYPE, "argument type {shown} is only a shell").at(name.location);
    ddl.session().notice(notice.severity(melba_types::Severity::Notice));
    ddl.require_type(shell)?;
    Ok(Some(shell))
}

/// The shell that a function returns. One is made for a function LANGUAGE internal whose type does not exist.
///
/// # Errors
/// 42P13 for functions LANGUAGE sql.
pub fn shell_result(ddl: &Ddl<'_>, name: &TypeName, language: Oid) -> Result<Option<Oid>> {
    let shown = shown(ddl, name)?;
    if let Some(shell) = named_shell(ddl, name)? {
        if language == classes::SQL_LANGUAGE {
            bail!(INVALID_FUNCTION_DEFINITION, "SQL function cannot return shell type {shown}");
        }
        ddl.notice_of(SqlState::WRONG_OBJECT_TYPE, format!("return type {shown} is only a shell"));
        return Ok(Some(shell));
    }
    let is_missing = language == classes::INTERNAL_LANGUAGE && ddl.with_context(|c| c.lookup_type_name(name))?.is_none();
    if !is_missing || !name.array_bounds.is_empty() {
        return Ok(None);
    }
    if !name.typmods.is_empty() {
        bail!(SYNTAX_ERROR, "type modifier cannot be specified for shell type \"{shown}\"");
    }
    let notice = err!(UNDEFINED_OBJECT, "type \"{shown}\" is not yet defined").detail("Creating a shell type definition.");
    ddl.session().notice(notice.severity(melba_types::Severity::Notice));
    let (schema, name) = ddl.qualified(&strings(&name.names))?;
    let namespace = ddl.namespace_for_creation(schema)?;
    Ok(Some(put_shell(ddl, namespace, name)))
}
