//! The item methods of paths.

use melba_fmgr::{Session, io};
use melba_types::jsonb::{Json, JsonbValue};
use melba_types::{DbError, Numeric, Result, err, oids};

use super::ast::Expr;
use super::datetime;
use super::exec::{Executor, Sink};
use super::item::Item;

/// Applies a method to an item. Objects that it makes are numbered by `next_number`.
pub fn apply<'a>(
    executor: &Executor<'a>,
    item: Item<'a>,
    name: &str,
    args: &[Expr],
    next_number: impl Fn() -> i64,
    out: Sink<'_, 'a>,
) -> Result<()> {
    let session = executor.session;
    match name {
        "type" => out(Item::string(type_name(&item)?)),
        "size" => match item.elements() {
            Some(elements) => out(Item::integer(elements.len() as i64)),
            None if executor.lax => out(Item::integer(1)),
            None => Err(err!(SQL_JSON_ARRAY_NOT_FOUND, "jsonpath item method .size() can only be applied to an array")),
        },
        "abs" | "floor" | "ceiling" => {
            let Some(JsonbValue::Number(value)) = item.value() else {
                return Err(err!(
                    NON_NUMERIC_SQL_JSON_ITEM,
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                ));
            };
            out(Item::number(match name {
                "abs" => value.abs(),
                "floor" => value.floor()?,
                _ => value.ceil()?,
            }))
        }
        "keyvalue" => match item.pairs(next_number)? {
            Some(mut pairs) => pairs.try_for_each(out),
            None => Err(err!(SQL_JSON_OBJECT_NOT_FOUND, "jsonpath item method .keyvalue() can only be applied to an object")),
        },
        "double" | "integer" | "bigint" | "number" | "decimal" => out(Item::Made(number(session, &item, name, args)?)),
        "boolean" => out(Item::Made(boolean(session, &item)?)),
        "string" => out(string(&item)?),
        _ => out(datetime::apply(session, executor.use_zone, &item, name, args)?),
    }
}

fn type_name(item: &Item<'_>) -> Result<&'static str> {
    Ok(match item {
        Item::Part(JsonbValue::Object(_), _) | Item::Pair(_) => "object",
        Item::Part(JsonbValue::Array(_), _) => "array",
        Item::Part(value, _) => Json::root(&value.to_bytes()?).type_name(),
        Item::Made(value) => Json::root(&value.to_bytes()?).type_name(),
        Item::DateTime(value) => value.type_name(),
    })
}

fn invalid(text: &str, name: &str, type_name: &str) -> DbError {
    err!(NON_NUMERIC_SQL_JSON_ITEM, "argument \"{text}\" of jsonpath item method .{name}() is invalid for type {type_name}")
}

fn number(session: &dyn Session, item: &Item<'_>, name: &str, args: &[Expr]) -> Result<JsonbValue> {
    let (ty, type_name) = match name {
        "double" => (oids::FLOAT8, "double precision"),
        "integer" => (oids::INT4, "integer"),
        "bigint" => (oids::INT8, "bigint"),
        _ => (oids::NUMERIC, "numeric"),
    };
    let text = match item.value() {
        Some(JsonbValue::Number(value)) if matches!(name, "integer" | "bigint") => value.round(0)?.to_string(),
        Some(JsonbValue::Number(value)) => value.to_string(),
        Some(JsonbValue::String(text)) => text.clone(),
        _ => {
            return Err(err!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .{name}() can only be applied to a string or numeric value"
            ));
        }
    };
    let value = io::text_in(session, ty, -1, &text).map_err(|_| invalid(&text, name, type_name))?;
    let value = Numeric::parse(&io::text_of(session, ty, &value)?)?;
    if !value.is_finite() {
        return Err(err!(NON_NUMERIC_SQL_JSON_ITEM, "NaN or Infinity is not allowed for jsonpath item method .{name}()"));
    }
    let bound = |at: usize, what: &str| match args.get(at) {
        Some(Expr::Number(value)) => value.to_i32().map(Some).map_err(|_| {
            err!(NON_NUMERIC_SQL_JSON_ITEM, "{what} of jsonpath item method .{name}() is out of range for type integer")
        }),
        _ => Ok(None),
    };
    let value = match bound(0, "precision")? {
        Some(precision) => {
            let scale = bound(1, "scale")?.unwrap_or(0);
            let out_of = |what: &str, given: i32, least: i32| {
                Err(err!(INVALID_PARAMETER_VALUE, "NUMERIC {what} {given} must be between {least} and 1000"))
            };
            if !(1..=1000).contains(&precision) {
                return out_of("precision", precision, 1);
            }
            if !(-1000..=1000).contains(&scale) {
                return out_of("scale", scale, -1000);
            }
            value.apply_typmod((precision << 16 | scale & 0x7ff) + 4).map_err(|_| invalid(&text, name, type_name))?
        }
        None => value,
    };
    Ok(JsonbValue::Number(value))
}

fn boolean(session: &dyn Session, item: &Item<'_>) -> Result<JsonbValue> {
    let text = match item.value() {
        Some(JsonbValue::Bool(value)) => return Ok(JsonbValue::Bool(*value)),
        Some(JsonbValue::Number(value)) => match value.to_string() {
            text if let Ok(number) = text.parse::<i32>() => return Ok(JsonbValue::Bool(number != 0)),
            text => text,
        },
        Some(JsonbValue::String(text)) => match io::text_in(session, oids::BOOL, -1, text) {
            Ok(value) => return Ok(JsonbValue::Bool(value.as_bool())),
            Err(_) => text.clone(),
        },
        _ => {
            return Err(err!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .boolean() can only be applied to a boolean, string, or numeric value"
            ));
        }
    };
    Err(invalid(&text, "boolean", "boolean"))
}

fn string<'a>(item: &Item<'a>) -> Result<Item<'a>> {
    Ok(Item::string(match (item, item.value()) {
        (_, Some(JsonbValue::String(text))) => text.clone(),
        (_, Some(JsonbValue::Number(value))) => value.to_string(),
        (_, Some(JsonbValue::Bool(value))) => value.to_string(),
        (Item::DateTime(value), _) => value.to_text(),
        _ => {
            return Err(err!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .string() can only be applied to a boolean, string, numeric, or datetime value"
            ));
        }
    }))
}
