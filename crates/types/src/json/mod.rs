//! JSON text: checked reading with PostgreSQL's errors, and writing of strings.

mod lexer;
mod parser;

pub use lexer::unescape;
pub use parser::{JsonKind, JsonNode, parse, validate};

use crate::{Result, limits};

/// Bytes that are escaped between two checks for cancel requests.
const PIECE_BYTES: usize = 1 << 20;

/// Appends a JSON string.
///
/// # Errors
/// Those of `limits::check_length`, before the text becomes too long.
pub fn write_string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'"');
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        limits::check_length(out.len() + piece.len())?;
        escape(piece, out);
    }
    out.push(b'"');
    limits::check_length(out.len())
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut clean_from = 0;
    for (at, &c) in bytes.iter().enumerate() {
        let escape: &[u8] = match c {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            0x0c => b"\\f",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&bytes[clean_from..at]);
        clean_from = at + 1;
        if escape.is_empty() {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', DIGITS[usize::from(c >> 4)], DIGITS[usize::from(c & 15)]]);
        } else {
            out.extend_from_slice(escape);
        }
    }
    out.extend_from_slice(&bytes[clean_from..]);
}

#[cfg(test)]
mod tests;
