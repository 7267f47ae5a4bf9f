//! Set-returning functions: generate_series over timestamps, time zones and their abbreviations.

use melba_fmgr::{CallInfo, SetFn};
use melba_types::datetime::abbreviations::{ABBREVIATIONS, Meaning};
use melba_types::datetime::{MICROS_PER_SECOND, is_finite_timestamp, unix_seconds};
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, err};

use super::arithmetic::add_interval;
use super::{convert::zone_of_name, session_zone};

pub const SETS: &[(&str, SetFn)] = &[
    ("generate_series_timestamp", |_, a| series(a, None)),
    ("generate_series_timestamptz", |c, a| series(a, Some(session_zone(c.session)))),
    ("generate_series_timestamptz_at_zone", |c, a| series(a, Some(zone_of_name(c, a[3].as_str())?))),
    ("pg_timezone_names", |c, _| Ok(Box::new(zone_names(now(c)).into_iter().map(Ok)))),
    ("pg_timezone_abbrevs_zone", |c, _| Ok(Box::new(zone_abbreviations(&session_zone(c.session), now(c)).into_iter().map(Ok)))),
    ("pg_timezone_abbrevs_abbrevs", |c, _| Ok(Box::new(general_abbreviations(now(c)).into_iter().map(Ok)))),
];

fn now(c: &CallInfo<'_>) -> i64 {
    unix_seconds(c.session.transaction_timestamp())
}

/// Name, abbreviation, offset and daylight saving of each zone at an instant.
fn zone_names(now: i64) -> Vec<Vec<Datum>> {
    let row = |name: String| {
        let info = Zone::lookup(&name)?.at(now);
        Some([vec![Datum::text(&*name)], abbreviation(&info.abbreviation, info.offset, info.dst)].concat())
    };
    Zone::names().into_iter().filter_map(row).collect()
}

/// The abbreviations that a zone has used, as they are meant at an instant.
fn zone_abbreviations(zone: &Zone, now: i64) -> Vec<Vec<Datum>> {
    let row = |name: &str| zone.abbreviation_offset_at(name, now).map(|(offset, dst)| abbreviation(name, offset, dst));
    zone.abbreviations().into_iter().filter_map(row).collect()
}

/// The abbreviations that are understood in all zones.
fn general_abbreviations(now: i64) -> Vec<Vec<Datum>> {
    let row = |(lower, meaning): &(&str, Meaning)| {
        let name = lower.to_ascii_uppercase();
        let (offset, dst) = match meaning {
            Meaning::Fixed(offset, dst) => (*offset, *dst),
            Meaning::Zone(zone) => {
                let zone = Zone::lookup(zone)?;
                let local = || {
                    let info = zone.at(now);
                    (info.offset, info.dst)
                };
                zone.abbreviation_offset_at(&name, now).unwrap_or_else(local)
            }
        };
        Some(abbreviation(&name, offset, dst))
    };
    ABBREVIATIONS.iter().filter_map(row).collect()
}

fn abbreviation(name: &str, offset: i32, dst: bool) -> Vec<Datum> {
    let offset = Interval { months: 0, days: 0, micros: i64::from(offset) * MICROS_PER_SECOND };
    vec![Datum::text(name), Datum::Interval(offset), Datum::Bool(dst)]
}

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
            // An infinite start would continue for ever.
            Ok(next) => self.next = Some(next).filter(|_| is_finite_timestamp(current)),
            Err(e) => {
                self.next = None;
                return Some(Err(e));
            }
        }
        Some(Ok(vec![Datum::Int8(current)]))
    }
}
