//! Text and binary input and output of values of any type.
//!
//! Built-in types bring a `TypeIo`; arrays, enums, composites, domains and ranges are found through the catalog. Output
//! appends to the caller's buffer, so that a row goes to the client without intermediate strings.

use melba_catalog::TypeKind;
use melba_types::{Datum, Oid, Result, err, oids};

use crate::{CallContext, Session, lookup, registry};

/// What input and output of a value know besides the value.
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

/// The value that `text` stands for.
pub fn text_in(session: &dyn Session, type_oid: Oid, typmod: i32, text: &str) -> Result<Datum> {
    let context = TypeContext { session, type_oid, typmod };
    match type_oid {
        oids::INT4 => return crate::int::int4_in(text).map(Datum::Int4),
        oids::INT8 => return crate::int::int8_in(text).map(Datum::Int8),
        oids::TEXT => return Ok(Datum::text(text)),
        _ => {}
    }
    if let Some(io) = registry::type_io(type_oid) {
        return (io.input)(&context, text);
    }
    if let Some(domain) = lookup::domain(session, type_oid) {
        let value = text_in(session, domain.base, domain.typmod, text)?;
        return check_domain(session, type_oid, value);
    }
    (resolve(session, type_oid)?.input)(&context, text)
}

/// Whether `text` is a value of the type, and what is wrong with it if not. Errors that are not about the text itself
/// (an unknown type, say) are still returned.
pub fn soft_text_in(session: &dyn Session, type_oid: Oid, typmod: i32, text: &str) -> Result<Result<Datum>> {
    resolve(session, lookup::base_type(session, type_oid))?;
    match text_in(session, type_oid, typmod, text) {
        Err(e) if matches!(&e.sqlstate().as_str()[..2], "0A" | "XX" | "53" | "57") => Err(e),
        result => Ok(result),
    }
}

/// Appends the text form of a non-null value.
#[inline]
pub fn text_out(session: &dyn Session, type_oid: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Int4(v) if type_oid == oids::INT4 => {
            out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes());
            return Ok(());
        }
        Datum::Int8(v) if type_oid == oids::INT8 => {
            out.extend_from_slice(itoa::Buffer::new().format(*v).as_bytes());
            return Ok(());
        }
        // Every type held as text prints as it is.
        Datum::Text(v) => {
            out.extend_from_slice(v.as_bytes());
            return Ok(());
        }
        _ => {}
    }
    // Built-in types are no domains.
    if let Some(io) = registry::type_io(type_oid) {
        return (io.output)(&TypeContext { session, type_oid, typmod: -1 }, value, out);
    }
    let type_oid = lookup::base_type(session, type_oid);
    (resolve(session, type_oid)?.output)(&TypeContext { session, type_oid, typmod: -1 }, value, out)
}

/// The text form as a string.
pub fn text_of(session: &dyn Session, type_oid: Oid, value: &Datum) -> Result<String> {
    let mut out = Vec::new();
    text_out(session, type_oid, value, &mut out)?;
    into_string(out)
}

/// Output functions write UTF-8; anything else is a bug of ours.
pub fn into_string(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| melba_types::DbError::internal("output function wrote invalid UTF-8"))
}

/// The value of a binary parameter or COPY BINARY field.
pub fn binary_in(session: &dyn Session, type_oid: Oid, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    if let Some(domain) = lookup::domain(session, type_oid) {
        let value = binary_in(session, domain.base, domain.typmod, bytes)?;
        return check_domain(session, type_oid, value);
    }
    (resolve(session, type_oid)?.receive)(&TypeContext { session, type_oid, typmod }, bytes)
}

/// Appends the binary form of a non-null value.
pub fn binary_out(session: &dyn Session, type_oid: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if let Some(io) = registry::type_io(type_oid) {
        return (io.send)(&TypeContext { session, type_oid, typmod: -1 }, value, out);
    }
    let type_oid = lookup::base_type(session, type_oid);
    (resolve(session, type_oid)?.send)(&TypeContext { session, type_oid, typmod: -1 }, value, out)
}

/// Raises 23514 or 23502 when a value breaks its domain's constraints. The constraints are SQL expressions, so the SQL
/// layer evaluates them.
pub fn check_domain(session: &dyn Session, domain: Oid, value: Datum) -> Result<Datum> {
    let call =
        CallContext { session, arg_types: &[], return_type: domain, collation: Oid::INVALID, variadic: false, columns: None };
    if lookup::domain_is_checked(session, domain) { session.system_function("domain_check", &call, &[value]) } else { Ok(value) }
}

fn resolve(session: &dyn Session, type_oid: Oid) -> Result<&'static TypeIo> {
    if let Some(io) = registry::type_io(type_oid) {
        return Ok(io);
    }
    let family = if lookup::array_element(session, type_oid).is_some() {
        oids::ANYARRAY
    } else {
        match lookup::type_kind(session, type_oid) {
            Some(TypeKind::Enum) => oids::ANYENUM,
            Some(TypeKind::Composite) => oids::RECORD,
            Some(TypeKind::Range) => oids::ANYRANGE,
            Some(TypeKind::Multirange) => oids::ANYMULTIRANGE,
            Some(_) => Oid::INVALID,
            None => return Err(err!(UNDEFINED_OBJECT, "type with OID {type_oid} does not exist")),
        }
    };
    registry::type_io(family).ok_or_else(|| {
        let name = lookup::type_name(session, type_oid);
        err!(FEATURE_NOT_SUPPORTED, "input and output of type {name} are not supported yet")
    })
}

/// 22P02 for text that is no value of the type.
pub fn invalid_text(type_name: &str, text: &str) -> melba_types::DbError {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type {type_name}: \"{text}\"")
}

/// The bytes of a binary value of fixed length.
pub fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    match bytes.first_chunk::<N>() {
        None => Err(err!(PROTOCOL_VIOLATION, "insufficient data left in message")),
        Some(_) if bytes.len() > N => Err(err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")),
        Some(chunk) => Ok(*chunk),
    }
}

/// White space as C's isspace sees it.
pub fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// `text` without white space around it.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
}
