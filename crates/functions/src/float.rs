//! real and double precision: input and output, arithmetic, comparisons, casts. Mathematical functions are in `math`.

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, ScalarFn, TypeContext, TypeIo, comparison_table, type_io};
use melba_types::float::{self as text, FloatError, compare_f32, compare_f64};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::int::{division_by_zero, out_of_range};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (
        oids::FLOAT4,
        TypeIo {
            input: |_, s| text::parse_f32(type_io::trim(s)).map(Datum::Float4).map_err(|e| input_error(e, "real", s)),
            output: |c, v, out| {
                write_f32(c.session.format().extra_float_digits, v.as_f32(), out);
                Ok(())
            },
            receive: |_, b| Ok(Datum::Float4(f32::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| {
                out.extend_from_slice(&v.as_f32().to_be_bytes());
                Ok(())
            },
        },
    ),
    (
        oids::FLOAT8,
        TypeIo {
            input: float8_in,
            output: |c, v, out| {
                write_f64(c.session.format().extra_float_digits, v.as_f64(), out);
                Ok(())
            },
            receive: |_, b| Ok(Datum::Float8(f64::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| {
                out.extend_from_slice(&v.as_f64().to_be_bytes());
                Ok(())
            },
        },
    ),
];

fn float8_in(_: &TypeContext<'_>, s: &str) -> Result<Datum> {
    text::parse_f64(type_io::trim(s)).map(Datum::Float8).map_err(|e| input_error(e, "double precision", s))
}

fn input_error(e: FloatError, type_name: &str, s: &str) -> DbError {
    match e {
        FloatError::Syntax => type_io::invalid_text(type_name, s),
        FloatError::OutOfRange => {
            err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{}\" is out of range for type {type_name}", type_io::trim(s))
        }
    }
}

/// Appends a double with the session's extra_float_digits.
pub fn write_f64(extra_float_digits: i32, v: f64, out: &mut Vec<u8>) {
    if extra_float_digits > 0 {
        text::write_f64(out, v);
    } else {
        text::write_general(out, v, (15 + extra_float_digits).max(1) as usize);
    }
}

/// Appends a real with the session's extra_float_digits.
pub fn write_f32(extra_float_digits: i32, v: f32, out: &mut Vec<u8>) {
    if extra_float_digits > 0 {
        text::write_f32(out, v);
    } else {
        text::write_general(out, f64::from(v), (6 + extra_float_digits).max(1) as usize);
    }
}

pub fn overflow() -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

pub fn underflow() -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

/// A datum of either float type as a double.
#[inline]
pub fn wide(v: &Datum) -> f64 {
    match v {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        other => panic!("expected float datum, found {other:?}"),
    }
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_f64(wide(a), wide(b))
}

macro_rules! float_comparisons {
    ($($p:literal),+) => {
        comparison_table! {
            /// Comparisons within and across the float types.
            COMPARISONS:
            $(compare => concat!("float", $p, "eq"), concat!("float", $p, "ne"), concat!("float", $p, "lt"), concat!("float", $p, "le"),
                concat!("float", $p, "gt"), concat!("float", $p, "ge"), concat!("btfloat", $p, "cmp");)+
        }
    };
}
float_comparisons!("4", "8", "48", "84");

macro_rules! checked_operations {
    ($module:ident, $ty:ty) => {
        /// Arithmetic that raises 22003 where IEEE arithmetic would overflow or underflow silently.
        pub mod $module {
            use melba_types::Result;

            use super::{division_by_zero, overflow, underflow};

            pub fn add(a: $ty, b: $ty) -> Result<$ty> {
                finite(a + b, a.is_infinite() || b.is_infinite())
            }

            pub fn sub(a: $ty, b: $ty) -> Result<$ty> {
                finite(a - b, a.is_infinite() || b.is_infinite())
            }

            pub fn mul(a: $ty, b: $ty) -> Result<$ty> {
                let r = finite(a * b, a.is_infinite() || b.is_infinite())?;
                if r == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(r) }
            }

            pub fn div(a: $ty, b: $ty) -> Result<$ty> {
                if b == 0.0 && !a.is_nan() {
                    return Err(division_by_zero());
                }
                let r = finite(a / b, a.is_infinite())?;
                if r == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(r) }
            }

            fn finite(r: $ty, infinite_operand: bool) -> Result<$ty> {
                if r.is_infinite() && !infinite_operand { Err(overflow()) } else { Ok(r) }
            }
        }
    };
}
checked_operations!(f32_checked, f32);
checked_operations!(f64_checked, f64);

macro_rules! mixed_arithmetic {
    ($table:ident, $($p:literal),+) => {
        const $table: &[(&str, ScalarFn)] = &[$(
            (concat!("float", $p, "pl"), |_, a| f64_checked::add(wide(&a[0]), wide(&a[1])).map(Datum::Float8)),
            (concat!("float", $p, "mi"), |_, a| f64_checked::sub(wide(&a[0]), wide(&a[1])).map(Datum::Float8)),
            (concat!("float", $p, "mul"), |_, a| f64_checked::mul(wide(&a[0]), wide(&a[1])).map(Datum::Float8)),
            (concat!("float", $p, "div"), |_, a| f64_checked::div(wide(&a[0]), wide(&a[1])).map(Datum::Float8)),
        )+];
    };
}
mixed_arithmetic!(ARITHMETIC, "8", "48", "84");

pub const TABLES: &[&[(&str, ScalarFn)]] = &[COMPARISONS, ARITHMETIC, FUNCTIONS];

const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("float4pl", |_, a| f32_checked::add(a[0].as_f32(), a[1].as_f32()).map(Datum::Float4)),
    ("float4mi", |_, a| f32_checked::sub(a[0].as_f32(), a[1].as_f32()).map(Datum::Float4)),
    ("float4mul", |_, a| f32_checked::mul(a[0].as_f32(), a[1].as_f32()).map(Datum::Float4)),
    ("float4div", |_, a| f32_checked::div(a[0].as_f32(), a[1].as_f32()).map(Datum::Float4)),
    ("float4abs", |_, a| Ok(Datum::Float4(a[0].as_f32().abs()))),
    ("float8abs", |_, a| Ok(Datum::Float8(a[0].as_f64().abs()))),
    ("float4um", |_, a| Ok(Datum::Float4(-a[0].as_f32()))),
    ("float8um", |_, a| Ok(Datum::Float8(-a[0].as_f64()))),
    ("float4up", |_, a| Ok(a[0].clone())),
    ("float8up", |_, a| Ok(a[0].clone())),
    ("float4larger", |_, a| Ok(a[usize::from(compare_f32(a[0].as_f32(), a[1].as_f32()).is_le())].clone())),
    ("float4smaller", |_, a| Ok(a[usize::from(compare_f32(a[0].as_f32(), a[1].as_f32()).is_ge())].clone())),
    ("float8larger", |_, a| Ok(a[usize::from(compare_f64(a[0].as_f64(), a[1].as_f64()).is_le())].clone())),
    ("float8smaller", |_, a| Ok(a[usize::from(compare_f64(a[0].as_f64(), a[1].as_f64()).is_ge())].clone())),
    ("ftod", |_, a| Ok(Datum::Float8(f64::from(a[0].as_f32())))),
    ("dtof", |_, a| to_f32(a[0].as_f64()).map(Datum::Float4)),
    ("i2tod", |_, a| Ok(Datum::Float8(f64::from(a[0].as_i16())))),
    ("i4tod", |_, a| Ok(Datum::Float8(f64::from(a[0].as_i32())))),
    ("i8tod", |_, a| Ok(Datum::Float8(a[0].as_i64() as f64))),
    ("i2tof", |_, a| Ok(Datum::Float4(f32::from(a[0].as_i16())))),
    ("i4tof", |_, a| Ok(Datum::Float4(a[0].as_i32() as f32))),
    ("i8tof", |_, a| Ok(Datum::Float4(a[0].as_i64() as f32))),
    ("dtoi2", |_, a| Ok(Datum::Int2(to_integer(wide(&a[0]), -32768.0, 32768.0, "smallint")? as i16))),
    ("ftoi2", |_, a| Ok(Datum::Int2(to_integer(wide(&a[0]), -32768.0, 32768.0, "smallint")? as i16))),
    ("dtoi4", |_, a| Ok(Datum::Int4(to_integer(wide(&a[0]), -2147483648.0, 2147483648.0, "integer")? as i32))),
    ("ftoi4", |_, a| Ok(Datum::Int4(to_integer(wide(&a[0]), -2147483648.0, 2147483648.0, "integer")? as i32))),
    ("dtoi8", |_, a| Ok(Datum::Int8(to_integer(wide(&a[0]), -9223372036854775808.0, 9223372036854775808.0, "bigint")? as i64))),
    ("ftoi8", |_, a| Ok(Datum::Int8(to_integer(wide(&a[0]), -9223372036854775808.0, 9223372036854775808.0, "bigint")? as i64))),
    ("in_range_float8_float8", in_range),
    ("in_range_float4_float8", in_range),
];

/// Rounds to a real.
pub fn to_f32(v: f64) -> Result<f32> {
    let r = v as f32;
    if r.is_infinite() && !v.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && v != 0.0 { Err(underflow()) } else { Ok(r) }
}

/// Rounds half to even; the value must then be in [min, end).
fn to_integer(v: f64, min: f64, end: f64, type_name: &str) -> Result<f64> {
    let v = v.round_ties_even();
    if v >= min && v < end { Ok(v) } else { Err(out_of_range(type_name)) }
}

/// Is `value` within `offset` of `base`: RANGE frames of windows. Arguments: value, base, offset, subtract, less.
fn in_range(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (value, base, offset, subtract, less) = (wide(&a[0]), wide(&a[1]), wide(&a[2]), a[3].as_bool(), a[4].as_bool());
    if offset.is_nan() || offset < 0.0 {
        return Err(err!(INVALID_PRECEDING_OR_FOLLOWING_SIZE, "invalid preceding or following size in window function"));
    }
    if value.is_nan() || base.is_nan() {
        let (both, only_value) = (value.is_nan() && base.is_nan(), value.is_nan());
        return Ok(Datum::Bool(both || only_value != less));
    }
    // An infinite offset from an infinity of the other sign would be NaN: every value is in range.
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == subtract {
        return Ok(Datum::Bool(true));
    }
    let bound = if subtract { base - offset } else { base + offset };
    Ok(Datum::Bool(if less { value <= bound } else { value >= bound }))
}
