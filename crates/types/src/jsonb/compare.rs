//! Order and containment of jsonb values.

use super::{Json, KIND_NUMBER, KIND_STRING, View};
use crate::Result;
use crate::key::bytes::encode_bytes;
use crate::key::encode_numeric;
use crate::limits::tick;

/// Appends a byte string whose order is PostgreSQL's order of jsonb values: null, strings, numbers, booleans, arrays by
/// length, objects by length; and, for no reason but history, the empty array at the top before everything else.
pub fn sort_key(bytes: &[u8], out: &mut Vec<u8>) {
    let root = Json::root(bytes);
    let empty_array = matches!(root.view(), View::Array(array) if array.is_empty());
    out.push(u8::from(!empty_array));
    write_key(root, out);
}

fn write_key(json: Json<'_>, out: &mut Vec<u8>) {
    match json.view() {
        View::Null => out.push(1),
        View::String(v) => {
            out.push(2);
            encode_bytes(v.as_bytes(), out);
        }
        View::Number(v) => {
            out.push(3);
            encode_numeric(&v, out);
        }
        View::Bool(v) => out.extend_from_slice(&[4, u8::from(v)]),
        View::Array(array) => {
            out.push(5);
            out.extend_from_slice(&(array.len() as u32).to_be_bytes());
            array.iter().for_each(|element| write_key(element, out));
        }
        View::Object(object) => {
            out.push(6);
            out.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for (key, value) in object.iter() {
                encode_bytes(key.as_bytes(), out);
                write_key(value, out);
            }
        }
    }
}

/// Whether `a` contains `b`, as the operator `@>` has it. Arrays take the product of their lengths.
///
/// # Errors
/// Those of the limits.
pub fn contains(a: Json<'_>, b: Json<'_>) -> Result<bool> {
    match a.view() {
        // An array contains a scalar that is one of its elements, at the top level only.
        View::Array(array) if b.is_scalar() => any(array.iter(), |element| Ok(scalars_equal(element, b))),
        _ => contains_nested(a, b),
    }
}

fn contains_nested(a: Json<'_>, b: Json<'_>) -> Result<bool> {
    if a.is_scalar() || b.is_scalar() {
        return Ok(scalars_equal(a, b));
    }
    match (a.view(), b.view()) {
        (View::Object(a), View::Object(b)) => {
            let lacks = |(key, value): (&str, _)| Ok(!a.get(key).map_or(Ok(false), |found| contains_nested(found, value))?);
            Ok(b.len() <= a.len() && !any(b.iter(), lacks)?)
        }
        (View::Array(a), View::Array(b)) => {
            Ok(!any(b.iter(), |wanted| Ok(!any(a.iter(), |element| contains_nested(element, wanted))?))?)
        }
        _ => Ok(false),
    }
}

/// Whether one of the items is so.
fn any<T>(items: impl Iterator<Item = T>, is_so: impl Fn(T) -> Result<bool>) -> Result<bool> {
    for item in items {
        tick()?;
        if is_so(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn scalars_equal(a: Json<'_>, b: Json<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (KIND_NUMBER, KIND_NUMBER) => match (a.view(), b.view()) {
            (View::Number(a), View::Number(b)) => a == b,
            _ => false,
        },
        // Long strings are compared as they lie there.
        (KIND_STRING, KIND_STRING) => a.0.get(1..) == b.0.get(1..),
        (a_kind, b_kind) => a_kind == b_kind && a.is_scalar(),
    }
}
