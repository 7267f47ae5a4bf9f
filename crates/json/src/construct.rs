//! SQL/JSON's constructors, IS JSON, and values of SQL types from a path's result.

use std::collections::HashSet;

use melba_fmgr::{CallInfo, ScalarFn, io, lookup};
use melba_types::json::{JsonKind, JsonNode, parse, unescape, validate, write_string};
use melba_types::jsonb::JsonbValue;
use melba_types::{Datum, Result, err, limits, oids};

use super::build::{append_json, argument_type, key_text, null_key, to_value};
use super::populate::populate;
use super::{datum, root};

/// The arguments of each function, after the options: `sqljson_object`: absent on null, unique keys, keys and values;
/// `sqljson_array`: absent on null, values. The type returned is json or jsonb.
pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("sqljson_object", object),
    ("sqljson_array", array),
    ("sqljson_scalar", |c, a| match c.return_type {
        _ if a[0].is_null() => Ok(Datum::Null),
        oids::JSONB => datum(&to_value(c.session, argument_type(c, 0), &a[0])?),
        _ => json_text(c, 0, &a[0]),
    }),
    ("sqljson_parse", |c, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let text = a[0].as_str();
        let node = parse(text, c.return_type == oids::JSONB)?;
        if !has_unique_keys(&node)? {
            return Err(err!(DUPLICATE_JSON_OBJECT_KEY_VALUE, "duplicate JSON object key value"));
        }
        if c.return_type == oids::JSONB { datum(&JsonbValue::from_node(&node)?) } else { Ok(a[0].clone()) }
    }),
    // The value, the kind of item (NULL: any), unique keys.
    ("sqljson_is", |c, a| match &a[0] {
        Datum::Null => Ok(Datum::Null),
        _ => is_json(c, a).map(Datum::Bool),
    }),
    // A jsonb, the type modifier, whether a string loses its quotes.
    ("sqljson_populate", |c, a| {
        let (ty, typmod) = (c.return_type, a[1].as_i32());
        match &a[0] {
            Datum::Null if lookup::base_type(c.session, ty) != ty => io::check_domain(c.session, ty, Datum::Null),
            Datum::Null => Ok(Datum::Null),
            json if a[2].as_bool() => io::text_in(c.session, ty, typmod, &unquoted(json)?),
            json => populate(c.session, ty, typmod, &JsonbValue::from_json(root(json))),
        }
    }),
];

/// A value's JSON text.
fn json_text(call: &CallInfo<'_>, at: usize, value: &Datum) -> Result<Datum> {
    let mut out = Vec::new();
    append_json(call.session, argument_type(call, at), value, &mut out)?;
    io::into_string(out).map(Datum::text)
}

fn unquoted(json: &Datum) -> Result<String> {
    match JsonbValue::from_json(root(json)) {
        JsonbValue::String(text) => Ok(text),
        value => {
            let mut out = Vec::new();
            melba_types::jsonb::write(melba_types::jsonb::Json::root(&value.to_bytes()?), &mut out)?;
            io::into_string(out)
        }
    }
}

fn object(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (absent_on_null, unique, args) = (a[0].as_bool(), a[1].as_bool(), &a[2..]);
    let jsonb = call.return_type == oids::JSONB;
    let mut keys = HashSet::new();
    let mut fields = Vec::new();
    let mut text = vec![b'{'];
    for (i, pair) in args.chunks(2).enumerate() {
        limits::tick()?;
        let [key, value] = pair else { break };
        let skip = absent_on_null && value.is_null();
        if skip && !unique && !(jsonb && key.is_null()) {
            continue;
        }
        if key.is_null() && jsonb {
            return Err(err!(INVALID_PARAMETER_VALUE, "argument {}: key must not be null", 2 * i + 1));
        }
        if key.is_null() {
            return Err(null_key());
        }
        let name = key_text(call.session, argument_type(call, 2 + 2 * i), key)?;
        if unique && !keys.insert(name.clone()) {
            return Err(match jsonb {
                true => err!(DUPLICATE_JSON_OBJECT_KEY_VALUE, "duplicate JSON object key value"),
                false => {
                    let mut key = Vec::new();
                    write_string(&name, &mut key)?;
                    let key = io::into_string(key)?;
                    err!(DUPLICATE_JSON_OBJECT_KEY_VALUE, "duplicate JSON object key value: {key}")
                }
            });
        }
        let ty = argument_type(call, 3 + 2 * i);
        if skip {
            continue;
        }
        if jsonb {
            fields.push((name, to_value(call.session, ty, value)?));
            continue;
        }
        if text.len() > 1 {
            text.extend_from_slice(b", ");
        }
        write_string(&name, &mut text)?;
        text.extend_from_slice(b" : ");
        append_json(call.session, ty, value, &mut text)?;
    }
    if jsonb {
        return datum(&JsonbValue::object(fields)?);
    }
    text.push(b'}');
    io::into_string(text).map(Datum::text)
}

fn array(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let absent_on_null = a[0].as_bool();
    let values = a.iter().enumerate().skip(1).filter(|(_, value)| !absent_on_null || !value.is_null());
    if call.return_type == oids::JSONB {
        let elements = values.map(|(i, value)| to_value(call.session, argument_type(call, i), value));
        return datum(&JsonbValue::Array(elements.collect::<Result<_>>()?));
    }
    let mut out = vec![b'['];
    for (i, value) in values {
        if out.len() > 1 {
            out.extend_from_slice(b", ");
        }
        append_json(call.session, argument_type(call, i), value, &mut out)?;
    }
    out.push(b']');
    io::into_string(out).map(Datum::text)
}

fn is_json(call: &CallInfo<'_>, a: &[Datum]) -> Result<bool> {
    let (value, unique) = (&a[0], a[2].as_bool());
    let wanted = match &a[1] {
        Datum::Text(kind) => Some(&**kind),
        _ => None,
    };
    let ty = lookup::base_type(call.session, argument_type(call, 0));
    if ty == oids::JSONB {
        let kind = match root(value).type_name() {
            kind @ ("object" | "array") => kind,
            _ => "scalar",
        };
        return Ok(wanted.is_none_or(|wanted| wanted == kind));
    }
    let text = value.as_str();
    let kind = match text.trim_start_matches([' ', '\t', '\n', '\r']).bytes().next() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        _ => "scalar",
    };
    if wanted.is_some_and(|wanted| wanted != kind) {
        return Ok(false);
    }
    let valid = if unique { parse(text, false).and_then(|node| has_unique_keys(&node)) } else { validate(text).map(|()| true) };
    match valid {
        Err(e) if e.sqlstate().class() != "22" => Err(e),
        Err(_) => Ok(false),
        Ok(valid) => Ok(valid),
    }
}

/// Whether no object in it has a key twice.
fn has_unique_keys(node: &JsonNode<'_>) -> Result<bool> {
    limits::check_stack()?;
    limits::tick()?;
    match &node.kind {
        JsonKind::Array(elements) => {
            for element in elements {
                if !has_unique_keys(element)? {
                    return Ok(false);
                }
            }
        }
        JsonKind::Object(fields) => {
            let mut keys = HashSet::with_capacity(fields.len());
            for (key, value) in fields {
                if !keys.insert(unescape(key)?) || !has_unique_keys(value)? {
                    return Ok(false);
                }
            }
        }
        _ => {}
    }
    Ok(true)
}
