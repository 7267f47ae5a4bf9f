//! Arrays: constructors, subscripts, casts.

use std::sync::Arc;

use melba_types::array::{DIMENSIONS_MAX, element_count};
use melba_types::limits::{self, Ticker};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, bail, oids};

use super::{Expression, Subscript, SubscriptScheme, sqlvalue};
use crate::Evaluation;

/// ARRAY[...].
pub(super) fn build(values: Vec<Datum>, element_type: Oid, multidimensional: bool) -> Result<Datum> {
    if !multidimensional {
        let dims = if values.is_empty() { vec![] } else { vec![ArrayDim { length: values.len() as i32, lower_bound: 1 }] };
        return Ok(Datum::Array(Arc::new(Array { element_type, dims, elements: values })));
    }
    let mut elements = Vec::new();
    let mut inner: Option<Vec<ArrayDim>> = None;
    let mut count = 0;
    let mut empties = false;
    for value in &values {
        let Datum::Array(array) = value else {
            empties = true;
            continue;
        };
        if array.dims.is_empty() {
            empties = true;
            continue;
        }
        match &inner {
            Some(dims) if *dims != array.dims => return Err(mismatch()),
            Some(_) => {}
            None => inner = Some(array.dims.clone()),
        }
        elements.extend(array.elements.iter().cloned());
        count += 1;
    }
    let Some(inner) = inner else {
        return Ok(Datum::Array(Arc::new(Array { element_type, dims: vec![], elements })));
    };
    if empties {
        return Err(mismatch());
    }
    if inner.len() >= DIMENSIONS_MAX {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
            inner.len() + 1
        );
    }
    let mut dims = vec![ArrayDim { length: count, lower_bound: 1 }];
    dims.extend(inner);
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}

fn mismatch() -> melba_types::DbError {
    melba_types::err!(ARRAY_SUBSCRIPT_ERROR, "multidimensional arrays must have array expressions with matching dimensions")
}

/// Casts each element, which `element` sees as its local value.
pub(super) fn coerce(ctx: &Evaluation, row: &[Datum], array: Datum, element: &Expression, element_type: Oid) -> Result<Datum> {
    let Datum::Array(array) = array else { return Ok(Datum::Null) };
    let (mut elements, mut ticker) = (Vec::with_capacity(array.elements.len()), Ticker::new());
    for value in &array.elements {
        ticker.step()?;
        elements.push(ctx.with_local(value.clone(), || element.eval_row(ctx, row))?);
    }
    Ok(Datum::Array(Arc::new(Array { element_type, dims: array.dims.clone(), elements })))
}

/// Element, slice or assignment.
pub(super) fn subscript(s: &Subscript, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    let container = s.container.eval_row(ctx, row)?;
    match s.scheme {
        SubscriptScheme::Array => {}
        SubscriptScheme::Jsonb => return json(s, ctx, row, container),
        SubscriptScheme::Hstore => return hstore(s, ctx, row, container),
    }
    if s.assign.is_none() && container.is_null() {
        return Ok(Datum::Null);
    }
    let Some(upper) = bounds(&s.upper, ctx, row)? else { return null_subscript(s, container) };
    let Some(lower) = bounds(&s.lower, ctx, row)? else { return null_subscript(s, container) };
    match &s.assign {
        None => {
            if let Datum::Text(name) = &container {
                return Ok(letter(name, &upper));
            }
            let array = container.as_array();
            Ok(if s.slice { slice(array, &lower, &upper) } else { element(array, &upper) })
        }
        Some(value) => {
            let mut old = match container {
                Datum::Array(ref a) => (**a).clone(),
                _ => Array { element_type: s.element_type, dims: vec![], elements: vec![] },
            };
            let old_value = if s.slice { slice(&old, &lower, &upper) } else { element(&old, &upper) };
            let value = ctx.with_local(old_value, || value.eval_row(ctx, row))?;
            if s.slice {
                let Datum::Array(source) = value else { return Ok(container) };
                assign_slice(old, &lower, &upper, &source)
            } else {
                assign_element(&mut old, &upper, value)?;
                Ok(Datum::Array(Arc::new(old)))
            }
        }
    }
}

/// A name is an array of 64 "char" to subscripts, counted from 0 and filled up with zero bytes.
fn letter(name: &str, subscripts: &[Option<i32>]) -> Datum {
    const NAME_BYTES: i32 = 64;
    match subscripts {
        [Some(at)] if (0..NAME_BYTES).contains(at) => Datum::Char(name.as_bytes().get(*at as usize).copied().unwrap_or(0)),
        _ => Datum::Null,
    }
}

fn null_subscript(s: &Subscript, _container: Datum) -> Result<Datum> {
    if s.assign.is_some() { Err(null_in_assignment()) } else { Ok(Datum::Null) }
}

pub(super) fn null_in_assignment() -> melba_types::DbError {
    melba_types::err!(NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null")
}

/// Evaluated bounds; `None` when one of them is NULL.
pub(super) fn bounds(list: &[Option<Expression>], ctx: &Evaluation, row: &[Datum]) -> Result<Option<Vec<Option<i32>>>> {
    let mut out = Vec::with_capacity(list.len());
    for bound in list {
        out.push(match bound {
            None => None,
            Some(e) => match e.eval_row(ctx, row)? {
                Datum::Int4(v) => Some(v),
                Datum::Null => return Ok(None),
                other => return Err(melba_types::DbError::internal(format!("array subscript {other:?} is no integer"))),
            },
        });
    }
    Ok(Some(out))
}

/// NULL outside the array's bounds.
pub(super) fn element(array: &Array, subscripts: &[Option<i32>]) -> Datum {
    if subscripts.len() != array.dims.len() {
        return Datum::Null;
    }
    let mut offset = 0usize;
    for (subscript, dim) in subscripts.iter().zip(&array.dims) {
        let at = i64::from(subscript.unwrap_or(dim.lower_bound)) - i64::from(dim.lower_bound);
        if at < 0 || at >= i64::from(dim.length) {
            return Datum::Null;
        }
        offset = offset * dim.length as usize + at as usize;
    }
    array.elements.get(offset).cloned().unwrap_or(Datum::Null)
}

/// A bound of a dimension of a slice, if it is written.
fn bound(bounds: &[Option<i32>], dimension: usize) -> Option<i64> {
    bounds.get(dimension).copied().flatten().map(i64::from)
}

/// The subarray between the bounds, its lower bounds 1; empty when the bounds miss the array.
fn slice(array: &Array, lower: &[Option<i32>], upper: &[Option<i32>]) -> Datum {
    let empty = || Datum::Array(Arc::new(Array { element_type: array.element_type, dims: vec![], elements: vec![] }));
    if upper.len() > array.dims.len() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(array.dims.len());
    for (i, dim) in array.dims.iter().enumerate() {
        let (first, last) = (i64::from(dim.lower_bound), dim.upper_bound());
        let from = bound(lower, i).map_or(first, |bound| bound.max(first));
        let to = bound(upper, i).map_or(last, |bound| bound.min(last));
        if from > to {
            return empty();
        }
        ranges.push(((from - first) as usize, (to - first) as usize));
    }
    let mut elements = Vec::new();
    copy_ranges(array, &ranges, 0, 0, &mut |offset| elements.push(array.elements[offset].clone()));
    let dims = ranges.iter().map(|(a, b)| ArrayDim { length: (b - a + 1) as i32, lower_bound: 1 }).collect();
    Datum::Array(Arc::new(Array { element_type: array.element_type, dims, elements }))
}

/// Visits the offsets of a box of an array in row-major order.
fn copy_ranges(array: &Array, ranges: &[(usize, usize)], depth: usize, base: usize, f: &mut dyn FnMut(usize)) {
    if depth == ranges.len() {
        return f(base);
    }
    let length = array.dims[depth].length as usize;
    for at in ranges[depth].0..=ranges[depth].1 {
        copy_ranges(array, ranges, depth + 1, base * length + at, f);
    }
}

/// Changes nothing if it fails.
pub(super) fn assign_element(array: &mut Array, subscripts: &[Option<i32>], value: Datum) -> Result<()> {
    let subscripts: Vec<i32> = subscripts.iter().map(|s| s.unwrap_or(1)).collect();
    if array.dims.is_empty() {
        let dims: Vec<ArrayDim> = subscripts.iter().map(|&s| ArrayDim { length: 1, lower_bound: s }).collect();
        element_count(&dims)?;
        (array.dims, array.elements) = (dims, vec![value]);
        return Ok(());
    }
    if subscripts.len() != array.dims.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    if array.dims.len() == 1 {
        extend(array, i64::from(subscripts[0]), i64::from(subscripts[0]))?;
    }
    let mut offset = 0usize;
    for (&subscript, dim) in subscripts.iter().zip(&array.dims) {
        let at = i64::from(subscript) - i64::from(dim.lower_bound);
        if at < 0 || at >= i64::from(dim.length) {
            bail!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range");
        }
        offset = offset * dim.length as usize + at as usize;
    }
    array.elements[offset] = value;
    Ok(())
}

/// Makes a one-dimensional array reach over `from..=to`, filling with NULL. Changes nothing if it fails.
fn extend(array: &mut Array, from: i64, to: i64) -> Result<()> {
    let dim = &mut array.dims[0];
    let first = i64::from(dim.lower_bound);
    if first <= from && to <= dim.upper_bound() {
        return Ok(());
    }
    let grown = dimension(from.min(first), to.max(dim.upper_bound()))?;
    let before = (first - i64::from(grown.lower_bound)) as usize;
    limits::check_memory(grown.length as usize * size_of::<Datum>())?;
    *dim = grown;
    array.elements.splice(0..0, std::iter::repeat_n(Datum::Null, before));
    array.elements.resize(grown.length as usize, Datum::Null);
    Ok(())
}

/// A dimension of these bounds, of no elements when they are in the wrong order; 54000 when no array may have it.
fn dimension(from: i64, to: i64) -> Result<ArrayDim> {
    let length = i32::try_from((to - from + 1).max(0)).unwrap_or(i32::MAX);
    let lower_bound = from as i32; // bounds come from integers
    let dimension = ArrayDim { length, lower_bound };
    element_count(&[dimension])?;
    Ok(dimension)
}

fn assign_slice(mut array: Array, lower: &[Option<i32>], upper: &[Option<i32>], source: &Array) -> Result<Datum> {
    if array.dims.is_empty() {
        let mut dims = Vec::with_capacity(upper.len());
        for i in 0..upper.len() {
            let (Some(from), Some(to)) = (bound(lower, i), bound(upper, i)) else {
                return Err(melba_types::err!(ARRAY_SUBSCRIPT_ERROR, "array slice subscript must provide both boundaries")
                    .detail("When assigning to a slice of an empty array value, slice boundaries must be fully specified."));
            };
            dims.push(dimension(from, to)?);
        }
        let count = element_count(&dims)?;
        if count > source.elements.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "source array too small");
        }
        array.dims = dims;
        array.elements = source.elements[..count].to_vec();
        return Ok(Datum::Array(Arc::new(array)));
    }
    if upper.len() > array.dims.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    }
    let one = array.dims.len() == 1;
    let mut ranges = Vec::with_capacity(array.dims.len());
    for i in 0..array.dims.len() {
        let dim = array.dims[i];
        let from = bound(lower, i).unwrap_or(i64::from(dim.lower_bound));
        let to = bound(upper, i).unwrap_or(dim.upper_bound());
        if from > to {
            bail!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound");
        }
        if one {
            extend(&mut array, from, to)?;
        } else if from < i64::from(dim.lower_bound) || to > dim.upper_bound() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range");
        }
        let base = i64::from(array.dims[i].lower_bound);
        ranges.push(((from - base) as usize, (to - base) as usize));
    }
    let count: usize = ranges.iter().map(|(a, b)| b - a + 1).product();
    if count > source.elements.len() {
        bail!(ARRAY_SUBSCRIPT_ERROR, "source array too small");
    }
    let mut places = Vec::with_capacity(count);
    copy_ranges(&array, &ranges, 0, 0, &mut |offset| places.push(offset));
    for (place, value) in places.into_iter().zip(&source.elements) {
        array.elements[place] = value.clone();
    }
    Ok(Datum::Array(Arc::new(array)))
}

/// jsonb subscripts are a path of text keys and integer positions.
fn json(s: &Subscript, ctx: &Evaluation, row: &[Datum], container: Datum) -> Result<Datum> {
    let mut path = Vec::with_capacity(s.upper.len());
    for subscript in s.upper.iter().flatten() {
        let value = subscript.eval_row(ctx, row)?;
        if value.is_null() {
            if s.assign.is_some() {
                bail!(NULL_VALUE_NOT_ALLOWED, "jsonb subscript in assignment must not be null");
            }
            return Ok(Datum::Null);
        }
        path.push(Datum::text(melba_fmgr::io::text_of(&*ctx.session, subscript.ty, &value)?));
    }
    let is_array = s.upper.first().and_then(|e| e.as_ref()).is_some_and(|e| e.ty == oids::INT4);
    let path = build(path, oids::TEXT, false)?;
    match &s.assign {
        None if container.is_null() => Ok(Datum::Null),
        None => sqlvalue::by_source("jsonb_extract_path", ctx, &[container, path], &[oids::JSONB, oids::TEXT_ARRAY], oids::JSONB),
        Some(value) => {
            let value = ctx.with_local(Datum::Null, || value.eval_row(ctx, row))?;
            let args = [container, path, value, Datum::Bool(is_array)];
            sqlvalue::by_source(
                "jsonb_subscript_assign",
                ctx,
                &args,
                &[oids::JSONB, oids::TEXT_ARRAY, oids::JSONB, oids::BOOL],
                oids::JSONB,
            )
        }
    }
}

/// The value of an hstore's key; to assign it is to concatenate.
fn hstore(s: &Subscript, ctx: &Evaluation, row: &[Datum], container: Datum) -> Result<Datum> {
    let key = match s.upper.first() {
        Some(Some(key)) => key.eval_row(ctx, row)?,
        _ => Datum::Null,
    };
    let call = |source: &str, args: &[Datum], arg_types: &[Oid], ty: Oid| sqlvalue::by_source(source, ctx, args, arg_types, ty);
    let Some(value) = &s.assign else {
        let is_null = container.is_null() || key.is_null();
        let arg_types = [oids::HSTORE, oids::TEXT];
        return if is_null { Ok(Datum::Null) } else { call("hstore_fetchval", &[container, key], &arg_types, oids::TEXT) };
    };
    if key.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "hstore subscript in assignment must not be null");
    }
    let value = ctx.with_local(Datum::Null, || value.eval_row(ctx, row))?;
    let pair = call("hstore_from_text", &[key, value], &[oids::TEXT, oids::TEXT], oids::HSTORE)?;
    if container.is_null() {
        return Ok(pair);
    }
    call("hstore_concat", &[container, pair], &[oids::HSTORE, oids::HSTORE], oids::HSTORE)
}

/// ARRAY(SELECT ...): arrays make an array of one more dimension.
pub fn array_of(elements: Vec<Datum>, element_type: Oid, of_arrays: bool) -> Result<Datum> {
    if of_arrays {
        let mut first: Option<&[ArrayDim]> = None;
        for element in &elements {
            let Datum::Array(array) = element else { bail!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays") };
            if array.dims.is_empty() {
                bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays");
            }
            if first.is_some_and(|dims| dims != array.dims) {
                bail!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality");
            }
            first = Some(&array.dims);
        }
        return build(elements, element_type, true);
    }
    let dims = if elements.is_empty() { vec![] } else { vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }] };
    Ok(Datum::Array(Arc::new(Array { element_type, dims, elements })))
}
