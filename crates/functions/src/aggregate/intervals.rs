//! sum and avg of intervals, by the functions that add and divide them.

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, registry};
use melba_types::{Datum, DbError, Result};

use super::{any, same};

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("interval_avg_accum", "interval_sum", |_| Ok(Box::new(IntervalSum { count: 0, parts: Vec::new(), average: false }))),
    ("interval_avg_accum", "interval_avg", |_| Ok(Box::new(IntervalSum { count: 0, parts: Vec::new(), average: true }))),
];

/// The sum so far, or (after merges) several sums that are added at the end.
struct IntervalSum {
    count: i64,
    parts: Vec<Datum>,
    average: bool,
}

fn apply(name: &str, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let function = registry::scalar(name).ok_or_else(|| DbError::internal(format!("{name} is not registered")))?;
    function(call, args)
}

fn total(call: &CallInfo<'_>, parts: &[Datum]) -> Result<Datum> {
    let mut parts = parts.iter();
    let first = parts.next().cloned().unwrap_or_default();
    parts.try_fold(first, |sum, part| apply("interval_pl", call, &[sum, part.clone()]))
}

impl Aggregate for IntervalSum {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        self.count += 1;
        match self.parts.first_mut() {
            Some(sum) => *sum = apply("interval_pl", call, &[sum.clone(), args[0].clone()])?,
            None => self.parts.push(args[0].clone()),
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<IntervalSum>(other)?;
        self.count += other.count;
        self.parts.extend(other.parts);
        Ok(())
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let sum = total(call, &self.parts)?;
        if self.average { apply("interval_div", call, &[sum, Datum::Float8(self.count as f64)]) } else { Ok(sum) }
    }

    any!();
}
