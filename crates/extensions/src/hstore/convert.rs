//! hstore from texts and arrays, and to arrays and JSON.

use std::sync::Arc;

use melba_fmgr::ScalarFn;
use melba_types::json::{JsonKind, parse, write_string};
use melba_types::jsonb::JsonbValue;
use melba_types::{Array, ArrayDim, Datum, DbError, Result, err, hstore, oids};

use super::{datum, null_key, pairs, text, text_array, texts};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("hstore_from_text", |_, a| match &a[0] {
        Datum::Null => Ok(Datum::Null),
        key => datum(vec![(key.as_str(), (!a[1].is_null()).then(|| a[1].as_str()))]),
    }),
    ("hstore_from_arrays", |_, a| match &a[0] {
        Datum::Null => Ok(Datum::Null),
        keys => from_arrays(keys.as_array(), (!a[1].is_null()).then(|| a[1].as_array())),
    }),
    ("hstore_from_array", |_, a| from_array(a[0].as_array())),
    ("hstore_akeys", |_, a| Ok(text_array(pairs(&a[0]).iter().map(|pair| Datum::text(pair.0)).collect()))),
    ("hstore_avals", |_, a| Ok(text_array(pairs(&a[0]).iter().map(|pair| text(pair.1)).collect()))),
    ("hstore_to_array", |_, a| Ok(text_array(alternating(&a[0])))),
    ("hstore_to_matrix", |_, a| {
        let elements = alternating(&a[0]);
        let dim = |length: usize| ArrayDim { length: length as i32, lower_bound: 1 };
        let dims = if elements.is_empty() { Vec::new() } else { vec![dim(elements.len() / 2), dim(2)] };
        Ok(Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements })))
    }),
    ("hstore_to_json", |_, a| to_json(&a[0], write_string)),
    ("hstore_to_json_loose", |_, a| {
        to_json(&a[0], |value, out| match value {
            "t" => append(b"true", out),
            "f" => append(b"false", out),
            number if is_number(number) => append(number.as_bytes(), out),
            other => write_string(other, out),
        })
    }),
    ("hstore_to_jsonb", |_, a| to_jsonb(&a[0], |value| Ok(JsonbValue::String(value.to_owned())))),
    ("hstore_to_jsonb_loose", |_, a| {
        to_jsonb(&a[0], |value| match value {
            "t" => Ok(JsonbValue::Bool(true)),
            "f" => Ok(JsonbValue::Bool(false)),
            number if is_number(number) => JsonbValue::parse(number),
            other => Ok(JsonbValue::String(other.to_owned())),
        })
    }),
];

fn wrong_dimensions() -> DbError {
    err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
}

fn from_arrays(keys: &Array, values: Option<&Array>) -> Result<Datum> {
    if keys.dims.len() > 1 || values.is_some_and(|values| values.dims.len() > 1) {
        return Err(wrong_dimensions());
    }
    let bounds = |array: &Array| array.dims.iter().map(|dim| (dim.length, dim.lower_bound)).collect::<Vec<_>>();
    if values.is_some_and(|values| bounds(values) != bounds(keys)) {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "arrays must have same bounds"));
    }
    let values = values.into_iter().flat_map(texts).chain(std::iter::repeat(None));
    datum(texts(keys).zip(values).map(|(key, value)| Ok((key.ok_or_else(null_key)?, value))).collect::<Result<_>>()?)
}

/// Keys and values in turn, or two columns of them.
fn from_array(array: &Array) -> Result<Datum> {
    match &array.dims[..] {
        [] => {}
        [dim] if dim.length % 2 == 0 => {}
        [_] => return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements")),
        [_, columns] if columns.length == 2 => {}
        [_, _] => return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array must have two columns")),
        _ => return Err(wrong_dimensions()),
    }
    let parts: Vec<Option<&str>> = texts(array).collect();
    datum(parts.chunks_exact(2).map(|pair| Ok((pair[0].ok_or_else(null_key)?, pair[1]))).collect::<Result<_>>()?)
}

fn alternating(value: &Datum) -> Vec<Datum> {
    hstore::pairs(value.as_bytes()).flat_map(|pair| [Datum::text(pair.0), text(pair.1)]).collect()
}

/// Whether it is a number of JSON, and nothing besides.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && parse(text, true).is_ok_and(|node| matches!(node.kind, JsonKind::Number) && node.raw == text)
}

fn append(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(bytes);
    Ok(())
}

fn to_json(value: &Datum, write: impl Fn(&str, &mut Vec<u8>) -> Result<()>) -> Result<Datum> {
    let mut out = vec![b'{'];
    for (i, (key, value)) in hstore::pairs(value.as_bytes()).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(key, &mut out)?;
        out.extend_from_slice(b": ");
        match value {
            Some(value) => write(value, &mut out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    melba_fmgr::io::into_string(out).map(Datum::text)
}

fn to_jsonb(value: &Datum, convert: impl Fn(&str) -> Result<JsonbValue>) -> Result<Datum> {
    let field = |(key, value): (&str, Option<&str>)| Ok((key.to_owned(), value.map_or(Ok(JsonbValue::Null), &convert)?));
    let fields = hstore::pairs(value.as_bytes()).map(field).collect::<Result<_>>()?;
    melba_json::datum(&JsonbValue::object(fields)?)
}
