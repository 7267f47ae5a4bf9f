//! Input, output and send functions of types as SQL functions (`int4send(5)`).

use melba_catalog::Catalog;
use melba_types::{Datum, DbError, Oid, Result};

use crate::io::{binary_out, text_in, text_of};
use crate::{CallInfo, ScalarFn};

/// The functions that pg_type names for types, by pg_proc.prosrc. One implementation serves them all: the
/// call says which type it is.
pub fn of_types(types: &[Oid]) -> Vec<(&'static str, ScalarFn)> {
    let catalog = Catalog::default();
    let source = |name: &str| {
        let mut functions = catalog.functions_by_name(melba_catalog::classes::PG_CATALOG, name);
        // Built once for the process's life.
        functions.next().map(|f| &*Box::leak(f.source.to_string().into_boxed_str()))
    };
    let mut out: Vec<(&'static str, ScalarFn)> = Vec::new();
    for ty in types.iter().filter_map(|&oid| catalog.type_(oid)) {
        out.extend(source(&ty.input).map(|name| (name, input as ScalarFn)));
        out.extend(source(&ty.output).map(|name| (name, output as ScalarFn)));
        out.extend(source(&ty.send).map(|name| (name, send as ScalarFn)));
    }
    out
}

pub fn input(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let typmod = match a.get(2) {
        Some(Datum::Int4(typmod)) => *typmod,
        _ => -1,
    };
    text_in(call.session, call.return_type, typmod, a[0].as_str())
}

pub fn output(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    text_of(call.session, argument_type(call)?, &a[0]).map(Datum::text)
}

pub fn send(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    binary_out(call.session, argument_type(call)?, &a[0], &mut out)?;
    Ok(Datum::bytes(out))
}

fn argument_type(call: &CallInfo<'_>) -> Result<Oid> {
    call.arg_types.first().copied().ok_or_else(|| DbError::internal("the argument's type is not known"))
}
