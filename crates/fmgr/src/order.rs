//! The btree order of any type, found through the catalog.

use std::sync::Arc;

use melba_catalog::{Catalog, IndexKey, OperatorClass, TypeKind, TypeOrder, classes};
use melba_types::collate::Collate;
use melba_types::key::{Collated, KeyType};
use melba_types::{DbError, Kind, Oid, Result, err, oids};

use crate::Session;

/// The families text_pattern_ops and bpchar_pattern_ops.
const TEXT_PATTERN: Oid = Oid(2095);
const BPCHAR_PATTERN: Oid = Oid(2097);

/// The order of a type by a collation, 0 for none; 42883 when it has none.
pub fn key_type(session: &dyn Session, ty: Oid, collation: Oid) -> Result<KeyType> {
    catalog_key_type(session.catalog(), ty, collation)
}

/// By which values of a type are equal: for texts, only nondeterministic collations decide that.
pub fn equality_collation(catalog: &Catalog, collation: Oid) -> Oid {
    let decides = catalog.collator(collation).is_some_and(|c| !c.is_deterministic());
    if decides { collation } else { Oid::INVALID }
}

/// Whether operators of a family compare texts by their bytes, whatever their collation.
pub fn is_pattern_family(family: Oid) -> bool {
    [TEXT_PATTERN, BPCHAR_PATTERN].contains(&family)
}

/// The collation that the keys of an index's column have, 0 for bytes.
pub fn index_collation(catalog: &Catalog, key: &IndexKey) -> Oid {
    let class = catalog.access_methods().class(key.opclass);
    let by_bytes = class.is_some_and(|class| is_pattern_family(class.family));
    if by_bytes { Oid::INVALID } else { key.collation }
}

/// Whether texts have one order by two collations.
pub fn is_same_order(catalog: &Catalog, a: Oid, b: Oid) -> bool {
    a == b || catalog.collator(a).is_none() && catalog.collator(b).is_none()
}

/// Whether the same texts are equal by two collations.
pub fn is_same_equality(catalog: &Catalog, a: Oid, b: Oid) -> bool {
    a == b || equality_collation(catalog, a) == equality_collation(catalog, b)
}

/// Texts by a collation, if its order is not that of bytes.
fn collated(catalog: &Catalog, ty: Oid, collation: Oid) -> Option<KeyType> {
    if !matches!(ty, oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME) {
        return None;
    }
    let collation: Arc<dyn Collate> = catalog.collator(collation)?.clone();
    Some(KeyType::Collated(Collated { collation, padded: ty == oids::BPCHAR }))
}

/// 0A000 for a class whose order no key has.
pub fn ordered_by_function(class: &OperatorClass) -> DbError {
    let reason = "Values are ordered by the functions of built-in classes only.";
    DbError::unsupported(format!("ordering by operator class \"{}\"", class.name)).detail(reason)
}

/// `key_type` without a session.
///
/// # Errors
/// 42883 when the type has no order, 0A000 when a function of users gives it one.
pub fn catalog_key_type(catalog: &Catalog, ty: Oid, collation: Oid) -> Result<KeyType> {
    match catalog.ordering_function(ty) {
        Some(class) => Err(ordered_by_function(&class)),
        None => own_key_type(catalog, ty, collation),
    }
}

/// The order in which keys of a type are kept, whatever class users have made its default.
///
/// # Errors
/// 42883 when the type has none.
pub fn own_key_type(catalog: &Catalog, ty: Oid, collation: Oid) -> Result<KeyType> {
    let ty = catalog.base_type(ty);
    if let Some(key) = collated(catalog, ty, collation).or_else(|| KeyType::of_builtin(ty)) {
        return Ok(key);
    }
    if let Some(element) = catalog.array_element(ty) {
        return Ok(KeyType::Array(element, Box::new(own_key_type(catalog, element, collation)?)));
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
            let fields = live.map(|c| Ok((c.ty, own_key_type(catalog, c.ty, c.collation)?))).collect::<Result<Arc<[_]>>>()?;
            Ok(KeyType::Record(ty, fields))
        }
        TypeKind::Range => {
            let range = entry.range.as_ref().ok_or_else(missing)?;
            Ok(KeyType::Range(ty, Box::new(own_key_type(catalog, range.subtype, range.collation)?)))
        }
        TypeKind::Multirange => {
            let range = entry.range.as_ref().ok_or_else(missing)?;
            Ok(KeyType::Multirange(ty, Box::new(own_key_type(catalog, range.subtype, range.collation)?)))
        }
        // A type of users has the order that its class gives it.
        TypeKind::Base => match catalog.type_order(ty) {
            TypeOrder::Of(other) if KeyType::of_builtin(other).is_some() => own_key_type(catalog, other, collation),
            // That of a type to which its values are cast as they are.
            TypeOrder::Own => match class_type(catalog, ty) {
                Some(other) if other != ty => own_key_type(catalog, other, collation),
                _ => Err(missing()),
            },
            _ => Err(missing()),
        },
        _ => Err(missing()),
    }
}

/// The type of the default operator class that orders or hashes a type.
fn class_type(catalog: &Catalog, ty: Oid) -> Option<Oid> {
    let class = |method| catalog.default_operator_class(method, ty).map(|c| c.input_type);
    class(classes::BTREE).or_else(|| class(classes::HASH))
}

/// The order of the elements of an anonymous record, by the types of its fields.
pub fn record_key_type(session: &dyn Session, field_types: &[Oid]) -> Result<KeyType> {
    let fields =
        field_types.iter().map(|&ty| Ok((ty, key_type(session, field_type(ty), Oid::INVALID)?))).collect::<Result<Arc<[_]>>>()?;
    Ok(KeyType::Record(oids::RECORD, fields))
}

/// Fields without a type from their context hold text.
fn field_type(ty: Oid) -> Oid {
    if ty == oids::UNKNOWN || Kind::of_builtin(ty).is_none() && !ty.is_valid() { oids::TEXT } else { ty }
}
