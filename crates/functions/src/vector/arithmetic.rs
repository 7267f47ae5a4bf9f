//! Arithmetic of integers and floats.

use melba_fmgr::VectorFn;
use melba_types::{Bitmap, Column, ColumnData, Kind, Result};

use super::{Values, fallback, validity, values, zip};
use crate::float::{f32_checked, f64_checked};
use crate::int::{division_by_zero, out_of_range};

/// Runs an integer operation that returns its wrapped result and whether it overflowed. Overflow is checked once per batch; only
/// then are null rows, whose values are arbitrary, excluded.
fn integer<T: Copy, U: Copy, R: Copy>(
    left: Values<'_, T>,
    right: Values<'_, U>,
    rows: usize,
    valid: Option<&Bitmap>,
    type_name: &str,
    operation: impl Fn(T, U) -> (R, bool),
) -> Result<Vec<R>> {
    let mut overflowed = false;
    let out = zip(left, right, rows, |a, b| {
        let (value, overflow) = operation(a, b);
        overflowed |= overflow;
        value
    });
    if overflowed {
        let mut row = 0;
        let mut real = false;
        zip(left, right, rows, |a, b| {
            real |= operation(a, b).1 && valid.is_none_or(|v| v.get(row));
            row += 1;
        });
        if real {
            return Err(out_of_range(type_name));
        }
    }
    Ok(out)
}

/// Raises 22012 when the divisor of a row that is not null is zero.
fn check_divisor<T: Copy + PartialEq + From<i8>>(divisor: Values<'_, T>, rows: usize, valid: Option<&Bitmap>) -> Result<()> {
    let zero = T::from(0);
    let found = match divisor {
        Values::One(v) => v == zero && (0..rows).any(|row| valid.is_none_or(|m| m.get(row))),
        Values::Many(v) => v[..rows].iter().enumerate().any(|(row, v)| *v == zero && valid.is_none_or(|m| m.get(row))),
    };
    if found { Err(division_by_zero()) } else { Ok(()) }
}

macro_rules! integer_operation {
    ($name:expr, $left:ident, $right:ident, $out:ident, $ty:ty, $type_name:literal, $method:ident) => {
        ($name, |call, operands, rows| match (values!(&operands[0], $left), values!(&operands[1], $right)) {
            (Some(left), Some(right)) => {
                let validity = validity(operands, rows);
                let operation = |a, b| <$ty>::from(a).$method(<$ty>::from(b));
                let data = integer(left, right, rows, validity.as_ref(), $type_name, operation)?;
                Ok(Column { data: ColumnData::$out(data), validity })
            }
            _ => fallback(call, $name, operands, rows, Kind::$out),
        })
    };
}

macro_rules! integer_division {
    ($name:expr, $left:ident, $right:ident, $out:ident, $ty:ty, $type_name:literal, $method:ident) => {
        ($name, |call, operands, rows| match (values!(&operands[0], $left), values!(&operands[1], $right)) {
            (Some(left), Some(right)) => {
                let validity = validity(operands, rows);
                check_divisor(right, rows, validity.as_ref())?;
                // Null rows may hold a zero.
                let operation = |a, b| match <$ty>::from(b) {
                    0 => (0, false),
                    b => <$ty>::from(a).$method(b),
                };
                let data = integer(left, right, rows, validity.as_ref(), $type_name, operation)?;
                Ok(Column { data: ColumnData::$out(data), validity })
            }
            _ => fallback(call, $name, operands, rows, Kind::$out),
        })
    };
}

macro_rules! integers {
    ($p:literal, $left:ident, $right:ident, $out:ident, $ty:ty, $type_name:literal) => {
        [
            integer_operation!(concat!($p, "pl"), $left, $right, $out, $ty, $type_name, overflowing_add),
            integer_operation!(concat!($p, "mi"), $left, $right, $out, $ty, $type_name, overflowing_sub),
            integer_operation!(concat!($p, "mul"), $left, $right, $out, $ty, $type_name, overflowing_mul),
            integer_division!(concat!($p, "div"), $left, $right, $out, $ty, $type_name, overflowing_div),
        ]
    };
}

/// Float arithmetic checks every row that is not null; the error of the first one that fails is raised.
macro_rules! float_operation {
    ($name:expr, $left:ident, $right:ident, $out:ident, $ty:ty, $operation:path) => {
        ($name, |call, operands, rows| match (values!(&operands[0], $left), values!(&operands[1], $right)) {
            (Some(left), Some(right)) => {
                let validity = validity(operands, rows);
                let mut failure = None;
                let mut row = 0;
                let data = zip(left, right, rows, |a, b| {
                    let result = $operation(<$ty>::from(a), <$ty>::from(b)).unwrap_or_else(|e| {
                        if failure.is_none() && validity.as_ref().is_none_or(|m| m.get(row)) {
                            failure = Some(e);
                        }
                        0.0
                    });
                    row += 1;
                    result
                });
                match failure {
                    Some(e) => Err(e),
                    None => Ok(Column { data: ColumnData::$out(data), validity }),
                }
            }
            _ => fallback(call, $name, operands, rows, Kind::$out),
        })
    };
}

macro_rules! floats {
    ($p:literal, $left:ident, $right:ident, $out:ident, $ty:ty, $checked:ident) => {
        [
            float_operation!(concat!($p, "pl"), $left, $right, $out, $ty, $checked::add),
            float_operation!(concat!($p, "mi"), $left, $right, $out, $ty, $checked::sub),
            float_operation!(concat!($p, "mul"), $left, $right, $out, $ty, $checked::mul),
            float_operation!(concat!($p, "div"), $left, $right, $out, $ty, $checked::div),
        ]
    };
}

const GROUPS: [[(&str, VectorFn); 4]; 13] = [
    integers!("int2", Int2, Int2, Int2, i16, "smallint"),
    integers!("int4", Int4, Int4, Int4, i32, "integer"),
    integers!("int8", Int8, Int8, Int8, i64, "bigint"),
    integers!("int24", Int2, Int4, Int4, i32, "integer"),
    integers!("int42", Int4, Int2, Int4, i32, "integer"),
    integers!("int28", Int2, Int8, Int8, i64, "bigint"),
    integers!("int82", Int8, Int2, Int8, i64, "bigint"),
    integers!("int48", Int4, Int8, Int8, i64, "bigint"),
    integers!("int84", Int8, Int4, Int8, i64, "bigint"),
    floats!("float4", Float4, Float4, Float4, f32, f32_checked),
    floats!("float8", Float8, Float8, Float8, f64, f64_checked),
    floats!("float48", Float4, Float8, Float8, f64, f64_checked),
    floats!("float84", Float8, Float4, Float8, f64, f64_checked),
];

pub const VECTORS: &[(&str, VectorFn)] = GROUPS.as_flattened();
