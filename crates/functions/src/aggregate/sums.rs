//! count, sum and avg.

use melba_types::{Bitmap, Column, ColumnData, Datum, Numeric, Result};

use super::{any, same};
use crate::float::{f32_checked, f64_checked, overflow};
use crate::int::out_of_range;
use crate::{Aggregate, AggregateFn, CallContext};

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("int8inc", "", |_| Ok(Box::new(Count::default()))),
    ("int8inc_any", "", |_| Ok(Box::new(Count::default()))),
    ("int8inc_float8_float8", "", |_| Ok(Box::new(Count::default()))),
    ("int2_sum", "", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Bigint)))),
    ("int4_sum", "", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Bigint)))),
    ("int8_avg_accum", "numeric_poly_sum", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Numeric)))),
    ("int8_avg_accum", "numeric_poly_avg", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Average)))),
    ("int4_avg_accum", "int8_avg", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Average)))),
    ("int2_avg_accum", "int8_avg", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Average)))),
    ("cash_pl", "", |_| Ok(Box::new(IntegerSum::new(IntegerResult::Money)))),
    ("numeric_avg_accum", "numeric_sum", |_| Ok(Box::new(NumericAggregate { sum: NumericSum::default(), average: false }))),
    ("numeric_avg_accum", "numeric_avg", |_| Ok(Box::new(NumericAggregate { sum: NumericSum::default(), average: true }))),
    ("float4pl", "", |_| Ok(Box::new(RealSum::default()))),
    ("float8pl", "", |_| Ok(Box::new(DoubleSum::default()))),
];

/// Calls `f` with each row of `rows` whose value is not null.
#[inline]
pub(super) fn for_each_valid(validity: Option<&Bitmap>, rows: &[u32], mut f: impl FnMut(usize)) {
    match validity {
        None => rows.iter().for_each(|&row| f(row as usize)),
        Some(valid) => rows.iter().filter(|&&row| valid.get(row as usize)).for_each(|&row| f(row as usize)),
    }
}

/// count(*) and count(value).
#[derive(Default)]
struct Count {
    count: i64,
}

impl Aggregate for Count {
    fn add(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<()> {
        self.count += i64::from(!args.iter().any(Datum::is_null));
        Ok(())
    }

    fn add_batch(&mut self, _: &CallContext<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        if args.iter().all(|c| c.validity.is_none() && !matches!(c.data, ColumnData::Datum(_))) {
            self.count += rows.len() as i64;
        } else {
            self.count += rows.iter().filter(|&&row| !args.iter().any(|c| c.is_null(row as usize))).count() as i64;
        }
        Ok(())
    }

    fn remove(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<bool> {
        self.count -= i64::from(!args.iter().any(Datum::is_null));
        Ok(true)
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.count += same::<Count>(other)?.count;
        Ok(())
    }

    fn finish(&self, _: &CallContext<'_>) -> Result<Datum> {
        Ok(Datum::Int8(self.count))
    }

    any!();
}

#[derive(Clone, Copy)]
enum IntegerResult {
    Bigint,
    Money,
    Numeric,
    Average,
}

/// Sums and averages of the integer types. 128 bits hold the sum of 2^63 bigints.
struct IntegerSum {
    count: i64,
    sum: i128,
    result: IntegerResult,
}

impl IntegerSum {
    fn new(result: IntegerResult) -> IntegerSum {
        IntegerSum { count: 0, sum: 0, result }
    }
}

impl Aggregate for IntegerSum {
    fn add(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<()> {
        if !args[0].is_null() {
            self.count += 1;
            self.sum += i128::from(crate::int::wide(&args[0]));
        }
        Ok(())
    }

    fn add_batch(&mut self, _: &CallContext<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let validity = args[0].validity.as_ref();
        let (mut count, mut sum) = (0i64, 0i128);
        match &args[0].data {
            ColumnData::Int2(v) => {
                let mut short = 0i64;
                for_each_valid(validity, rows, |i| {
                    count += 1;
                    short += i64::from(v[i]);
                });
                sum += i128::from(short);
            }
            ColumnData::Int4(v) => {
                // A batch has far fewer than 2^32 rows.
                let mut short = 0i64;
                for_each_valid(validity, rows, |i| {
                    count += 1;
                    short += i64::from(v[i]);
                });
                sum += i128::from(short);
            }
            ColumnData::Int8(v) => for_each_valid(validity, rows, |i| {
                count += 1;
                sum += i128::from(v[i]);
            }),
            _ => for_each_valid(None, rows, |i| {
                let v = args[0].get(i);
                if !v.is_null() {
                    count += 1;
                    sum += i128::from(crate::int::wide(&v));
                }
            }),
        }
        self.count += count;
        self.sum += sum;
        Ok(())
    }

    fn remove(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<bool> {
        if !args[0].is_null() {
            self.count -= 1;
            self.sum -= i128::from(crate::int::wide(&args[0]));
        }
        Ok(true)
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<IntegerSum>(other)?;
        self.count += other.count;
        self.sum += other.sum;
        Ok(())
    }

    fn finish(&self, _: &CallContext<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        match self.result {
            IntegerResult::Bigint => i64::try_from(self.sum).map(Datum::Int8).map_err(|_| out_of_range("bigint")),
            IntegerResult::Money => i64::try_from(self.sum).map(Datum::Int8).map_err(|_| out_of_range("money")),
            IntegerResult::Numeric => Ok(Datum::Numeric(Numeric::from(self.sum))),
            IntegerResult::Average => Numeric::from(self.sum).div(&Numeric::from(self.count)).map(Datum::Numeric),
        }
    }

    any!();
}

/// An exact sum of numerics: 128 bits at a scale for as long as that suffices.
#[derive(Default)]
pub(super) struct NumericSum {
    pub count: i64,
    /// Sum of the small values since the last spill, times 10^scale.
    small: i128,
    scale: u16,
    /// What did not fit.
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
        self.note_scale(v.scale());
        self.add_slowly(v)
    }

    fn note_scale(&mut self, scale: u32) {
        if scale > self.scale_max {
            (self.scale_max, self.at_scale_max) = (scale, 1);
        } else if scale == self.scale_max {
            self.at_scale_max += 1;
        }
    }

    #[cold]
    fn add_slowly(&mut self, v: &Numeric) -> Result<()> {
        if v.is_nan() {
            self.nans += 1;
        } else if v.is_infinite() {
            *(if v.signum() > 0 { &mut self.infinities } else { &mut self.negative_infinities }) += 1;
        } else if let Some((mantissa, scale)) = v.small_parts() {
            let scale_now = self.scale.max(scale);
            let lifted = |v: i128, by: u16| 10i128.checked_pow(u32::from(by)).and_then(|p| v.checked_mul(p));
            let both = lifted(self.small, scale_now - self.scale).zip(lifted(i128::from(mantissa), scale_now - scale));
            match both.and_then(|(a, b)| a.checked_add(b)) {
                Some(sum) => (self.small, self.scale) = (sum, scale_now),
                None => {
                    self.spill()?;
                    (self.small, self.scale) = (i128::from(mantissa), scale);
                }
            }
        } else {
            let sum = self.spilled.take().unwrap_or(Numeric::ZERO).add(v)?;
            self.spilled = Some(sum);
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

struct NumericAggregate {
    sum: NumericSum,
    average: bool,
}

impl Aggregate for NumericAggregate {
    fn add(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<()> {
        match &args[0] {
            Datum::Null => Ok(()),
            v => self.sum.add(v.as_numeric()),
        }
    }

    fn add_batch(&mut self, call: &CallContext<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let ColumnData::Datum(values) = &args[0].data else {
            return rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)]));
        };
        for &row in rows {
            if let Datum::Numeric(v) = &values[row as usize] {
                self.sum.add(v)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<bool> {
        match &args[0] {
            Datum::Null => Ok(true),
            v => self.sum.remove(v.as_numeric()),
        }
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.sum.merge(&same::<NumericAggregate>(other)?.sum)
    }

    fn finish(&self, _: &CallContext<'_>) -> Result<Datum> {
        if self.sum.count == 0 {
            return Ok(Datum::Null);
        }
        let total = self.sum.total()?;
        let result = if self.average { total.div(&Numeric::from(self.sum.count))? } else { total };
        Ok(Datum::Numeric(result))
    }

    any!();
}

/// Sums of floats, in the order of the rows.
macro_rules! float_sum {
    ($name:ident, $variant:ident, $as:ident, $ty:ty, $checked:ident) => {
        #[derive(Default)]
        struct $name {
            sum: Option<$ty>,
        }

        impl $name {
            #[inline]
            fn step(&mut self, v: $ty) -> Result<()> {
                self.sum = Some(match self.sum {
                    None => v,
                    Some(sum) => $checked::add(sum, v)?,
                });
                Ok(())
            }
        }

        impl Aggregate for $name {
            fn add(&mut self, _: &CallContext<'_>, args: &[Datum]) -> Result<()> {
                if args[0].is_null() { Ok(()) } else { self.step(args[0].$as()) }
            }

            fn add_batch(&mut self, call: &CallContext<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
                let ColumnData::$variant(values) = &args[0].data else {
                    return rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)]));
                };
                // Overflow is looked for once a batch: an infinite sum stays infinite or becomes NaN.
                let (mut sum, mut any, mut special) = (self.sum.unwrap_or(-0.0), false, false);
                for_each_valid(args[0].validity.as_ref(), rows, |i| {
                    any = true;
                    special |= values[i].is_infinite();
                    sum += values[i];
                });
                let was_finite = self.sum.is_none_or(<$ty>::is_finite);
                if !sum.is_finite() && was_finite && !special && !sum.is_nan() {
                    return Err(overflow());
                }
                if !sum.is_finite() {
                    return rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)]));
                }
                if any {
                    self.sum = Some(sum);
                }
                Ok(())
            }

            fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
                match same::<$name>(other)?.sum {
                    Some(sum) => self.step(sum),
                    None => Ok(()),
                }
            }

            fn finish(&self, _: &CallContext<'_>) -> Result<Datum> {
                Ok(self.sum.map_or(Datum::Null, Datum::$variant))
            }

            any!();
        }
    };
}
float_sum!(RealSum, Float4, as_f32, f32, f32_checked);
float_sum!(DoubleSum, Float8, as_f64, f64, f64_checked);
