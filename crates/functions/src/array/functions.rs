//! Functions and operators of arrays.

use std::sync::Arc;

use melba_fmgr::value_order::Comparison;
use melba_fmgr::{CallInfo, ScalarFn, lookup, order};
use melba_types::array::{DIMENSIONS_MAX, element_count, grown_dimension};
use melba_types::key::{self, KeyType};
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, err, limits, sort_by};

use super::io::too_many_dimensions;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("array_append", append),
    ("array_prepend", prepend),
    ("array_cat", cat),
    ("array_cardinality", |_, a| Ok(Datum::Int4(a[0].as_array().elements.len() as i32))),
    ("array_ndims", |_, a| {
        let n = a[0].as_array().dims.len() as i32;
        Ok(if n == 0 { Datum::Null } else { Datum::Int4(n) })
    }),
    ("array_dims", |_, a| {
        let dims = &a[0].as_array().dims;
        let text: String = dims.iter().map(|d| format!("[{}:{}]", d.lower_bound, upper_bound(d))).collect();
        Ok(if dims.is_empty() { Datum::Null } else { Datum::text(text) })
    }),
    ("array_length", |_, a| dimension(a, |d| d.length)),
    ("array_lower", |_, a| dimension(a, |d| d.lower_bound)),
    ("array_upper", |_, a| dimension(a, upper_bound)),
    ("array_position", |c, a| position(c, a, None)),
    ("array_position_start", |c, a| position(c, a, Some(&a[2]))),
    ("array_positions", positions),
    ("array_remove", remove),
    ("array_replace", replace),
    ("array_reverse", |_, a| {
        permuted(a[0].as_array(), |rows| {
            rows.reverse();
            Ok(())
        })
    }),
    ("array_shuffle", |c, a| permuted(a[0].as_array(), |rows| shuffle(c, rows))),
    ("array_sample", sample),
    ("array_sort", |c, a| sort(c, &a[0], false, false)),
    ("array_sort_order", |c, a| sort(c, &a[0], a[1].as_bool(), a[1].as_bool())),
    ("array_sort_order_nulls_first", |c, a| sort(c, &a[0], a[1].as_bool(), a[2].as_bool())),
    ("array_fill", |c, a| fill(c, a, None)),
    ("array_fill_with_lower_bounds", |c, a| fill(c, a, Some(&a[2]))),
    ("trim_array", trim),
    ("array_to_text", |c, a| to_text(c, a, None)),
    ("array_to_text_null", |c, a| {
        if a[0].is_null() || a[1].is_null() {
            return Ok(Datum::Null);
        }
        to_text(c, a, if a[2].is_null() { None } else { Some(a[2].as_str()) })
    }),
    ("arraycontains", |c, a| contains(c, a[0].as_array(), a[1].as_array()).map(Datum::Bool)),
    ("arraycontained", |c, a| contains(c, a[1].as_array(), a[0].as_array()).map(Datum::Bool)),
    ("arrayoverlap", overlap),
    ("width_bucket_array", width_bucket),
    ("array_eq", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_eq()))),
    ("array_ne", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_ne()))),
    ("array_lt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_lt()))),
    ("array_le", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_le()))),
    ("array_gt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_gt()))),
    ("array_ge", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_ge()))),
    ("btarraycmp", |c, a| compare(c, a).map(|o| Datum::Int4(o as i32))),
    ("array_larger", |c, a| Ok(a[usize::from(compare(c, a)?.is_le())].clone())),
    ("array_smaller", |c, a| Ok(a[usize::from(compare(c, a)?.is_ge())].clone())),
];

/// A one-dimensional array that starts at 1; empty without elements.
pub fn one_dimensional(element_type: Oid, elements: Vec<Datum>) -> Datum {
    let dims = if elements.is_empty() { vec![] } else { vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }] };
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

fn with_dims(array: &Array, dims: Vec<ArrayDim>, elements: Vec<Datum>) -> Datum {
    let dims = if elements.is_empty() { vec![] } else { dims };
    Datum::Array(Arc::new(Array { element_type: array.element_type, dims, elements }))
}

fn upper_bound(d: &ArrayDim) -> i32 {
    d.lower_bound + d.length - 1
}

fn dimension(a: &[Datum], f: impl Fn(&ArrayDim) -> i32) -> Result<Datum> {
    let at = usize::try_from(a[1].as_i32()).ok().and_then(|n| n.checked_sub(1));
    Ok(at.and_then(|at| a[0].as_array().dims.get(at)).map_or(Datum::Null, |d| Datum::Int4(f(d))))
}

fn element_key(call: &CallInfo<'_>, element_type: Oid) -> Result<KeyType> {
    order::key_type(call.session, element_type, call.collation)
}

/// Which elements are equal to a value; nulls are equal.
fn same_elements(call: &CallInfo<'_>, array: &Array, value: &Datum) -> Result<Vec<bool>> {
    let order = Comparison::of_type(call, array.element_type, call.collation)?;
    let is_same = |e: &Datum| Ok(order.compare_nested(e, value)?.is_eq());
    array.elements.iter().map(is_same).collect()
}

fn compare(call: &CallInfo<'_>, a: &[Datum]) -> Result<std::cmp::Ordering> {
    let (x, y) = (a[0].as_array(), a[1].as_array());
    if x.element_type != y.element_type {
        return Err(err!(DATATYPE_MISMATCH, "cannot compare arrays of different element types"));
    }
    let order = Comparison::of_type(call, x.element_type, call.collation)?;
    for (v, w) in x.elements.iter().zip(&y.elements) {
        let by_elements = order.compare_nested(v, w)?;
        if by_elements.is_ne() {
            return Ok(by_elements);
        }
    }
    Ok(key::compare_array_shapes(x, y))
}

fn not_one_dimensional() -> DbError {
    err!(DATA_EXCEPTION, "argument must be empty or one-dimensional array")
}

/// An array argument that may be null, as the elements and lower bound it contributes.
fn growable(call: &CallInfo<'_>, array: &Datum, array_at: usize) -> Result<(Oid, Vec<Datum>, i32)> {
    match array {
        Datum::Null => {
            let array_type = call.arg_types.get(array_at).copied().unwrap_or(call.return_type);
            let element = lookup::array_element(call.session, array_type);
            let element = element.or_else(|| lookup::array_element(call.session, call.return_type));
            Ok((element.unwrap_or(Oid::INVALID), Vec::new(), 1))
        }
        array => {
            let array = array.as_array();
            if array.dims.len() > 1 {
                return Err(not_one_dimensional());
            }
            // One more follows.
            let mut elements = Vec::with_capacity(array.elements.len() + 1);
            elements.extend_from_slice(&array.elements);
            Ok((array.element_type, elements, array.dims.first().map_or(1, |d| d.lower_bound)))
        }
    }
}

fn grown(element_type: Oid, elements: Vec<Datum>, lower_bound: i32) -> Result<Datum> {
    let dims = vec![grown_dimension(elements.len(), lower_bound)?];
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}

fn append(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (element_type, mut elements, lower_bound) = growable(call, &a[0], 0)?;
    elements.push(a[1].clone());
    grown(element_type, elements, lower_bound)
}

fn prepend(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (element_type, mut elements, lower_bound) = growable(call, &a[1], 1)?;
    elements.insert(0, a[0].clone());
    grown(element_type, elements, lower_bound)
}

fn incompatible(detail: impl Into<String>) -> DbError {
    err!(ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays").detail(detail)
}

fn cat(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = match (&a[0], &a[1]) {
        (Datum::Null, other) | (other, Datum::Null) => return Ok(other.clone()),
        (x, y) => (x.as_array(), y.as_array()),
    };
    if x.dims.is_empty() {
        return Ok(a[1].clone());
    }
    if y.dims.is_empty() {
        return Ok(a[0].clone());
    }
    let (m, n) = (x.dims.len(), y.dims.len());
    let mut dims = if m >= n { x.dims.clone() } else { y.dims.clone() };
    if m == n {
        if x.dims[1..] != y.dims[1..] {
            return Err(incompatible("Arrays with differing element dimensions are not compatible for concatenation."));
        }
        dims[0].length += y.dims[0].length;
    } else if m.abs_diff(n) == 1 {
        // The smaller one is one more element of the larger one's first dimension.
        let (larger, smaller) = if m > n { (&x.dims, &y.dims) } else { (&y.dims, &x.dims) };
        if larger[1..] != smaller[..] {
            return Err(incompatible("Arrays with differing dimensions are not compatible for concatenation."));
        }
        dims[0].length += 1;
    } else {
        return Err(incompatible(format!("Arrays of {m} and {n} dimensions are not compatible for concatenation.")));
    }
    let elements = [&x.elements[..], &y.elements[..]].concat();
    element_count(&dims)?;
    Ok(with_dims(x, dims, elements))
}

fn position(call: &CallInfo<'_>, a: &[Datum], start: Option<&Datum>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = a[0].as_array();
    if array.dims.len() > 1 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "searching for elements in multidimensional arrays is not supported"));
    }
    let Some(dim) = array.dims.first() else { return Ok(Datum::Null) };
    let skip = match start {
        None => 0,
        Some(Datum::Null) => return Err(err!(NULL_VALUE_NOT_ALLOWED, "initial position must not be null")),
        Some(start) => (i64::from(start.as_i32()) - i64::from(dim.lower_bound)).max(0) as usize,
    };
    let order = Comparison::of_type(call, array.element_type, call.collation)?;
    for (i, e) in array.elements.iter().enumerate().skip(skip) {
        if order.compare_nested(e, &a[1])?.is_eq() {
            return Ok(Datum::Int4(dim.lower_bound + i as i32));
        }
    }
    Ok(Datum::Null)
}

fn positions(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = a[0].as_array();
    if array.dims.len() > 1 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "searching for elements in multidimensional arrays is not supported"));
    }
    let same = same_elements(call, array, &a[1])?;
    let lower_bound = array.dims.first().map_or(1, |d| d.lower_bound);
    let found = same.iter().enumerate().filter(|(_, same)| **same);
    Ok(one_dimensional(melba_types::oids::INT4, found.map(|(i, _)| Datum::Int4(lower_bound + i as i32)).collect()))
}

fn remove(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = a[0].as_array();
    if array.dims.len() > 1 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "removing elements from multidimensional arrays is not supported"));
    }
    let same = same_elements(call, array, &a[1])?;
    let elements: Vec<Datum> = array.elements.iter().zip(&same).filter(|(_, same)| !**same).map(|(e, _)| e.clone()).collect();
    let mut dims = array.dims.clone();
    if let Some(d) = dims.first_mut() {
        d.length = elements.len() as i32;
    }
    Ok(with_dims(array, dims, elements))
}

fn replace(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = a[0].as_array();
    let same = same_elements(call, array, &a[1])?;
    let elements = array.elements.iter().zip(&same).map(|(e, same)| if *same { a[2].clone() } else { e.clone() }).collect();
    Ok(with_dims(array, array.dims.clone(), elements))
}

/// The array with the entries of its first dimension in another order.
fn permuted(array: &Array, permute: impl FnOnce(&mut Vec<&[Datum]>) -> Result<()>) -> Result<Datum> {
    let Some(first) = array.dims.first().filter(|d| d.length > 1) else {
        return Ok(Datum::Array(Arc::new(array.clone())));
    };
    let mut rows: Vec<&[Datum]> = array.elements.chunks(array.elements.len() / first.length as usize).collect();
    permute(&mut rows)?;
    let mut dims = array.dims.clone();
    dims[0].length = rows.len() as i32;
    Ok(with_dims(array, dims, rows.concat()))
}

fn shuffle(call: &CallInfo<'_>, rows: &mut [&[Datum]]) -> Result<()> {
    let mut ticker = limits::Ticker::new();
    for i in 0..rows.len() {
        ticker.step()?;
        // The modulo's bias is below 2^-32 for any array.
        let other = i + (call.session.random_u64() % (rows.len() - i) as u64) as usize;
        rows.swap(i, other);
    }
    Ok(())
}

fn sample(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (array, n) = (a[0].as_array(), a[1].as_i32());
    let rows = array.dims.first().map_or(0, |d| d.length);
    if !(0..=rows).contains(&n) {
        return Err(err!(INVALID_PARAMETER_VALUE, "sample size must be between 0 and {rows}"));
    }
    if n == 0 {
        return Ok(one_dimensional(array.element_type, Vec::new()));
    }
    let Datum::Array(mut taken) = permuted(array, |rows| {
        shuffle(call, rows)?;
        rows.truncate(n as usize);
        Ok(())
    })?
    else {
        return Ok(Datum::Null);
    };
    if let Some(first) = Arc::make_mut(&mut taken).dims.first_mut() {
        first.lower_bound = 1;
    }
    Ok(Datum::Array(taken))
}

fn sort(call: &CallInfo<'_>, value: &Datum, descending: bool, nulls_first: bool) -> Result<Datum> {
    let array = value.as_array();
    if array.dims.first().is_none_or(|d| d.length < 2) {
        return Ok(value.clone());
    }
    let key = element_key(call, array.element_type)?;
    let by_element = |a: &Datum, b: &Datum| match (a.is_null(), b.is_null()) {
        (false, false) if descending => key::compare(&key, b, a),
        (false, false) => key::compare(&key, a, b),
        (a, b) if nulls_first => b.cmp(&a),
        (a, b) => a.cmp(&b),
    };
    // Entries that are arrays compare as arrays do: nulls within them come last.
    let by_row = |a: &&[Datum], b: &&[Datum]| {
        let nested = |(x, y): (&Datum, &Datum)| match (x.is_null(), y.is_null()) {
            (false, false) => key::compare(&key, x, y),
            (x, y) => x.cmp(&y),
        };
        let ordering = a.iter().zip(b.iter()).map(nested).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal);
        if descending { ordering.reverse() } else { ordering }
    };
    let flat = array.dims.len() == 1;
    permuted(array, |rows| if flat { sort_by(rows, |a, b| by_element(&a[0], &b[0])) } else { sort_by(rows, by_row) })
}

fn fill(call: &CallInfo<'_>, a: &[Datum], lower_bounds: Option<&Datum>) -> Result<Datum> {
    let null = |what: &str| Err(err!(NULL_VALUE_NOT_ALLOWED, "{what} cannot be null"));
    if a[1].is_null() || lower_bounds.is_some_and(Datum::is_null) {
        return null("dimension array or low bound array");
    }
    let lengths = a[1].as_array();
    let wrong = |detail: &str| Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").detail(detail));
    if lengths.dims.len() > 1 {
        return wrong("Dimension array must be one dimensional.");
    }
    if lengths.elements.iter().any(Datum::is_null) {
        return null("dimension values");
    }
    if lengths.elements.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions());
    }
    let mut dims: Vec<ArrayDim> = lengths.elements.iter().map(|l| ArrayDim { length: l.as_i32(), lower_bound: 1 }).collect();
    if let Some(bounds) = lower_bounds {
        let bounds = bounds.as_array();
        if bounds.dims.len() > 1 {
            return wrong("Dimension array must be one dimensional.");
        }
        if bounds.elements.iter().any(Datum::is_null) {
            return null("dimension values");
        }
        if bounds.elements.len() != dims.len() {
            return wrong("Low bound array has different size than dimensions array.");
        }
        for (d, bound) in dims.iter_mut().zip(&bounds.elements) {
            d.lower_bound = bound.as_i32();
        }
    }
    let element_type =
        lookup::array_element(call.session, call.return_type).or_else(|| call.arg_types.first().copied()).unwrap_or(Oid::INVALID);
    let count = element_count(&dims)?;
    limits::check_memory(count * size_of::<Datum>())?;
    let mut elements = Vec::with_capacity(count);
    let mut ticker = limits::Ticker::new();
    for _ in 0..count {
        ticker.step()?;
        elements.push(a[0].clone());
    }
    Ok(Datum::Array(Arc::new(Array { element_type, dims: if count == 0 { vec![] } else { dims }, elements })))
}

fn trim(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (array, n) = (a[0].as_array(), a[1].as_i32());
    let rows = array.dims.first().map_or(0, |d| d.length);
    if !(0..=rows).contains(&n) {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "number of elements to trim must be between 0 and {rows}"));
    }
    let mut dims = array.dims.clone();
    if dims.is_empty() {
        return Ok(a[0].clone());
    }
    dims[0].length -= n;
    dims.iter_mut().for_each(|d| d.lower_bound = 1);
    let kept = array.elements.len() / rows as usize * dims[0].length as usize;
    Ok(with_dims(array, dims, array.elements[..kept].to_vec()))
}

fn to_text(call: &CallInfo<'_>, a: &[Datum], null: Option<&str>) -> Result<Datum> {
    let (array, separator) = (a[0].as_array(), a[1].as_str());
    let mut out = Vec::new();
    let mut any = false;
    for element in &array.elements {
        if element.is_null() && null.is_none() {
            continue;
        }
        if any {
            out.extend_from_slice(separator.as_bytes());
        }
        any = true;
        match (element, null) {
            (Datum::Null, Some(null)) => out.extend_from_slice(null.as_bytes()),
            (element, _) => melba_fmgr::io::text_out(call.session, array.element_type, element, &mut out)?,
        }
        limits::check_length(out.len())?;
    }
    Ok(Datum::text(melba_fmgr::io::into_string(out)?))
}

/// Whether every element of `b` is equal to one of `a`; a null is equal to nothing.
fn contains(call: &CallInfo<'_>, a: &Array, b: &Array) -> Result<bool> {
    if a.element_type != b.element_type {
        return Err(err!(DATATYPE_MISMATCH, "cannot compare arrays of different element types"));
    }
    let key = element_key(call, a.element_type)?;
    let members = Members::new(&key, &a.elements)?;
    all_within_limits(&b.elements, |x| members.has(x))
}

/// The elements of an array, for searching: sorted when there are many.
struct Members<'a> {
    key: &'a KeyType,
    elements: Vec<&'a Datum>,
    is_sorted: bool,
}

/// Up to this many elements are compared one after the other.
const UNSORTED_MAX: usize = 16;

impl<'a> Members<'a> {
    fn new(key: &'a KeyType, elements: &'a [Datum]) -> Result<Members<'a>> {
        let mut elements: Vec<&Datum> = elements.iter().filter(|e| !e.is_null()).collect();
        let is_sorted = elements.len() > UNSORTED_MAX;
        if is_sorted {
            sort_by(&mut elements, |x, y| key::compare(key, x, y))?;
        }
        Ok(Members { key, elements, is_sorted })
    }

    /// Whether a value is equal to one of them; a null is equal to nothing.
    fn has(&self, value: &Datum) -> bool {
        if value.is_null() {
            return false;
        }
        let compare = |member: &&Datum| key::compare(self.key, member, value);
        if self.is_sorted {
            self.elements.binary_search_by(compare).is_ok()
        } else {
            self.elements.iter().any(|m| compare(m).is_eq())
        }
    }
}

/// Whether all values are valid; fails when the statement must end.
fn all_within_limits(values: &[Datum], mut is_right: impl FnMut(&Datum) -> bool) -> Result<bool> {
    let mut ticker = limits::Ticker::default();
    for value in values {
        ticker.step()?;
        if !is_right(value) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overlap(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_array(), a[1].as_array());
    if x.element_type != y.element_type {
        return Err(err!(DATATYPE_MISMATCH, "cannot compare arrays of different element types"));
    }
    let key = element_key(call, x.element_type)?;
    let members = Members::new(&key, &x.elements)?;
    Ok(Datum::Bool(!all_within_limits(&y.elements, |e| !members.has(e))?))
}

fn width_bucket(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let thresholds = a[1].as_array();
    if thresholds.dims.len() > 1 {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    if thresholds.elements.iter().any(Datum::is_null) {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs"));
    }
    let key = element_key(call, thresholds.element_type)?;
    let below = thresholds.elements.partition_point(|t| key::compare(&key, t, &a[0]).is_le());
    Ok(Datum::Int4(below as i32))
}
