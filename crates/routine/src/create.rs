//! CREATE [OR REPLACE] FUNCTION and PROCEDURE.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use melba_analyze::input_names;
use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Function, FunctionKind, Object, acl, classes};
use melba_definition::context::Ddl;
use melba_parse::nodes::strings;
use melba_types::{DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::CreateFunctionStmt;

use super::attributes::Attributes;
use super::body::{check_body, check_types, routine_body};
use super::find::require_routine_owner;
use super::internal::{refuse_new_form, require_fitting_source};
use super::parameters::{routine_parameters, routine_return_type};
use super::plain::plain_function;

/// Of functions that users write.
const COST_OF_PROGRAM: f32 = 100.0;

const ROWS_OF_SET: f32 = 1000.0;

pub fn create_function(ddl: &Ddl<'_>, s: &CreateFunctionStmt) -> Result<()> {
    let names = strings(&s.funcname);
    let (schema, name) = ddl.qualified(&names)?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let attributes = Attributes::read(&s.options, s.is_procedure)?;
    let language = routine_language(ddl, s, &attributes)?;
    let parameters = routine_parameters(ddl, &s.parameters, s.is_procedure, Some(language))?;
    let (return_type, returns_set) = match s.is_procedure {
        true => (parameters.result.unwrap_or(oids::VOID), false),
        false => routine_return_type(ddl, s.return_type.as_ref(), &parameters, language)?,
    };
    let mut function = Function {
        kind: if s.is_procedure { FunctionKind::Procedure } else { FunctionKind::Function },
        language,
        cost: if classes::is_written_language(language) { COST_OF_PROGRAM } else { 1.0 },
        rows: if returns_set { ROWS_OF_SET } else { 0.0 },
        returns_set,
        return_type,
        depends_on: parameters.depends_on.clone(),
        ..plain_function(name, namespace, ddl.user())
    };
    parameters.describe(&mut function);
    attributes.apply(ddl, &mut function)?;
    if language != classes::INTERNAL_LANGUAGE {
        check_types(ddl, &function)?;
    }
    lock_routine_name(ddl, namespace, name)?;
    let catalog = ddl.catalog();
    let old = catalog.functions_by_name(namespace, name).find(|f| f.arg_types == function.arg_types);
    if let Some(old) = old {
        check_replacement(ddl, s.replace, old, &function)?;
        (function.oid, function.owner, function.acl) = (old.oid, old.owner, old.acl.clone());
    }
    match attributes.body.as_deref() {
        Some([name, ..]) if language == classes::INTERNAL_LANGUAGE => function.source = (*name).into(),
        Some([text]) if language != classes::SQL_LANGUAGE => function.source = (*text).into(),
        body => routine_body(ddl, s, body, &mut function)?,
    }
    if language == classes::INTERNAL_LANGUAGE {
        require_fitting_source(&ddl.catalog(), &function)?;
    }
    if old.is_none() {
        function.oid = ddl.tx().new_oid();
        function.acl = initial_acl(&catalog, AclKind::Function, ddl.user(), namespace);
    }
    let own = function.oid;
    function.depends_on.retain(|d| d.object != own);
    if let Some(old) = old {
        refuse_new_form(ddl, old, &function)?;
    }
    let function = Arc::new(function);
    ddl.check_function(&function)?;
    ddl.tx().put(Object::Function(function.clone()));
    // A body may call its own function.
    match language == classes::SQL_LANGUAGE && function.sql_body.is_none() {
        true => check_body(ddl, &function),
        false => Ok(()),
    }
}

/// Keeps others from giving a function this name until the transaction ends.
pub fn lock_routine_name(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Result<()> {
    let mut hasher = std::hash::DefaultHasher::new();
    (namespace.0, name).hash(&mut hasher);
    // Names that share a number, or an object that has it, only wait for each other without need.
    ddl.lock_database_object(ddl.tx().database, classes::PG_PROC, Oid(hasher.finish() as u32))
}

fn routine_language(ddl: &Ddl<'_>, s: &CreateFunctionStmt, attributes: &Attributes<'_>) -> Result<Oid> {
    let name = match &attributes.language {
        Some(name) => name.as_str(),
        None if s.sql_body.is_some() => "sql",
        None => bail!(INVALID_FUNCTION_DEFINITION, "no language specified"),
    };
    let found = ddl.catalog().language_by_name(name);
    let language = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "language \"{name}\" does not exist"))?;
    if language != classes::SQL_LANGUAGE && s.sql_body.is_some() {
        bail!(INVALID_FUNCTION_DEFINITION, "inline SQL function body only valid for language SQL");
    }
    let first = attributes.body.as_ref().and_then(|b| b.first().copied()).unwrap_or_default();
    let denied = || Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for language {name}"));
    match language {
        classes::C_LANGUAGE | classes::INTERNAL_LANGUAGE if !ddl.is_superuser() => denied(),
        // There are no libraries that could be loaded.
        classes::C_LANGUAGE => Err(err!(UNDEFINED_FILE, "could not access file \"{first}\": No such file or directory")),
        classes::INTERNAL_LANGUAGE => {
            let is_internal = |f: &&Arc<Function>| f.language == classes::INTERNAL_LANGUAGE && *f.source == *first;
            match ddl.catalog().functions().find(is_internal) {
                None => Err(err!(UNDEFINED_FUNCTION, "there is no built-in function named \"{first}\"")),
                Some(f) if f.kind != FunctionKind::Function => Err(DbError::unsupported("another name for an aggregate")),
                Some(_) => Ok(classes::INTERNAL_LANGUAGE),
            }
        }
        _ if !ddl.catalog().may_use(ddl.user(), classes::PG_LANGUAGE, name, acl::USAGE) => denied(),
        _ => Ok(language),
    }
}

/// Properties on which callers rely stay the same when a function is replaced.
pub fn check_replacement(ddl: &Ddl<'_>, replace: bool, old: &Function, new: &Function) -> Result<()> {
    if !replace {
        bail!(DUPLICATE_FUNCTION, "function \"{}\" already exists with same argument types", new.name);
    }
    require_routine_owner(ddl, old, &old.name)?;
    if old.kind != new.kind {
        let what = match old.kind {
            FunctionKind::Aggregate => "an aggregate function",
            FunctionKind::Procedure => "a procedure",
            FunctionKind::Window => "a window function",
            FunctionKind::Function => "a function",
        };
        return Err(err!(WRONG_OBJECT_TYPE, "cannot change routine kind").detail(format!("\"{}\" is {what}.", old.name)));
    }
    let catalog = ddl.catalog();
    let word = match old.kind {
        FunctionKind::Procedure => "PROCEDURE",
        FunctionKind::Aggregate => "AGGREGATE",
        _ => "FUNCTION",
    };
    let hint = format!("Use DROP {word} {} first.", catalog.function_signature(old, ddl.path()));
    if (old.return_type, old.returns_set) != (new.return_type, new.returns_set) {
        let message = match old.kind {
            FunctionKind::Procedure => "cannot change whether a procedure has output parameters",
            _ => "cannot change return type of existing function",
        };
        return Err(err!(INVALID_FUNCTION_DEFINITION, "{message}").hint(hint));
    }
    if old.return_type == oids::RECORD && outputs(old) != outputs(new) {
        return Err(err!(INVALID_FUNCTION_DEFINITION, "cannot change return type of existing function")
            .detail("Row type defined by OUT parameters is different.")
            .hint(hint));
    }
    for (was, now) in input_names(old).iter().zip(input_names(new)) {
        if !was.is_empty() && *was != now {
            return Err(err!(INVALID_FUNCTION_DEFINITION, "cannot change name of input parameter \"{was}\"").hint(hint));
        }
    }
    if new.arg_defaults.len() < old.arg_defaults.len() {
        let message = "cannot remove parameter defaults from existing function";
        return Err(err!(INVALID_FUNCTION_DEFINITION, "{message}").hint(hint));
    }
    Ok(())
}

/// Types and names of the output columns.
fn outputs(f: &Function) -> Vec<(Oid, Arc<str>)> {
    let all = f.all_arg_types.iter().zip(&f.arg_modes).enumerate();
    let out = all.filter(|(_, (_, mode))| matches!(mode, b'o' | b'b' | b't'));
    out.map(|(i, (ty, _))| (*ty, f.arg_names.get(i).cloned().unwrap_or_default())).collect()
}
