//! Changing jsonb: set, insert, delete, concatenate, strip.

use std::collections::HashSet;

use melba_fmgr::ScalarFn;
use melba_types::jsonb::JsonbValue;
use melba_types::{Datum, DbError, Result, err};

use super::access::{flag, not_applicable};
use super::{datum, index_of, root, strings};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("jsonb_set", |_, a| {
        let change = if flag(a, 3, true)? { Change::Create } else { Change::Replace };
        edit(&a[0], &a[1], Some(&a[2]), change)
    }),
    ("jsonb_set_lax", set_lax),
    ("jsonb_insert", |_, a| {
        let change = if flag(a, 3, false)? { Change::InsertAfter } else { Change::InsertBefore };
        edit(&a[0], &a[1], Some(&a[2]), change)
    }),
    ("jsonb_delete_path", |_, a| edit(&a[0], &a[1], None, Change::Delete)),
    ("jsonb_delete", |_, a| delete_keys(&a[0], &[a[1].as_str()])),
    ("jsonb_delete_array", |_, a| {
        if a[1].as_array().dims.len() > 1 {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
        }
        let keys = strings(&a[1]);
        let keys: Vec<&str> = keys.iter().flatten().map(|key| &**key).collect();
        delete_keys(&a[0], &keys)
    }),
    ("jsonb_delete_idx", |_, a| match JsonbValue::from_json(root(&a[0])) {
        JsonbValue::Object(_) => Err(not_applicable("delete from object using integer index")),
        JsonbValue::Array(mut elements) => {
            let index = i64::from(a[1].as_i32());
            let index = if index < 0 { elements.len() as i64 + index } else { index };
            if (0..elements.len() as i64).contains(&index) {
                elements.remove(index as usize);
            }
            datum(&JsonbValue::Array(elements))
        }
        _ => Err(not_applicable("delete from scalar")),
    }),
    ("jsonb_concat", |_, a| datum(&concatenate(JsonbValue::from_json(root(&a[0])), JsonbValue::from_json(root(&a[1])))?)),
    ("jsonb_strip_nulls", |_, a| {
        let in_arrays = flag(a, 1, false)?;
        datum(&strip_nulls(JsonbValue::from_json(root(&a[0])), in_arrays))
    }),
];

/// The change at the end of a path.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// Replace, or add a missing value.
    Create,
    Replace,
    InsertBefore,
    InsertAfter,
    Delete,
}

impl Change {
    fn adds(self) -> bool {
        matches!(self, Change::Create | Change::InsertBefore | Change::InsertAfter)
    }

    fn inserts(self) -> bool {
        matches!(self, Change::InsertBefore | Change::InsertAfter)
    }
}

fn edit(target: &Datum, path: &Datum, new: Option<&Datum>, change: Change) -> Result<Datum> {
    check_dimensions(path)?;
    let value = JsonbValue::from_json(root(target));
    if value.is_scalar() {
        let verb = if change == Change::Delete { "delete path" } else { "set path" };
        return Err(not_applicable(&format!("{verb} in scalar")));
    }
    let steps = strings(path);
    let is_empty =
        matches!(&value, JsonbValue::Array(e) if e.is_empty()) || matches!(&value, JsonbValue::Object(f) if f.is_empty());
    if steps.is_empty() || (is_empty && !change.adds()) {
        return Ok(target.clone());
    }
    let new = new.map(|new| JsonbValue::from_json(root(new)));
    let editor = Editor { steps: &steps, new: new.as_ref(), change };
    datum(&editor.apply(value, 0)?)
}

fn check_dimensions(path: &Datum) -> Result<()> {
    if path.as_array().dims.len() > 1 {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    Ok(())
}

struct Editor<'a> {
    steps: &'a [Option<std::sync::Arc<str>>],
    new: Option<&'a JsonbValue>,
    change: Change,
}

impl Editor<'_> {
    fn new_value(&self) -> JsonbValue {
        self.new.cloned().unwrap_or(JsonbValue::Null)
    }

    fn apply(&self, value: JsonbValue, level: usize) -> Result<JsonbValue> {
        let Some(step) = &self.steps[level] else {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "path element at position {} is null", level + 1));
        };
        if value.is_scalar() {
            return Ok(value);
        }
        let last = level + 1 == self.steps.len();
        match value {
            JsonbValue::Object(fields) => self.object(fields, step, level, last),
            JsonbValue::Array(elements) => self.array(elements, step, level, last),
            scalar => Ok(scalar),
        }
    }

    fn object(&self, mut fields: Vec<(String, JsonbValue)>, key: &str, level: usize, last: bool) -> Result<JsonbValue> {
        let at = fields.binary_search_by(|field| melba_types::jsonb::compare_keys(&field.0, key));
        match at {
            Ok(at) if last => {
                if self.change.inserts() {
                    return Err(err!(INVALID_PARAMETER_VALUE, "cannot replace existing key")
                        .hint("Try using the function jsonb_set to replace key value."));
                }
                if self.change == Change::Delete {
                    fields.remove(at);
                } else {
                    fields[at].1 = self.new_value();
                }
            }
            Ok(at) => {
                let value = std::mem::replace(&mut fields[at].1, JsonbValue::Null);
                fields[at].1 = self.apply(value, level + 1)?;
            }
            Err(at) if last && self.change.adds() => fields.insert(at, (key.to_string(), self.new_value())),
            Err(_) => {}
        }
        Ok(JsonbValue::Object(fields))
    }

    fn array(&self, mut elements: Vec<JsonbValue>, step: &str, level: usize, last: bool) -> Result<JsonbValue> {
        let index = index_of(step).ok_or_else(|| {
            err!(INVALID_TEXT_REPRESENTATION, "path element at position {} is not an integer: \"{step}\"", level + 1)
        })?;
        let count = elements.len() as i64;
        let index = if index < 0 { count + index } else { index };
        if last && self.change.adds() && (index < 0 || count == 0) {
            elements.insert(0, self.new_value());
            return Ok(JsonbValue::Array(elements));
        }
        if last && self.change.adds() && index >= count {
            elements.push(self.new_value());
            return Ok(JsonbValue::Array(elements));
        }
        if !(0..count).contains(&index) {
            return Ok(JsonbValue::Array(elements));
        }
        let at = index as usize;
        if !last {
            let value = std::mem::replace(&mut elements[at], JsonbValue::Null);
            elements[at] = self.apply(value, level + 1)?;
            return Ok(JsonbValue::Array(elements));
        }
        match self.change {
            Change::Create | Change::Replace => elements[at] = self.new_value(),
            Change::InsertBefore => elements.insert(at, self.new_value()),
            Change::InsertAfter => elements.insert(at + 1, self.new_value()),
            Change::Delete => drop(elements.remove(at)),
        }
        Ok(JsonbValue::Array(elements))
    }
}

fn set_lax(_: &melba_fmgr::CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() || a[1].is_null() || a[3].is_null() {
        return Ok(Datum::Null);
    }
    let invalid = || -> DbError {
        err!(
            INVALID_PARAMETER_VALUE,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\""
        )
    };
    if a[4].is_null() {
        return Err(invalid());
    }
    let change = if a[3].as_bool() { Change::Create } else { Change::Replace };
    if !a[2].is_null() {
        return edit(&a[0], &a[1], Some(&a[2]), change);
    }
    match a[4].as_str() {
        "raise_exception" => Err(err!(NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
            .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .hint("To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.")),
        "use_json_null" => edit(&a[0], &a[1], Some(&datum(&JsonbValue::Null)?), change),
        "delete_key" => edit(&a[0], &a[1], None, Change::Delete),
        "return_target" => Ok(a[0].clone()),
        _ => Err(invalid()),
    }
}

fn delete_keys(target: &Datum, keys: &[&str]) -> Result<Datum> {
    let keys: HashSet<&str> = keys.iter().copied().collect();
    match JsonbValue::from_json(root(target)) {
        JsonbValue::Object(mut fields) => {
            fields.retain(|(key, _)| !keys.contains(key.as_str()));
            datum(&JsonbValue::Object(fields))
        }
        JsonbValue::Array(mut elements) => {
            elements.retain(|element| !matches!(element, JsonbValue::String(text) if keys.contains(text.as_str())));
            datum(&JsonbValue::Array(elements))
        }
        _ => Err(not_applicable("delete from scalar")),
    }
}

/// Objects are merged, the right one wins; everything else becomes an array.
fn concatenate(a: JsonbValue, b: JsonbValue) -> Result<JsonbValue> {
    Ok(match (a, b) {
        (JsonbValue::Object(mut a), JsonbValue::Object(b)) => {
            a.extend(b);
            JsonbValue::object(a)?
        }
        (a, b) => {
            let elements = |value: JsonbValue| match value {
                JsonbValue::Array(elements) => elements,
                other => vec![other],
            };
            let mut all = elements(a);
            all.extend(elements(b));
            JsonbValue::Array(all)
        }
    })
}

fn strip_nulls(value: JsonbValue, in_arrays: bool) -> JsonbValue {
    match value {
        JsonbValue::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| *value != JsonbValue::Null);
            JsonbValue::Object(kept.map(|(key, value)| (key, strip_nulls(value, in_arrays))).collect())
        }
        JsonbValue::Array(elements) => {
            let kept = elements.into_iter().filter(|value| !in_arrays || *value != JsonbValue::Null);
            JsonbValue::Array(kept.map(|value| strip_nulls(value, in_arrays)).collect())
        }
        scalar => scalar,
    }
}
