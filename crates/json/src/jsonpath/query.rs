//! Path functions of JSON_EXISTS, JSON_QUERY, JSON_VALUE and JSON_TABLE.
//!
//! Called with the item, the path, the arguments listed below, and for each of PASSING its name and its value. The caller handles
//! errors: a path that selects nothing is one, 22035.

use std::sync::Arc;

use melba_fmgr::{CallInfo, ScalarFn, io, lookup};
use melba_types::jsonb::JsonbValue;
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, err, oids};

use super::exec::{Executor, Variable, VariableValue, Variables};
use super::immutable;
use super::item::{DateTime, Item};
use super::parsed;
use crate::build::to_value;
use crate::{datum, root};

/// Arguments before those of PASSING.
const FIXED: usize = 5;

/// Each is called with: item, path, column of JSON_TABLE or NULL, wrapper, whether the value stays JSON; names and values.
pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("sqljson_exists", |c, a| with_items(c, a, |items| Ok(Datum::Bool(!items.is_empty())))),
    ("sqljson_query", |c, a| with_items(c, a, |items| query(items, column(a), a[3].as_i32()))),
    ("sqljson_value", |c, a| with_items(c, a, |items| value(c, items, column(a), a[4].as_bool()))),
    ("sqljson_rows", |c, a| with_items(c, a, rows)),
    ("sqljson_path_is_mutable", |_, a| {
        // The types of PASSING, as OIDs after their names.
        let types = a[1..].chunks(2).filter_map(|pair| match pair {
            [Datum::Text(name), Datum::Oid(ty)] => Some((&**name, Oid(*ty))),
            _ => None,
        });
        Ok(Datum::Bool(immutable::is_mutable(&*parsed(&a[0])?, &types.collect::<Vec<_>>())?))
    }),
];

fn column(a: &[Datum]) -> Option<&str> {
    match &a[2] {
        Datum::Text(name) => Some(name),
        _ => None,
    }
}

fn with_items(call: &CallInfo<'_>, a: &[Datum], finish: impl FnOnce(Vec<Item<'_>>) -> Result<Datum>) -> Result<Datum> {
    let path = parsed(&a[1])?;
    let target = JsonbValue::from_json(root(&a[0]));
    let mut variables = Vec::with_capacity((a.len() - FIXED) / 2);
    for (i, pair) in a[FIXED..].chunks(2).enumerate() {
        let [Datum::Text(name), value] = pair else { return Err(DbError::internal("PASSING without a name")) };
        let ty = call.arg_types.get(FIXED + 2 * i + 1).copied().unwrap_or(oids::TEXT);
        variables.push(Variable { name: name.clone(), value: variable(call, ty, value)? });
    }
    let executor = Executor::new(call.session, &target, Variables::Named(&variables), path.lax, true);
    let mut items = Vec::new();
    executor.run(&path, &mut items)?;
    finish(items)
}

fn variable(call: &CallInfo<'_>, ty: Oid, value: &Datum) -> Result<VariableValue> {
    let base = lookup::base_type(call.session, ty);
    Ok(match base {
        _ if value.is_null() => VariableValue::Json(JsonbValue::Null),
        oids::DATE | oids::TIME | oids::TIMETZ | oids::TIMESTAMP | oids::TIMESTAMPTZ => {
            VariableValue::DateTime(DateTime { ty: base, value: value.clone(), offset: 0 })
        }
        _ => VariableValue::Json(to_value(call.session, base, value)?),
    })
}

fn nothing_found(column: Option<&str>) -> DbError {
    match column {
        Some(column) => {
            err!(NO_SQL_JSON_ITEM, "no SQL/JSON item found for specified path of column \"{column}\"")
        }
        None => err!(NO_SQL_JSON_ITEM, "no SQL/JSON item found for specified path"),
    }
}

/// jsonb: the one item, or all of them in an array by the wrapper (1: when there are several, 2: always).
fn query(items: Vec<Item<'_>>, column: Option<&str>, wrapper: i32) -> Result<Datum> {
    let Some(first) = items.first() else { return Err(nothing_found(column)) };
    if wrapper == 2 || wrapper == 1 && items.len() > 1 {
        return datum(&JsonbValue::Array(items.iter().map(Item::to_value).collect()));
    }
    if items.len() > 1 {
        let subject = match column {
            Some(column) => format!("for column \"{column}\""),
            None => "in JSON_QUERY".to_owned(),
        };
        return Err(err!(
            MORE_THAN_ONE_SQL_JSON_ITEM,
            "JSON path expression {subject} must return single item when no wrapper is requested"
        )
        .hint("Use the WITH WRAPPER clause to wrap SQL/JSON items into an array."));
    }
    datum(&first.to_value())
}

/// The one scalar as text, or as jsonb where it stays JSON; NULL for null.
fn value(call: &CallInfo<'_>, items: Vec<Item<'_>>, column: Option<&str>, stays_json: bool) -> Result<Datum> {
    let message = || match column {
        Some(column) => format!("JSON path expression for column \"{column}\" must return single scalar item"),
        None => "JSON path expression in JSON_VALUE must return single scalar item".to_owned(),
    };
    let item = match &items[..] {
        [] => return Err(nothing_found(column)),
        [item] => item,
        _ => return Err(err!(MORE_THAN_ONE_SQL_JSON_ITEM, "{}", message())),
    };
    if item.is_container() {
        return Err(err!(SQL_JSON_SCALAR_REQUIRED, "{}", message()));
    }
    if matches!(item.value(), Some(JsonbValue::Null)) {
        return Ok(Datum::Null);
    }
    if stays_json {
        return datum(&item.to_value());
    }
    Ok(Datum::text(match (item, item.value()) {
        (_, Some(JsonbValue::String(text))) => text.clone(),
        (_, Some(JsonbValue::Number(number))) => number.to_string(),
        (_, Some(JsonbValue::Bool(value))) => (if *value { "t" } else { "f" }).to_owned(),
        // As the type's own output has it, not as JSON does.
        (Item::DateTime(value), _) => io::text_of(call.session, value.ty, &value.value)?,
        _ => return Err(DbError::internal("SQL/JSON item is no scalar")),
    }))
}

/// All items, as an array of jsonb.
fn rows(items: Vec<Item<'_>>) -> Result<Datum> {
    let elements = items.iter().map(|item| datum(&item.to_value())).collect::<Result<Vec<_>>>()?;
    let length = i32::try_from(elements.len()).map_err(|_| DbError::internal("too many SQL/JSON items"))?;
    let dims = if elements.is_empty() { Vec::new() } else { vec![ArrayDim { length, lower_bound: 1 }] };
    Ok(Datum::Array(Arc::new(Array { element_type: oids::JSONB, dims, elements })))
}
