//! Set-returning functions that split JSON.

use melba_fmgr::SetFn;
use melba_types::json::{JsonKind, JsonNode, parse, unescape};
use melba_types::jsonb::View;
use melba_types::{Datum, Result, err};

use super::access::not_applicable;
use super::text::as_text;
use super::{part, part_text, root};

pub const SETS: &[(&str, SetFn)] = &[
    ("jsonb_object_keys", |_, a| match root(&a[0]).view() {
        View::Object(object) => Ok(rows(object.iter().map(|(key, _)| vec![Datum::text(key)]).collect())),
        View::Array(_) => Err(not_applicable("call jsonb_object_keys on an array")),
        _ => Err(not_applicable("call jsonb_object_keys on a scalar")),
    }),
    ("jsonb_each", |_, a| jsonb_each(&a[0], "jsonb_each", false)),
    ("jsonb_each_text", |_, a| jsonb_each(&a[0], "jsonb_each_text", true)),
    ("jsonb_array_elements", |_, a| jsonb_elements(&a[0], false)),
    ("jsonb_array_elements_text", |_, a| jsonb_elements(&a[0], true)),
    ("json_object_keys", |_, a| match parse(a[0].as_str(), true)?.kind {
        JsonKind::Object(fields) => {
            let keys = fields.iter().map(|(key, _)| Ok(vec![Datum::text(unescape(key)?)]));
            Ok(rows(keys.collect::<Result<_>>()?))
        }
        JsonKind::Array(_) => Err(not_applicable("call json_object_keys on an array")),
        _ => Err(not_applicable("call json_object_keys on a scalar")),
    }),
    ("json_each", |_, a| json_each(&a[0], false)),
    ("json_each_text", |_, a| json_each(&a[0], true)),
    ("json_array_elements", |_, a| json_elements(&a[0], "json_array_elements", false)),
    ("json_array_elements_text", |_, a| json_elements(&a[0], "json_array_elements_text", true)),
];

pub type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

pub fn rows(rows: Vec<Vec<Datum>>) -> Rows {
    Box::new(rows.into_iter().map(Ok))
}

fn jsonb_each(value: &Datum, function: &str, text: bool) -> Result<Rows> {
    let View::Object(object) = root(value).view() else {
        return Err(not_applicable(&format!("call {function} on a non-object")));
    };
    let value = if text { part_text } else { part };
    let fields = object.iter().map(|(key, json)| Ok(vec![Datum::text(key), value(json)?]));
    Ok(rows(fields.collect::<Result<_>>()?))
}

fn jsonb_elements(value: &Datum, text: bool) -> Result<Rows> {
    match root(value).view() {
        View::Array(array) => {
            let value = if text { part_text } else { part };
            let elements = array.iter().map(|json| Ok(vec![value(json)?]));
            Ok(rows(elements.collect::<Result<_>>()?))
        }
        View::Object(_) => Err(not_applicable("extract elements from an object")),
        _ => Err(not_applicable("extract elements from a scalar")),
    }
}

fn json_value(node: &JsonNode<'_>, text: bool) -> Result<Datum> {
    if text { as_text(Some(node)) } else { Ok(Datum::text(node.raw)) }
}

fn json_each(value: &Datum, text: bool) -> Result<Rows> {
    match parse(value.as_str(), true)?.kind {
        JsonKind::Object(fields) => {
            let fields = fields.iter().map(|(key, node)| Ok(vec![Datum::text(unescape(key)?), json_value(node, text)?]));
            Ok(rows(fields.collect::<Result<_>>()?))
        }
        JsonKind::Array(_) => Err(err!(INVALID_PARAMETER_VALUE, "cannot deconstruct an array as an object")),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "cannot deconstruct a scalar")),
    }
}

fn json_elements(value: &Datum, function: &str, text: bool) -> Result<Rows> {
    match parse(value.as_str(), text)?.kind {
        JsonKind::Array(elements) => {
            Ok(rows(elements.iter().map(|node| Ok(vec![json_value(node, text)?])).collect::<Result<_>>()?))
        }
        JsonKind::Object(_) => Err(not_applicable(&format!("call {function} on a non-array"))),
        _ => Err(not_applicable(&format!("call {function} on a scalar"))),
    }
}
