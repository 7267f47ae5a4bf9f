//! Functions LANGUAGE internal: built-in functions by other names, and over other types.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, Type, TypeKind, classes};
use melba_types::{DbError, Oid, Result, oids};

use melba_definition::context::Ddl;

/// A function LANGUAGE internal calls a built-in one, whose values must be held as its own are. Those of shells are not known yet.
///
/// # Errors
/// 0A000 when no built-in function of its name takes such values.
pub fn require_fitting_source(catalog: &Catalog, f: &Function) -> Result<()> {
    let kind = |ty: Oid| match catalog.type_(catalog.base_type(ty)) {
        Some(t) if t.type_kind != TypeKind::Pseudo || t.oid == oids::CSTRING => Some(t.kind),
        _ => None,
    };
    let is_alike = |own: Oid, other: Oid| kind(own).zip(kind(other)).is_none_or(|(a, b)| a == b);
    let fits = |other: &Arc<Function>| {
        // Input functions do without the OID and the type modifier.
        let has_all = f.arg_types.len() >= other.arg_types.len() || other.arg_types.first() == Some(&oids::CSTRING);
        let args = || f.arg_types.iter().zip(&other.arg_types).all(|(own, other)| is_alike(*own, *other));
        has_all && args() && is_alike(f.return_type, other.return_type)
    };
    let is_source = |other: &&Arc<Function>| {
        let is_built_in = !(classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID).contains(&other.oid.0);
        is_built_in && other.language == classes::INTERNAL_LANGUAGE && other.source == f.source
    };
    match catalog.functions().filter(is_source).any(fits) {
        true => Ok(()),
        false => {
            Err(DbError::unsupported(format!("built-in function \"{}\" over values that are held in another way", f.source)))
        }
    }
}

/// Values of a base type stay what they are.
///
/// # Errors
/// 0A000 for a function of a base type that becomes another function.
pub fn refuse_new_form(ddl: &Ddl<'_>, old: &Function, new: &Function) -> Result<()> {
    if (old.language, &old.source) == (new.language, &new.source) || old.language != classes::INTERNAL_LANGUAGE {
        return Ok(());
    }
    let uses = |ty: &Arc<Type>| ty.base.as_ref().is_some_and(|base| base.functions().contains(&old.oid));
    match ddl.catalog().types().any(uses) {
        true => Err(DbError::unsupported("another body of a function of a base type")),
        false => Ok(()),
    }
}
