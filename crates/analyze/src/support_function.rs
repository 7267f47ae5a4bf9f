//! Functions that a definition names for values of given types: those of aggregates, casts and operators.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Catalog, Function, acl};
use melba_fmgr::Session;
use melba_types::{Oid, Result, bail, err, oids};

use super::context::Context;
use super::functions::{Resolved, WantedFunction};
use super::polymorphic;

/// The function that takes arguments of exactly these types, and its result type for them.
///
/// # Errors
/// 42883 without one, 42804 for one that returns a set or wants other types, 42501 without EXECUTE.
pub fn support_function(cx: &Context<'_>, names: &[&str], args: &[Oid]) -> Result<(Arc<Function>, Oid)> {
    let (schema, name) = match names {
        [name] => (None, *name),
        [schema, name] => (Some(*schema), *name),
        _ => bail!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {}", names.join(".")),
    };
    let wanted =
        WantedFunction { schema, name, args, arg_names: &[], expand_variadic: false, expand_defaults: false, include_out: false };
    let signature = || cx.function_signature(&names.join("."), args, &[]);
    let Resolved::Function(found) = cx.resolve_function(&wanted, None)? else {
        bail!(UNDEFINED_FUNCTION, "function {} does not exist", signature());
    };
    let function = found.function;
    if function.returns_set {
        bail!(DATATYPE_MISMATCH, "function {} returns a set", signature());
    }
    let mut declared = found.args.clone();
    // A polymorphic given type stays so.
    let stays = args.iter().zip(&declared).filter(|(given, _)| super::is_polymorphic(**given));
    let returned = match stays.clone().count() > 0 && stays.into_iter().all(|(given, wanted)| given == wanted) {
        true => function.return_type,
        false => polymorphic::enforce_generic_consistency(cx, args, &mut declared, function.return_type)?,
    };
    let fits = |(given, wanted): (&Oid, &Oid)| {
        *wanted == oids::ANY || super::is_polymorphic(*wanted) || cx.catalog.is_binary_coercible(*given, *wanted)
    };
    if !args.iter().zip(&declared).all(fits) {
        let declared = cx.function_signature(&names.join("."), &declared, &[]);
        bail!(DATATYPE_MISMATCH, "function {declared} requires run-time type coercion");
    }
    if !cx.catalog.has_privileges(cx.user, AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", function.name));
    }
    Ok((function.clone(), returned))
}

/// The actual type of a declared one in a call with arguments of these types.
pub fn actual_type(catalog: &Catalog, session: &dyn Session, actual: &[Oid], declared: &[Oid], result: Oid) -> Result<Oid> {
    let cx = Context { catalog, session, search_path: &[], temp_namespace: Oid::INVALID, database: "", user: session.user() };
    polymorphic::enforce_generic_consistency(&cx, actual, &mut declared.to_vec(), result)
}
