//! Factorials, buckets, variances, square roots.

use num_bigint::BigInt;

use super::decimal::{Decimal, Rounding, square_root};
use super::{Numeric, overflow};
use crate::{Result, err};

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

/// `floor((value - low) * count / (high - low)) + 1` for a value within finite bounds: the bucket it falls into.
pub fn bucket(value: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Option<i64> {
    let (value, low, high) = (value.decimal()?, low.decimal()?, high.decimal()?);
    let offset = value.sub(&low).abs().mul(&Decimal::integer(count));
    let bucket = offset.div(&high.sub(&low).abs(), 0, Rounding::Truncate);
    i64::try_from(bucket.mantissa).ok().map(|b| b + 1)
}

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
