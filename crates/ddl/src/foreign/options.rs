//! OPTIONS (...) of foreign data: the list after a statement. What a list may have is known to the wrapper's validator, a function.

use std::sync::Arc;

use melba_catalog::{Function, classes};
use melba_definition::context::Ddl;
use melba_fmgr::{CallInfo, RoutineCall, registry};
use melba_parse::nodes::{option_text, options};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, bail, oids};
use pg_query::protobuf::{DefElemAction, Node};

/// A list of options after a statement, as the validator has it. `class`: the system relation of what has the options.
///
/// # Errors
/// 42710 for one that is there already, 42704 for one that is not, and those of the validator.
pub fn changed(ddl: &Ddl<'_>, class: Oid, validator: Oid, old: &[Arc<str>], list: &[Node]) -> Result<Vec<Arc<str>>> {
    let mut changed = old.to_vec();
    for given in options(list) {
        let name = given.defname.as_str();
        let at = changed.iter().position(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
        let text = format!("{name}={}", option_text(given).unwrap_or_default());
        match (given.defaction(), at) {
            (DefElemAction::DefelemDrop, Some(at)) => drop(changed.remove(at)),
            (DefElemAction::DefelemSet, Some(at)) => changed[at] = text.into(),
            (DefElemAction::DefelemDrop | DefElemAction::DefelemSet, None) => {
                bail!(UNDEFINED_OBJECT, "option \"{name}\" not found")
            }
            (_, Some(_)) => bail!(DUPLICATE_OBJECT, "option \"{name}\" provided more than once"),
            (_, None) if name.contains('=') => {
                bail!(INVALID_PARAMETER_VALUE, "invalid option name \"{name}\": must not contain \"=\"")
            }
            (_, None) => changed.push(text.into()),
        }
    }
    if let Some(validator) = ddl.catalog().function(validator) {
        validate(ddl, validator, class, &changed)?;
    }
    Ok(changed)
}

/// Calls a validator, whose result does not count.
fn validate(ddl: &Ddl<'_>, validator: &Arc<Function>, class: Oid, list: &[Arc<str>]) -> Result<()> {
    let dims = if list.is_empty() { vec![] } else { vec![ArrayDim { length: list.len() as i32, lower_bound: 1 }] };
    let elements = list.iter().cloned().map(Datum::Text).collect();
    let args = [Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements })), Datum::Oid(class.0)];
    let (arg_types, return_type, collation) = (&[oids::TEXT_ARRAY, oids::OID][..], validator.return_type, Oid::INVALID);
    if !matches!(validator.language, classes::INTERNAL_LANGUAGE | classes::C_LANGUAGE) {
        let view = ddl.tx().engine.active_view();
        let view = (view.csn, view.command);
        let call = RoutineCall { function: validator.oid, args: &args, arg_types, return_type, collation, columns: None, view };
        return ddl.session().call_routine(&call).map(drop);
    }
    let view = CallInfo::NO_VIEW;
    let call = CallInfo { session: ddl.session(), arg_types, return_type, collation, variadic: false, columns: None, view };
    match registry::scalar(&validator.source) {
        Some(function) => function(&call, &args).map(drop),
        None => ddl.session().system_function(&validator.source, &call, &args).map(drop),
    }
}
