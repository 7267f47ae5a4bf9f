//! The four operations, remainders, rounding.

use num_bigint::BigInt;
use num_integer::Integer;

use super::decimal::{Decimal, Rounding, pow10_i128, square_root};
use super::{INTEGER_DIGITS_MAX, Numeric, Repr, SCALE_MAX, division_by_zero};
use crate::limits::{self, Ticker};
use crate::{Result, err};

/// Significant digits that inexact results have at least.
pub(super) const SIGNIFICANT_DIGITS_MIN: i64 = 16;
/// Largest scale that inexact results are given.
pub(super) const RESULT_SCALE_MAX: i64 = 1000;

/// A division of numbers of this many bits is a step.
const STEP_BITS: usize = 4096;

/// Weight and value of the first group of four digits of a mantissa that is not zero (see `Decimal::groups`).
fn small_leading(mantissa: i64, scale: u16) -> (i32, u16) {
    let magnitude = mantissa.unsigned_abs();
    let Some(last) = magnitude.checked_ilog10() else { return (0, 0) };
    let exponent = last as i32 - i32::from(scale);
    let weight = exponent.div_euclid(4);
    // Digits of the number in the first group, and those it has beyond.
    let beyond = last as i32 + 1 - (exponent - 4 * weight + 1);
    let first = if beyond >= 0 { magnitude / 10u64.pow(beyond as u32) } else { magnitude * 10u64.pow(beyond.unsigned_abs()) };
    (weight, first as u16)
}

/// The scale of a quotient: enough for 16 significant digits, not less than either operand's.
pub(super) fn division_scale(a: (i32, u16), b: (i32, u16), scale_a: u32, scale_b: u32) -> u32 {
    let mut weight = i64::from(a.0) - i64::from(b.0);
    if a.1 <= b.1 {
        weight -= 1;
    }
    let scale = SIGNIFICANT_DIGITS_MIN - weight * 4;
    scale.max(i64::from(scale_a)).max(i64::from(scale_b)).clamp(0, RESULT_SCALE_MAX) as u32
}

/// An operation on numbers of thousands of digits takes up to some milliseconds, so it checks the limits.
fn look(a: &Decimal, b: &Decimal) -> Result<()> {
    look_at(a.mantissa.bits().max(b.mantissa.bits()))
}

/// The same check for numbers of `bits` bits.
fn look_at(bits: u64) -> Result<()> {
    if bits as usize > STEP_BITS { limits::check_interrupt() } else { Ok(()) }
}

/// The greatest common divisor. A hundred thousand digits take seconds.
fn divisor(mut a: BigInt, mut b: BigInt) -> Result<BigInt> {
    let mut ticker = Ticker::new();
    while b.bits() > u64::BITS.into() {
        ticker.work(1 + a.bits() as usize / STEP_BITS)?;
        (a, b) = (b.clone(), a % b);
    }
    // One number of a hundred thousand digits is a remainder away from the other, and many steps of a binary algorithm.
    if b.bits() > 0 {
        (a, b) = (b.clone(), a % b);
    }
    Ok(a.gcd(&b))
}

impl Numeric {
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small { mantissa: a, scale: s }, Repr::Small { mantissa: b, scale: t }) = (&self.0, &other.0) {
            if s == t
                && let Some(sum) = a.checked_add(*b)
            {
                return Ok(Numeric::small(sum, *s));
            }
            let top = (*s).max(*t);
            return Ok(Numeric::from_parts(i128::from(*a) * pow10_i128(top - s) + i128::from(*b) * pow10_i128(top - t), top));
        }
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                look(&a, &b)?;
                Numeric::from_decimal(a.add(&b))
            }
            _ => Ok(self.add_special(other)),
        }
    }

    fn add_special(&self, other: &Numeric) -> Numeric {
        match (self.is_finite(), other.is_finite()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            // Opposite infinities have no sum; and nothing adds to NaN.
            _ if self.rank() == other.rank() => self.clone(),
            _ => Numeric::NAN,
        }
    }

    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small { mantissa: a, scale: s }, Repr::Small { mantissa: b, scale: t }) = (&self.0, &other.0) {
            let top = (*s).max(*t);
            return Ok(Numeric::from_parts(i128::from(*a) * pow10_i128(top - s) - i128::from(*b) * pow10_i128(top - t), top));
        }
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                look(&a, &b)?;
                Numeric::from_decimal(a.sub(&b))
            }
            _ => Ok(self.add_special(&other.neg())),
        }
    }

    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small { mantissa: a, scale: s }, Repr::Small { mantissa: b, scale: t }) = (&self.0, &other.0) {
            return Ok(Numeric::from_parts(i128::from(*a) * i128::from(*b), s + t));
        }
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                look(&a, &b)?;
                let product = a.mul(&b);
                let within = product.scale <= SCALE_MAX;
                Numeric::from_decimal(if within { product } else { product.round(i64::from(SCALE_MAX), Rounding::Nearest) })
            }
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            _ => Ok(match self.signum() * other.signum() {
                0 => Numeric::NAN,
                1 => Numeric::INFINITY,
                _ => Numeric::NEGATIVE_INFINITY,
            }),
        }
    }

    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small { mantissa: a, scale: s }, Repr::Small { mantissa: b, scale: t }) = (&self.0, &other.0)
            && *b != 0
        {
            let scale = division_scale(small_leading(*a, *s), small_leading(*b, *t), u32::from(*s), u32::from(*t));
            let shift = scale as i32 + i32::from(*t) - i32::from(*s);
            if (0..=19).contains(&shift) {
                let (n, d) = (i128::from(*a) * pow10_i128(shift as u16), i128::from(*b));
                let (quotient, remainder) = (n / d, n % d);
                let away = remainder.unsigned_abs() * 2 >= d.unsigned_abs();
                let sign = if (n < 0) == (d < 0) { 1 } else { -1 };
                return Ok(Numeric::from_parts(quotient + if away { sign } else { 0 }, scale as u16));
            }
        }
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                if b.is_zero() {
                    return Err(division_by_zero());
                }
                look(&a, &b)?;
                let scale = division_scale(a.leading(), b.leading(), a.scale, b.scale);
                Numeric::from_decimal(a.div(&b, scale, Rounding::Nearest))
            }
            _ => self.div_special(other),
        }
    }

    /// A quotient with a special operand.
    fn div_special(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        match (self.is_infinite(), other.is_infinite()) {
            (true, true) => Ok(Numeric::NAN),
            (true, false) => match self.signum() * other.signum() {
                0 => Err(division_by_zero()),
                1 => Ok(Numeric::INFINITY),
                _ => Ok(Numeric::NEGATIVE_INFINITY),
            },
            _ => Ok(Numeric::ZERO),
        }
    }

    /// The whole part of the quotient.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                if b.is_zero() {
                    return Err(division_by_zero());
                }
                look(&a, &b)?;
                Numeric::from_decimal(a.div(&b, 0, Rounding::Truncate))
            }
            _ => self.div_special(other),
        }
    }

    /// The remainder; its sign is the dividend's.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        match (self.decimal(), other.decimal()) {
            (Some(a), Some(b)) => {
                if b.is_zero() {
                    return Err(division_by_zero());
                }
                look(&a, &b)?;
                let scale = a.scale.max(b.scale);
                Numeric::from_decimal(Decimal::new(a.mantissa_at(scale) % b.mantissa_at(scale), scale))
            }
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            _ if self.is_infinite() => {
                if other.is_zero() {
                    return Err(division_by_zero());
                }
                Ok(Numeric::NAN)
            }
            _ => Ok(self.clone()),
        }
    }

    /// Square root with at least 16 significant digits.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.signum() < 0 {
            return Err(err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "cannot take square root of a negative number"));
        }
        let Some(d) = self.decimal() else { return Ok(self.clone()) };
        let result_weight = i64::from(d.weight()) * 2 + 1;
        let scale = (SIGNIFICANT_DIGITS_MIN - result_weight).max(i64::from(d.scale)).clamp(0, RESULT_SCALE_MAX) as u32;
        Numeric::from_decimal(square_root(&d, scale))
    }

    /// -1, 0, 1; NaN for NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::from(self.signum()) }
    }

    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small { mantissa, scale } => Numeric::from_parts(-i128::from(*mantissa), *scale),
            // The minimum of an i64 is small, its negation is not.
            Repr::Big(d) => Numeric::from_decimal(Decimal::new(-&d.mantissa, d.scale)).expect("as many digits as before"),
            Repr::PositiveInfinity => Numeric::NEGATIVE_INFINITY,
            Repr::NegativeInfinity => Numeric::INFINITY,
            Repr::NaN => Numeric::NAN,
        }
    }

    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }

    fn rounded(&self, scale: i32, rounding: Rounding) -> Result<Numeric> {
        let scale = i64::from(scale).clamp(-INTEGER_DIGITS_MAX - 1, i64::from(SCALE_MAX));
        if let Repr::Small { mantissa, scale: own } = &self.0
            && scale >= 0
            && scale <= i64::from(*own)
        {
            let unit = pow10_i128(own - scale as u16);
            let (kept, dropped) = (i128::from(*mantissa) / unit, i128::from(*mantissa) % unit);
            let away = rounding == Rounding::Nearest && dropped.abs() * 2 >= unit;
            return Ok(Numeric::from_parts(kept + if away { i128::from(mantissa.signum()) } else { 0 }, scale as u16));
        }
        match self.decimal() {
            Some(d) => Numeric::from_decimal(d.round(scale, rounding)),
            None => Ok(self.clone()),
        }
    }

    /// Rounds to `scale` digits after the point (before it, when negative), halves away from zero.
    pub fn round(&self, scale: i32) -> Result<Numeric> {
        self.rounded(scale, Rounding::Nearest)
    }

    pub fn trunc(&self, scale: i32) -> Result<Numeric> {
        self.rounded(scale, Rounding::Truncate)
    }

    pub fn floor(&self) -> Result<Numeric> {
        let Some(d) = self.decimal() else { return Ok(self.clone()) };
        Numeric::from_decimal(Decimal::integer(d.mantissa.div_floor(&super::decimal::pow10(d.scale))))
    }

    pub fn ceil(&self) -> Result<Numeric> {
        Ok(self.neg().floor()?.neg())
    }

    /// Greatest common divisor, at the larger scale; NaN for special values.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        let (Some(a), Some(b)) = (self.decimal(), other.decimal()) else { return Ok(Numeric::NAN) };
        let scale = a.scale.max(b.scale);
        Numeric::from_decimal(Decimal::new(divisor(a.mantissa_at(scale), b.mantissa_at(scale))?, scale))
    }

    /// Least common multiple, at the larger scale; NaN for special values.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        let (Some(a), Some(b)) = (self.decimal(), other.decimal()) else { return Ok(Numeric::NAN) };
        let scale = a.scale.max(b.scale);
        if a.is_zero() || b.is_zero() {
            return Numeric::from_decimal(Decimal::new(BigInt::from(0), scale));
        }
        let (a, b) = (a.mantissa_at(scale), b.mantissa_at(scale));
        let bits = a.bits().max(b.bits());
        let divisor = divisor(a.clone(), b.clone())?;
        look_at(bits)?;
        let quotient = &a / divisor;
        look_at(bits)?;
        let multiple = quotient * b;
        Numeric::from_decimal(Decimal::new(BigInt::from(multiple.magnitude().clone()), scale))
    }
}
