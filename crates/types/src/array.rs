//! Arrays.

use crate::{Datum, Oid, Result, err};

/// Dimensions of an array at most (PostgreSQL's MAXDIM).
pub const DIMENSIONS_MAX: usize = 6;
/// Elements of an array at most (PostgreSQL's MaxArraySize).
pub const ELEMENTS_MAX: usize = 134_217_727;

/// One dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayDim {
    pub length: i32,
    pub lower_bound: i32,
}

/// An array; elements in row-major order. No dimensions: the empty array.
#[derive(Clone, Debug)]
pub struct Array {
    pub element_type: Oid,
    pub dims: Vec<ArrayDim>,
    pub elements: Vec<Datum>,
}

impl ArrayDim {
    /// The last subscript; one less than the first where there are no elements.
    pub fn upper_bound(self) -> i64 {
        i64::from(self.lower_bound) + i64::from(self.length) - 1
    }
}

/// The dimension of an array that has grown by an element; 22003 when it has too many, or a subscript is no integer.
pub fn grown_dimension(length: usize, lower_bound: i32) -> Result<ArrayDim> {
    let in_range = i32::try_from(length).ok().filter(|_| length <= ELEMENTS_MAX);
    match in_range.filter(|length| lower_bound.checked_add(*length).is_some()) {
        Some(length) => Ok(ArrayDim { length, lower_bound }),
        None => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")),
    }
}

/// Elements of an array of these dimensions; 54000 when they are too many, or when a subscript past the last would not be an integer
/// (PostgreSQL's ArrayGetNItems and ArrayCheckBounds).
pub fn element_count(dims: &[ArrayDim]) -> Result<usize> {
    if dims.is_empty() {
        return Ok(0);
    }
    let mut count = 1usize;
    for d in dims {
        count = usize::try_from(d.length)
            .ok()
            .and_then(|length| count.checked_mul(length))
            .filter(|&count| count <= ELEMENTS_MAX)
            .ok_or_else(|| err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ELEMENTS_MAX})"))?;
    }
    match dims.iter().find(|d| d.lower_bound.checked_add(d.length).is_none()) {
        None => Ok(count),
        Some(d) => Err(err!(PROGRAM_LIMIT_EXCEEDED, "array lower bound is too large: {}", d.lower_bound)),
    }
}
