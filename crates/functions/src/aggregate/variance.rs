//! Variance and standard deviation, and the average of floats, which has the same state.

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, TakenRows};
use melba_types::numeric::functions;
use melba_types::{Column, ColumnData, Datum, Numeric, Result};

use super::exact::NumericSum;
use super::{any, for_each_valid, same};
use crate::float::overflow;

macro_rules! numeric_variances {
    ($($transition:literal, $prefix:literal;)+) => {
        &[$(
            ($transition, concat!($prefix, "var_samp"), |_| Ok(Box::new(NumericVariance::new(true, false)))),
            ($transition, concat!($prefix, "var_pop"), |_| Ok(Box::new(NumericVariance::new(false, false)))),
            ($transition, concat!($prefix, "stddev_samp"), |_| Ok(Box::new(NumericVariance::new(true, true)))),
            ($transition, concat!($prefix, "stddev_pop"), |_| Ok(Box::new(NumericVariance::new(false, true)))),
        )+
            ("float8_accum", "float8_avg", |_| Ok(Box::new(FloatMoments::new(FloatResult::Average)))),
            ("float8_accum", "float8_var_samp", |_| Ok(Box::new(FloatMoments::new(FloatResult::VarSamp)))),
            ("float8_accum", "float8_var_pop", |_| Ok(Box::new(FloatMoments::new(FloatResult::VarPop)))),
            ("float8_accum", "float8_stddev_samp", |_| Ok(Box::new(FloatMoments::new(FloatResult::StddevSamp)))),
            ("float8_accum", "float8_stddev_pop", |_| Ok(Box::new(FloatMoments::new(FloatResult::StddevPop)))),
            ("float4_accum", "float8_avg", |_| Ok(Box::new(FloatMoments::new(FloatResult::Average)))),
            ("float4_accum", "float8_var_samp", |_| Ok(Box::new(FloatMoments::new(FloatResult::VarSamp)))),
            ("float4_accum", "float8_var_pop", |_| Ok(Box::new(FloatMoments::new(FloatResult::VarPop)))),
            ("float4_accum", "float8_stddev_samp", |_| Ok(Box::new(FloatMoments::new(FloatResult::StddevSamp)))),
            ("float4_accum", "float8_stddev_pop", |_| Ok(Box::new(FloatMoments::new(FloatResult::StddevPop)))),
        ]
    };
}

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = numeric_variances! {
    "int2_accum", "numeric_poly_";
    "int4_accum", "numeric_poly_";
    "int8_accum", "numeric_";
    "numeric_accum", "numeric_";
};

/// Exact variance of integers and numerics.
struct NumericVariance {
    sum: NumericSum,
    squares: NumericSum,
    sample: bool,
    deviation: bool,
}

impl NumericVariance {
    fn new(sample: bool, deviation: bool) -> NumericVariance {
        NumericVariance { sum: NumericSum::default(), squares: NumericSum::default(), sample, deviation }
    }
}

fn as_numeric(v: &Datum) -> Numeric {
    match v {
        Datum::Numeric(v) => v.clone(),
        v => Numeric::from(crate::int::wide(v)),
    }
}

impl Aggregate for NumericVariance {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let v = as_numeric(&args[0]);
        self.squares.add(&v.mul(&v)?)?;
        self.sum.add(&v)
    }

    fn remove(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<bool> {
        if args[0].is_null() {
            return Ok(true);
        }
        let v = as_numeric(&args[0]);
        if !self.sum.remove(&v)? {
            return Ok(false);
        }
        self.squares.remove(&v.mul(&v)?)
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<NumericVariance>(other)?;
        self.sum.merge(&other.sum)?;
        self.squares.merge(&other.squares)
    }

    fn combines(&self) -> bool {
        true
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        let n = self.sum.count;
        if n < if self.sample { 2 } else { 1 } {
            return Ok(Datum::Null);
        }
        functions::variance(n, &self.sum.total()?, &self.squares.total()?, self.sample, self.deviation).map(Datum::Numeric)
    }

    any!();
}

#[derive(Clone, Copy)]
enum FloatResult {
    Average,
    VarSamp,
    VarPop,
    StddevSamp,
    StddevPop,
}

/// Count, sum and sum of squared differences from the mean, by Youngs and Cramer's method, as PostgreSQL keeps them.
struct FloatMoments {
    n: f64,
    sum: f64,
    squares: f64,
    result: FloatResult,
}

impl FloatMoments {
    fn new(result: FloatResult) -> FloatMoments {
        FloatMoments { n: 0.0, sum: 0.0, squares: 0.0, result }
    }

    #[inline]
    fn step(&mut self, v: f64) -> Result<()> {
        let (old_n, old_sum) = (self.n, self.sum);
        self.n += 1.0;
        self.sum += v;
        if old_n > 0.0 {
            let difference = v * self.n - self.sum;
            self.squares += difference * difference / (self.n * old_n);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !old_sum.is_infinite() && !v.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !v.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
}

impl Aggregate for FloatMoments {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() { Ok(()) } else { self.step(crate::float::wide(&args[0])) }
    }

    fn add_batch(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let mut result = Ok(());
        let validity = args[0].validity.as_ref();
        match &args[0].data {
            ColumnData::Float8(v) => for_each_valid(validity, TakenRows::These(rows), |i| {
                if result.is_ok() {
                    result = self.step(v[i]);
                }
            }),
            ColumnData::Float4(v) => for_each_valid(validity, TakenRows::These(rows), |i| {
                if result.is_ok() {
                    result = self.step(f64::from(v[i]));
                }
            }),
            _ => return rows.iter().try_for_each(|&row| self.add(call, &[args[0].get(row as usize)])),
        }
        result
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<FloatMoments>(other)?;
        if other.n == 0.0 {
            return Ok(());
        }
        if self.n == 0.0 {
            (self.n, self.sum, self.squares) = (other.n, other.sum, other.squares);
            return Ok(());
        }
        let n = self.n + other.n;
        let difference = self.sum / self.n - other.sum / other.n;
        self.squares += other.squares + self.n * other.n * difference * difference / n;
        self.sum += other.sum;
        self.n = n;
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        let least = if matches!(self.result, FloatResult::VarSamp | FloatResult::StddevSamp) { 2.0 } else { 1.0 };
        if self.n < least {
            return Ok(Datum::Null);
        }
        Ok(Datum::Float8(match self.result {
            FloatResult::Average => self.sum / self.n,
            FloatResult::VarSamp => self.squares / (self.n - 1.0),
            FloatResult::VarPop => self.squares / self.n,
            FloatResult::StddevSamp => (self.squares / (self.n - 1.0)).sqrt(),
            FloatResult::StddevPop => (self.squares / self.n).sqrt(),
        }))
    }

    any!();
}
