//! count, sum and avg.

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, GroupedAggregate, TakenRows};
use melba_types::{Column, ColumnData, Datum, Result};

use super::exact::{IntegerResult, NumericSum, count_of, integer_result, numeric_result, sum_of_integers, sum_of_words};
use super::grouped::{GroupedCount, GroupedIntegerSum, GroupedNumericSum};
use super::{any, for_each_valid, same};
use crate::float::{f32_checked, f64_checked, overflow};

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

/// count(*) and count(value).
#[derive(Default)]
struct Count {
    count: i64,
}

impl Aggregate for Count {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        self.count += i64::from(!args.iter().any(Datum::is_null));
        Ok(())
    }

    fn add_batch(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        self.count += count_of(args, TakenRows::These(rows));
        Ok(())
    }

    fn remove(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<bool> {
        self.count -= i64::from(!args.iter().any(Datum::is_null));
        Ok(true)
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.count += same::<Count>(other)?.count;
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(Datum::Int8(self.count))
    }

    fn grouped(&self) -> Option<Box<dyn GroupedAggregate>> {
        Some(Box::new(GroupedCount::default()))
    }

    any!();
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
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if !args[0].is_null() {
            self.count += 1;
            self.sum += i128::from(crate::int::wide(&args[0]));
        }
        Ok(())
    }

    fn add_batch(&mut self, _: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let (count, sum) = sum_of_integers(args[0], TakenRows::These(rows));
        self.count += count;
        self.sum += sum;
        Ok(())
    }

    fn remove(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<bool> {
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

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        integer_result(self.result, self.count, self.sum)
    }

    fn grouped(&self) -> Option<Box<dyn GroupedAggregate>> {
        Some(Box::new(GroupedIntegerSum::new(self.result)))
    }

    any!();
}

struct NumericAggregate {
    sum: NumericSum,
    average: bool,
}

impl Aggregate for NumericAggregate {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        match &args[0] {
            Datum::Null => Ok(()),
            v => self.sum.add(v.as_numeric()),
        }
    }

    fn add_batch(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        match &args[0].data {
            ColumnData::Numeric(words) => {
                let (count, sum) = sum_of_words(&words.values, args[0].validity.as_ref(), TakenRows::These(rows));
                self.sum.add_words(count, sum, words.scale)
            }
            ColumnData::Datum(values) => rows.iter().try_for_each(|&row| match &values[row as usize] {
                Datum::Numeric(v) => self.sum.add(v),
                _ => Ok(()),
            }),
            _ => rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)])),
        }
    }

    fn remove(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<bool> {
        match &args[0] {
            Datum::Null => Ok(true),
            v => self.sum.remove(v.as_numeric()),
        }
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.sum.merge(&same::<NumericAggregate>(other)?.sum)
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        numeric_result(&self.sum, self.average)
    }

    fn grouped(&self) -> Option<Box<dyn GroupedAggregate>> {
        Some(Box::new(GroupedNumericSum::new(self.average)))
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
            fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
                if args[0].is_null() { Ok(()) } else { self.step(args[0].$as()) }
            }

            fn add_batch(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
                let ColumnData::$variant(values) = &args[0].data else {
                    return rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)]));
                };
                // Overflow is checked once per batch: an infinite sum stays infinite or becomes NaN.
                let (mut sum, mut any, mut special) = (self.sum.unwrap_or(-0.0), false, false);
                for_each_valid(args[0].validity.as_ref(), TakenRows::These(rows), |i| {
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

            fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
                Ok(self.sum.map_or(Datum::Null, Datum::$variant))
            }

            any!();
        }
    };
}
float_sum!(RealSum, Float4, as_f32, f32, f32_checked);
float_sum!(DoubleSum, Float8, as_f64, f64, f64_checked);
