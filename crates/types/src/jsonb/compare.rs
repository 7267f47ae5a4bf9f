//! Order and containment of jsonb values.

use super::{Json, View};
use crate::key::{encode_bytes, encode_numeric};

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

/// Whether `a` contains `b`, as the operator `@>` has it.
pub fn contains(a: Json<'_>, b: Json<'_>) -> bool {
    match (a.view(), b.view()) {
        // An array contains a scalar that is one of its elements, at the top level only.
        (View::Array(array), _) if b.is_scalar() => array.iter().any(|element| scalars_equal(element, b)),
        _ => contains_nested(a, b),
    }
}

fn contains_nested(a: Json<'_>, b: Json<'_>) -> bool {
    match (a.view(), b.view()) {
        (View::Object(a), View::Object(b)) => {
            b.len() <= a.len() && b.iter().all(|(key, value)| a.get(key).is_some_and(|found| contains_nested(found, value)))
        }
        (View::Array(a), View::Array(b)) => b.iter().all(|wanted| a.iter().any(|element| contains_nested(element, wanted))),
        _ => scalars_equal(a, b),
    }
}

fn scalars_equal(a: Json<'_>, b: Json<'_>) -> bool {
    match (a.view(), b.view()) {
        (View::Null, View::Null) => true,
        (View::Bool(a), View::Bool(b)) => a == b,
        (View::Number(a), View::Number(b)) => a == b,
        (View::String(a), View::String(b)) => a == b,
        _ => false,
    }
}
