//! CREATE and ALTER FOREIGN DATA WRAPPER. A wrapper without a handler keeps definitions, as those of a dump.

use std::sync::Arc;

use melba_catalog::foreign::wrapper_by_name;
use melba_catalog::{ForeignDataWrapper, FunctionKind, Object, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::{inner, options, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterFdwStmt, CreateFdwStmt, DefElem, Node};

use super::options::changed;
use crate::privileges::acl::given;

fn put(ddl: &Ddl<'_>, wrapper: ForeignDataWrapper) {
    ddl.tx().put(Object::ForeignDataWrapper(Arc::new(wrapper)));
}

/// The functions that a statement gives a wrapper; `None`: it does not say.
struct WrapperFunctions {
    handler: Option<Oid>,
    validator: Option<Oid>,
}

fn functions(ddl: &Ddl<'_>, list: &[Node]) -> Result<WrapperFunctions> {
    let mut found = WrapperFunctions { handler: None, validator: None };
    for given in options(list) {
        let is_handler = given.defname == "handler";
        let place = if is_handler { &mut found.handler } else { &mut found.validator };
        if place.is_some() {
            return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(given.location));
        }
        let types = if is_handler { &[][..] } else { &[oids::TEXT_ARRAY, oids::OID] };
        *place = Some(function(ddl, given, types)?);
    }
    Ok(found)
}

/// The function that a clause names; 0 of NO HANDLER and NO VALIDATOR.
fn function(ddl: &Ddl<'_>, given: &DefElem, types: &[Oid]) -> Result<Oid> {
    let Some(name) = given.arg.as_deref() else { return Ok(Oid::INVALID) };
    let N::List(list) = inner(name)? else { return Err(DbError::internal("a function without a name")) };
    let names = strings(&list.items);
    let (schema, name) = ddl.qualified(&names)?;
    let (catalog, schemas) = (ddl.catalog(), ddl.searched_schemas(schema)?);
    let mut candidates = catalog.find_functions(&schemas, name);
    let found = candidates.find(|f| f.arg_types == types && f.kind == FunctionKind::Function);
    let shown = names.join(".");
    let Some(found) = found else {
        let types: Vec<String> = types.iter().map(|ty| catalog.type_name(*ty, ddl.path())).collect();
        bail!(UNDEFINED_FUNCTION, "function {shown}({}) does not exist", types.join(", "));
    };
    if types.is_empty() && found.return_type != oids::FDW_HANDLER {
        bail!(WRONG_OBJECT_TYPE, "function {shown} must return type fdw_handler");
    }
    Ok(found.oid)
}

pub fn create_wrapper(ddl: &Ddl<'_>, s: &CreateFdwStmt) -> Result<()> {
    let name = s.fdwname.as_str();
    if !ddl.is_superuser() {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to create foreign-data wrapper \"{name}\"")
            .hint("Must be superuser to create a foreign-data wrapper."));
    }
    if wrapper_by_name(&ddl.catalog(), name).is_some() {
        bail!(DUPLICATE_OBJECT, "foreign-data wrapper \"{name}\" already exists");
    }
    let given = functions(ddl, &s.func_options)?;
    let (handler, validator) = (given.handler.unwrap_or_default(), given.validator.unwrap_or_default());
    let options = changed(ddl, classes::PG_FOREIGN_DATA_WRAPPER, validator, &[], &s.options)?;
    let (oid, owner) = (ddl.tx().new_oid(), ddl.user());
    put(ddl, ForeignDataWrapper { oid, name: name.into(), owner, handler, validator, acl: None, options });
    Ok(())
}

pub fn alter_wrapper(ddl: &Ddl<'_>, s: &AlterFdwStmt) -> Result<()> {
    let name = s.fdwname.as_str();
    if !ddl.is_superuser() {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to alter foreign-data wrapper \"{name}\"")
            .hint("Must be superuser to alter a foreign-data wrapper."));
    }
    let old = locked_wrapper(ddl, name)?;
    let given = functions(ddl, &s.func_options)?;
    let warn = |message: &str| ddl.warning(SqlState::WARNING, message);
    if given.handler.is_some() {
        warn("changing the foreign-data wrapper handler can change behavior of existing foreign tables");
    }
    if given.validator.is_some_and(|function| function.is_valid()) {
        warn("changing the foreign-data wrapper validator can cause the options for dependent objects to become invalid");
    }
    let (handler, validator) = (given.handler.unwrap_or(old.handler), given.validator.unwrap_or(old.validator));
    let options = match s.options.is_empty() {
        true => old.options.clone(),
        false => changed(ddl, classes::PG_FOREIGN_DATA_WRAPPER, validator, &old.options, &s.options)?,
    };
    put(ddl, ForeignDataWrapper { handler, validator, options, ..(*old).clone() });
    Ok(())
}

/// # Errors
/// 42704
pub fn existing_wrapper(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignDataWrapper>> {
    let found = wrapper_by_name(&ddl.catalog(), name).cloned();
    found.ok_or_else(|| err!(UNDEFINED_OBJECT, "foreign-data wrapper \"{name}\" does not exist"))
}

/// A wrapper as it is when nobody else can change or drop it.
pub fn locked_wrapper(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignDataWrapper>> {
    let found = existing_wrapper(ddl, name)?;
    ddl.lock_database_object(ddl.tx().database, classes::PG_FOREIGN_DATA_WRAPPER, found.oid)?;
    existing_wrapper(ddl, name)
}

/// The user's own wrapper of a name.
pub fn named_wrapper(ddl: &Ddl<'_>, name: &str) -> Result<Arc<ForeignDataWrapper>> {
    let found = existing_wrapper(ddl, name)?;
    ddl.require_owner(found.owner, "foreign-data wrapper", name)?;
    Ok(found)
}

pub fn give_wrapper(ddl: &Ddl<'_>, old: &ForeignDataWrapper, owner: Oid) -> Result<()> {
    let refused = |hint: &str| {
        let message = format!("permission denied to change owner of foreign-data wrapper \"{}\"", old.name);
        Err(err!(INSUFFICIENT_PRIVILEGE, "{message}").hint(hint.to_owned()))
    };
    if !ddl.is_superuser() {
        return refused("Must be superuser to change owner of a foreign-data wrapper.");
    }
    if !ddl.catalog().is_superuser(owner) {
        return refused("The owner of a foreign-data wrapper must be a superuser.");
    }
    if old.owner != owner {
        put(ddl, ForeignDataWrapper { owner, acl: given(&old.acl, old.owner, owner), ..old.clone() });
    }
    Ok(())
}
