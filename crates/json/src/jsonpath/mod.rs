//! jsonpath: SQL/JSON path expressions over jsonb.
//!
//! A jsonpath value is held as its normalized text, as PostgreSQL prints it, and parsed for each use; the last paths used
//! are kept parsed.

mod ast;
mod datetime;
mod exec;
pub mod gin;
mod immutable;
mod item;
mod methods;
mod parser;
mod query;

pub use ast::{Expr, Path};
pub use exec::Executor;
use exec::Variables;
use item::Item;
pub use parser::parse;

use std::cell::RefCell;
use std::rc::Rc;

use melba_encoding::utf8;
use melba_fmgr::type_io::{received, send_text};
use melba_fmgr::{CallInfo, ScalarFn, SetFn, TypeIo};
use melba_types::jsonb::{JsonbValue, View};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::{datum, root};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::JSONPATH,
    TypeIo {
        input: |_, s| Ok(Datum::bytes(parse(s)?.to_string().into_bytes())),
        output: |_, v, out| {
            out.extend_from_slice(v.as_bytes());
            Ok(())
        },
        receive: |c, b| match b.split_first() {
            Some((1, text)) => Ok(Datum::bytes(parse(&received(c, text)?)?.to_string().into_bytes())),
            Some((version, _)) => Err(err!(INTERNAL_ERROR, "unsupported jsonpath version number: {version}")),
            None => Err(err!(PROTOCOL_VIOLATION, "insufficient data left in message")),
        },
        send: |c, v, out| {
            out.push(1);
            send_text(c, utf8(v.as_bytes())?, out)
        },
    },
)];

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("jsonb_path_exists", |c, a| exists(c, a, false)),
    ("jsonb_path_exists_tz", |c, a| exists(c, a, true)),
    ("jsonb_path_exists_opr", |c, a| exists(c, &with_defaults(a)?, false)),
    ("jsonb_path_match", |c, a| matches(c, a, false)),
    ("jsonb_path_match_tz", |c, a| matches(c, a, true)),
    ("jsonb_path_match_opr", |c, a| matches(c, &with_defaults(a)?, false)),
    ("jsonb_path_query_array", |c, a| query_array(c, a, false)),
    ("jsonb_path_query_array_tz", |c, a| query_array(c, a, true)),
    ("jsonb_path_query_first", |c, a| query_first(c, a, false)),
    ("jsonb_path_query_first_tz", |c, a| query_first(c, a, true)),
];

pub use query::FUNCTIONS as QUERY_FUNCTIONS;

pub const SETS: &[(&str, SetFn)] =
    &[("jsonb_path_query", |c, a| query_set(c, a, false)), ("jsonb_path_query_tz", |c, a| query_set(c, a, true))];

/// The operators have no variables, and are silent.
fn with_defaults(a: &[Datum]) -> Result<[Datum; 4]> {
    Ok([a[0].clone(), a[1].clone(), datum(&JsonbValue::Object(Vec::new()))?, Datum::Bool(true)])
}

/// The parsed path of a stored one.
pub fn parsed(stored: &Datum) -> Result<Rc<Path>> {
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

/// Passes the selected items to `finish`: when the call is silent, those before an error too, and `finish` gets the error.
fn select<T>(
    call: &CallInfo<'_>,
    a: &[Datum],
    use_zone: bool,
    finish: impl FnOnce(&Path, Vec<Item<'_>>, bool) -> Result<T>,
) -> Result<T> {
    let path = parsed(&a[1])?;
    let vars = match a.get(2) {
        Some(vars @ Datum::Bytes(_)) => {
            let View::Object(_) = root(vars).view() else {
                return Err(err!(INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object")
                    .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
            };
            JsonbValue::from_json(root(vars))
        }
        _ => JsonbValue::Object(Vec::new()),
    };
    let silent = matches!(a.get(3), Some(Datum::Bool(true)));
    let target = JsonbValue::from_json(root(&a[0]));
    let mut items = Vec::new();
    match Executor::new(call.session, &target, Variables::of_object(&vars), path.lax, use_zone).run(&path, &mut items) {
        Ok(()) => finish(&path, items, false),
        Err(e) if silent && exec::is_suppressible(&e) => finish(&path, items, true),
        Err(e) => Err(e),
    }
}

fn exists(call: &CallInfo<'_>, a: &[Datum], use_zone: bool) -> Result<Datum> {
    // In lax mode the first item is the answer, whatever comes after it.
    select(call, a, use_zone, |path, items, failed| {
        let is_answered = !failed || path.lax && !items.is_empty();
        Ok(if is_answered { Datum::Bool(!items.is_empty()) } else { Datum::Null })
    })
}

fn matches(call: &CallInfo<'_>, a: &[Datum], use_zone: bool) -> Result<Datum> {
    let silent = matches!(a.get(3), Some(Datum::Bool(true)));
    select(call, a, use_zone, |_, items, _| match &items[..] {
        [Item::Made(JsonbValue::Bool(value)) | Item::Part(JsonbValue::Bool(value), _)] => Ok(Datum::Bool(*value)),
        [Item::Made(JsonbValue::Null) | Item::Part(JsonbValue::Null, _)] => Ok(Datum::Null),
        _ if silent => Ok(Datum::Null),
        _ => Err(err!(SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected")),
    })
}

fn values(_: &Path, items: Vec<Item<'_>>, _: bool) -> Result<Vec<JsonbValue>> {
    Ok(items.iter().map(Item::to_value).collect())
}

fn query_array(call: &CallInfo<'_>, a: &[Datum], use_zone: bool) -> Result<Datum> {
    datum(&JsonbValue::Array(select(call, a, use_zone, values)?))
}

fn query_first(call: &CallInfo<'_>, a: &[Datum], use_zone: bool) -> Result<Datum> {
    let first = select(call, a, use_zone, |_, items, _| Ok(items.first().map(Item::to_value)))?;
    first.map_or(Ok(Datum::Null), |item| datum(&item))
}

fn query_set(call: &CallInfo<'_>, a: &[Datum], use_zone: bool) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    let items = select(call, a, use_zone, values)?;
    Ok(Box::new(items.into_iter().map(|item| Ok(vec![datum(&item)?]))))
}

#[cfg(test)]
mod tests;
