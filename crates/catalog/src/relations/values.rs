//! Catalog values as datums.

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Datum, Oid, oids};

use crate::naming::quote_ident;
use crate::objects::{Acl, AclItem};
use crate::snapshot::Catalog;

pub(super) fn oid(v: Oid) -> Datum {
    Datum::Oid(v.0)
}

pub(super) fn text(v: &Arc<str>) -> Datum {
    Datum::Text(v.clone())
}

pub(super) fn text_or_null(v: &Option<Arc<str>>) -> Datum {
    v.as_ref().map_or(Datum::Null, text)
}

pub(super) fn bool(v: bool) -> Datum {
    Datum::Bool(v)
}

pub(super) fn char(v: u8) -> Datum {
    Datum::Char(v)
}

pub(super) fn int2(v: usize) -> Datum {
    Datum::Int2(i16::try_from(v).unwrap_or(i16::MAX))
}

fn array(element_type: Oid, lower_bound: i32, elements: Vec<Datum>) -> Datum {
    let dims = if elements.is_empty() { Vec::new() } else { vec![ArrayDim { length: elements.len() as i32, lower_bound }] };
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

/// An oidvector, which unlike arrays counts from 0.
pub(super) fn oidvector(v: impl IntoIterator<Item = Oid>) -> Datum {
    array(oids::OID, 0, v.into_iter().map(oid).collect())
}

pub(super) fn int2vector(v: impl IntoIterator<Item = i16>) -> Datum {
    array(oids::INT2, 0, v.into_iter().map(Datum::Int2).collect())
}

/// An array, or NULL instead of an empty one: the form of optional array columns in catalogs.
fn array_or_null(element_type: Oid, elements: Vec<Datum>) -> Datum {
    if elements.is_empty() { Datum::Null } else { array(element_type, 1, elements) }
}

pub(super) fn oids_or_null(v: &[Oid]) -> Datum {
    array_or_null(oids::OID, v.iter().map(|o| oid(*o)).collect())
}

pub(super) fn int2s_or_null(v: &[i16]) -> Datum {
    array_or_null(oids::INT2, v.iter().map(|n| Datum::Int2(*n)).collect())
}

pub(super) fn chars_or_null(v: &[u8]) -> Datum {
    array_or_null(oids::CHAR, v.iter().map(|c| Datum::Char(*c)).collect())
}

pub(super) fn texts_or_null(v: &[Arc<str>]) -> Datum {
    array_or_null(oids::TEXT, v.iter().map(text).collect())
}

/// An array that counts from 1.
pub(super) fn array_of(element_type: Oid, elements: Vec<Datum>) -> Datum {
    array(element_type, 1, elements)
}

/// An array of one value of a type.
pub(super) fn array_of_one(element_type: Oid, value: Datum) -> Datum {
    array(element_type, 1, vec![value])
}

pub(super) fn acl(v: &Acl, catalog: &Catalog) -> Datum {
    let Some(items) = v else { return Datum::Null };
    array(oids::ACLITEM, 1, items.iter().map(|i| Datum::text(acl_item(i, catalog))).collect())
}

fn acl_item(item: &AclItem, catalog: &Catalog) -> String {
    let role = |oid: Oid| match catalog.role(oid) {
        Some(role) => quote_ident(&role.name).into_owned(),
        None if oid.is_valid() => oid.to_string(),
        None => String::new(),
    };
    format!("{}={}/{}", role(item.grantee), item.letters(), role(item.grantor))
}

/// The OID of the built-in function that a catalog column of type regproc names; `-` or nothing: 0.
pub(super) fn regproc(name: &str, catalog: &Catalog) -> Datum {
    if name.is_empty() || name == "-" {
        return Datum::Oid(0);
    }
    oid(catalog.functions_by_name(crate::classes::PG_CATALOG, name).next().map_or(Oid::INVALID, |f| f.oid))
}
