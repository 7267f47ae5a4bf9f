//! json: the functions over JSON text. Results keep the text of the input.

use melba_fmgr::ScalarFn;
use melba_types::json::{JsonKind, JsonNode, parse, unescape, write_string};
use melba_types::{Datum, Result};

use super::access::{flag, not_applicable};
use super::{index_of, strings};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("json_object_field", |_, a| Ok(raw(field(&parse(a[0].as_str(), true)?, a[1].as_str())?))),
    ("json_object_field_text", |_, a| as_text(field(&parse(a[0].as_str(), true)?, a[1].as_str())?)),
    ("json_array_element", |_, a| Ok(raw(element(&parse(a[0].as_str(), true)?, i64::from(a[1].as_i32()))))),
    ("json_array_element_text", |_, a| as_text(element(&parse(a[0].as_str(), true)?, i64::from(a[1].as_i32())))),
    ("json_extract_path", |_, a| Ok(raw(walk(&parse(a[0].as_str(), true)?, &a[1])?))),
    ("json_extract_path_text", |_, a| as_text(walk(&parse(a[0].as_str(), true)?, &a[1])?)),
    ("json_typeof", |_, a| {
        Ok(Datum::text(match parse(a[0].as_str(), false)?.kind {
            JsonKind::Null => "null",
            JsonKind::Bool(_) => "boolean",
            JsonKind::Number => "number",
            JsonKind::String => "string",
            JsonKind::Array(_) => "array",
            JsonKind::Object(_) => "object",
        }))
    }),
    ("json_array_length", |_, a| match parse(a[0].as_str(), false)?.kind {
        JsonKind::Array(elements) => Ok(Datum::Int4(elements.len() as i32)),
        JsonKind::Object(_) => Err(not_applicable("get array length of a non-array")),
        _ => Err(not_applicable("get array length of a scalar")),
    }),
    ("json_strip_nulls", |_, a| {
        let mut out = Vec::new();
        strip(&parse(a[0].as_str(), true)?, flag(a, 1, false)?, &mut out)?;
        melba_fmgr::io::into_string(out).map(Datum::text)
    }),
];

/// The last field of that name.
fn field<'n, 't>(node: &'n JsonNode<'t>, key: &str) -> Result<Option<&'n JsonNode<'t>>> {
    let JsonKind::Object(fields) = &node.kind else { return Ok(None) };
    for (name, value) in fields.iter().rev() {
        if name.len() == key.len() + 2 && &name[1..name.len() - 1] == key && !key.contains('\\') {
            return Ok(Some(value));
        }
        if name.contains('\\') && unescape(name)? == key {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn element<'n, 't>(node: &'n JsonNode<'t>, index: i64) -> Option<&'n JsonNode<'t>> {
    let JsonKind::Array(elements) = &node.kind else { return None };
    let index = if index < 0 { elements.len() as i64 + index } else { index };
    usize::try_from(index).ok().and_then(|i| elements.get(i))
}

fn walk<'n, 't>(node: &'n JsonNode<'t>, path: &Datum) -> Result<Option<&'n JsonNode<'t>>> {
    let mut current = node;
    for step in strings(path) {
        let Some(step) = step else { return Ok(None) };
        let next = match &current.kind {
            JsonKind::Object(_) => field(current, &step)?,
            JsonKind::Array(_) => index_of(&step).and_then(|index| element(current, index)),
            _ => None,
        };
        match next {
            Some(next) => current = next,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

fn raw(node: Option<&JsonNode<'_>>) -> Datum {
    node.map_or(Datum::Null, |node| Datum::text(node.raw))
}

/// Strings without quotes and escapes, null as NULL.
pub fn as_text(node: Option<&JsonNode<'_>>) -> Result<Datum> {
    Ok(match node {
        None => Datum::Null,
        Some(JsonNode { kind: JsonKind::Null, .. }) => Datum::Null,
        Some(JsonNode { kind: JsonKind::String, raw }) => Datum::text(unescape(raw)?),
        Some(node) => Datum::text(node.raw),
    })
}

fn strip(node: &JsonNode<'_>, in_arrays: bool, out: &mut Vec<u8>) -> Result<()> {
    let is_null = |node: &JsonNode<'_>| matches!(node.kind, JsonKind::Null);
    match &node.kind {
        JsonKind::Object(fields) => {
            out.push(b'{');
            for (i, (key, value)) in fields.iter().filter(|(_, value)| !is_null(value)).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(&unescape(key)?, out)?;
                out.push(b':');
                strip(value, in_arrays, out)?;
            }
            out.push(b'}');
        }
        JsonKind::Array(elements) => {
            out.push(b'[');
            for (i, value) in elements.iter().filter(|value| !in_arrays || !is_null(value)).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                strip(value, in_arrays, out)?;
            }
            out.push(b']');
        }
        JsonKind::String => write_string(&unescape(node.raw)?, out)?,
        _ => out.extend_from_slice(node.raw.as_bytes()),
    }
    Ok(())
}
