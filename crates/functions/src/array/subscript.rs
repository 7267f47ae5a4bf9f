//! Subscripts: reading and assigning elements and slices. The executor evaluates the subscript expressions.

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, err};

use super::io::{DIMENSIONS_MAX, ELEMENTS_MAX, element_count, too_many_dimensions};

/// A dimension of a slice; a bound that was not written is `None`.
pub type SliceBounds = (Option<i32>, Option<i32>);

fn out_of_range() -> DbError {
    err!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range")
}

/// Place of an element among the elements; `None` outside the array.
fn offset(array: &Array, subscripts: &[i32]) -> Option<usize> {
    if subscripts.len() != array.dims.len() || array.dims.is_empty() {
        return None;
    }
    let mut at = 0usize;
    for (d, &s) in array.dims.iter().zip(subscripts) {
        let place = i64::from(s) - i64::from(d.lower_bound);
        if !(0..i64::from(d.length)).contains(&place) {
            return None;
        }
        at = at * d.length as usize + place as usize;
    }
    Some(at)
}

/// `array[i][j]`: NULL outside the array, or with another number of subscripts than it has dimensions.
pub fn element(array: &Array, subscripts: &[i32]) -> Datum {
    offset(array, subscripts).map_or(Datum::Null, |at| array.elements[at].clone())
}

/// `array[i:j][k:l]`: the part of the array within the bounds, numbered from 1; empty outside the array. Dimensions
/// without bounds are taken whole.
pub fn slice(array: &Array, bounds: &[SliceBounds]) -> Array {
    let empty = Array { element_type: array.element_type, dims: Vec::new(), elements: Vec::new() };
    if bounds.len() > array.dims.len() || array.dims.is_empty() {
        return empty;
    }
    let mut ranges = Vec::with_capacity(array.dims.len());
    for (i, d) in array.dims.iter().enumerate() {
        let (lower, upper) = bounds.get(i).copied().unwrap_or((None, None));
        let last = i64::from(d.lower_bound) + i64::from(d.length) - 1;
        let lower = lower.map_or(i64::from(d.lower_bound), |l| i64::from(l).max(i64::from(d.lower_bound)));
        let upper = upper.map_or(last, |u| i64::from(u).min(last));
        if lower > upper {
            return empty;
        }
        ranges.push((lower - i64::from(d.lower_bound)) as usize..(upper - i64::from(d.lower_bound) + 1) as usize);
    }
    let mut elements = Vec::new();
    for_each_offset(&array.dims, &ranges, 0, 0, &mut |at| elements.push(array.elements[at].clone()));
    let dims = ranges.iter().map(|r| ArrayDim { length: r.len() as i32, lower_bound: 1 }).collect();
    Array { element_type: array.element_type, dims, elements }
}

/// Calls `f` with the place of every element within the ranges, in order.
fn for_each_offset(dims: &[ArrayDim], ranges: &[std::ops::Range<usize>], level: usize, base: usize, f: &mut dyn FnMut(usize)) {
    if level == dims.len() {
        return f(base);
    }
    for i in ranges[level].clone() {
        for_each_offset(dims, ranges, level + 1, base * dims[level].length as usize + i, f);
    }
}

/// `array[i] := value`. A missing array starts empty; a one-dimensional array grows, nulls filling the gap.
pub fn assign_element(array: Option<&Array>, element_type: Oid, subscripts: &[i32], value: Datum) -> Result<Array> {
    if subscripts.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions());
    }
    let Some(array) = array.filter(|a| !a.dims.is_empty()) else {
        let dims: Vec<ArrayDim> = subscripts.iter().map(|&s| ArrayDim { length: 1, lower_bound: s }).collect();
        element_count(&dims)?;
        return Ok(Array { element_type, dims, elements: vec![value] });
    };
    if subscripts.len() != array.dims.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    let mut array = array.clone();
    if let (&[s], [d]) = (subscripts, &mut array.dims[..]) {
        grow(&mut array.elements, d, i64::from(s), i64::from(s))?;
    }
    let at = offset(&array, subscripts).ok_or_else(out_of_range)?;
    array.elements[at] = value;
    Ok(array)
}

/// Makes a one-dimensional array reach from `lower` to `upper`.
fn grow(elements: &mut Vec<Datum>, d: &mut ArrayDim, lower: i64, upper: i64) -> Result<()> {
    let first = i64::from(d.lower_bound);
    let last = first + i64::from(d.length) - 1;
    let too_large = || err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    if (upper.max(last) - lower.min(first) + 1) > ELEMENTS_MAX as i64 || upper >= i64::from(i32::MAX) {
        return Err(too_large());
    }
    if lower < first {
        elements.splice(0..0, std::iter::repeat_n(Datum::Null, (first - lower) as usize));
        d.lower_bound = lower as i32;
    }
    if upper > last {
        elements.resize(elements.len() + (upper - last) as usize, Datum::Null);
    }
    d.length = elements.len() as i32;
    Ok(())
}

/// `array[i:j] := source`.
pub fn assign_slice(array: Option<&Array>, element_type: Oid, bounds: &[SliceBounds], source: &Array) -> Result<Array> {
    if bounds.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions());
    }
    let too_small = || err!(ARRAY_SUBSCRIPT_ERROR, "source array too small");
    let upper_below = || err!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound");
    let Some(array) = array.filter(|a| !a.dims.is_empty()) else {
        let mut dims = Vec::with_capacity(bounds.len());
        for bounds in bounds {
            let (Some(lower), Some(upper)) = bounds else {
                return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array slice subscript must provide both boundaries")
                    .detail("When assigning to a slice of an empty array value, slice boundaries must be fully specified."));
            };
            let length = i64::from(*upper) - i64::from(*lower) + 1;
            if length < 0 {
                return Err(upper_below());
            }
            let length = i32::try_from(length).map_err(|_| out_of_range())?;
            dims.push(ArrayDim { length, lower_bound: *lower });
        }
        let count = element_count(&dims)?;
        if source.elements.len() < count {
            return Err(too_small());
        }
        if count == 0 {
            dims.clear();
        }
        return Ok(Array { element_type, dims, elements: source.elements[..count].to_vec() });
    };
    if bounds.len() > array.dims.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    let mut array = array.clone();
    let mut ranges = Vec::with_capacity(array.dims.len());
    let one = array.dims.len() == 1;
    for i in 0..array.dims.len() {
        let d = array.dims[i];
        let last = i64::from(d.lower_bound) + i64::from(d.length) - 1;
        let (lower, upper) = bounds.get(i).copied().unwrap_or((None, None));
        let (lower, upper) = (lower.map_or(i64::from(d.lower_bound), i64::from), upper.map_or(last, i64::from));
        if lower > upper + 1 || (lower > upper && !one) {
            return Err(upper_below());
        }
        if one && lower <= upper {
            grow(&mut array.elements, &mut array.dims[0], lower, upper)?;
        } else if lower < i64::from(d.lower_bound) || upper > last {
            return Err(out_of_range());
        }
        let base = i64::from(array.dims[i].lower_bound);
        ranges.push((lower - base) as usize..(upper - base + 1) as usize);
    }
    if source.elements.len() < ranges.iter().map(ExactSizeIterator::len).product() {
        return Err(too_small());
    }
    let mut places = Vec::new();
    for_each_offset(&array.dims, &ranges, 0, 0, &mut |at| places.push(at));
    for (at, value) in places.into_iter().zip(&source.elements) {
        array.elements[at] = value.clone();
    }
    Ok(array)
}

/// An array datum.
pub fn datum(array: Array) -> Datum {
    Datum::Array(Arc::new(array))
}

#[cfg(test)]
mod tests {
    use melba_types::oids;

    use super::*;
    use melba_fmgr::io::{text_in, text_of};

    fn read(text: &str) -> Array {
        let v = text_in(&crate::testing::session(), oids::INT4_ARRAY, -1, text).expect(text);
        v.as_array().clone()
    }

    fn show(array: Array) -> String {
        text_of(&crate::testing::session(), oids::INT4_ARRAY, &datum(array)).expect("output")
    }

    #[test]
    fn slices_are_cut_to_the_array() {
        let a = read("{{1,2,3},{4,5,6},{7,8,9}}");
        assert_eq!(element(&a, &[2, 3]).as_i32(), 6);
        assert!(element(&a, &[2]).is_null() && element(&a, &[4, 1]).is_null());
        assert_eq!(show(slice(&a, &[(Some(2), Some(9))])), "{{4,5,6},{7,8,9}}");
        assert_eq!(show(slice(&a, &[(None, Some(2)), (Some(2), None)])), "{{2,3},{5,6}}");
        assert_eq!(show(slice(&a, &[(Some(5), Some(6))])), "{}");
    }

    #[test]
    fn assignment_extends_one_dimension() {
        let set = |text: &str, at: &[i32]| assign_element(Some(&read(text)), oids::INT4, at, Datum::Int4(0)).map(show);
        assert_eq!(set("{1,2}", &[4]).expect("grows"), "{1,2,NULL,0}");
        assert_eq!(set("{1,2}", &[-1]).expect("grows"), "[-1:2]={0,NULL,1,2}");
        assert_eq!(set("{}", &[3]).expect("starts"), "[3:3]={0}");
        assert_eq!(set("{{1,2}}", &[1, 2]).expect("sets"), "{{1,0}}");
        assert_eq!(set("{{1,2}}", &[2, 2]).expect_err("outside").message(), "array subscript out of range");
        let slice = assign_slice(Some(&read("{1,2,3}")), oids::INT4, &[(Some(2), Some(5))], &read("{7,8,9,10}"));
        assert_eq!(slice.map(show).expect("grows"), "{1,7,8,9,10}");
        let short = assign_slice(Some(&read("{1,2,3}")), oids::INT4, &[(Some(1), Some(2))], &read("{7}"));
        assert_eq!(short.expect_err("short").message(), "source array too small");
    }
}
