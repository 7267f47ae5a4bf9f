//! exp, ln, log and power. Results are rounded to a scale that PostgreSQL's rules choose; the calculation carries guard
//! digits.

use num_bigint::BigInt;
use num_integer::Integer;

use super::arithmetic::{RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN};
use super::decimal::{Decimal, Rounding, divide, pow10, square_root};
use super::{Numeric, Repr, division_by_zero, overflow};
use crate::{DbError, Result, err, limits};

const LOG10_E: f64 = std::f64::consts::LOG10_E;
/// Exponents from here on over- or underflow: twice the largest precision, times ln 10 and some.
const EXP_ARGUMENT_MAX: f64 = 6000.0;
const GUARD_DIGITS: u32 = 12;
/// Largest weight (power of 10000) of the format.
const WEIGHT_MAX: i32 = 32_767;

fn logarithm_of_negative() -> DbError {
    err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of a negative number")
}

fn logarithm_of_zero() -> DbError {
    err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of zero")
}

fn complex_result() -> DbError {
    let message = "a negative number raised to a non-integer power yields a complex result";
    err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "{message}")
}

fn clamp_scale(scale: i64) -> i64 {
    scale.clamp(0, RESULT_SCALE_MAX)
}

impl Numeric {
    pub fn exp(&self) -> Result<Numeric> {
        let Some(d) = self.decimal() else {
            return Ok(if self.signum() < 0 { Numeric::ZERO } else { self.clone() });
        };
        let weight = (d.to_f64() * LOG10_E).clamp(-2000.0, 2000.0) as i64;
        let scale = clamp_scale((SIGNIFICANT_DIGITS_MIN - weight).max(i64::from(d.scale)));
        Numeric::from_decimal(exp(&d, scale as u32)?)
    }

    pub fn ln(&self) -> Result<Numeric> {
        let Some(d) = self.decimal() else {
            return if self.signum() < 0 { Err(logarithm_of_negative()) } else { Ok(self.clone()) };
        };
        let scale = clamp_scale((SIGNIFICANT_DIGITS_MIN - ln_weight(&d)).max(i64::from(d.scale)));
        Numeric::from_decimal(ln(&d, scale as u32)?)
    }

    /// The logarithm of `self` to a base.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        let (Some(base), Some(number)) = (base.decimal(), self.decimal()) else {
            return self.log_special(base);
        };
        let (base_weight, number_weight) = (ln_weight(&base), ln_weight(&number));
        let weight = number_weight - base_weight;
        let scale = (SIGNIFICANT_DIGITS_MIN - weight).max(i64::from(base.scale)).max(i64::from(number.scale));
        let scale = clamp_scale(scale);
        let inner_scale = |inner: i64| (scale + weight - inner + 8).max(0) as u32;
        let ln_base = ln(&base, inner_scale(base_weight))?;
        let ln_number = ln(&number, inner_scale(number_weight))?;
        if ln_base.is_zero() {
            return Err(division_by_zero());
        }
        Numeric::from_decimal(ln_number.div(&ln_base, scale as u32, Rounding::Nearest))
    }

    fn log_special(&self, base: &Numeric) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 || base.signum() < 0 {
            return Err(logarithm_of_negative());
        }
        if self.is_zero() || base.is_zero() {
            return Err(logarithm_of_zero());
        }
        Ok(match (base.is_infinite(), self.is_infinite()) {
            (true, true) => Numeric::NAN,
            (true, false) => Numeric::ZERO,
            _ => Numeric::INFINITY,
        })
    }

    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        let (Some(base), Some(e)) = (self.decimal(), exponent.decimal()) else {
            return self.power_special(exponent);
        };
        if base.is_zero() && e.is_negative() {
            return Err(zero_to_negative());
        }
        Numeric::from_decimal(power(&base, &e)?)
    }

    fn power_special(&self, exponent: &Numeric) -> Result<Numeric> {
        if self.is_nan() || exponent.is_nan() {
            let one = (self.is_nan() && exponent.is_zero()) || (exponent.is_nan() && *self == Numeric::ONE);
            return Ok(if one { Numeric::ONE } else { Numeric::NAN });
        }
        if self.is_zero() && exponent.signum() < 0 {
            return Err(zero_to_negative());
        }
        if self.signum() < 0 && !exponent.is_integral() {
            return Err(complex_result());
        }
        if *self == Numeric::ONE || exponent.is_zero() {
            return Ok(Numeric::ONE);
        }
        if self.is_zero() {
            return Ok(Numeric::ZERO);
        }
        if exponent.is_infinite() {
            let magnitude = self.abs();
            if magnitude == Numeric::ONE {
                return Ok(Numeric::ONE);
            }
            let grows = (magnitude > Numeric::ONE) == (exponent.signum() > 0);
            return Ok(if grows { Numeric::INFINITY } else { Numeric::ZERO });
        }
        if exponent.signum() < 0 {
            return Ok(Numeric::ZERO);
        }
        let odd = exponent.decimal().is_some_and(|e| e.trimmed(0).mantissa.is_odd());
        Ok(if self.signum() < 0 && odd { Numeric::NEGATIVE_INFINITY } else { Numeric::INFINITY })
    }

    /// Whether the value has no fraction; infinities have none.
    fn is_integral(&self) -> bool {
        match &self.0 {
            Repr::Small { scale: 0, .. } => true,
            Repr::Small { .. } | Repr::Big(_) => self.min_scale() == Some(0),
            Repr::NaN => false,
            _ => true,
        }
    }
}

fn zero_to_negative() -> DbError {
    err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "zero raised to a negative power is undefined")
}

/// Estimate of the power of ten of the leading digit of `ln(d)`, as PostgreSQL makes it: result scales depend on it.
fn ln_weight(d: &Decimal) -> i64 {
    if d.is_negative() || d.is_zero() {
        return 0;
    }
    let tenths = |n: i32| Decimal::new(BigInt::from(n), 1);
    if d.compare(&tenths(9)).is_ge() && d.compare(&tenths(11)).is_le() {
        let x = d.sub(&Decimal::integer(1));
        let (weight, first) = x.leading();
        return if first == 0 { 0 } else { i64::from(weight) * 4 + f64::from(first).log10() as i64 };
    }
    let (weight, groups) = d.groups();
    let mut digits = f64::from(groups[0]);
    let mut exponent = i64::from(weight) * 4;
    if let Some(second) = groups.get(1) {
        digits = digits * 10_000.0 + f64::from(*second);
        exponent -= 4;
    }
    let ln = digits.ln() + exponent as f64 * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

/// `e^x` rounded to a scale.
fn exp(x: &Decimal, scale: u32) -> Result<Decimal> {
    let value = x.to_f64();
    if value.abs() >= EXP_ARGUMENT_MAX {
        return if value > 0.0 { Err(overflow()) } else { Ok(Decimal::new(BigInt::from(0), scale)) };
    }
    // Halve the argument until the series converges quickly, then square as often. Each squaring doubles the relative
    // error, and the result has its own digits before the point.
    let halvings = ((value.abs() / 0.01).log2().ceil().max(0.0)) as u32;
    let whole_digits = (value * LOG10_E).max(0.0) as u32 + 1;
    let working = scale + whole_digits + halvings.div_ceil(3) + GUARD_DIGITS;
    let one = pow10(working);
    let x = divide(&x.round(i64::from(working), Rounding::Nearest).mantissa, &(BigInt::from(1) << halvings), Rounding::Nearest);
    let mut sum = &one + &x;
    let mut term = x.clone();
    let mut n = 2;
    loop {
        limits::check_interrupt()?;
        term = divide(&(&term * &x), &(&one * n), Rounding::Nearest);
        if term == BigInt::from(0) {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        limits::check_interrupt()?;
        sum = divide(&(&sum * &sum), &one, Rounding::Nearest);
    }
    Ok(Decimal::new(sum, working).round(i64::from(scale), Rounding::Nearest))
}

/// `2 * atanh(numerator / denominator)` in units of `1 / one`, for small quotients.
fn twice_atanh(numerator: &BigInt, denominator: &BigInt, one: &BigInt) -> Result<BigInt> {
    let z = divide(&(numerator * one), denominator, Rounding::Nearest);
    let z_squared = divide(&(&z * &z), one, Rounding::Nearest);
    let (mut sum, mut power, mut n) = (z.clone(), z, 3);
    loop {
        limits::check_interrupt()?;
        power = divide(&(&power * &z_squared), one, Rounding::Nearest);
        let term = divide(&power, &BigInt::from(n), Rounding::Nearest);
        if term == BigInt::from(0) {
            return Ok(sum * 2);
        }
        sum += term;
        n += 2;
    }
}

/// The natural logarithm rounded to a scale.
fn ln(x: &Decimal, scale: u32) -> Result<Decimal> {
    if x.is_zero() {
        return Err(logarithm_of_zero());
    }
    if x.is_negative() {
        return Err(logarithm_of_negative());
    }
    let working = scale + GUARD_DIGITS + 6;
    let one = pow10(working);
    // x = m * 10^tens with m about 1, so that its logarithm needs few terms.
    let near_one = (x.digits() - i64::from(x.scale), x.digits()) == (1, 1) || {
        let f = x.to_f64();
        (0.5..2.0).contains(&f)
    };
    let tens = if near_one { 0 } else { x.digits() - i64::from(x.scale) };
    let mut m = if tens >= 0 {
        Decimal::new(x.mantissa.clone(), x.scale + tens as u32)
    } else {
        Decimal::new(&x.mantissa * pow10(tens.unsigned_abs() as u32), x.scale)
    };
    // More digits than those that are carried would only take time.
    m = m.round(i64::from((working + 8).min(m.scale)), Rounding::Nearest);
    let mut doublings = 0u32;
    while !(0.9..=1.1).contains(&m.to_f64()) {
        limits::check_interrupt()?;
        m = square_root(&m, working + 4);
        doublings += 1;
    }
    let m_scale = m.scale;
    let unit = pow10(m_scale);
    let mut result = twice_atanh(&(&m.mantissa - &unit), &(&m.mantissa + &unit), &one)? << doublings;
    if tens != 0 {
        // ln 10 = 3 ln 2 + ln 1.25.
        let ln_ten =
            twice_atanh(&BigInt::from(1), &BigInt::from(3), &one)? * 3 + twice_atanh(&BigInt::from(1), &BigInt::from(9), &one)?;
        result += ln_ten * tens;
    }
    Ok(Decimal::new(result, working).round(i64::from(scale), Rounding::Nearest))
}

fn power(base: &Decimal, exponent: &Decimal) -> Result<Decimal> {
    let trimmed = exponent.trimmed(0);
    if trimmed.scale == 0
        && let Ok(n) = i32::try_from(&trimmed.mantissa)
    {
        return power_integer(base, n, exponent.scale);
    }
    if base.is_zero() {
        return Ok(Decimal::new(BigInt::from(0), SIGNIFICANT_DIGITS_MIN as u32));
    }
    if base.is_negative() && trimmed.scale != 0 {
        return Err(complex_result());
    }
    let negative = base.is_negative() && trimmed.mantissa.is_odd();
    let base = base.abs();
    let base_weight = ln_weight(&base);
    let rough = (8 - base_weight).max(0);
    let value = ln(&base, rough as u32)?.mul_rounded(exponent, rough).to_f64();
    if value.abs() > 2000.0 * 3.01 {
        return if value > 0.0 { Err(overflow()) } else { Ok(Decimal::new(BigInt::from(0), RESULT_SCALE_MAX as u32)) };
    }
    let weight = (value * LOG10_E) as i64;
    let scale = clamp_scale((SIGNIFICANT_DIGITS_MIN - weight).max(i64::from(base.scale)).max(i64::from(exponent.scale)));
    let significant = (scale + weight).max(0);
    let inner = (significant - base_weight + 8).max(0);
    let logarithm = ln(&base, inner as u32)?.mul_rounded(exponent, inner);
    let mut result = exp(&logarithm, scale as u32)?;
    if negative {
        result.mantissa = -result.mantissa;
    }
    Ok(result)
}

/// `base^n`; `shown` is the exponent's display scale.
fn power_integer(base: &Decimal, n: i32, shown: u32) -> Result<Decimal> {
    // log10 of the result, by the first 16 digits of the base.
    let estimate = if base.is_zero() {
        0.0
    } else {
        let (weight, groups) = base.groups();
        let mut f = f64::from(groups[0]);
        let mut exponent = f64::from(weight) * 4.0;
        for group in groups.iter().skip(1).take(3) {
            f = f * 10_000.0 + f64::from(*group);
            exponent -= 4.0;
        }
        f64::from(n) * (f.log10() + exponent)
    };
    if estimate > f64::from(WEIGHT_MAX + 1) * 4.0 {
        return Err(overflow());
    }
    if estimate + 1.0 < -(RESULT_SCALE_MAX as f64) {
        return Ok(Decimal::new(BigInt::from(0), RESULT_SCALE_MAX as u32));
    }
    let scale = (SIGNIFICANT_DIGITS_MIN - estimate as i64).max(i64::from(base.scale)).max(i64::from(shown));
    let scale = clamp_scale(scale);
    let one = Decimal::integer(1);
    match n {
        0 => return Ok(one.round(scale, Rounding::Nearest)),
        1 => return Ok(base.round(scale, Rounding::Nearest)),
        -1 => return Ok(one.div(base, scale as u32, Rounding::Nearest)),
        2 => return Ok(base.mul_rounded(base, scale)),
        _ if base.is_zero() => return Ok(Decimal::new(BigInt::from(0), scale as u32)),
        _ => {}
    }
    // As many digits are carried through the multiplications as the result needs, and some for their errors.
    let significant = 1 + scale + estimate as i64 + f64::from(n).abs().ln() as i64 + 8;
    let limited = |a: &Decimal, b: &Decimal| {
        let wanted = significant - i64::from(a.weight() + b.weight()) * 4;
        a.mul_rounded(b, wanted.min(i64::from(a.scale + b.scale)).max(0))
    };
    let mut bits = n.unsigned_abs();
    let mut square = base.clone();
    let mut result = if bits & 1 == 1 { base.clone() } else { one.clone() };
    bits >>= 1;
    while bits > 0 {
        limits::check_interrupt()?;
        square = limited(&square, &square);
        if bits & 1 == 1 {
            result = limited(&square, &result);
        }
        if square.weight() > WEIGHT_MAX || result.weight() > WEIGHT_MAX {
            return if n > 0 { Err(overflow()) } else { Ok(Decimal::new(BigInt::from(0), scale as u32)) };
        }
        bits >>= 1;
    }
    if n > 0 {
        return Ok(result.round(scale, Rounding::Nearest));
    }
    if result.is_zero() {
        return Err(division_by_zero());
    }
    Ok(one.div(&result, scale as u32, Rounding::Nearest))
}
