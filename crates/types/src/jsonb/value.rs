//! A jsonb as a tree, for building and changing it.

use std::cmp::Ordering;

use super::{
    Json, KIND_ARRAY, KIND_FALSE, KIND_NULL, KIND_NUMBER, KIND_OBJECT, KIND_STRING, KIND_TRUE, VERSION, View, WIDTH_STEP,
};
use crate::json::{self, JsonKind, JsonNode};
use crate::{Numeric, Result, bail, limits, sort_by};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonbValue {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Array(Vec<JsonbValue>),
    /// Sorted by `compare_keys`, without duplicates; see `object`.
    Object(Vec<(String, JsonbValue)>),
}

/// The order of keys: shorter first, then by bytes.
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl JsonbValue {
    /// An object of fields in any order; the last of equal keys counts.
    ///
    /// # Errors
    /// Those of `limits::check`.
    pub fn object(mut fields: Vec<(String, JsonbValue)>) -> Result<JsonbValue> {
        sort_by(&mut fields, |a, b| compare_keys(&a.0, &b.0))?;
        let mut kept: Vec<(String, JsonbValue)> = Vec::with_capacity(fields.len());
        for field in fields {
            match kept.last_mut() {
                Some(last) if last.0 == field.0 => *last = field,
                _ => kept.push(field),
            }
        }
        Ok(JsonbValue::Object(kept))
    }

    /// Parses JSON text.
    pub fn parse(text: &str) -> Result<JsonbValue> {
        JsonbValue::from_node(&json::parse(text, true)?)
    }

    pub fn from_node(node: &JsonNode<'_>) -> Result<JsonbValue> {
        limits::tick()?;
        Ok(match &node.kind {
            JsonKind::Null => JsonbValue::Null,
            JsonKind::Bool(v) => JsonbValue::Bool(*v),
            JsonKind::Number => JsonbValue::Number(Numeric::parse(node.raw)?),
            JsonKind::String => JsonbValue::String(json::unescape(node.raw)?),
            JsonKind::Array(elements) => JsonbValue::Array(elements.iter().map(JsonbValue::from_node).collect::<Result<_>>()?),
            JsonKind::Object(fields) => {
                let field = |(key, value): &(&str, JsonNode<'_>)| Ok((json::unescape(key)?, JsonbValue::from_node(value)?));
                JsonbValue::object(fields.iter().map(field).collect::<Result<_>>()?)?
            }
        })
    }

    pub fn from_json(json: Json<'_>) -> JsonbValue {
        match json.view() {
            View::Null => JsonbValue::Null,
            View::Bool(v) => JsonbValue::Bool(v),
            View::Number(v) => JsonbValue::Number(v),
            View::String(v) => JsonbValue::String(v.to_string()),
            View::Array(array) => JsonbValue::Array(array.iter().map(JsonbValue::from_json).collect()),
            View::Object(object) => {
                JsonbValue::Object(object.iter().map(|(key, value)| (key.to_string(), JsonbValue::from_json(value))).collect())
            }
        }
    }

    pub fn is_scalar(&self) -> bool {
        !matches!(self, JsonbValue::Array(_) | JsonbValue::Object(_))
    }

    /// The stored form.
    ///
    /// # Errors
    /// 54001 when it nests too deeply, 54000 when it is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = vec![VERSION];
        self.encode(&mut out)?;
        Ok(out)
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        limits::check_nesting()?;
        limits::tick()?;
        match self {
            JsonbValue::Null => out.push(KIND_NULL),
            JsonbValue::Bool(false) => out.push(KIND_FALSE),
            JsonbValue::Bool(true) => out.push(KIND_TRUE),
            JsonbValue::Number(v) => {
                out.push(KIND_NUMBER);
                v.encode(out);
            }
            JsonbValue::String(v) => {
                out.push(KIND_STRING);
                out.extend_from_slice(v.as_bytes());
            }
            JsonbValue::Array(elements) => {
                let mut data = Vec::new();
                let mut ends = Vec::with_capacity(elements.len());
                for element in elements {
                    element.encode(&mut data)?;
                    ends.push(data.len());
                }
                write_container(KIND_ARRAY, elements.len(), &[&ends], &[&data], out)?;
            }
            JsonbValue::Object(fields) => {
                let (mut keys, mut data) = (Vec::new(), Vec::new());
                let (mut key_ends, mut ends) = (Vec::with_capacity(fields.len()), Vec::with_capacity(fields.len()));
                for (key, value) in fields {
                    keys.extend_from_slice(key.as_bytes());
                    key_ends.push(keys.len());
                    value.encode(&mut data)?;
                    ends.push(data.len());
                }
                write_container(KIND_OBJECT, fields.len(), &[&key_ends, &ends], &[&keys, &data], out)?;
            }
        }
        Ok(())
    }
}

/// The limit of PostgreSQL's form.
const CONTAINER_BYTES_MAX: usize = 0x0fff_ffff;

fn write_container(kind: u8, count: usize, tables: &[&[usize]], parts: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
    let bytes = parts.iter().map(|part| part.len()).sum();
    if bytes > CONTAINER_BYTES_MAX {
        let what = if kind == KIND_ARRAY { "array" } else { "object" };
        bail!(PROGRAM_LIMIT_EXCEEDED, "total size of jsonb {what} elements exceeds the maximum of {CONTAINER_BYTES_MAX} bytes");
    }
    limits::check_request(bytes)?;
    let largest = parts.iter().map(|part| part.len()).max().unwrap_or(0).max(count);
    let (code, width) = match largest {
        0..=0xff => (0, 1),
        0x100..=0xffff => (1, 2),
        _ => (2, 4),
    };
    out.push(kind + WIDTH_STEP * code);
    out.extend_from_slice(&count.to_le_bytes()[..width]);
    for end in tables.iter().flat_map(|table| table.iter()) {
        out.extend_from_slice(&end.to_le_bytes()[..width]);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    Ok(())
}
