//! The item methods of paths.

use melba_types::jsonb::{Json, Value};
use melba_types::{DbError, Numeric, Oid, Result, err, oids};

use super::ast::Expr;
use super::exec::integer;
use crate::{Session, io};

/// Applies a method to an item.
pub fn apply(session: &dyn Session, lax: bool, item: Value, name: &str, args: &[Expr], out: &mut Vec<Value>) -> Result<()> {
    match name {
        "type" => out.push(Value::String(Json::root(&item.to_bytes()?).type_name().to_string())),
        "size" => match item {
            Value::Array(elements) => out.push(integer(elements.len() as i64)),
            _ if lax => out.push(integer(1)),
            _ => return Err(err!(SQL_JSON_ARRAY_NOT_FOUND, "jsonpath item method .size() can only be applied to an array")),
        },
        "abs" | "floor" | "ceiling" => {
            let Value::Number(value) = item else {
                return Err(err!(
                    NON_NUMERIC_SQL_JSON_ITEM,
                    "jsonpath item method .{name}() can only be applied to a numeric value"
                ));
            };
            out.push(Value::Number(match name {
                "abs" => value.abs(),
                "floor" => value.floor()?,
                _ => value.ceil()?,
            }));
        }
        "keyvalue" => {
            let Value::Object(fields) = item else {
                return Err(err!(SQL_JSON_OBJECT_NOT_FOUND, "jsonpath item method .keyvalue() can only be applied to an object"));
            };
            out.extend(fields.into_iter().map(|(key, value)| {
                Value::object(vec![("id".into(), integer(0)), ("key".into(), Value::String(key)), ("value".into(), value)])
            }));
        }
        "double" | "integer" | "bigint" | "number" | "decimal" => out.push(number(session, &item, name, args)?),
        "boolean" => out.push(boolean(session, &item)?),
        "string" => out.push(string(&item)?),
        _ => out.push(date_time(session, &item, name, args)?),
    }
    Ok(())
}

fn invalid(text: &str, name: &str, type_name: &str) -> DbError {
    err!(NON_NUMERIC_SQL_JSON_ITEM, "argument \"{text}\" of jsonpath item method .{name}() is invalid for type {type_name}")
}

fn number(session: &dyn Session, item: &Value, name: &str, args: &[Expr]) -> Result<Value> {
    let (ty, type_name) = match name {
        "double" => (oids::FLOAT8, "double precision"),
        "integer" => (oids::INT4, "integer"),
        "bigint" => (oids::INT8, "bigint"),
        _ => (oids::NUMERIC, "numeric"),
    };
    let text = match item {
        Value::Number(value) if matches!(name, "integer" | "bigint") => value.round(0)?.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(text) => text.clone(),
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
    let bound = |at: usize| match args.get(at) {
        Some(Expr::Number(value)) => value.to_i32().ok(),
        _ => None,
    };
    let value = match bound(0) {
        Some(precision) => value
            .apply_typmod((precision << 16 | bound(1).unwrap_or(0) & 0x7ff) + 4)
            .map_err(|_| invalid(&text, name, type_name))?,
        None => value,
    };
    Ok(Value::Number(value))
}

fn boolean(session: &dyn Session, item: &Value) -> Result<Value> {
    let text = match item {
        Value::Bool(_) => return Ok(item.clone()),
        Value::Number(value) => match value.to_i32() {
            Ok(number) => return Ok(Value::Bool(number != 0)),
            Err(_) => value.to_string(),
        },
        Value::String(text) => match io::text_in(session, oids::BOOL, -1, text) {
            Ok(value) => return Ok(Value::Bool(value.as_bool())),
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

fn string(item: &Value) -> Result<Value> {
    Ok(Value::String(match item {
        Value::String(text) => text.clone(),
        Value::Number(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => {
            return Err(err!(
                NON_NUMERIC_SQL_JSON_ITEM,
                "jsonpath item method .string() can only be applied to a boolean, string, numeric, or datetime value"
            ));
        }
    }))
}

/// Dates and times are ISO 8601 strings, so that they compare as they should.
fn date_time(session: &dyn Session, item: &Value, name: &str, args: &[Expr]) -> Result<Value> {
    if !args.is_empty() {
        return Err(DbError::unsupported(format!("jsonpath item method .{name}() with arguments")));
    }
    let Value::String(text) = item else {
        return Err(err!(
            INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            "jsonpath item method .{name}() can only be applied to a string"
        ));
    };
    let candidates: &[(Oid, &str)] = match name {
        "date" => &[(oids::DATE, "date")],
        "time" => &[(oids::TIME, "time")],
        "time_tz" => &[(oids::TIMETZ, "time_tz")],
        "timestamp" => &[(oids::TIMESTAMP, "timestamp")],
        "timestamp_tz" => &[(oids::TIMESTAMPTZ, "timestamp_tz")],
        _ => return Err(DbError::unsupported("jsonpath item method .datetime()")),
    };
    for (ty, _) in candidates {
        if let Ok(value) = io::text_in(session, *ty, -1, text) {
            let mut out = Vec::new();
            crate::json::append_json(session, *ty, &value, &mut out)?;
            let quoted = io::into_string(out)?;
            return Ok(Value::String(melba_types::json::unescape(&quoted)?));
        }
    }
    Err(err!(INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION, "{name} format is not recognized: \"{text}\""))
}
