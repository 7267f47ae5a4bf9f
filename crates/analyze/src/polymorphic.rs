//! Polymorphic functions: the actual types of anyelement, anyarray, anycompatible and similar ones in a call.

use melba_catalog::TypeKind;
use melba_types::{DbError, Oid, Result, err, oids};

use super::context::Context;

/// Whether the type is one of the polymorphic pseudo-types.
pub fn is_polymorphic(ty: Oid) -> bool {
    is_family1(ty) || is_family2(ty)
}

fn is_family1(ty: Oid) -> bool {
    matches!(ty, oids::ANYELEMENT | oids::ANYARRAY | oids::ANYNONARRAY | oids::ANYENUM | oids::ANYRANGE | oids::ANYMULTIRANGE)
}

fn is_family2(ty: Oid) -> bool {
    matches!(
        ty,
        oids::ANYCOMPATIBLE
            | oids::ANYCOMPATIBLEARRAY
            | oids::ANYCOMPATIBLENONARRAY
            | oids::ANYCOMPATIBLERANGE
            | oids::ANYCOMPATIBLEMULTIRANGE
    )
}

/// The actual types of one family.
#[derive(Clone, Copy, Default)]
struct Bound {
    element: Oid,
    array: Oid,
    range: Oid,
    multirange: Oid,
}

/// Why a function with these arguments cannot have a result (or output argument) of a polymorphic type; `None`: it can.
pub fn undetermined_result(result: Oid, arg_types: &[Oid]) -> Option<String> {
    let has = |types: &[Oid]| arg_types.iter().any(|t| types.contains(t));
    let (name, inputs) = match result {
        oids::ANYRANGE | oids::ANYMULTIRANGE if !has(&[oids::ANYRANGE, oids::ANYMULTIRANGE]) => {
            let name = if result == oids::ANYRANGE { "anyrange" } else { "anymultirange" };
            (name, "anyrange or anymultirange")
        }
        oids::ANYCOMPATIBLERANGE | oids::ANYCOMPATIBLEMULTIRANGE
            if !has(&[oids::ANYCOMPATIBLERANGE, oids::ANYCOMPATIBLEMULTIRANGE]) =>
        {
            let name = if result == oids::ANYCOMPATIBLERANGE { "anycompatiblerange" } else { "anycompatiblemultirange" };
            (name, "anycompatiblerange or anycompatiblemultirange")
        }
        _ if is_family1(result) && !arg_types.iter().any(|t| is_family1(*t)) => {
            (family_name(result), "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange")
        }
        _ if is_family2(result) && !arg_types.iter().any(|t| is_family2(*t)) => (
            family_name(result),
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange",
        ),
        _ => return None,
    };
    Some(format!("A result of type {name} requires at least one input of type {inputs}."))
}

fn family_name(ty: Oid) -> &'static str {
    match ty {
        oids::ANYELEMENT => "anyelement",
        oids::ANYARRAY => "anyarray",
        oids::ANYNONARRAY => "anynonarray",
        oids::ANYENUM => "anyenum",
        oids::ANYCOMPATIBLE => "anycompatible",
        oids::ANYCOMPATIBLEARRAY => "anycompatiblearray",
        _ => "anycompatiblenonarray",
    }
}

/// Whether actual types fit polymorphic declarations.
pub fn check_generic_consistency(cx: &Context<'_>, actual: &[Oid], declared: &[Oid]) -> bool {
    bind_elements(cx, actual, declared).is_ok_and(|bound| check_kind(cx, bound.element, declared).is_ok())
        && bind_compatible(cx, actual, declared).is_ok()
}

/// Replaces polymorphic types in `declared` where the argument must be converted, and returns the actual result type.
pub fn enforce_generic_consistency(cx: &Context<'_>, actual: &[Oid], declared: &mut [Oid], result: Oid) -> Result<Oid> {
    let family1 = declared.iter().any(|t| is_family1(*t));
    let family2 = declared.iter().any(|t| is_family2(*t));
    if !family1 && !family2 {
        return Ok(result);
    }
    let mut elements = bind_elements(cx, actual, declared)?;
    if family1 && !elements.element.is_valid() && !elements.range.is_valid() && !elements.array.is_valid() {
        return Err(err!(DATATYPE_MISMATCH, "could not determine polymorphic type because input has type unknown"));
    }
    check_kind(cx, elements.element, declared)?;
    let compatible = bind_compatible(cx, actual, declared)?;
    for (declared, actual) in declared.iter_mut().zip(actual) {
        if is_family1(*declared) && *actual == oids::UNKNOWN {
            *declared = resolve(cx, *declared, &mut elements)?;
        } else if is_family2(*declared) {
            let mut bound = compatible;
            *declared = resolve(cx, *declared, &mut bound)?;
        }
    }
    if is_family1(result) {
        return resolve(cx, result, &mut elements);
    }
    if is_family2(result) {
        let mut bound = compatible;
        return resolve(cx, result, &mut bound);
    }
    Ok(result)
}

fn resolve(cx: &Context<'_>, ty: Oid, bound: &mut Bound) -> Result<Oid> {
    let undetermined =
        |name: &str| err!(DATATYPE_MISMATCH, "could not determine polymorphic type {name} because input has type unknown");
    match ty {
        oids::ANYARRAY | oids::ANYCOMPATIBLEARRAY => {
            if !bound.array.is_valid() {
                bound.array = cx.catalog.array_of(bound.element).ok_or_else(|| {
                    err!(UNDEFINED_OBJECT, "could not find array type for data type {}", cx.type_name(bound.element))
                })?;
            }
            Ok(bound.array)
        }
        oids::ANYRANGE | oids::ANYCOMPATIBLERANGE => {
            if bound.range.is_valid() {
                Ok(bound.range)
            } else {
                Err(undetermined(&cx.type_name(ty)))
            }
        }
        oids::ANYMULTIRANGE | oids::ANYCOMPATIBLEMULTIRANGE => {
            if !bound.multirange.is_valid()
                && let Some(range) = cx.catalog.type_(bound.range).and_then(|t| t.range.clone())
            {
                bound.multirange = range.multirange;
            }
            if bound.multirange.is_valid() { Ok(bound.multirange) } else { Err(undetermined(&cx.type_name(ty))) }
        }
        _ => Ok(bound.element),
    }
}

fn not_alike(cx: &Context<'_>, name: &str, a: Oid, b: Oid) -> DbError {
    let (a, b) = (cx.type_name(a), cx.type_name(b));
    err!(DATATYPE_MISMATCH, "arguments declared \"{name}\" are not all alike").detail(format!("{a} versus {b}"))
}

fn not_consistent(cx: &Context<'_>, one: &str, other: &str, a: Oid, b: Oid) -> DbError {
    let (a, b) = (cx.type_name(a), cx.type_name(b));
    err!(DATATYPE_MISMATCH, "argument declared {one} is not consistent with argument declared {other}")
        .detail(format!("{a} versus {b}"))
}

fn not_a(cx: &Context<'_>, declared: &str, what: &str, actual: Oid) -> DbError {
    let actual = cx.type_name(actual);
    err!(DATATYPE_MISMATCH, "argument declared {declared} is not {what} but type {actual}")
}

fn bind(cx: &Context<'_>, slot: &mut Oid, name: &str, actual: Oid) -> Result<()> {
    if slot.is_valid() && *slot != actual {
        return Err(not_alike(cx, name, *slot, actual));
    }
    *slot = actual;
    Ok(())
}

fn range_of_multirange(cx: &Context<'_>, multirange: Oid) -> Option<Oid> {
    let ty = cx.catalog.type_(multirange)?;
    if ty.type_kind != TypeKind::Multirange {
        return None;
    }
    ty.range.as_ref().map(|r| r.range)
}

fn subtype(cx: &Context<'_>, range: Oid) -> Option<Oid> {
    let ty = cx.catalog.type_(range)?;
    if ty.type_kind == TypeKind::Range { ty.range.as_ref().map(|r| r.subtype) } else { None }
}

/// anyelement and its family.
fn bind_elements(cx: &Context<'_>, actual: &[Oid], declared: &[Oid]) -> Result<Bound> {
    let mut bound = Bound::default();
    for (&declared, &actual) in declared.iter().zip(actual) {
        if actual == oids::UNKNOWN {
            continue;
        }
        match declared {
            oids::ANYELEMENT | oids::ANYNONARRAY | oids::ANYENUM => bind(cx, &mut bound.element, "anyelement", actual)?,
            oids::ANYARRAY => bind(cx, &mut bound.array, "anyarray", cx.base_type(actual))?,
            oids::ANYRANGE => bind(cx, &mut bound.range, "anyrange", cx.base_type(actual))?,
            oids::ANYMULTIRANGE => bind(cx, &mut bound.multirange, "anymultirange", cx.base_type(actual))?,
            _ => {}
        }
    }
    if bound.array.is_valid() {
        let element = if bound.array == oids::ANYARRAY {
            oids::ANYELEMENT
        } else {
            cx.catalog.array_element(bound.array).ok_or_else(|| not_a(cx, "anyarray", "an array", bound.array))?
        };
        if bound.element.is_valid() && bound.element != element {
            return Err(not_consistent(cx, "anyarray", "anyelement", bound.array, bound.element));
        }
        bound.element = element;
    }
    if bound.multirange.is_valid() {
        let range = range_of_multirange(cx, bound.multirange)
            .ok_or_else(|| not_a(cx, "anymultirange", "a multirange type", bound.multirange))?;
        if bound.range.is_valid() && bound.range != range {
            return Err(not_consistent(cx, "anymultirange", "anyrange", bound.multirange, bound.range));
        }
        bound.range = range;
    }
    if bound.range.is_valid() {
        let subtype = subtype(cx, bound.range).ok_or_else(|| not_a(cx, "anyrange", "a range type", bound.range))?;
        if bound.element.is_valid() && bound.element != subtype {
            return Err(not_consistent(cx, "anyrange", "anyelement", bound.range, bound.element));
        }
        bound.element = subtype;
    }
    Ok(bound)
}

/// anynonarray must not be an array, anyenum must be an enum.
fn check_kind(cx: &Context<'_>, element: Oid, declared: &[Oid]) -> Result<()> {
    if !element.is_valid() || element == oids::ANYELEMENT {
        return Ok(());
    }
    if declared.contains(&oids::ANYNONARRAY) && cx.catalog.array_element(element).is_some() {
        let name = cx.type_name(element);
        return Err(err!(DATATYPE_MISMATCH, "type matched to anynonarray is an array type: {name}"));
    }
    let is_enum = cx.catalog.type_(element).is_some_and(|t| t.type_kind == TypeKind::Enum);
    if declared.contains(&oids::ANYENUM) && !is_enum {
        let name = cx.type_name(element);
        return Err(err!(DATATYPE_MISMATCH, "type matched to anyenum is not an enum type: {name}"));
    }
    Ok(())
}

/// anycompatible and its family: the common type of all of them.
fn bind_compatible(cx: &Context<'_>, actual: &[Oid], declared: &[Oid]) -> Result<Bound> {
    let mut bound = Bound::default();
    let mut types = Vec::new();
    let mut seen = false;
    for (&declared, &actual) in declared.iter().zip(actual) {
        if !is_family2(declared) {
            continue;
        }
        seen = true;
        if actual == oids::UNKNOWN {
            continue;
        }
        match declared {
            oids::ANYCOMPATIBLEARRAY => {
                let base = cx.base_type(actual);
                let element =
                    cx.catalog.array_element(base).ok_or_else(|| not_a(cx, "anycompatiblearray", "an array", actual))?;
                types.push(element);
            }
            oids::ANYCOMPATIBLERANGE => bind(cx, &mut bound.range, "anycompatiblerange", cx.base_type(actual))?,
            oids::ANYCOMPATIBLEMULTIRANGE => bind(cx, &mut bound.multirange, "anycompatiblemultirange", cx.base_type(actual))?,
            _ => types.push(actual),
        }
    }
    if !seen {
        return Ok(bound);
    }
    if bound.multirange.is_valid() {
        let range = range_of_multirange(cx, bound.multirange)
            .ok_or_else(|| not_a(cx, "anycompatiblemultirange", "a multirange type", bound.multirange))?;
        if bound.range.is_valid() && bound.range != range {
            return Err(not_consistent(cx, "anycompatiblemultirange", "anycompatiblerange", bound.multirange, bound.range));
        }
        bound.range = range;
    }
    if bound.range.is_valid() {
        let subtype = subtype(cx, bound.range).ok_or_else(|| not_a(cx, "anycompatiblerange", "a range type", bound.range))?;
        bound.element = subtype;
        types.push(subtype);
    }
    let common = cx.common_type(&types).map_err(|(a, b)| {
        let (a, b) = (cx.type_name(a), cx.type_name(b));
        err!(DATATYPE_MISMATCH, "arguments of anycompatible family cannot be cast to a common type")
            .detail(format!("{a} versus {b}"))
    })?;
    if bound.element.is_valid() && bound.element != common {
        let range = cx.type_name(bound.range);
        return Err(err!(
            DATATYPE_MISMATCH,
            "anycompatiblerange type {range} does not match anycompatible type {}",
            cx.type_name(common)
        ));
    }
    bound.element = common;
    if declared.contains(&oids::ANYCOMPATIBLENONARRAY) && cx.catalog.array_element(common).is_some() {
        let name = cx.type_name(common);
        return Err(err!(DATATYPE_MISMATCH, "type matched to anycompatiblenonarray is an array type: {name}"));
    }
    Ok(bound)
}
