//! `numeric`: arbitrary-precision decimals with PostgreSQL's rules.
//!
//! A value is a whole number (the mantissa) and a scale: `mantissa / 10^scale`. The scale is PostgreSQL's display scale and
//! is kept through arithmetic by PostgreSQL's rules, so that `1.50` stays `1.50`. Values whose mantissa fits 64 bits live
//! in the 16 bytes of a `Numeric`; others are shared behind a pointer.
//!
//! Invariants:
//! 1. A finite value is `Small` whenever its mantissa fits an i64 and its scale is at most `SMALL_SCALE_MAX`.
//! 2. Equality, order and hash are those of the value: 1.0 equals 1.00. NaN equals NaN and is greater than everything.

mod arithmetic;
pub mod convert;
mod decimal;
pub mod functions;
mod storage;
mod text;
mod transcendental;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use decimal::{Decimal, pow10_i128};
use num_bigint::{BigInt, Sign};

use crate::{DbError, Result, err};

/// Scale up to which a 64-bit mantissa is held inline.
pub const SMALL_SCALE_MAX: u16 = 18;
/// PostgreSQL's limits: digits before the point, and scale.
const INTEGER_DIGITS_MAX: i64 = 131_072;
const SCALE_MAX: u32 = 16_383;

/// An arbitrary-precision decimal, NaN or an infinity.
#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    Small { mantissa: i64, scale: u16 },
    Big(Arc<Decimal>),
    NegativeInfinity,
    PositiveInfinity,
    NaN,
}

impl Numeric {
    pub const ZERO: Numeric = Numeric::small(0, 0);
    pub const ONE: Numeric = Numeric::small(1, 0);
    pub const NAN: Numeric = Numeric(Repr::NaN);
    pub const INFINITY: Numeric = Numeric(Repr::PositiveInfinity);
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    pub(crate) const fn small(mantissa: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small { mantissa, scale })
    }

    /// Reads text by the rules of numeric input: white space around, NaN and infinities, decimal digits with a point and an
    /// exponent, 0x/0o/0b integers, underscores between digits.
    pub fn parse(text: &str) -> Result<Numeric> {
        text::parse(text)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        text::write(self, out)
    }

    /// `mantissa / 10^scale`.
    pub fn from_parts(mantissa: i128, scale: u16) -> Numeric {
        match i64::try_from(mantissa) {
            Ok(mantissa) if scale <= SMALL_SCALE_MAX => Numeric::small(mantissa, scale),
            _ => Numeric(Repr::Big(Arc::new(Decimal::new(BigInt::from(mantissa), u32::from(scale))))),
        }
    }

    /// Mantissa and scale when the mantissa fits 64 bits: sums of many values use them.
    #[inline]
    pub fn small_parts(&self) -> Option<(i64, u16)> {
        match self.0 {
            Repr::Small { mantissa, scale } => Some((mantissa, scale)),
            _ => None,
        }
    }

    /// Memory that the value points to, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Big(d) => 64 + d.mantissa.bits() as usize / 8,
            _ => 0,
        }
    }

    /// A finite result; 22003 when it has more digits than the format.
    fn from_decimal(d: Decimal) -> Result<Numeric> {
        if d.scale <= u32::from(SMALL_SCALE_MAX)
            && let Ok(mantissa) = i64::try_from(&d.mantissa)
        {
            return Ok(Numeric::small(mantissa, d.scale as u16));
        }
        let digits_max = INTEGER_DIGITS_MAX + i64::from(d.scale);
        // Only very large mantissas are counted exactly: this many bits may have one digit more.
        let suspicious = d.mantissa.bits() as f64 * std::f64::consts::LOG10_2 > digits_max as f64;
        if d.scale > SCALE_MAX || (suspicious && d.digits() > digits_max) {
            return Err(overflow());
        }
        Ok(Numeric(Repr::Big(Arc::new(d))))
    }

    /// The value as a decimal; `None` for NaN and the infinities.
    fn decimal(&self) -> Option<Decimal> {
        match &self.0 {
            Repr::Small { mantissa, scale } => Some(Decimal::new(BigInt::from(*mantissa), u32::from(*scale))),
            Repr::Big(d) => Some((**d).clone()),
            _ => None,
        }
    }

    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::PositiveInfinity | Repr::NegativeInfinity)
    }

    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Big(_))
    }

    /// -1, 0 or 1; 0 for NaN.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small { mantissa, .. } => mantissa.signum() as i32,
            Repr::Big(d) => match d.mantissa.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
            Repr::PositiveInfinity => 1,
            Repr::NegativeInfinity => -1,
            Repr::NaN => 0,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.is_finite() && self.signum() == 0
    }

    /// The least scale that shows the whole value; `None` for special values.
    pub fn min_scale(&self) -> Option<u32> {
        Some(self.decimal()?.trimmed(0).scale)
    }

    /// Without trailing zeros after the point.
    pub fn trim_scale(&self) -> Result<Numeric> {
        match self.decimal() {
            Some(d) => Numeric::from_decimal(d.trimmed(0)),
            None => Ok(self.clone()),
        }
    }

    /// Digits after the decimal point that are shown; 0 for the special values.
    pub fn scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, .. } => u32::from(*scale),
            Repr::Big(d) => d.scale,
            _ => 0,
        }
    }

    /// Place in the order of kinds of values: -Infinity, finite, Infinity, NaN.
    fn rank(&self) -> u8 {
        match self.0 {
            Repr::NegativeInfinity => 0,
            Repr::Small { .. } | Repr::Big(_) => 1,
            Repr::PositiveInfinity => 2,
            Repr::NaN => 3,
        }
    }
}

/// 22003 for results beyond the format.
fn overflow() -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn division_by_zero() -> DbError {
    err!(DIVISION_BY_ZERO, "division by zero")
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Small { mantissa: a, scale: s }, Repr::Small { mantissa: b, scale: t }) => {
                if s == t {
                    return a.cmp(b);
                }
                // At most 10^18 times 2^63: fits 128 bits.
                let top = (*s).max(*t);
                (i128::from(*a) * pow10_i128(top - s)).cmp(&(i128::from(*b) * pow10_i128(top - t)))
            }
            _ => match (self.decimal(), other.decimal()) {
                (Some(a), Some(b)) => a.compare(&b),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Numeric {}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Small { mantissa, scale } => {
                let (mut m, mut s) = (*mantissa, if *mantissa == 0 { 0 } else { *scale });
                while s > 0 && m % 10 == 0 {
                    m /= 10;
                    s -= 1;
                }
                (m, s).hash(state);
            }
            Repr::Big(d) => {
                let d = d.trimmed(0);
                match i64::try_from(&d.mantissa) {
                    Ok(m) if d.scale <= u32::from(SMALL_SCALE_MAX) => (m, d.scale as u16).hash(state),
                    _ => (&d.mantissa, d.scale).hash(state),
                }
            }
            _ => self.rank().hash(state),
        }
    }
}

impl std::fmt::Debug for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests;
