//! numeric: input and output, arithmetic, casts.

use melba_fmgr::{CallInfo, ScalarFn, TypeIo, comparison_table};
use melba_types::numeric::convert::typmod;
use melba_types::numeric::functions;
use melba_types::{Datum, Numeric, Oid, Result, err, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::NUMERIC,
    TypeIo {
        input: |c, s| modified(Numeric::parse(s)?, c.typmod),
        output: |_, v, out| {
            v.as_numeric().write(out);
            Ok(())
        },
        receive: |c, b| modified(Numeric::read_wire(b)?, c.typmod),
        send: |_, v, out| {
            v.as_numeric().write_wire(out);
            Ok(())
        },
    },
)];

fn modified(v: Numeric, typmod: i32) -> Result<Datum> {
    Ok(Datum::Numeric(if typmod < 0 { v } else { v.apply_typmod(typmod)? }))
}

fn compare(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    a.as_numeric().cmp(b.as_numeric())
}

comparison_table! {
    /// Comparisons by value: scales do not matter, NaN is greatest.
    COMPARISONS:
    compare => "numeric_eq", "numeric_ne", "numeric_lt", "numeric_le", "numeric_gt", "numeric_ge", "numeric_cmp";
}

pub const TABLES: &[&[(&str, ScalarFn)]] = &[COMPARISONS, FUNCTIONS];

fn unary(a: &[Datum], f: impl FnOnce(&Numeric) -> Result<Numeric>) -> Result<Datum> {
    f(a[0].as_numeric()).map(Datum::Numeric)
}

fn binary(a: &[Datum], f: impl FnOnce(&Numeric, &Numeric) -> Result<Numeric>) -> Result<Datum> {
    f(a[0].as_numeric(), a[1].as_numeric()).map(Datum::Numeric)
}

const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("numeric_add", |_, a| binary(a, Numeric::add)),
    ("numeric_sub", |_, a| binary(a, Numeric::sub)),
    ("numeric_mul", |_, a| binary(a, Numeric::mul)),
    ("numeric_div", |_, a| binary(a, Numeric::div)),
    ("numeric_div_trunc", |_, a| binary(a, Numeric::div_trunc)),
    ("numeric_mod", |_, a| binary(a, Numeric::rem)),
    ("numeric_power", |_, a| binary(a, Numeric::power)),
    ("numeric_log", |_, a| binary(a, |base, v| v.log(base))),
    ("log_1741", |_, a| unary(a, |v| v.log(&Numeric::from(10i32)))),
    ("log10_1481", |_, a| unary(a, |v| v.log(&Numeric::from(10i32)))),
    ("numeric_ln", |_, a| unary(a, Numeric::ln)),
    ("numeric_exp", |_, a| unary(a, Numeric::exp)),
    ("numeric_sqrt", |_, a| unary(a, Numeric::sqrt)),
    ("numeric_gcd", |_, a| binary(a, Numeric::gcd)),
    ("numeric_lcm", |_, a| binary(a, Numeric::lcm)),
    ("numeric_fac", |c, a| functions::factorial(a[0].as_i64(), || c.session.check_interrupt()).map(Datum::Numeric)),
    ("numeric_abs", |_, a| unary(a, |v| Ok(v.abs()))),
    ("numeric_uminus", |_, a| unary(a, |v| Ok(v.neg()))),
    ("numeric_uplus", |_, a| Ok(a[0].clone())),
    ("numeric_sign", |_, a| unary(a, |v| Ok(v.sign()))),
    ("numeric_inc", |_, a| unary(a, |v| v.add(&Numeric::ONE))),
    ("numeric_larger", |_, a| Ok(a[usize::from(compare(&a[0], &a[1]).is_le())].clone())),
    ("numeric_smaller", |_, a| Ok(a[usize::from(compare(&a[0], &a[1]).is_ge())].clone())),
    ("numeric_round", |_, a| unary(a, |v| v.round(a[1].as_i32()))),
    ("round_1708", |_, a| unary(a, |v| v.round(0))),
    ("numeric_trunc", |_, a| unary(a, |v| v.trunc(a[1].as_i32()))),
    ("trunc_1710", |_, a| unary(a, |v| v.trunc(0))),
    ("numeric_ceil", |_, a| unary(a, Numeric::ceil)),
    ("numeric_floor", |_, a| unary(a, Numeric::floor)),
    ("numeric_scale", |_, a| Ok(scale_of(a, |v| Some(v.scale())))),
    ("numeric_min_scale", |_, a| Ok(scale_of(a, Numeric::min_scale))),
    ("numeric_trim_scale", |_, a| unary(a, Numeric::trim_scale)),
    ("numeric", |_, a| modified(a[0].as_numeric().clone(), a[1].as_i32())),
    ("int2_numeric", |_, a| Ok(Datum::Numeric(Numeric::from(i32::from(a[0].as_i16()))))),
    ("int4_numeric", |_, a| Ok(Datum::Numeric(Numeric::from(a[0].as_i32())))),
    ("int8_numeric", |_, a| Ok(Datum::Numeric(Numeric::from(a[0].as_i64())))),
    ("float4_numeric", |_, a| Ok(Datum::Numeric(Numeric::from_f32(a[0].as_f32())))),
    ("float8_numeric", |_, a| Ok(Datum::Numeric(Numeric::from_f64(a[0].as_f64())))),
    ("numeric_int2", |_, a| a[0].as_numeric().to_i16().map(Datum::Int2)),
    ("numeric_int4", |_, a| a[0].as_numeric().to_i32().map(Datum::Int4)),
    ("numeric_int8", |_, a| a[0].as_numeric().to_i64().map(Datum::Int8)),
    ("numeric_float4", |_, a| to_f32(a[0].as_numeric()).map(Datum::Float4)),
    ("numeric_float8", |_, a| to_f64(a[0].as_numeric()).map(Datum::Float8)),
    ("numeric_pg_lsn", to_lsn),
    ("numerictypmodin", typmod_in),
    ("numerictypmodout", typmod_out),
    ("width_bucket_numeric", width_bucket),
    ("numeric_random", random),
    ("in_range_numeric_numeric", in_range),
    ("int8_sum", |_, a| sum_step(a, |v| Numeric::from(v.as_i64()))),
    ("pg_lsn_mi", |_, a| {
        let (x, y) = (a[0].as_i64() as u64, a[1].as_i64() as u64);
        Ok(Datum::Numeric(Numeric::from(i128::from(x) - i128::from(y))))
    }),
    ("pg_lsn_pli", |_, a| move_lsn(&a[0], a[1].as_numeric(), false)),
    ("numeric_pl_pg_lsn_5023", |_, a| move_lsn(&a[1], a[0].as_numeric(), false)),
    ("pg_lsn_mii", |_, a| move_lsn(&a[0], a[1].as_numeric(), true)),
];

fn scale_of(a: &[Datum], f: impl FnOnce(&Numeric) -> Option<u32>) -> Datum {
    let v = a[0].as_numeric();
    if v.is_finite() { f(v).map_or(Datum::Null, |s| Datum::Int4(s as i32)) } else { Datum::Null }
}

/// 22003 when the value is beyond the doubles.
pub fn to_f64(v: &Numeric) -> Result<f64> {
    let r = v.to_f64();
    if (r.is_infinite() && v.is_finite()) || (r == 0.0 && v.is_finite() && v.signum() != 0) {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{v}\" is out of range for type double precision"));
    }
    Ok(r)
}

fn to_f32(v: &Numeric) -> Result<f32> {
    let r = v.to_f32();
    if (r.is_infinite() && v.is_finite()) || (r == 0.0 && v.is_finite() && v.signum() != 0) {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{v}\" is out of range for type real"));
    }
    Ok(r)
}

fn sum_step(a: &[Datum], value: impl FnOnce(&Datum) -> Numeric) -> Result<Datum> {
    match (&a[0], &a[1]) {
        (state, Datum::Null) => Ok(state.clone()),
        (Datum::Null, v) => Ok(Datum::Numeric(value(v))),
        (state, v) => state.as_numeric().add(&value(v)).map(Datum::Numeric),
    }
}

fn special_name(v: &Numeric) -> Option<&'static str> {
    match (v.is_nan(), v.is_infinite()) {
        (true, _) => Some("NaN"),
        (_, true) => Some("infinity"),
        _ => None,
    }
}

fn to_lsn(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_numeric();
    if let Some(special) = special_name(v) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {special} to pg_lsn"));
    }
    let lsn = v.to_i128().and_then(|v| u64::try_from(v).ok());
    lsn.map(|v| Datum::Int8(v as i64)).ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "pg_lsn out of range"))
}

fn move_lsn(lsn: &Datum, bytes: &Numeric, back: bool) -> Result<Datum> {
    if bytes.is_nan() {
        let what = if back { "subtract NaN from" } else { "add NaN to" };
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot {what} pg_lsn"));
    }
    let bytes = if back { bytes.neg() } else { bytes.clone() };
    let moved = Numeric::from(lsn.as_i64() as u64).add(&bytes)?;
    if moved.is_infinite() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert infinity to pg_lsn"));
    }
    let moved = moved.to_i128().and_then(|v| u64::try_from(v).ok());
    moved.map(|v| Datum::Int8(v as i64)).ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "pg_lsn out of range"))
}

fn typmod_in(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let modifiers =
        a[0].as_array().elements.iter().map(|m| melba_fmgr::integer::int4_in(m.as_str())).collect::<Result<Vec<_>>>()?;
    let (precision, scale) = match modifiers[..] {
        [precision] => (precision, 0),
        [precision, scale] => (precision, scale),
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "invalid NUMERIC type modifier")),
    };
    if !(1..=1000).contains(&precision) {
        return Err(err!(INVALID_PARAMETER_VALUE, "NUMERIC precision {precision} must be between 1 and 1000"));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(err!(INVALID_PARAMETER_VALUE, "NUMERIC scale {scale} must be between -1000 and 1000"));
    }
    Ok(Datum::Int4(typmod(precision, scale)))
}

fn typmod_out(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    // Far below every modifier the difference would not be a number.
    let Some(packed) = a[0].as_i32().checked_sub(4).filter(|packed| *packed >= 0) else {
        return Ok(Datum::text(""));
    };
    Ok(Datum::text(format!("({},{})", packed >> 16 & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024)))
}

/// Arguments: operand, bounds, number of buckets.
fn width_bucket(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (operand, low, high, count) = (a[0].as_numeric(), a[1].as_numeric(), a[2].as_numeric(), a[3].as_i32());
    if let Some(bucket) = crate::math::outer_bucket([operand, low, high], count, |v| v.is_nan(), |v| v.is_infinite())? {
        return Ok(Datum::Int4(bucket));
    }
    let bucket = functions::bucket(operand, low, high, count).and_then(|b| i32::try_from(b).ok());
    bucket.map(Datum::Int4).ok_or_else(|| crate::int::out_of_range("integer"))
}

/// A uniform numeric of the closed interval, at the larger scale of the bounds.
fn random(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (min, max) = (a[0].as_numeric(), a[1].as_numeric());
    for (v, name) in [(min, "lower"), (max, "upper")] {
        if v.is_nan() {
            return Err(err!(INVALID_PARAMETER_VALUE, "{name} bound cannot be NaN"));
        }
        if v.is_infinite() {
            return Err(err!(INVALID_PARAMETER_VALUE, "{name} bound cannot be infinity"));
        }
    }
    if min > max {
        return Err(err!(INVALID_PARAMETER_VALUE, "lower bound must be less than or equal to upper bound"));
    }
    let scale = min.scale().max(max.scale());
    // Units of the last place between the bounds.
    let unit = Numeric::ONE.div_trunc(&Numeric::ONE)?.round(scale as i32)?;
    let ten_to_scale = Numeric::from(10i32).power(&Numeric::from(scale as i32))?.round(0)?;
    let span = max.sub(min)?.mul(&ten_to_scale)?.round(0)?.add(&Numeric::ONE)?;
    let mut drawn = Numeric::ZERO;
    let word = Numeric::from(u64::MAX).add(&Numeric::ONE)?;
    let mut reach = Numeric::ONE;
    // 64 bits more than needed make the bias of the remainder negligible.
    while reach < span.mul(&word)? {
        drawn = drawn.mul(&word)?.add(&Numeric::from(call.session.random_u64()))?;
        reach = reach.mul(&word)?;
    }
    let steps = drawn.rem(&span)?;
    let offset = steps.mul(&unit)?.div(&ten_to_scale)?.round(scale as i32)?;
    min.add(&offset)?.round(scale as i32).map(Datum::Numeric)
}

/// Is `value` within `offset` of `base`: RANGE frames of windows. Arguments: value, base, offset, subtract, less.
fn in_range(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (value, base, offset) = (a[0].as_numeric(), a[1].as_numeric(), a[2].as_numeric());
    let (subtract, less) = (a[3].as_bool(), a[4].as_bool());
    if offset.is_nan() || offset.signum() < 0 {
        return Err(err!(INVALID_PRECEDING_OR_FOLLOWING_SIZE, "invalid preceding or following size in window function"));
    }
    if value.is_nan() || base.is_nan() {
        return Ok(Datum::Bool(if value.is_nan() { base.is_nan() || !less } else { less }));
    }
    // An infinite offset from the infinity of the other sign has no sum: everything is in range.
    if offset.is_infinite() && base.is_infinite() && (base.signum() > 0) == subtract {
        return Ok(Datum::Bool(true));
    }
    let bound = if subtract { base.sub(offset)? } else { base.add(offset)? };
    Ok(Datum::Bool(if less { *value <= bound } else { *value >= bound }))
}
