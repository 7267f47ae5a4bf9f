//! Conversions from and to integers and floats, and type modifiers.

use super::decimal::{Rounding, pow10_i128};
use super::{Numeric, Repr};
use crate::{DbError, Result, err};

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::small(v, 0)
    }
}

impl From<i32> for Numeric {
    fn from(v: i32) -> Numeric {
        Numeric::small(i64::from(v), 0)
    }
}

impl From<i128> for Numeric {
    fn from(v: i128) -> Numeric {
        Numeric::from_parts(v, 0)
    }
}

impl From<u64> for Numeric {
    fn from(v: u64) -> Numeric {
        Numeric::from_parts(i128::from(v), 0)
    }
}

/// Type modifier of numeric(precision, scale).
pub const fn typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}

/// The precision and scale that a typmod demands.
pub fn precision_and_scale(typmod: i32) -> Option<(i32, i32)> {
    let packed = typmod - 4;
    (packed >= 0).then_some((packed >> 16 & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024))
}

impl Numeric {
    /// 15 significant digits, as PostgreSQL takes them.
    pub fn from_f64(v: f64) -> Numeric {
        Numeric::from_float(v, 15)
    }

    /// 6 significant digits, as PostgreSQL takes them.
    pub fn from_f32(v: f32) -> Numeric {
        Numeric::from_float(f64::from(v), 6)
    }

    fn from_float(v: f64, digits: usize) -> Numeric {
        if v.is_nan() {
            return Numeric::NAN;
        }
        if v.is_infinite() {
            return if v > 0.0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY };
        }
        let mut text = Vec::new();
        crate::float::write_general(&mut text, v, digits);
        let text = std::str::from_utf8(&text).expect("digits are ASCII");
        Numeric::parse(text).expect("a float's digits are a numeric")
    }

    /// The nearest double; infinite beyond the doubles.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            // Both exact, so the quotient is rounded once.
            Repr::Small { mantissa, scale } if mantissa.unsigned_abs() <= 1 << 53 => {
                *mantissa as f64 / 10f64.powi(i32::from(*scale))
            }
            Repr::Small { .. } => self.decimal().map_or(f64::NAN, |d| d.to_f64()),
            Repr::Big(d) => d.to_f64(),
            Repr::NaN => f64::NAN,
            Repr::PositiveInfinity => f64::INFINITY,
            Repr::NegativeInfinity => f64::NEG_INFINITY,
        }
    }

    /// The nearest real; infinite beyond the reals.
    pub fn to_f32(&self) -> f32 {
        self.to_string().parse().unwrap_or(f32::NAN)
    }

    /// Rounds to a whole number that fits 64 bits. The inner error is `None` when it does not fit, else the name of the
    /// special value.
    fn to_i64_checked(&self) -> Result<i64, Option<&'static str>> {
        match &self.0 {
            Repr::Small { mantissa, scale: 0 } => Ok(*mantissa),
            Repr::Small { mantissa, scale } => {
                let unit = pow10_i128(*scale);
                let (kept, dropped) = (i128::from(*mantissa) / unit, i128::from(*mantissa) % unit);
                let away = dropped.abs() * 2 >= unit;
                i64::try_from(kept + if away { i128::from(mantissa.signum()) } else { 0 }).map_err(|_| None)
            }
            Repr::Big(d) => i64::try_from(d.round(0, Rounding::Nearest).mantissa).map_err(|_| None),
            Repr::NaN => Err(Some("NaN")),
            _ => Err(Some("infinity")),
        }
    }

    fn to_integer<T: TryFrom<i64>>(&self, type_name: &str) -> Result<T> {
        let out_of_range = || err!(NUMERIC_VALUE_OUT_OF_RANGE, "{type_name} out of range");
        match self.to_i64_checked() {
            Ok(v) => T::try_from(v).map_err(|_| out_of_range()),
            Err(None) => Err(out_of_range()),
            Err(Some(special)) => Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {special} to {type_name}")),
        }
    }

    pub fn to_i16(&self) -> Result<i16> {
        self.to_integer("smallint")
    }

    pub fn to_i32(&self) -> Result<i32> {
        self.to_integer("integer")
    }

    pub fn to_i64(&self) -> Result<i64> {
        self.to_integer("bigint")
    }

    /// Rounded to a whole number; `None` when it does not fit 128 bits or is special.
    pub fn to_i128(&self) -> Option<i128> {
        i128::try_from(self.decimal()?.round(0, Rounding::Nearest).mantissa).ok()
    }

    /// The value times `10^scale`; `None` when that is no whole number, does not fit 128 bits, or is special.
    pub fn mantissa_at(&self, scale: u16) -> Option<i128> {
        let decimal = self.decimal()?;
        let rounded = decimal.round(i64::from(scale), Rounding::Truncate);
        if rounded.compare(&decimal).is_ne() {
            return None;
        }
        i128::try_from(rounded.mantissa).ok()
    }

    /// Applies numeric(precision, scale): rounds, and raises 22003 when too many digits remain before the point.
    pub fn apply_typmod(&self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = precision_and_scale(typmod).filter(|_| !self.is_nan()) else { return Ok(self.clone()) };
        if self.is_infinite() {
            return Err(field_overflow()
                .detail(format!("A field with precision {precision}, scale {scale} cannot hold an infinite value.")));
        }
        let rounded = self.round(scale)?;
        let whole_digits = precision - scale;
        let fits = match &rounded.0 {
            Repr::Small { mantissa: 0, .. } => true,
            Repr::Small { mantissa, scale } => {
                let digits = mantissa.unsigned_abs().ilog10() as i32 + 1 - i32::from(*scale);
                digits <= whole_digits
            }
            Repr::Big(d) => d.is_zero() || d.digits() - i64::from(d.scale) <= i64::from(whole_digits),
            _ => true,
        };
        if fits {
            return Ok(rounded);
        }
        let limit = if whole_digits == 0 { "1".to_string() } else { format!("10^{whole_digits}") };
        Err(field_overflow().detail(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
        )))
    }
}

fn field_overflow() -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
}
