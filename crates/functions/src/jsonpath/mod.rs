//! jsonpath: SQL/JSON path expressions over jsonb.
//!
//! A jsonpath value is held as its normalized text, as PostgreSQL prints it, and parsed for each use; the last paths used
//! are kept parsed.

mod ast;
mod exec;
mod methods;
mod parser;

pub use ast::{Expr, Path};
pub use exec::Executor;
pub use parser::parse;

use std::cell::RefCell;
use std::rc::Rc;

use melba_types::jsonb::{Value, View};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::io::TypeIo;
use crate::json::{datum, root};
use crate::{CallContext, ScalarFn, SetFn};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::JSONPATH,
    TypeIo {
        input: |_, s| Ok(Datum::bytes(parse(s)?.to_string().into_bytes())),
        output: |_, v, out| {
            out.extend_from_slice(v.as_bytes());
            Ok(())
        },
        receive: |_, b| match b.split_first() {
            Some((1, text)) => Ok(Datum::bytes(parse(&String::from_utf8_lossy(text))?.to_string().into_bytes())),
            Some((version, _)) => Err(err!(INTERNAL_ERROR, "unsupported jsonpath version number: {version}")),
            None => Err(err!(PROTOCOL_VIOLATION, "insufficient data left in message")),
        },
        send: |_, v, out| {
            out.push(1);
            out.extend_from_slice(v.as_bytes());
            Ok(())
        },
    },
)];

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("jsonb_path_exists", exists),
    ("jsonb_path_exists_tz", exists),
    ("jsonb_path_exists_opr", |c, a| exists(c, &with_defaults(a)?)),
    ("jsonb_path_match", matches),
    ("jsonb_path_match_tz", matches),
    ("jsonb_path_match_opr", |c, a| matches(c, &with_defaults(a)?)),
    ("jsonb_path_query_array", query_array),
    ("jsonb_path_query_array_tz", query_array),
    ("jsonb_path_query_first", query_first),
    ("jsonb_path_query_first_tz", query_first),
];

pub const SETS: &[(&str, SetFn)] = &[("jsonb_path_query", query_set), ("jsonb_path_query_tz", query_set)];

/// The operators have no variables, and are silent.
fn with_defaults(a: &[Datum]) -> Result<[Datum; 4]> {
    Ok([a[0].clone(), a[1].clone(), datum(&Value::Object(Vec::new()))?, Datum::Bool(true)])
}

/// The parsed path of a stored one.
fn parsed(stored: &Datum) -> Result<Rc<Path>> {
    const CACHED: usize = 16;
    thread_local! {
        static CACHE: RefCell<Vec<(Vec<u8>, Rc<Path>)>> = const { RefCell::new(Vec::new()) };
    }
    let bytes = stored.as_bytes();
    if let Some(path) = CACHE.with_borrow(|cache| cache.iter().find(|(key, _)| key == bytes).map(|(_, p)| p.clone())) {
        return Ok(path);
    }
    let path = Rc::new(parse(&String::from_utf8_lossy(bytes))?);
    CACHE.with_borrow_mut(|cache| {
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((bytes.to_vec(), path.clone()));
    });
    Ok(path)
}

/// The items a path selects; `None` when it failed and the call is silent.
fn select(call: &CallContext<'_>, a: &[Datum]) -> Result<Option<Vec<Value>>> {
    let path = parsed(&a[1])?;
    let vars = match a.get(2) {
        Some(vars @ Datum::Bytes(_)) => {
            let View::Object(_) = root(vars).view() else {
                return Err(err!(INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
                    .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
            };
            Value::from_json(root(vars))
        }
        _ => Value::Object(Vec::new()),
    };
    let silent = matches!(a.get(3), Some(Datum::Bool(true)));
    let target = Value::from_json(root(&a[0]));
    let executor = Executor { session: call.session, root: &target, vars: &vars, lax: path.lax };
    match executor.run(&path) {
        Ok(items) => Ok(Some(items)),
        Err(e) if silent && exec::is_suppressible(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

fn exists(call: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(select(call, a)?.map_or(Datum::Null, |items| Datum::Bool(!items.is_empty())))
}

fn matches(call: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    let silent = matches!(a.get(3), Some(Datum::Bool(true)));
    match select(call, a)?.as_deref() {
        Some([Value::Bool(value)]) => Ok(Datum::Bool(*value)),
        Some([Value::Null]) | None => Ok(Datum::Null),
        Some(_) if silent => Ok(Datum::Null),
        Some(_) => Err(err!(SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
    }
}

fn query_array(call: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    datum(&Value::Array(select(call, a)?.unwrap_or_default()))
}

fn query_first(call: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    select(call, a)?.and_then(|items| items.into_iter().next()).map_or(Ok(Datum::Null), |item| datum(&item))
}

fn query_set(call: &CallContext<'_>, a: &[Datum]) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    let items = select(call, a)?.unwrap_or_default();
    Ok(Box::new(items.into_iter().map(|item| Ok(vec![datum(&item)?]))))
}

#[cfg(test)]
mod tests;
