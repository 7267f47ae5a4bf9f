//! json and jsonb: input and output, operators, construction, modification, conversion; jsonpath.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

mod access;
mod aggregates;
mod build;
mod cast;
mod construct;
mod edit;
mod expand;
mod gin;
mod hash;
pub mod jsonpath;
mod populate;
mod subscript;
mod tables;
#[cfg(test)]
mod testing;
mod text;

pub use build::{append_json, to_value};
pub use tables::TABLES;

use std::sync::Arc;

use melba_fmgr::TypeIo;
use melba_fmgr::type_io::{received, send_text};
use melba_types::jsonb::{Json, JsonbValue, write};
use melba_types::{Datum, Oid, Result, err, oids};

const TYPES: &[(Oid, TypeIo)] = &[
    (
        oids::JSON,
        TypeIo {
            input: |_, s| {
                melba_types::json::validate(s)?;
                Ok(Datum::text(s))
            },
            output: |_, v, out| {
                out.extend_from_slice(v.as_str().as_bytes());
                Ok(())
            },
            receive: |c, b| {
                let text = received(c, b)?;
                melba_types::json::validate(&text)?;
                Ok(Datum::text(&*text))
            },
            send: |c, v, out| send_text(c, v.as_str(), out),
        },
    ),
    (
        oids::JSONB,
        TypeIo {
            input: |_, s| datum(&JsonbValue::parse(s)?),
            output: |_, v, out| write(root(v), out),
            receive: |c, b| match b.split_first() {
                Some((1, text)) => datum(&JsonbValue::parse(&received(c, text)?)?),
                Some((version, _)) => Err(err!(INTERNAL_ERROR, "unsupported jsonb version number {version}")),
                None => Err(err!(PROTOCOL_VIOLATION, "insufficient data left in message")),
            },
            send: |c, v, out| {
                out.push(1);
                let mut text = Vec::new();
                write(root(v), &mut text)?;
                send_text(c, &melba_fmgr::io::into_string(text)?, out)
            },
        },
    ),
];

/// The value of a jsonb datum.
pub fn root(datum: &Datum) -> Json<'_> {
    Json::root(datum.as_bytes())
}

/// A jsonb datum.
///
/// # Errors
/// 54001 when it nests too deeply, 54000 when it is too large.
pub fn datum(value: &JsonbValue) -> Result<Datum> {
    Ok(Datum::bytes(value.to_bytes()?))
}

/// A part of a jsonb as a separate jsonb.
pub fn part(json: Json<'_>) -> Result<Datum> {
    Ok(Datum::bytes(json.to_bytes()))
}

/// A part of a jsonb as text: strings without quotes, null as NULL.
///
/// # Errors
/// Those of a text that is too long.
pub fn part_text(json: Json<'_>) -> Result<Datum> {
    use melba_types::jsonb::View;
    Ok(match json.view() {
        View::Null => Datum::Null,
        View::String(text) => Datum::text(text),
        _ => {
            let mut out = Vec::new();
            write(json, &mut out)?;
            Datum::text(melba_fmgr::io::into_string(out)?)
        }
    })
}

/// The elements of a text[] argument, `None` for nulls.
pub fn strings(array: &Datum) -> Vec<Option<Arc<str>>> {
    let element = |d: &Datum| match d {
        Datum::Text(text) => Some(text.clone()),
        _ => None,
    };
    array.as_array().elements.iter().map(element).collect()
}

/// An array index written as C's strtol reads it: blanks and a sign allowed, nothing after the digits.
pub fn index_of(text: &str) -> Option<i64> {
    let trimmed = text.trim_start_matches(|c: char| c.is_ascii() && melba_fmgr::type_io::is_space(c as u8));
    trimmed.parse::<i32>().ok().map(i64::from)
}

#[cfg(test)]
mod tests;
