//! A line for each row: values with a separator, CSV, Markdown.

use std::borrow::Cow;
use std::io::{Result, Write};

use super::sheet::{Sheet, ValueKind, Values};
use melba_client::escape;

pub fn unaligned_head(sheet: &Sheet, out: &mut dyn Write) -> Result<()> {
    if sheet.style.tuples_only {
        return Ok(());
    }
    if let Some(title) = &sheet.title {
        writeln!(out, "{title}")?;
    }
    let names = sheet.columns.iter().map(|c| escape::if_terminal(&c.name, sheet.style.is_terminal));
    writeln!(out, "{}", names.collect::<Vec<_>>().join(&sheet.style.separator))
}

pub fn unaligned_row(sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.write_all(sheet.style.separator.as_bytes())?;
        }
        match value {
            None => out.write_all(sheet.style.null.as_bytes())?,
            Some(value) => write_value(sheet, value, out)?,
        }
    }
    out.write_all(b"\n")
}

pub fn unaligned_expanded_row(sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
    if sheet.rows > 1 {
        writeln!(out)?;
    }
    for (column, value) in sheet.columns.iter().zip(values) {
        let value = value.map_or(sheet.style.null.as_str().into(), String::from_utf8_lossy);
        let [name, value] = [column.name.as_str(), &value].map(|text| escape::if_terminal(text, sheet.style.is_terminal));
        writeln!(out, "{name}{}{value}", sheet.style.separator)?;
    }
    Ok(())
}

/// Bytes as they are, unless a terminal shows them.
fn write_value(sheet: &Sheet, value: &[u8], out: &mut dyn Write) -> Result<()> {
    match sheet.style.is_terminal {
        true => out.write_all(escape::text(&String::from_utf8_lossy(value)).as_bytes()),
        false => out.write_all(value),
    }
}

pub fn csv_head(sheet: &Sheet, out: &mut dyn Write) -> Result<()> {
    if sheet.style.tuples_only {
        return Ok(());
    }
    let names: Vec<Option<&[u8]>> = sheet.columns.iter().map(|c| Some(c.name.as_bytes())).collect();
    csv_row(sheet, &names, out)
}

pub fn csv_row(sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
    let mut line = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            line.push(b',');
        }
        let Some(value) = value else { continue };
        if value.is_empty() || value.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) || *value == b"\\." {
            line.push(b'"');
            for part in value.split_inclusive(|b| *b == b'"') {
                line.extend_from_slice(part);
                if part.ends_with(b"\"") {
                    line.push(b'"');
                }
            }
            line.push(b'"');
        } else {
            line.extend_from_slice(value);
        }
    }
    write_value(sheet, &line, out)?;
    out.write_all(b"\n")
}

pub fn markdown_head(sheet: &Sheet, out: &mut dyn Write) -> Result<()> {
    let names: Vec<Option<&[u8]>> = sheet.columns.iter().map(|c| Some(c.name.as_bytes())).collect();
    markdown_row(sheet, &names, out)?;
    let rules = sheet.columns.iter().map(|c| if ValueKind::is_right(c.type_oid) { " ---: |" } else { " --- |" });
    writeln!(out, "|{}", rules.collect::<String>())
}

pub fn markdown_row(sheet: &Sheet, values: &Values, out: &mut dyn Write) -> Result<()> {
    let cells = values.iter().map(|value| {
        let text = value.map_or(sheet.style.null.as_str().into(), String::from_utf8_lossy);
        format!(" {} |", markdown(&text))
    });
    writeln!(out, "|{}", cells.collect::<String>())
}

/// Text that is no markup, in one line.
fn markdown(text: &str) -> String {
    let shown: Cow<'_, str> = escape::cell(text);
    shown.chars().fold(String::with_capacity(shown.len()), |mut out, c| {
        match c {
            '\n' => out.push_str("<br>"),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
        out
    })
}
