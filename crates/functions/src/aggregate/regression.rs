//! Covariance, correlation and linear regression of pairs (y, x).

use melba_fmgr::{Aggregate, AggregateFn, CallInfo};
use melba_types::{Datum, Result};

use super::{any, same};
use crate::float::overflow;

macro_rules! regressions {
    ($($name:literal => $result:expr),+ $(,)?) => {
        pub const AGGREGATES: &[(&str, &str, AggregateFn)] =
            &[$(("float8_regr_accum", $name, |_| Ok(Box::new(Regression { moments: Moments::default(), result: $result })))),+];
    };
}

regressions! {
    "float8_regr_sxx" => |m| Some(m.sxx),
    "float8_regr_syy" => |m| Some(m.syy),
    "float8_regr_sxy" => |m| Some(m.sxy),
    "float8_regr_avgx" => |m| Some(m.sx / m.n),
    "float8_regr_avgy" => |m| Some(m.sy / m.n),
    "float8_covar_pop" => |m| Some(m.sxy / m.n),
    "float8_covar_samp" => |m| (m.n >= 2.0).then(|| m.sxy / (m.n - 1.0)),
    "float8_corr" => |m| (m.sxx != 0.0 && m.syy != 0.0).then(|| m.sxy / (m.sxx * m.syy).sqrt()),
    "float8_regr_r2" => |m| {
        if m.sxx == 0.0 {
            return None;
        }
        Some(if m.syy == 0.0 { 1.0 } else { m.sxy * m.sxy / (m.sxx * m.syy) })
    },
    "float8_regr_slope" => |m| (m.sxx != 0.0).then(|| m.sxy / m.sxx),
    "float8_regr_intercept" => |m| (m.sxx != 0.0).then(|| (m.sy - m.sx * m.sxy / m.sxx) / m.n),
}

/// Sums, and sums of squared and mixed differences from the means.
#[derive(Clone, Default)]
struct Moments {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

struct Regression {
    moments: Moments,
    result: fn(&Moments) -> Option<f64>,
}

impl Moments {
    fn step(&mut self, y: f64, x: f64) -> Result<()> {
        let old = self.clone();
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if old.n == 0.0 {
            if !x.is_finite() {
                (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.syy, self.sxy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (dx, dy) = (x * self.n - self.sx, y * self.n - self.sy);
        let scale = 1.0 / (self.n * old.n);
        self.sxx += dx * dx * scale;
        self.syy += dy * dy * scale;
        self.sxy += dx * dy * scale;
        if [self.sx, self.sxx, self.sy, self.syy, self.sxy].iter().any(|v| v.is_infinite()) {
            let x_overflows = (self.sx.is_infinite() || self.sxx.is_infinite()) && !old.sx.is_infinite() && !x.is_infinite();
            let y_overflows = (self.sy.is_infinite() || self.syy.is_infinite()) && !old.sy.is_infinite() && !y.is_infinite();
            let inputs_finite = [old.sx, x, old.sy, y].iter().all(|v| !v.is_infinite());
            if x_overflows || y_overflows || (self.sxy.is_infinite() && inputs_finite) {
                return Err(overflow());
            }
            for v in [&mut self.sxx, &mut self.syy, &mut self.sxy] {
                if v.is_infinite() {
                    *v = f64::NAN;
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &Moments) {
        if other.n == 0.0 {
            return;
        }
        if self.n == 0.0 {
            *self = other.clone();
            return;
        }
        let n = self.n + other.n;
        let (dx, dy) = (self.sx / self.n - other.sx / other.n, self.sy / self.n - other.sy / other.n);
        let weight = self.n * other.n / n;
        self.sxx += other.sxx + weight * dx * dx;
        self.syy += other.syy + weight * dy * dy;
        self.sxy += other.sxy + weight * dx * dy;
        self.sx += other.sx;
        self.sy += other.sy;
        self.n = n;
    }
}

impl Aggregate for Regression {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() || args[1].is_null() {
            return Ok(());
        }
        self.moments.step(args[0].as_f64(), args[1].as_f64())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        self.moments.merge(&same::<Regression>(other)?.moments);
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        if self.moments.n < 1.0 {
            return Ok(Datum::Null);
        }
        Ok((self.result)(&self.moments).map_or(Datum::Null, Datum::Float8))
    }

    any!();
}
