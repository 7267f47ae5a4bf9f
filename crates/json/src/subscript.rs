//! Assignment to a part of a jsonb, `j['a'][1] = value`: unlike jsonb_set it creates all missing parts of the path.

use melba_fmgr::ScalarFn;
use melba_types::jsonb::JsonbValue;
use melba_types::{Datum, Result, err};

use super::{datum, root, strings};

/// As many elements as a jsonb array can have.
const ELEMENTS_MAX: usize = 268_435_455;

/// Functions for assignments in expressions, by their names here: pg_proc has no such rows.
pub const FUNCTIONS: &[(&str, ScalarFn)] =
    &[("jsonb_subscript_assign", |_, a| assign(&a[0], &a[1], Some(&a[2]).filter(|v| !v.is_null()), a[3].as_bool()))];

/// The document with the value at the path; NULL is JSON's null. A document that is NULL counts as an empty array or object, as
/// the first step requires (`is_array`).
fn assign(document: &Datum, path: &Datum, value: Option<&Datum>, is_array: bool) -> Result<Datum> {
    let document = match document {
        Datum::Null if is_array => JsonbValue::Array(Vec::new()),
        Datum::Null => JsonbValue::Object(Vec::new()),
        document => JsonbValue::from_json(root(document)),
    };
    let steps = strings(path);
    let steps: Vec<&str> = steps.iter().flatten().map(|step| &**step).collect();
    let value = value.map_or(JsonbValue::Null, |value| JsonbValue::from_json(root(value)));
    datum(&set(document, &steps, 1, value)?)
}

/// `number`: the place of the first of `steps` in the path, from 1.
fn set(target: JsonbValue, steps: &[&str], number: usize, value: JsonbValue) -> Result<JsonbValue> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value) };
    match target {
        JsonbValue::Object(mut fields) => {
            match fields.binary_search_by(|field| melba_types::jsonb::compare_keys(&field.0, step)) {
                Ok(at) => {
                    let old = std::mem::replace(&mut fields[at].1, JsonbValue::Null);
                    fields[at].1 = set(old, rest, number + 1, value)?;
                }
                Err(at) => fields.insert(at, (step.to_string(), chain(rest, value)?)),
            }
            Ok(JsonbValue::Object(fields))
        }
        JsonbValue::Array(mut elements) => {
            let index: i32 = step.parse().map_err(|_| {
                err!(INVALID_TEXT_REPRESENTATION, "path element at position {number} is not an integer: \"{step}\"")
            })?;
            let at = if index < 0 { elements.len() as i64 + i64::from(index) } else { i64::from(index) };
            let Ok(at) = usize::try_from(at) else {
                return Err(err!(INVALID_PARAMETER_VALUE, "path element at position {number} is out of range: {index}"));
            };
            if let Some(element) = elements.get_mut(at) {
                let old = std::mem::replace(element, JsonbValue::Null);
                *element = set(old, rest, number + 1, value)?;
            } else {
                fill(&mut elements, at)?;
                elements.push(chain(rest, value)?);
            }
            Ok(JsonbValue::Array(elements))
        }
        _ => Err(err!(INVALID_PARAMETER_VALUE, "cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// Arrays and objects of one element each, down to the value.
fn chain(steps: &[&str], value: JsonbValue) -> Result<JsonbValue> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value) };
    let inner = chain(rest, value)?;
    let Ok(index) = step.parse::<i64>() else { return Ok(JsonbValue::Object(vec![(step.to_string(), inner)])) };
    let mut elements = Vec::new();
    fill(&mut elements, usize::try_from(index).unwrap_or(0))?;
    elements.push(inner);
    Ok(JsonbValue::Array(elements))
}

fn fill(elements: &mut Vec<JsonbValue>, length: usize) -> Result<()> {
    if length >= ELEMENTS_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})"));
    }
    elements.resize(length, JsonbValue::Null);
    Ok(())
}
