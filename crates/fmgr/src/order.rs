//! The btree order of any type, found through the catalog.

use std::sync::Arc;

use melba_catalog::{Catalog, TypeKind};
use melba_types::key::KeyType;
use melba_types::{Kind, Oid, Result, err, oids};

use crate::Session;

/// The order of a type; 42883 when it has none.
pub fn key_type(session: &dyn Session, ty: Oid) -> Result<KeyType> {
    catalog_key_type(session.catalog(), ty)
}

/// `key_type` without a session.
pub fn catalog_key_type(catalog: &Catalog, ty: Oid) -> Result<KeyType> {
    let ty = catalog.base_type(ty);
    if let Some(key) = KeyType::of_builtin(ty) {
        return Ok(key);
    }
    if let Some(element) = catalog.array_element(ty) {
        return Ok(KeyType::Array(element, Box::new(catalog_key_type(catalog, element)?)));
    }
    let missing = || {
        let name = catalog.type_name(ty, &[melba_catalog::classes::PG_CATALOG]);
        err!(UNDEFINED_FUNCTION, "could not identify a comparison function for type {name}")
    };
    let entry = catalog.type_(ty).ok_or_else(missing)?;
    match entry.type_kind {
        TypeKind::Enum => Ok(KeyType::Enum(entry.labels.iter().map(|l| l.0.0).collect())),
        TypeKind::Composite => {
            let relation = catalog.relation(entry.relation).ok_or_else(missing)?;
            let live = relation.columns.iter().filter(|c| !c.dropped);
            let fields = live.map(|c| Ok((c.ty, catalog_key_type(catalog, c.ty)?))).collect::<Result<Arc<[_]>>>()?;
            Ok(KeyType::Record(ty, fields))
        }
        TypeKind::Range => {
            let range = entry.range.as_ref().ok_or_else(missing)?;
            Ok(KeyType::Range(ty, Box::new(catalog_key_type(catalog, range.subtype)?)))
        }
        TypeKind::Multirange => {
            let range = entry.range.as_ref().ok_or_else(missing)?;
            Ok(KeyType::Multirange(ty, Box::new(catalog_key_type(catalog, range.subtype)?)))
        }
        _ => Err(missing()),
    }
}

/// The order of the elements of an anonymous record, by the types of its fields.
pub fn record_key_type(session: &dyn Session, field_types: &[Oid]) -> Result<KeyType> {
    let fields = field_types.iter().map(|&ty| Ok((ty, key_type(session, field_type(ty))?))).collect::<Result<Arc<[_]>>>()?;
    Ok(KeyType::Record(oids::RECORD, fields))
}

/// Fields without a type from their context hold text.
fn field_type(ty: Oid) -> Oid {
    if ty == oids::UNKNOWN || Kind::of_builtin(ty).is_none() && !ty.is_valid() { oids::TEXT } else { ty }
}
