//! Exact sums of integers and numerics, and the results of sum and avg.

use melba_fmgr::TakenRows;
use melba_types::{Bitmap, Column, ColumnData, Datum, Numeric, Result};

use super::{for_each_valid, kernels};
use crate::int::out_of_range;

/// How many of some rows have no null argument.
pub(super) fn count_of(args: &[&Column], rows: TakenRows<'_>) -> i64 {
    let may_be_null =
        |column: &&Column| column.validity.is_some() || matches!(column.data, ColumnData::Datum(_) | ColumnData::Stored(_));
    if !args.iter().any(may_be_null) {
        return rows.len() as i64;
    }
    let mut count = 0;
    rows.for_each(|row| count += i64::from(!args.iter().any(|c| c.is_null(row))));
    count
}

/// How many of some rows are not null, and the sum of these.
pub(super) fn sum_of_integers(column: &Column, rows: TakenRows<'_>) -> (i64, i128) {
    fn short<T: Copy + Into<i64>>(values: &[T], validity: Option<&Bitmap>, rows: TakenRows<'_>) -> (i64, i128) {
        // A batch has far fewer than 2^32 rows.
        let (mut count, mut sum) = (0, 0i64);
        for_each_valid(validity, rows, |i| {
            count += 1;
            sum += values[i].into();
        });
        (count, i128::from(sum))
    }
    match &column.data {
        ColumnData::Int2(v) => short(v, column.validity.as_ref(), rows),
        ColumnData::Int4(v) => short(v, column.validity.as_ref(), rows),
        ColumnData::Int8(v) => sum_of_words(v, column.validity.as_ref(), rows),
        _ => {
            let (mut count, mut sum) = (0, 0i128);
            rows.for_each(|row| {
                let value = column.get(row);
                if !value.is_null() {
                    count += 1;
                    sum += i128::from(crate::int::wide(&value));
                }
            });
            (count, sum)
        }
    }
}

/// The same of words.
pub(super) fn sum_of_words(values: &[i64], validity: Option<&Bitmap>, rows: TakenRows<'_>) -> (i64, i128) {
    if let (None, TakenRows::All(n)) = (validity, rows) {
        return (n as i64, kernels::sum(&values[..n]));
    }
    let (mut count, mut sum) = (0, 0i128);
    for_each_valid(validity, rows, |i| {
        count += 1;
        sum += i128::from(values[i]);
    });
    (count, sum)
}

/// The result wanted from a sum of integers.
#[derive(Clone, Copy)]
pub(super) enum IntegerResult {
    Bigint,
    Money,
    Numeric,
    Average,
}

/// The result for a sum of `count` integers.
pub(super) fn integer_result(result: IntegerResult, count: i64, sum: i128) -> Result<Datum> {
    if count == 0 {
        return Ok(Datum::Null);
    }
    match result {
        IntegerResult::Bigint => i64::try_from(sum).map(Datum::Int8).map_err(|_| out_of_range("bigint")),
        IntegerResult::Money => i64::try_from(sum).map(Datum::Int8).map_err(|_| out_of_range("money")),
        IntegerResult::Numeric => Ok(Datum::Numeric(Numeric::from(sum))),
        IntegerResult::Average => Numeric::from(sum).div(&Numeric::from(count)).map(Datum::Numeric),
    }
}

/// An exact sum of numerics: 128 bits at a scale for as long as that suffices.
#[derive(Default)]
pub(super) struct NumericSum {
    pub count: i64,
    /// Sum of the small values since the last spill, times 10^scale.
    small: i128,
    scale: u16,
    /// Values that did not fit.
    spilled: Option<Numeric>,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
    /// Largest scale seen, and how many values have it: its last value cannot be removed.
    scale_max: u32,
    at_scale_max: i64,
}

impl NumericSum {
    #[inline]
    pub fn add(&mut self, v: &Numeric) -> Result<()> {
        self.count += 1;
        if let Some((mantissa, scale)) = v.small_parts()
            && scale == self.scale
            && u32::from(scale) == self.scale_max
            && let Some(sum) = self.small.checked_add(i128::from(mantissa))
        {
            self.small = sum;
            self.at_scale_max += 1;
            return Ok(());
        }
        self.note_scale(v.scale(), 1);
        self.add_slowly(v)
    }

    /// Adds `count` values of one scale whose mantissas have this sum.
    pub fn add_words(&mut self, count: i64, sum: i128, scale: u16) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.count += count;
        self.note_scale(u32::from(scale), count);
        self.add_small(sum, scale)
    }

    fn note_scale(&mut self, scale: u32, count: i64) {
        if scale > self.scale_max {
            (self.scale_max, self.at_scale_max) = (scale, count);
        } else if scale == self.scale_max {
            self.at_scale_max += count;
        }
    }

    #[cold]
    fn add_slowly(&mut self, v: &Numeric) -> Result<()> {
        if v.is_nan() {
            self.nans += 1;
        } else if v.is_infinite() {
            *(if v.signum() > 0 { &mut self.infinities } else { &mut self.negative_infinities }) += 1;
        } else if let Some((mantissa, scale)) = v.small_parts() {
            self.add_small(i128::from(mantissa), scale)?;
        } else {
            let sum = self.spilled.take().unwrap_or(Numeric::ZERO).add(v)?;
            self.spilled = Some(sum);
        }
        Ok(())
    }

    fn add_small(&mut self, mantissa: i128, scale: u16) -> Result<()> {
        let scale_now = self.scale.max(scale);
        let lifted = |v: i128, by: u16| 10i128.checked_pow(u32::from(by)).and_then(|p| v.checked_mul(p));
        let both = lifted(self.small, scale_now - self.scale).zip(lifted(mantissa, scale_now - scale));
        match both.and_then(|(a, b)| a.checked_add(b)) {
            Some(sum) => (self.small, self.scale) = (sum, scale_now),
            None => {
                self.spill()?;
                (self.small, self.scale) = (mantissa, scale);
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let small = Numeric::from_parts(self.small, self.scale);
        self.spilled = Some(self.spilled.take().unwrap_or(Numeric::ZERO).add(&small)?);
        (self.small, self.scale) = (0, 0);
        Ok(())
    }

    /// Undoes an `add`; false when the scale of the result would not be known any more.
    pub fn remove(&mut self, v: &Numeric) -> Result<bool> {
        if v.is_finite() && v.scale() == self.scale_max && self.scale_max > 0 {
            if self.at_scale_max == 1 && self.count > 1 {
                return Ok(false);
            }
            self.at_scale_max -= 1;
        }
        self.count -= 1;
        if v.is_nan() {
            self.nans -= 1;
        } else if v.is_infinite() {
            *(if v.signum() > 0 { &mut self.infinities } else { &mut self.negative_infinities }) -= 1;
        } else {
            self.add_slowly(&v.neg())?;
        }
        if self.count == 0 {
            *self = NumericSum::default();
        }
        Ok(true)
    }

    pub fn merge(&mut self, other: &NumericSum) -> Result<()> {
        self.count += other.count;
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.negative_infinities += other.negative_infinities;
        if other.scale_max == self.scale_max {
            self.at_scale_max += other.at_scale_max;
        } else if other.scale_max > self.scale_max {
            (self.scale_max, self.at_scale_max) = (other.scale_max, other.at_scale_max);
        }
        let sum = other.finite_sum()?;
        self.spilled = Some(self.spilled.take().unwrap_or(Numeric::ZERO).add(&sum)?);
        Ok(())
    }

    fn finite_sum(&self) -> Result<Numeric> {
        let small = Numeric::from_parts(self.small, self.scale);
        match &self.spilled {
            None => Ok(small),
            Some(spilled) => spilled.add(&small),
        }
    }

    /// The sum, at the largest scale of its terms.
    pub fn total(&self) -> Result<Numeric> {
        if self.nans > 0 || (self.infinities > 0 && self.negative_infinities > 0) {
            return Ok(Numeric::NAN);
        }
        if self.infinities > 0 {
            return Ok(Numeric::INFINITY);
        }
        if self.negative_infinities > 0 {
            return Ok(Numeric::NEGATIVE_INFINITY);
        }
        self.finite_sum()?.round(self.scale_max as i32)
    }
}

/// The sum or average of numerics; NULL of none.
pub(super) fn numeric_result(sum: &NumericSum, average: bool) -> Result<Datum> {
    if sum.count == 0 {
        return Ok(Datum::Null);
    }
    let total = sum.total()?;
    let result = if average { total.div(&Numeric::from(sum.count))? } else { total };
    Ok(Datum::Numeric(result))
}
