//! Mathematical functions of double precision.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Result, err};

use crate::float::{f64_checked, overflow, underflow, wide};

// The C library's functions, which std lacks or computes otherwise; PostgreSQL's results are the C library's.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

fn unary(a: &[Datum], f: impl FnOnce(f64) -> f64) -> Result<Datum> {
    Ok(Datum::Float8(f(a[0].as_f64())))
}

fn checked(a: &[Datum], f: impl FnOnce(f64) -> Result<f64>) -> Result<Datum> {
    f(a[0].as_f64()).map(Datum::Float8)
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("dround", |_, a| unary(a, f64::round_ties_even)),
    ("dceil", |_, a| unary(a, f64::ceil)),
    ("dfloor", |_, a| unary(a, f64::floor)),
    ("dtrunc", |_, a| unary(a, |x| if x >= 0.0 { x.floor() } else { -(-x).floor() })),
    ("dsign", |_, a| {
        unary(a, |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                0.0
            }
        })
    }),
    ("dsqrt", |_, a| {
        checked(a, |x| {
            if x < 0.0 {
                return Err(err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "cannot take square root of a negative number"));
            }
            Ok(x.sqrt())
        })
    }),
    ("dcbrt", |_, a| unary(a, f64::cbrt)),
    ("dpow", |_, a| power(wide(&a[0]), wide(&a[1])).map(Datum::Float8)),
    ("dexp", |_, a| checked(a, exp)),
    ("dlog1", |_, a| checked(a, |x| logarithm(x, f64::ln))),
    ("dlog10", |_, a| checked(a, |x| logarithm(x, f64::log10))),
    ("dsin", |_, a| checked(a, |x| finite(x).map(f64::sin))),
    ("dcos", |_, a| checked(a, |x| finite(x).map(f64::cos))),
    ("dtan", |_, a| checked(a, |x| finite(x).map(f64::tan))),
    ("dcot", |_, a| checked(a, |x| finite(x).map(|x| 1.0 / x.tan()))),
    ("dasin", |_, a| checked(a, |x| within_one(x).map(f64::asin))),
    ("dacos", |_, a| checked(a, |x| within_one(x).map(f64::acos))),
    ("datan", |_, a| unary(a, f64::atan)),
    ("datan2", |_, a| Ok(Datum::Float8(a[0].as_f64().atan2(a[1].as_f64())))),
    ("dsinh", |_, a| unary(a, f64::sinh)),
    ("dcosh", |_, a| unary(a, f64::cosh)),
    ("dtanh", |_, a| unary(a, f64::tanh)),
    ("dasinh", |_, a| unary(a, |x| asinh(x))),
    ("dacosh", |_, a| checked(a, |x| if x < 1.0 { Err(out_of_domain()) } else { Ok(acosh(x)) })),
    ("datanh", |_, a| checked(a, |x| within_one(x).map(|x| atanh(x)))),
    ("dsind", |_, a| checked(a, |x| finite(x).map(sind))),
    ("dcosd", |_, a| checked(a, |x| finite(x).map(cosd))),
    ("dtand", |_, a| checked(a, |x| finite(x).map(|x| ratio_in_degrees(x, |x| sind_q1(x) / cosd_q1(x))))),
    ("dcotd", |_, a| checked(a, |x| finite(x).map(|x| ratio_in_degrees(x, |x| cosd_q1(x) / sind_q1(x))))),
    ("dasind", |_, a| checked(a, |x| within_one(x).map(|x| if x >= 0.0 { asind_q1(x) } else { -asind_q1(-x) }))),
    ("dacosd", |_, a| checked(a, |x| within_one(x).map(|x| if x >= 0.0 { acosd_q1(x) } else { 90.0 + asind_q1(-x) }))),
    ("datand", |_, a| unary(a, |x| (x.atan() / 1f64.atan()) * 45.0)),
    ("datan2d", |_, a| Ok(Datum::Float8((a[0].as_f64().atan2(a[1].as_f64()) / 1f64.atan()) * 45.0))),
    ("degrees", |_, a| checked(a, |x| f64_checked::div(x, RADIANS_PER_DEGREE))),
    ("radians", |_, a| checked(a, |x| f64_checked::mul(x, RADIANS_PER_DEGREE))),
    ("dpi", |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    ("derf", |_, a| unary(a, |x| erf(x))),
    ("derfc", |_, a| unary(a, |x| erfc(x))),
    ("dgamma", |_, a| checked(a, gamma)),
    ("dlgamma", |_, a| checked(a, |x| not_overflowed(lgamma(x), x))),
    ("drandom", |c, _| Ok(Datum::Float8(random(c)))),
    ("drandom_normal", random_normal),
    ("setseed", |c, a| c.session.system_function("setseed", c, a)),
    ("width_bucket_float8", width_bucket),
];

fn out_of_domain() -> melba_types::DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

fn finite(x: f64) -> Result<f64> {
    if x.is_infinite() { Err(out_of_domain()) } else { Ok(x) }
}

fn within_one(x: f64) -> Result<f64> {
    if !(-1.0..=1.0).contains(&x) && !x.is_nan() { Err(out_of_domain()) } else { Ok(x) }
}

fn not_overflowed(r: f64, x: f64) -> Result<f64> {
    if r.is_infinite() && !x.is_infinite() { Err(overflow()) } else { Ok(r) }
}

fn logarithm(x: f64, f: fn(f64) -> f64) -> Result<f64> {
    if x == 0.0 {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of zero"));
    }
    if x < 0.0 {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of a negative number"));
    }
    Ok(f(x))
}

fn exp(x: f64) -> Result<f64> {
    if x.is_nan() || x.is_infinite() {
        return Ok(x.exp());
    }
    let r = x.exp();
    if r.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 { Err(underflow()) } else { Ok(r) }
}

fn gamma(x: f64) -> Result<f64> {
    if x.is_nan() || x == f64::INFINITY {
        return Ok(x);
    }
    if x == f64::NEG_INFINITY {
        return Err(overflow());
    }
    let r = tgamma(x);
    // The C library returns NaN at the poles below zero.
    if r.is_infinite() || r.is_nan() {
        return Err(overflow());
    }
    if r == 0.0 { Err(underflow()) } else { Ok(r) }
}

/// `base ^ exponent`, the special cases spelled out by POSIX.
pub fn power(base: f64, exponent: f64) -> Result<f64> {
    if base.is_nan() || exponent.is_nan() {
        return Ok(if exponent == 0.0 || base == 1.0 { 1.0 } else { f64::NAN });
    }
    if base == 0.0 && exponent < 0.0 {
        return Err(err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.floor() != exponent {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "{message}"));
    }
    let r = base.powf(exponent);
    if base.is_infinite() || exponent.is_infinite() {
        return Ok(r);
    }
    if r.is_infinite() {
        return Err(overflow());
    }
    if r == 0.0 && base != 0.0 { Err(underflow()) } else { Ok(r) }
}

// Degrees: exact at multiples of 30, 45 and 60, by dividing by the C library's value there.

fn sind_0_to_30(x: f64) -> f64 {
    ((x * RADIANS_PER_DEGREE).sin() / (30.0 * RADIANS_PER_DEGREE).sin()) / 2.0
}

fn cosd_0_to_60(x: f64) -> f64 {
    let one_minus_cos_60 = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - ((1.0 - (x * RADIANS_PER_DEGREE).cos()) / one_minus_cos_60) / 2.0
}

fn sind_q1(x: f64) -> f64 {
    if x <= 30.0 { sind_0_to_30(x) } else { cosd_0_to_60(90.0 - x) }
}

fn cosd_q1(x: f64) -> f64 {
    if x <= 60.0 { cosd_0_to_60(x) } else { sind_0_to_30(90.0 - x) }
}

fn asind_q1(x: f64) -> f64 {
    if x <= 0.5 { (x.asin() / 0.5f64.asin()) * 30.0 } else { 90.0 - (x.acos() / 0.5f64.acos()) * 60.0 }
}

fn acosd_q1(x: f64) -> f64 {
    if x <= 0.5 { 90.0 - (x.asin() / 0.5f64.asin()) * 30.0 } else { (x.acos() / 0.5f64.acos()) * 60.0 }
}

fn sind(x: f64) -> f64 {
    let mut x = x % 360.0;
    let mut sign = 1.0;
    if x < 0.0 {
        (x, sign) = (-x, -sign);
    }
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    if x > 90.0 {
        x = 180.0 - x;
    }
    sign * sind_q1(x)
}

fn cosd(x: f64) -> f64 {
    let mut x = (x % 360.0).abs();
    let mut sign = 1.0;
    if x > 180.0 {
        x = 360.0 - x;
    }
    if x > 90.0 {
        (x, sign) = (180.0 - x, -sign);
    }
    sign * cosd_q1(x)
}

/// Tangent or cotangent in degrees: `f` of the first quadrant, scaled to be 1 at 45 degrees.
fn ratio_in_degrees(x: f64, f: fn(f64) -> f64) -> f64 {
    let mut x = x % 360.0;
    let mut sign = 1.0;
    if x < 0.0 {
        (x, sign) = (-x, -sign);
    }
    if x > 180.0 {
        (x, sign) = (360.0 - x, -sign);
    }
    if x > 90.0 {
        (x, sign) = (180.0 - x, -sign);
    }
    let r = sign * (f(x) / f(45.0));
    // No negative zero.
    if r == 0.0 { 0.0 } else { r }
}

/// Uniform in [0, 1).
pub fn random(call: &CallInfo<'_>) -> f64 {
    (call.session.random_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Normal with a mean and a standard deviation, by Box and Muller's method.
fn random_normal(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (u1, u2) = (1.0 - random(call), random(call));
    let z = (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin();
    Ok(Datum::Float8(a[1].as_f64() * z + a[0].as_f64()))
}

/// Checks the arguments of width_bucket; the bucket of an operand outside the bounds, else none.
pub(crate) fn outer_bucket<T: PartialOrd>(
    [operand, low, high]: [T; 3],
    count: i32,
    is_nan: fn(&T) -> bool,
    is_infinite: fn(&T) -> bool,
) -> Result<Option<i32>> {
    let error = |m: &str| Err(err!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, "{m}"));
    if count <= 0 {
        return error("count must be greater than zero");
    }
    if [&operand, &low, &high].into_iter().any(is_nan) {
        return error("operand, lower bound, and upper bound cannot be NaN");
    }
    if is_infinite(&low) || is_infinite(&high) {
        return error("lower and upper bounds must be finite");
    }
    if low == high {
        return error("lower bound cannot equal upper bound");
    }
    let ascending = low < high;
    if if ascending { operand < low } else { operand > low } {
        return Ok(Some(0));
    }
    if if ascending { operand >= high } else { operand <= high } {
        return count.checked_add(1).map(Some).ok_or_else(|| crate::int::out_of_range("integer"));
    }
    Ok(None)
}

/// Arguments: operand, bounds, number of buckets.
fn width_bucket(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (operand, low, high, count) = (a[0].as_f64(), a[1].as_f64(), a[2].as_f64(), a[3].as_i32());
    if let Some(bucket) = outer_bucket([operand, low, high], count, |v| v.is_nan(), |v| v.is_infinite())? {
        return Ok(Datum::Int4(bucket));
    }
    // Halved when the span would overflow.
    let span = high - low;
    let fraction =
        if span.is_infinite() { (operand / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { (operand - low) / span };
    let bucket = (f64::from(count) * fraction) as i32;
    Ok(Datum::Int4(bucket.min(count - 1) + 1))
}
