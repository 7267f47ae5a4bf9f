//! A result as an array of objects, or as objects in lines.

use std::borrow::Cow;
use std::io::{Result, Write};

use super::sheet::{Format, Sheet, ValueKind, Values};
use melba_client::escape;

pub fn row(sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
    let is_array = sheet.style.format == Format::Json;
    let before: &[u8] = match sheet.rows {
        _ if !is_array => b"{",
        1 => b"\n  {",
        _ => b",\n  {",
    };
    out.write_all(before)?;
    for (at, (column, value)) in sheet.columns.iter().zip(values).enumerate() {
        if at > 0 {
            out.write_all(b", ")?;
        }
        write!(out, "{}: ", quoted(&name(sheet, at)))?;
        let Some(value) = value else {
            out.write_all(b"null")?;
            continue;
        };
        let text = String::from_utf8_lossy(value);
        match ValueKind::of(column.type_oid) {
            ValueKind::Boolean => out.write_all(if text == "t" { b"true" } else { b"false" })?,
            // Neither NaN nor Infinity is a number of JSON.
            ValueKind::Number if text.ends_with(|c: char| c.is_ascii_digit()) => out.write_all(text.as_bytes())?,
            ValueKind::Json => out.write_all(escaped(&text.replace(['\n', '\r'], " ")).as_bytes())?,
            _ => out.write_all(quoted(&text).as_bytes())?,
        }
    }
    out.write_all(if is_array { b"}" } else { b"}\n" })
}

/// Columns of the same name get numbers: an object has a name once.
fn name(sheet: &Sheet, at: usize) -> Cow<'_, str> {
    let name = &sheet.columns[at].name;
    match sheet.columns[..at].iter().filter(|c| c.name == *name).count() {
        0 => Cow::Borrowed(name),
        before => Cow::Owned(format!("{name}_{}", before + 1)),
    }
}

fn quoted(text: &str) -> String {
    escaped(&serde_json::Value::from(text).to_string())
}

/// Control characters beyond ASCII may stand in JSON, but not on a terminal.
fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        match c {
            c if c > '\u{7e}' && escape::is_control(c) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
        out
    })
}
