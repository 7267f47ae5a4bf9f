//! The btree order of any type, found through the catalog.

use std::sync::Arc;

use melba_catalog::TypeKind;
use melba_types::key::KeyType;
use melba_types::{Kind, Oid, Result, err, oids};

use crate::{Session, lookup};

/// The order of a type; 42883 when it has none.
pub fn key_type(session: &dyn Session, ty: Oid) -> Result<KeyType> {
    let ty = lookup::base_type(session, ty);
    if let Some(key) = KeyType::of_builtin(ty) {
        return Ok(key);
    }
    if let Some(element) = lookup::array_element(session, ty) {
        return Ok(KeyType::Array(element, Box::new(key_type(session, element)?)));
    }
    let missing = || {
        let name = lookup::type_name(session, ty);
        err!(UNDEFINED_FUNCTION, "could not identify a comparison function for type {name}")
    };
    let entry = session.catalog().type_(ty).ok_or_else(missing)?;
    match entry.type_kind {
        TypeKind::Enum => Ok(KeyType::Enum(entry.labels.iter().map(|l| l.0.0).collect())),
        TypeKind::Composite => {
            let relation = session.catalog().relation(entry.relation).ok_or_else(missing)?;
            let live = relation.columns.iter().filter(|c| !c.dropped);
            let fields = live.map(|c| Ok((c.ty, key_type(session, c.ty)?))).collect::<Result<Arc<[_]>>>()?;
            Ok(KeyType::Record(ty, fields))
        }
        TypeKind::Range => {
            let range = entry.range.as_ref().ok_or_else(missing)?;
            Ok(KeyType::Range(ty, Box::new(key_type(session, range.subtype)?)))
        }
        TypeKind::Multirange => {
            let of_this = |t: &&Arc<melba_catalog::Type>| t.range.as_ref().is_some_and(|r| r.multirange == ty);
            let range = session.catalog().types().find(of_this).and_then(|t| t.range.clone()).ok_or_else(missing)?;
            Ok(KeyType::Multirange(ty, Box::new(key_type(session, range.subtype)?)))
        }
        _ => Err(missing()),
    }
}

/// The order of the elements of an anonymous record, by the types of its fields.
pub fn record_key_type(session: &dyn Session, field_types: &[Oid]) -> Result<KeyType> {
    let fields = field_types.iter().map(|&ty| Ok((ty, key_type(session, field_type(ty))?))).collect::<Result<Arc<[_]>>>()?;
    Ok(KeyType::Record(oids::RECORD, fields))
}

/// Fields that no context gave a type hold text.
fn field_type(ty: Oid) -> Oid {
    if ty == oids::UNKNOWN || Kind::of_builtin(ty).is_none() && !ty.is_valid() { oids::TEXT } else { ty }
}
