//! Exact functions: square root, factorial, scales, buckets.

use num_bigint::BigInt;

use super::arithmetic::{RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN};
use super::decimal::{Decimal, Rounding, pow10};
use super::{Numeric, overflow};
use crate::{Result, err};

impl Numeric {
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

    /// `n!`
    pub fn factorial(n: i64, mut check_interrupt: impl FnMut() -> Result<()>) -> Result<Numeric> {
        if n < 0 {
            return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "factorial of a negative number is undefined"));
        }
        if n > 32_177 {
            return Err(overflow());
        }
        let mut product = BigInt::from(1);
        for factor in 2..=n {
            if factor % 1024 == 0 {
                check_interrupt()?;
            }
            product *= factor;
        }
        Numeric::from_decimal(Decimal::integer(product))
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

    /// -1, 0, 1; NaN for NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::from(self.signum()) }
    }

    /// `floor((self - low) * count / (high - low)) + 1` for `self` within finite bounds: the bucket it falls into.
    pub fn bucket(&self, low: &Numeric, high: &Numeric, count: i32) -> Option<i64> {
        let (value, low, high) = (self.decimal()?, low.decimal()?, high.decimal()?);
        let offset = value.sub(&low).abs().mul(&Decimal::integer(count));
        let bucket = offset.div(&high.sub(&low).abs(), 0, Rounding::Truncate);
        i64::try_from(bucket.mantissa).ok().map(|b| b + 1)
    }
}

/// The square root rounded to a scale.
pub fn square_root(d: &Decimal, scale: u32) -> Decimal {
    // One digit more than requested decides the rounding: the truncated rest cannot make up a whole unit.
    let wanted = scale.max(d.scale.div_ceil(2)) + 1;
    let root = (&d.mantissa * pow10(2 * wanted - d.scale)).sqrt();
    Decimal::new(root, wanted).round(i64::from(scale), Rounding::Nearest)
}

impl Numeric {
    /// Variance or standard deviation of `n` values from their sum and the sum of their squares.
    pub fn variance(n: i64, sum: &Numeric, sum_squares: &Numeric, sample: bool, deviation: bool) -> Result<Numeric> {
        let (Some(sum), Some(squares)) = (sum.decimal(), sum_squares.decimal()) else { return Ok(Numeric::NAN) };
        let count = Decimal::integer(n);
        let numerator = count.mul(&squares).sub(&sum.mul(&sum));
        if numerator.is_zero() || numerator.is_negative() {
            return Ok(Numeric::ZERO);
        }
        let denominator = count.mul(&Decimal::integer(if sample { n - 1 } else { n }));
        let scale = super::arithmetic::division_scale(numerator.leading(), denominator.leading(), numerator.scale, 0);
        let variance = numerator.div(&denominator, scale, Rounding::Nearest);
        Numeric::from_decimal(if deviation { square_root(&variance, scale) } else { variance })
    }
}
