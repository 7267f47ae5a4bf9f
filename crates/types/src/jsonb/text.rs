//! jsonb as text.

use super::{Json, View};
use crate::Result;
use crate::json::write_string;

/// Appends the text as PostgreSQL prints it: a space after colons and commas.
///
/// # Errors
/// Those of `write_string`.
pub fn write(json: Json<'_>, out: &mut Vec<u8>) -> Result<()> {
    match json.view() {
        View::Null => out.extend_from_slice(b"null"),
        View::Bool(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        View::Number(v) => v.write(out),
        View::String(v) => write_string(v, out)?,
        View::Array(array) => {
            out.push(b'[');
            for (i, element) in array.iter().enumerate() {
                if i > 0 {
                    out.extend_from_slice(b", ");
                }
                write(element, out)?;
            }
            out.push(b']');
        }
        View::Object(object) => {
            out.push(b'{');
            for (i, (key, value)) in object.iter().enumerate() {
                if i > 0 {
                    out.extend_from_slice(b", ");
                }
                write_string(key, out)?;
                out.extend_from_slice(b": ");
                write(value, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// Appends the text with every element on a separate line, four spaces deeper than its container.
///
/// # Errors
/// Those of `write_string`.
pub fn write_pretty(json: Json<'_>, depth: usize, out: &mut Vec<u8>) -> Result<()> {
    let indent = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 4));
    };
    match json.view() {
        View::Array(array) => {
            out.push(b'[');
            for (i, element) in array.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                indent(depth + 1, out);
                write_pretty(element, depth + 1, out)?;
            }
            indent(depth, out);
            out.push(b']');
        }
        View::Object(object) => {
            out.push(b'{');
            for (i, (key, value)) in object.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                indent(depth + 1, out);
                write_string(key, out)?;
                out.extend_from_slice(b": ");
                write_pretty(value, depth + 1, out)?;
            }
            indent(depth, out);
            out.push(b'}');
        }
        _ => write(json, out)?,
    }
    Ok(())
}
