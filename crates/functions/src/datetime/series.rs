//! generate_series over timestamps.

use melba_types::datetime::is_finite_timestamp;
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, err};

use super::arithmetic::add_interval;
use super::{convert::zone_of_name, session_zone};
use crate::SetFn;

pub const SETS: &[(&str, SetFn)] = &[
    ("generate_series_timestamp", |_, a| series(a, None)),
    ("generate_series_timestamptz", |c, a| series(a, Some(session_zone(c.session)))),
    ("generate_series_timestamptz_at_zone", |c, a| series(a, Some(zone_of_name(c, a[3].as_str())?))),
];

type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

fn series(a: &[Datum], zone: Option<Zone>) -> Result<Rows> {
    if a.iter().take(3).any(Datum::is_null) {
        return Ok(Box::new(std::iter::empty()));
    }
    let (start, end, step) = (a[0].as_i64(), a[1].as_i64(), a[2].as_interval());
    if step.span() == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
    }
    if !step.is_finite() {
        return Err(err!(INVALID_PARAMETER_VALUE, "step size cannot be infinite"));
    }
    Ok(Box::new(Series { next: Some(start), end, step, zone }))
}

struct Series {
    next: Option<i64>,
    end: i64,
    step: Interval,
    zone: Option<Zone>,
}

impl Iterator for Series {
    type Item = Result<Vec<Datum>>;

    fn next(&mut self) -> Option<Self::Item> {
        let current = self.next?;
        let done = if self.step.span() > 0 { current > self.end } else { current < self.end };
        if done {
            self.next = None;
            return None;
        }
        match add_interval(current, &self.step, self.zone.as_ref()) {
            // An infinite start would go on for ever.
            Ok(next) => self.next = Some(next).filter(|_| is_finite_timestamp(current)),
            Err(e) => {
                self.next = None;
                return Some(Err(e));
            }
        }
        Some(Ok(vec![Datum::Int8(current)]))
    }
}
