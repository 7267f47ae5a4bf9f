//! Reading jsonb: fields, elements, paths, existence, containment, comparison.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use melba_fmgr::{ScalarFn, comparison_table};
use melba_types::jsonb::{Json, View, contains, sort_key, write_pretty};
use melba_types::{Datum, DbError, Result, err, limits};

use super::hash::root_hash;
use super::{index_of, part, part_text, root, strings};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("jsonb_object_field", |_, a| optional(root(&a[0]).field(a[1].as_str()), part)),
    ("jsonb_object_field_text", |_, a| optional(root(&a[0]).field(a[1].as_str()), part_text)),
    ("jsonb_array_element", |_, a| optional(element(root(&a[0]), a[1].as_i32()), part)),
    ("jsonb_array_element_text", |_, a| optional(element(root(&a[0]), a[1].as_i32()), part_text)),
    ("jsonb_extract_path", |_, a| optional(walk(root(&a[0]), &a[1]), part)),
    ("jsonb_extract_path_text", |_, a| optional(walk(root(&a[0]), &a[1]), part_text)),
    ("jsonb_exists", |_, a| Ok(Datum::Bool(exists(root(&a[0]), a[1].as_str())))),
    ("jsonb_exists_any", |_, a| some_key(root(&a[0]), &a[1], true).map(Datum::Bool)),
    ("jsonb_exists_all", |_, a| some_key(root(&a[0]), &a[1], false).map(|some| Datum::Bool(!some))),
    ("jsonb_contains", |_, a| contains(root(&a[0]), root(&a[1])).map(Datum::Bool)),
    ("jsonb_contained", |_, a| contains(root(&a[1]), root(&a[0])).map(Datum::Bool)),
    ("jsonb_typeof", |_, a| Ok(Datum::text(root(&a[0]).type_name()))),
    ("jsonb_array_length", |_, a| match root(&a[0]).view() {
        View::Array(array) => Ok(Datum::Int4(array.len() as i32)),
        View::Object(_) => Err(not_applicable("get array length of a non-array")),
        _ => Err(not_applicable("get array length of a scalar")),
    }),
    ("jsonb_pretty", |_, a| {
        let mut out = Vec::new();
        write_pretty(root(&a[0]), 0, &mut out)?;
        melba_fmgr::io::into_string(out).map(Datum::text)
    }),
    ("jsonb_hash", |_, a| root_hash(root(&a[0]), None).map(|hash| Datum::Int4(hash as i32))),
    ("jsonb_hash_extended", |_, a| root_hash(root(&a[0]), Some(a[1].as_i64() as u64)).map(|hash| Datum::Int8(hash as i64))),
];

/// 22023: `cannot ...`.
pub fn not_applicable(what: &str) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "cannot {what}")
}

/// A scalar at the top counts as an array of itself.
fn element(json: Json<'_>, index: i32) -> Option<Json<'_>> {
    match index {
        0 | -1 if json.is_scalar() => Some(json),
        _ => json.index(i64::from(index)),
    }
}

fn optional<'j>(found: Option<Json<'j>>, value: fn(Json<'j>) -> Result<Datum>) -> Result<Datum> {
    found.map_or(Ok(Datum::Null), value)
}

fn key(datum: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    sort_key(datum.as_bytes(), &mut out);
    out
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    if a.as_bytes() == b.as_bytes() { Ordering::Equal } else { key(a).cmp(&key(b)) }
}

comparison_table! {
    COMPARISONS:
    compare => "jsonb_eq", "jsonb_ne", "jsonb_lt", "jsonb_le", "jsonb_gt", "jsonb_ge", "jsonb_cmp";
}

/// The value at a path; a null in the path leads nowhere.
fn walk<'a>(json: Json<'a>, path: &Datum) -> Option<Json<'a>> {
    let mut current = json;
    for step in strings(path) {
        let step = step?;
        current = match current.view() {
            View::Object(object) => object.get(&step)?,
            View::Array(array) => array.at(index_of(&step)?)?,
            _ => return None,
        };
    }
    Some(current)
}

/// Whether a string is a key of the object, or an element of the array, or the value itself.
pub fn exists(json: Json<'_>, key: &str) -> bool {
    let is_key = |json: Json<'_>| matches!(json.view(), View::String(text) if text == key);
    match json.view() {
        View::Object(object) => object.get(key).is_some(),
        View::Array(array) => array.iter().any(is_key),
        _ => is_key(json),
    }
}

/// Whether at least one of several strings exists, or, when `wanted` is false, one does not.
fn some_key(json: Json<'_>, keys: &Datum, wanted: bool) -> Result<bool> {
    let keys: Vec<Arc<str>> = strings(keys).into_iter().flatten().collect();
    // An array is read once for all of them.
    let elements = match json.view() {
        View::Array(array) if keys.len() > 1 => {
            Some(limits::ticked(array.iter()).filter_map(text).collect::<Result<HashSet<_>>>()?)
        }
        View::String(text) => Some(HashSet::from([text])),
        _ => None,
    };
    for key in limits::ticked(&keys) {
        let key = &**key?;
        let found = elements.as_ref().map_or_else(|| exists(json, key), |elements| elements.contains(key));
        if found == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An element that is a string.
fn text(element: Result<Json<'_>>) -> Option<Result<&str>> {
    match element.map(Json::view) {
        Ok(View::String(text)) => Some(Ok(text)),
        Ok(_) => None,
        Err(e) => Some(Err(e)),
    }
}

/// Checks a flag argument that may be missing.
pub fn flag(args: &[Datum], at: usize, default: bool) -> Result<bool> {
    Ok(match args.get(at) {
        Some(Datum::Bool(value)) => *value,
        _ => default,
    })
}
