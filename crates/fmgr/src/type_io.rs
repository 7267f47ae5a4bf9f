//! Input and output functions of a type, and their shared context.

use std::borrow::Cow;

use melba_types::{Datum, DbError, Oid, Result, err, limits};

use crate::Session;

/// The context of input and output of a value.
pub struct TypeContext<'a> {
    pub session: &'a dyn Session,
    pub type_oid: Oid,
    /// -1: none.
    pub typmod: i32,
}

pub type InputFn = fn(&TypeContext<'_>, &str) -> Result<Datum>;
pub type OutputFn = fn(&TypeContext<'_>, &Datum, &mut Vec<u8>) -> Result<()>;
pub type ReceiveFn = fn(&TypeContext<'_>, &[u8]) -> Result<Datum>;
pub type SendFn = fn(&TypeContext<'_>, &Datum, &mut Vec<u8>) -> Result<()>;

/// Input and output functions of a type: pg_type's typinput, typoutput, typreceive and typsend.
#[derive(Clone, Copy)]
pub struct TypeIo {
    pub input: InputFn,
    pub output: OutputFn,
    pub receive: ReceiveFn,
    pub send: SendFn,
}

/// 22P02 for text that is no value of the type.
pub fn invalid_text(type_name: &str, text: &str) -> DbError {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type {type_name}: \"{text}\"")
}

/// 08P01 for a binary value that ends too early.
pub fn insufficient_data() -> DbError {
    err!(PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// The same where PostgreSQL reads single bytes.
pub fn no_data() -> DbError {
    err!(PROTOCOL_VIOLATION, "no data left in message")
}

/// 22P03 for bytes behind a binary value.
pub fn data_behind() -> DbError {
    err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// The error of a part of a binary value, which names the part that has bytes behind it.
pub fn in_part(error: DbError, part: impl FnOnce() -> String) -> DbError {
    match error.message() == data_behind().message() {
        true => err!(INVALID_BINARY_REPRESENTATION, "improper binary format in {}", part()),
        false => error,
    }
}

/// The bytes of a binary value of fixed length.
pub fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    match bytes.first_chunk::<N>() {
        None if N == 1 => Err(no_data()),
        None => Err(insufficient_data()),
        Some(_) if bytes.len() > N => Err(data_behind()),
        Some(chunk) => Ok(*chunk),
    }
}

/// Whether a part of a binary array or row is certainly of another type than is expected: only OIDs that are assigned by hand are the
/// same in all databases.
pub fn is_other_type(sent: Oid, expected: Oid) -> bool {
    const FIRST_GENERATED_OID: u32 = 10_000;
    sent != expected && sent.0 < FIRST_GENERATED_OID && expected.0 < FIRST_GENERATED_OID
}

/// Bytes that are quoted between two checks for cancel requests.
const QUOTED_BYTES: usize = 1 << 20;

/// Appends a text in double quotes, with `escape` before each quote and backslash; the character itself where it is `None`.
///
/// # Errors
/// Those of a statement that is to end.
pub fn append_quoted(text: &[u8], escape: Option<u8>, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'"');
    for part in text.chunks(QUOTED_BYTES) {
        limits::check_long(part.len())?;
        for c in part {
            if matches!(c, b'"' | b'\\') {
                out.push(escape.unwrap_or(*c));
            }
            out.push(*c);
        }
    }
    out.push(b'"');
    Ok(())
}

/// White space as C's isspace sees it.
pub fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// `text` without white space around it.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

/// The text of a binary value, which is in the client's encoding.
pub fn received<'a>(context: &TypeContext<'_>, bytes: &'a [u8]) -> Result<Cow<'a, str>> {
    context.session.format().client_encoding.decode(bytes)
}

/// Appends a text as a binary value.
pub fn send_text(context: &TypeContext<'_>, text: &str, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&context.session.format().client_encoding.encode(text)?);
    Ok(())
}
