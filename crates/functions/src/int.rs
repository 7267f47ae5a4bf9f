//! smallint, integer and bigint: input and output, arithmetic, bits, casts.

use melba_fmgr::integer::{int2_in, int4_in, int8_in};
use melba_fmgr::{CallInfo, ScalarFn, TypeIo, comparison_table, type_io};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (
        oids::INT2,
        TypeIo {
            input: |_, s| int2_in(s).map(Datum::Int2),
            output: |_, v, out| write_integer(out, v.as_i16()),
            receive: |_, b| Ok(Datum::Int2(i16::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| write_bytes(out, &v.as_i16().to_be_bytes()),
        },
    ),
    (
        oids::INT4,
        TypeIo {
            input: |_, s| int4_in(s).map(Datum::Int4),
            output: |_, v, out| write_integer(out, v.as_i32()),
            receive: |_, b| Ok(Datum::Int4(i32::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| write_bytes(out, &v.as_i32().to_be_bytes()),
        },
    ),
    (
        oids::INT8,
        TypeIo {
            input: |_, s| int8_in(s).map(Datum::Int8),
            output: |_, v, out| write_integer(out, v.as_i64()),
            receive: |_, b| Ok(Datum::Int8(i64::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| write_bytes(out, &v.as_i64().to_be_bytes()),
        },
    ),
];

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends a decimal integer.
pub fn write_integer(out: &mut Vec<u8>, value: impl itoa::Integer) -> Result<()> {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    Ok(())
}

pub fn out_of_range(type_name: &str) -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "{type_name} out of range")
}

pub fn division_by_zero() -> DbError {
    err!(DIVISION_BY_ZERO, "division by zero")
}

/// A datum of any integer type as a bigint.
#[inline]
pub fn wide(v: &Datum) -> i64 {
    match v {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        other => panic!("expected integer datum, found {other:?}"),
    }
}

#[inline]
fn compare(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    wide(a).cmp(&wide(b))
}

macro_rules! integer_comparisons {
    ($($p:literal),+) => {
        comparison_table! {
            /// Comparisons within and across the integer types.
            COMPARISONS:
            $(compare => concat!("int", $p, "eq"), concat!("int", $p, "ne"), concat!("int", $p, "lt"), concat!("int", $p, "le"),
                concat!("int", $p, "gt"), concat!("int", $p, "ge"), concat!("btint", $p, "cmp");)+
        }
    };
}
integer_comparisons!("2", "4", "8", "24", "28", "42", "48", "82", "84");

/// The result of a calculation in a wider type, in the type of the operator.
macro_rules! narrow {
    ($variant:ident, $ty:ty, $name:literal, $value:expr) => {
        <$ty>::try_from($value).map(Datum::$variant).map_err(|_| out_of_range($name))
    };
}

/// Arithmetic within `$ty` or of mixed operands whose result is `$ty`.
macro_rules! arithmetic {
    ($table:ident, $variant:ident, $ty:ty, $name:literal, $($p:literal),+) => {
        const $table: &[(&str, ScalarFn)] = &[$(
            (concat!("int", $p, "pl"), |_, a| narrow!($variant, $ty, $name, i128::from(wide(&a[0])) + i128::from(wide(&a[1])))),
            (concat!("int", $p, "mi"), |_, a| narrow!($variant, $ty, $name, i128::from(wide(&a[0])) - i128::from(wide(&a[1])))),
            (concat!("int", $p, "mul"), |_, a| narrow!($variant, $ty, $name, i128::from(wide(&a[0])) * i128::from(wide(&a[1])))),
            (concat!("int", $p, "div"), |_, a| {
                let divisor = i128::from(wide(&a[1]));
                if divisor == 0 {
                    return Err(division_by_zero());
                }
                narrow!($variant, $ty, $name, i128::from(wide(&a[0])) / divisor)
            }),
        )+];
    };
}
arithmetic!(INT2_ARITHMETIC, Int2, i16, "smallint", "2");
arithmetic!(INT8_MIXED_ARITHMETIC, Int8, i64, "bigint", "28", "48", "82", "84");
arithmetic!(INT4_MIXED_ARITHMETIC, Int4, i32, "integer", "24", "42");

/// Operators of the two hot types, without widening.
macro_rules! native_arithmetic {
    ($table:ident, $variant:ident, $as:ident, $name:literal, $p:literal) => {
        const $table: &[(&str, ScalarFn)] = &[
            (concat!("int", $p, "pl"), |_, a| checked(a[0].$as().checked_add(a[1].$as()).map(Datum::$variant), $name)),
            (concat!("int", $p, "mi"), |_, a| checked(a[0].$as().checked_sub(a[1].$as()).map(Datum::$variant), $name)),
            (concat!("int", $p, "mul"), |_, a| checked(a[0].$as().checked_mul(a[1].$as()).map(Datum::$variant), $name)),
            (concat!("int", $p, "div"), |_, a| {
                if a[1].$as() == 0 {
                    return Err(division_by_zero());
                }
                checked(a[0].$as().checked_div(a[1].$as()).map(Datum::$variant), $name)
            }),
        ];
    };
}
native_arithmetic!(INT4_ARITHMETIC, Int4, as_i32, "integer", "4");
native_arithmetic!(INT8_ARITHMETIC, Int8, as_i64, "bigint", "8");

fn checked(value: Option<Datum>, type_name: &str) -> Result<Datum> {
    value.ok_or_else(|| out_of_range(type_name))
}

/// Functions that every integer type has under its own prefix.
macro_rules! per_type {
    ($table:ident, $variant:ident, $as:ident, $ty:ty, $name:literal, $p:literal) => {
        const $table: &[(&str, ScalarFn)] = &[
            (concat!("int", $p, "mod"), |_, a| {
                if a[1].$as() == 0 {
                    return Err(division_by_zero());
                }
                Ok(Datum::$variant(a[0].$as().wrapping_rem(a[1].$as())))
            }),
            (concat!("int", $p, "abs"), |_, a| checked(a[0].$as().checked_abs().map(Datum::$variant), $name)),
            (concat!("int", $p, "um"), |_, a| checked(a[0].$as().checked_neg().map(Datum::$variant), $name)),
            (concat!("int", $p, "up"), |_, a| Ok(a[0].clone())),
            (concat!("int", $p, "and"), |_, a| Ok(Datum::$variant(a[0].$as() & a[1].$as()))),
            (concat!("int", $p, "or"), |_, a| Ok(Datum::$variant(a[0].$as() | a[1].$as()))),
            (concat!("int", $p, "xor"), |_, a| Ok(Datum::$variant(a[0].$as() ^ a[1].$as()))),
            (concat!("int", $p, "not"), |_, a| Ok(Datum::$variant(!a[0].$as()))),
            (concat!("int", $p, "larger"), |_, a| Ok(Datum::$variant(a[0].$as().max(a[1].$as())))),
            (concat!("int", $p, "smaller"), |_, a| Ok(Datum::$variant(a[0].$as().min(a[1].$as())))),
        ];
    };
}
per_type!(INT2_FUNCTIONS, Int2, as_i16, i16, "smallint", "2");
per_type!(INT4_FUNCTIONS, Int4, as_i32, i32, "integer", "4");
per_type!(INT8_FUNCTIONS, Int8, as_i64, i64, "bigint", "8");

pub const TABLES: &[&[(&str, ScalarFn)]] = &[
    COMPARISONS,
    INT2_ARITHMETIC,
    INT4_ARITHMETIC,
    INT8_ARITHMETIC,
    INT4_MIXED_ARITHMETIC,
    INT8_MIXED_ARITHMETIC,
    INT2_FUNCTIONS,
    INT4_FUNCTIONS,
    INT8_FUNCTIONS,
    FUNCTIONS,
];

const FUNCTIONS: &[(&str, ScalarFn)] = &[
    // The processor masks the shift count, and PostgreSQL returns that result.
    ("int2shl", |_, a| Ok(Datum::Int2(i32::from(a[0].as_i16()).wrapping_shl(a[1].as_i32() as u32) as i16))),
    ("int2shr", |_, a| Ok(Datum::Int2(i32::from(a[0].as_i16()).wrapping_shr(a[1].as_i32() as u32) as i16))),
    ("int4shl", |_, a| Ok(Datum::Int4(a[0].as_i32().wrapping_shl(a[1].as_i32() as u32)))),
    ("int4shr", |_, a| Ok(Datum::Int4(a[0].as_i32().wrapping_shr(a[1].as_i32() as u32)))),
    ("int8shl", |_, a| Ok(Datum::Int8(a[0].as_i64().wrapping_shl(a[1].as_i32() as u32)))),
    ("int8shr", |_, a| Ok(Datum::Int8(a[0].as_i64().wrapping_shr(a[1].as_i32() as u32)))),
    ("int4inc", |_, a| checked(a[0].as_i32().checked_add(1).map(Datum::Int4), "integer")),
    ("int8inc", int8inc),
    ("int8inc_any", int8inc),
    ("int8inc_float8_float8", int8inc),
    ("int8dec", int8dec),
    ("int8dec_any", int8dec),
    ("i2toi4", |_, a| Ok(Datum::Int4(i32::from(a[0].as_i16())))),
    ("i4toi2", |_, a| narrow!(Int2, i16, "smallint", a[0].as_i32())),
    ("int48", |_, a| Ok(Datum::Int8(i64::from(a[0].as_i32())))),
    ("int28", |_, a| Ok(Datum::Int8(i64::from(a[0].as_i16())))),
    ("int84", |_, a| narrow!(Int4, i32, "integer", a[0].as_i64())),
    ("int82", |_, a| narrow!(Int2, i16, "smallint", a[0].as_i64())),
    ("i8tooid", |_, a| {
        u32::try_from(a[0].as_i64()).map(Datum::Oid).map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range"))
    }),
    ("oidtoi8", |_, a| Ok(Datum::Int8(i64::from(a[0].as_oid())))),
    ("int4gcd", |_, a| checked(i32::try_from(gcd(a[0].as_i32().into(), a[1].as_i32().into())).ok().map(Datum::Int4), "integer")),
    ("int8gcd", |_, a| checked(i64::try_from(gcd(a[0].as_i64().into(), a[1].as_i64().into())).ok().map(Datum::Int8), "bigint")),
    ("int4lcm", |_, a| checked(i32::try_from(lcm(a[0].as_i32().into(), a[1].as_i32().into())).ok().map(Datum::Int4), "integer")),
    ("int8lcm", |_, a| checked(i64::try_from(lcm(a[0].as_i64().into(), a[1].as_i64().into())).ok().map(Datum::Int8), "bigint")),
    ("to_hex32", |_, a| Ok(Datum::text(format!("{:x}", a[0].as_i32())))),
    ("to_hex64", |_, a| Ok(Datum::text(format!("{:x}", a[0].as_i64())))),
    ("to_oct32", |_, a| Ok(Datum::text(format!("{:o}", a[0].as_i32())))),
    ("to_oct64", |_, a| Ok(Datum::text(format!("{:o}", a[0].as_i64())))),
    ("to_bin32", |_, a| Ok(Datum::text(format!("{:b}", a[0].as_i32())))),
    ("to_bin64", |_, a| Ok(Datum::text(format!("{:b}", a[0].as_i64())))),
    ("int4random", |c, a| Ok(Datum::Int4(random_between(c, a[0].as_i32().into(), a[1].as_i32().into())? as i32))),
    ("int8random", |c, a| Ok(Datum::Int8(random_between(c, a[0].as_i64(), a[1].as_i64())?))),
    ("in_range_int2_int2", in_range),
    ("in_range_int2_int4", in_range),
    ("in_range_int2_int8", in_range),
    ("in_range_int4_int2", in_range),
    ("in_range_int4_int4", in_range),
    ("in_range_int4_int8", in_range),
    ("in_range_int8_int8", in_range),
];

fn int8inc(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    checked(a[0].as_i64().checked_add(1).map(Datum::Int8), "bigint")
}

fn int8dec(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    checked(a[0].as_i64().checked_sub(1).map(Datum::Int8), "bigint")
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 { 0 } else { (a / gcd(a, b)).abs() * b.abs() }
}

/// A uniform integer of the closed interval.
pub fn random_between(call: &CallInfo<'_>, min: i64, max: i64) -> Result<i64> {
    if min > max {
        return Err(err!(INVALID_PARAMETER_VALUE, "lower bound must be less than or equal to upper bound"));
    }
    let span = max.wrapping_sub(min) as u64;
    if span == u64::MAX {
        return Ok(call.session.random_u64() as i64);
    }
    // Multiply-shift; draws that would favour some values are thrown away.
    let n = span + 1;
    loop {
        let product = u128::from(call.session.random_u64()) * u128::from(n);
        if (product as u64) >= n.wrapping_neg() % n {
            return Ok(min.wrapping_add((product >> 64) as i64));
        }
    }
}

/// Is `value` within `offset` of `base`: RANGE frames of windows. Arguments: value, base, offset, subtract, less.
fn in_range(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (value, base, offset) = (i128::from(wide(&a[0])), i128::from(wide(&a[1])), i128::from(wide(&a[2])));
    if offset < 0 {
        return Err(err!(INVALID_PRECEDING_OR_FOLLOWING_SIZE, "invalid preceding or following size in window function"));
    }
    let bound = if a[3].as_bool() { base - offset } else { base + offset };
    Ok(Datum::Bool(if a[4].as_bool() { value <= bound } else { value >= bound }))
}
