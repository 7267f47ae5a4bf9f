//! Questions of built-in functions to the catalog about types.

use melba_catalog::TypeKind;
use melba_types::{Kind, Oid, oids};

use crate::Session;

/// A domain's base type and type modifier.
#[derive(Clone, Copy)]
pub struct Domain {
    pub base: Oid,
    pub typmod: i32,
}

/// The base of a domain type; `None` for other types.
pub fn domain(session: &dyn Session, ty: Oid) -> Option<Domain> {
    let info = session.catalog().type_(ty)?.domain.as_ref()?;
    Some(Domain { base: info.base, typmod: info.typmod })
}

/// Whether values of the domain (or of one it is made over) must be checked.
pub fn domain_is_checked(session: &dyn Session, ty: Oid) -> bool {
    let mut ty = ty;
    while let Some(info) = session.catalog().type_(ty).and_then(|t| t.domain.as_ref()) {
        if info.not_null || !info.constraints.is_empty() {
            return true;
        }
        ty = info.base;
    }
    false
}

/// The type below all domains.
pub fn base_type(session: &dyn Session, ty: Oid) -> Oid {
    session.catalog().base_type(ty)
}

/// The type modifier that a domain sets for values of the type below all domains.
pub fn base_typmod(session: &dyn Session, ty: Oid) -> i32 {
    let mut found = None;
    let mut ty = ty;
    while let Some(domain) = domain(session, ty) {
        found = found.filter(|typmod| *typmod >= 0).or(Some(domain.typmod));
        ty = domain.base;
    }
    found.unwrap_or(-1)
}

/// Element type of a true array type, or of a domain over one.
pub fn array_element(session: &dyn Session, ty: Oid) -> Option<Oid> {
    session.catalog().array_element(ty)
}

/// The array type over an element type.
pub fn array_type(session: &dyn Session, element: Oid) -> Option<Oid> {
    session.catalog().array_of(element)
}

/// The delimiter between the elements of arrays of a type.
pub fn array_delimiter(session: &dyn Session, element: Oid) -> u8 {
    match element {
        oids::INT4 | oids::INT8 | oids::TEXT | oids::FLOAT8 | oids::NUMERIC => b',',
        _ => session.catalog().type_(element).map_or(b',', |t| t.delimiter),
    }
}

pub fn type_kind(session: &dyn Session, ty: Oid) -> Option<TypeKind> {
    session.catalog().type_(ty).map(|t| t.type_kind)
}

/// The built-in type as which values of a base type of users are held, read and written; another type itself.
pub fn held_as(session: &dyn Session, ty: Oid) -> Oid {
    session.catalog().type_(ty).and_then(|t| t.base.as_ref()).map_or(ty, |base| base.held_as)
}

/// How values of a type are held.
pub fn kind(session: &dyn Session, ty: Oid) -> Option<Kind> {
    session.catalog().kind_of(ty)
}

/// The type's name in messages (format_type without a modifier).
pub fn type_name(session: &dyn Session, ty: Oid) -> String {
    session.catalog().type_name(ty, &session.search_path())
}

/// pg_type.typlen: -1 for values of varying length, -2 for C strings.
pub fn type_length(session: &dyn Session, ty: Oid) -> i16 {
    session.catalog().type_(ty).map_or(-1, |t| t.length)
}
