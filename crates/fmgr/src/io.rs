//! Text and binary input and output of values of any type.
//!
//! Built-in types have a `TypeIo`; arrays, enums, composites, domains and ranges are found through the catalog. Output appends to
//! the caller's buffer, so that a row is sent to the client without intermediate strings.

use melba_catalog::{BaseInfo, TypeKind};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::integer::{int4_in, int8_in};
use crate::{CallInfo, Session, TypeContext, TypeIo, lookup, registry};

/// The value that `text` stands for.
pub fn text_in(session: &dyn Session, type_oid: Oid, typmod: i32, text: &str) -> Result<Datum> {
    match type_oid {
        oids::INT4 => return int4_in(text).map(Datum::Int4),
        oids::INT8 => return int8_in(text).map(Datum::Int8),
        oids::TEXT => return Ok(Datum::text(text)),
        _ => {}
    }
    if let Some(io) = registry::type_io(type_oid) {
        return (io.input)(&TypeContext { session, type_oid, typmod }, text);
    }
    if let Some(domain) = lookup::domain(session, type_oid) {
        let value = text_in(session, domain.base, domain.typmod, text)?;
        return check_domain(session, type_oid, value);
    }
    let type_oid = lookup::held_as(session, type_oid);
    (resolve(session, type_oid)?.input)(&TypeContext { session, type_oid, typmod }, text)
}

/// Whether `text` is a value of the type, and its error if not. Errors that are not about the text itself (an unknown type, for
/// example) are still returned.
pub fn soft_text_in(session: &dyn Session, type_oid: Oid, typmod: i32, text: &str) -> Result<Result<Datum>> {
    resolve(session, lookup::held_as(session, lookup::base_type(session, type_oid)))?;
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
        // Every type held as text prints unchanged.
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
    let type_oid = lookup::held_as(session, lookup::base_type(session, type_oid));
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

/// A value as PostgreSQL writes it in a partition's bounds: without its type.
pub fn plain_literal(session: &dyn Session, ty: Oid, value: &Datum) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    if text_out(session, ty, value, &mut out).is_err() {
        return "NULL".into();
    }
    let text = String::from_utf8_lossy(&out).into_owned();
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    match ty {
        oids::BOOL => (if text == "t" { "true" } else { "false" }).into(),
        oids::INT4 if digits => text,
        oids::NUMERIC if digits && text.contains(['e', 'E', '.']) => text,
        _ if text.contains('\\') => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}

/// The value of a binary parameter or COPY BINARY field.
pub fn binary_in(session: &dyn Session, type_oid: Oid, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    if let Some(domain) = lookup::domain(session, type_oid) {
        let value = binary_in(session, domain.base, domain.typmod, bytes)?;
        return check_domain(session, type_oid, value);
    }
    require_binary_form(session, type_oid, "input", |base| base.receive)?;
    let type_oid = lookup::held_as(session, type_oid);
    (resolve(session, type_oid)?.receive)(&TypeContext { session, type_oid, typmod }, bytes)
}

/// Appends the binary form of a non-null value.
pub fn binary_out(session: &dyn Session, type_oid: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if let Some(io) = registry::type_io(type_oid) {
        return (io.send)(&TypeContext { session, type_oid, typmod: -1 }, value, out);
    }
    let type_oid = lookup::base_type(session, type_oid);
    require_binary_form(session, type_oid, "output", |base| base.send)?;
    let type_oid = lookup::held_as(session, type_oid);
    (resolve(session, type_oid)?.send)(&TypeContext { session, type_oid, typmod: -1 }, value, out)
}

/// Raises 23514 or 23502 when a value breaks its domain's constraints. The constraints are SQL expressions, so the SQL
/// layer evaluates them.
pub fn check_domain(session: &dyn Session, domain: Oid, value: Datum) -> Result<Datum> {
    let call = CallInfo {
        session,
        arg_types: &[],
        return_type: domain,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    if lookup::domain_is_checked(session, domain) { session.system_function("domain_check", &call, &[value]) } else { Ok(value) }
}

/// # Errors
/// 42883 for a base type of users without such a function.
fn require_binary_form(session: &dyn Session, ty: Oid, which: &str, function: fn(&BaseInfo) -> Oid) -> Result<()> {
    let base = session.catalog().type_(ty).and_then(|t| t.base.as_ref());
    match base.is_some_and(|base| !function(base).is_valid()) {
        true => Err(err!(UNDEFINED_FUNCTION, "no binary {which} function available for type {}", lookup::type_name(session, ty))),
        false => Ok(()),
    }
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
            Some(TypeKind::Pseudo) if session.catalog().type_(type_oid).is_some_and(|t| !t.defined) => {
                let name = lookup::type_name(session, type_oid);
                return Err(err!(UNDEFINED_OBJECT, "type {name} is only a shell"));
            }
            Some(_) => Oid::INVALID,
            None => return Err(err!(UNDEFINED_OBJECT, "type with OID {type_oid} does not exist")),
        }
    };
    registry::type_io(family).ok_or_else(|| {
        let name = lookup::type_name(session, type_oid);
        err!(FEATURE_NOT_SUPPORTED, "input and output of type {name} are not supported yet")
    })
}
