//! The columns of a function's rows by its OUT arguments.

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_fmgr::Session;
use melba_types::{Oid, Result, oids};

use super::context::Context;
use super::polymorphic;
use melba_tree::{Expr, FunctionCall, OutputColumn};

/// Columns of a record-returning function by its OUT arguments; none when it has not got any.
pub fn columns(cx: &Context<'_>, call: &FunctionCall) -> Result<Option<Vec<OutputColumn>>> {
    let function = cx.function(call.function)?;
    if function.arg_modes.is_empty() {
        return Ok(None);
    }
    let actual: Vec<Oid> = call.args.iter().map(Expr::ty).collect();
    let out = function.all_arg_types.iter().zip(&function.arg_modes).enumerate();
    let mut columns: Vec<OutputColumn> = Vec::new();
    for (i, (ty, _)) in out.filter(|(_, (_, mode))| matches!(mode, b'o' | b'b' | b't')) {
        let mut declared = function.arg_types.clone();
        let ty = polymorphic::enforce_generic_consistency(cx, &actual, &mut declared, *ty).unwrap_or(*ty);
        let name = function.arg_names.get(i).filter(|n| !n.is_empty());
        let name: Arc<str> = match name {
            Some(name) => name.clone(),
            None => format!("column{}", columns.len() + 1).into(),
        };
        columns.push(OutputColumn { name, ty, typmod: -1, collation: cx.collation_of_type(ty) });
    }
    Ok((columns.len() > 1 || function.return_type == oids::RECORD && !columns.is_empty()).then_some(columns))
}

/// Like `columns`, for callers without a search path: types in messages are qualified.
pub fn function_columns(catalog: &Catalog, session: &dyn Session, call: &FunctionCall) -> Result<Option<Vec<OutputColumn>>> {
    let (search_path, temp_namespace, user) = (&[][..], Oid::INVALID, Oid::INVALID);
    let cx = Context { catalog, session, search_path, temp_namespace, database: "", user };
    columns(&cx, call)
}
