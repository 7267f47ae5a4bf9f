//! intarray: arrays of integers as sets, and query_int, boolean expressions over them. NULL elements are refused.

mod gin;
mod query_int;

use std::sync::Arc;

use melba_fmgr::{ScalarFn, type_functions};
use melba_functions::array::functions::one_dimensional;
use melba_types::{Array, Datum, DbError, Result, bail, oids};

pub use gin::CLASSES as GIN_CLASSES;
pub use query_int::TYPES;
use query_int::is_satisfied;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("bqarr_in", type_functions::input),
    ("bqarr_out", type_functions::output),
    ("querytree", |_, _| Err(DbError::internal("querytree is no longer implemented"))),
    ("boolop", |_, a| is_satisfied(&a[1], &set(&a[0])?).map(Datum::Bool)),
    ("rboolop", |_, a| is_satisfied(&a[0], &set(&a[1])?).map(Datum::Bool)),
    ("_int_contains", |_, a| contains(&a[0], &a[1])),
    ("_int_contained", |_, a| contains(&a[1], &a[0])),
    ("_int_overlap", |_, a| {
        let (one, other) = (set(&a[0])?, set(&a[1])?);
        Ok(Datum::Bool(one.iter().any(|element| other.binary_search(element).is_ok())))
    }),
    ("_int_same", |_, a| is_same(&a[0], &a[1]).map(Datum::Bool)),
    ("_int_different", |_, a| Ok(Datum::Bool(!is_same(&a[0], &a[1])?))),
    ("_int_union", |_, a| Ok(array(as_set([integers(&a[0])?, integers(&a[1])?].concat())))),
    ("_int_inter", |_, a| {
        let (one, other) = (set(&a[0])?, set(&a[1])?);
        Ok(array(one.into_iter().filter(|element| other.binary_search(element).is_ok()).collect()))
    }),
    ("intset", |_, a| Ok(array(vec![integer(&a[0])]))),
    ("icount", |_, a| Ok(Datum::Int4(a[0].as_array().elements.len() as i32))),
    ("sort", |_, a| {
        let elements = integers(&a[0])?;
        let direction = a.get(1).map_or("asc", Datum::as_str);
        match direction {
            _ if elements.len() < 2 => Ok(a[0].clone()),
            asc if asc.eq_ignore_ascii_case("asc") => sorted(&a[0], false),
            desc if desc.eq_ignore_ascii_case("desc") => sorted(&a[0], true),
            _ => bail!(INVALID_PARAMETER_VALUE, "second parameter must be \"ASC\" or \"DESC\""),
        }
    }),
    ("sort_asc", |_, a| sorted(&a[0], false)),
    ("sort_desc", |_, a| sorted(&a[0], true)),
    ("uniq", |_, a| {
        let mut elements = integers(&a[0])?;
        elements.dedup();
        Ok(resized(&a[0], elements))
    }),
    ("idx", |_, a| {
        let wanted = integer(&a[1]);
        let found = integers(&a[0])?.iter().position(|element| *element == wanted);
        Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
    }),
    ("subarray", |_, a| {
        let length = a.get(2).map_or(0, integer);
        Ok(array(part(integers(&a[0])?, integer(&a[1]), length)))
    }),
    ("intarray_push_elem", |_, a| Ok(array([integers(&a[0])?, vec![integer(&a[1])]].concat()))),
    ("intarray_push_array", |_, a| Ok(array([integers(&a[0])?, integers(&a[1])?].concat()))),
    ("intarray_del_elem", |_, a| {
        let deleted = integer(&a[1]);
        let mut elements = integers(&a[0])?;
        elements.retain(|element| *element != deleted);
        Ok(resized(&a[0], elements))
    }),
    ("intset_union_elem", |_, a| Ok(array(as_set([integers(&a[0])?, vec![integer(&a[1])]].concat())))),
    ("intset_subtract", |_, a| {
        let (one, other) = (set(&a[0])?, set(&a[1])?);
        Ok(array(one.into_iter().filter(|element| other.binary_search(element).is_err()).collect()))
    }),
];

fn integer(value: &Datum) -> i32 {
    if let Datum::Int4(value) = value { *value } else { 0 }
}

/// The elements of an int4[], whatever its dimensions.
///
/// # Errors
/// 22004 for a NULL element.
fn integers(value: &Datum) -> Result<Vec<i32>> {
    let elements = &value.as_array().elements;
    if elements.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED, "array must not contain nulls");
    }
    Ok(elements.iter().map(integer).collect())
}

/// Each element once, in order.
fn set(value: &Datum) -> Result<Vec<i32>> {
    Ok(as_set(integers(value)?))
}

fn as_set(mut elements: Vec<i32>) -> Vec<i32> {
    elements.sort_unstable();
    elements.dedup();
    elements
}

fn array(elements: Vec<i32>) -> Datum {
    one_dimensional(oids::INT4, elements.into_iter().map(Datum::Int4).collect())
}

/// An array with other elements: with fewer of them, its first dimension has them all.
fn resized(value: &Datum, elements: Vec<i32>) -> Datum {
    let array = value.as_array();
    let mut dims = array.dims.clone();
    if elements.is_empty() {
        dims.clear();
    }
    if elements.len() != array.elements.len() {
        for (at, dim) in dims.iter_mut().enumerate() {
            dim.length = if at == 0 { elements.len() as i32 } else { 1 };
        }
    }
    let elements = elements.into_iter().map(Datum::Int4).collect();
    Datum::Array(Arc::new(Array { element_type: oids::INT4, dims, elements }))
}

fn sorted(value: &Datum, descending: bool) -> Result<Datum> {
    let mut elements = integers(value)?;
    elements.sort_unstable();
    if descending {
        elements.reverse();
    }
    Ok(resized(value, elements))
}

fn contains(value: &Datum, other: &Datum) -> Result<Datum> {
    let (value, other) = (set(value)?, set(other)?);
    Ok(Datum::Bool(other.iter().all(|element| value.binary_search(element).is_ok())))
}

fn is_same(one: &Datum, other: &Datum) -> Result<bool> {
    let (mut one, mut other) = (integers(one)?, integers(other)?);
    one.sort_unstable();
    other.sort_unstable();
    Ok(one == other)
}

/// The elements from number `start` on, from the end when it is negative; of a negative length that many are left out at the end, of none
/// all are in.
fn part(elements: Vec<i32>, start: i32, length: i32) -> Vec<i32> {
    let count = elements.len() as i64;
    let (start, length) = (i64::from(if start > 0 { start - 1 } else { start }), i64::from(length));
    let start = if start < 0 { count + start } else { start };
    let end = match length {
        0 => count,
        less if less < 0 => count + less,
        more => start + more,
    };
    let (start, end) = (start.max(0), end.clamp(0, count));
    if start >= end { Vec::new() } else { elements[start as usize..end as usize].to_vec() }
}
