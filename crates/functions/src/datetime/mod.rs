//! date, time, timetz, timestamp, timestamptz, interval: input and output, and everything computed with them.

mod arithmetic;
mod compare;
mod convert;
mod extract;
mod make;
mod range_frame;
mod series;
mod truncate;
mod types;
mod vectors;

pub(crate) use self::compare::widened;
pub use extract::{integer_parts_of_dates, part_of_timestamp};
pub use series::SETS;
pub use types::{TYPES, date_of_civil, round_timestamp};
pub use vectors::VECTORS;

use melba_fmgr::{ScalarFn, Session};
use melba_types::datetime::{ParseSettings, is_valid_timestamp};
use melba_types::timezone::Zone;
use melba_types::{DbError, Result, err};

pub const TABLES: &[&[(&str, ScalarFn)]] = &[
    arithmetic::FUNCTIONS,
    compare::COMPARISONS,
    compare::FUNCTIONS,
    &compare::DATE_TIMESTAMPTZ,
    &compare::TIMESTAMPTZ_DATE,
    &compare::TIMESTAMP_TIMESTAMPTZ,
    &compare::TIMESTAMPTZ_TIMESTAMP,
    convert::FUNCTIONS,
    extract::FUNCTIONS,
    make::FUNCTIONS,
    range_frame::FUNCTIONS,
    truncate::FUNCTIONS,
    types::FUNCTIONS,
];

/// The session's time zone. The setting was checked when it was set; an unknown zone can only be UTC then.
pub fn session_zone(session: &dyn Session) -> Zone {
    Zone::lookup(&session.format().time_zone).unwrap_or_else(Zone::utc)
}

/// The settings for reading date text. Only texts such as `now` ask for the time: constants with them are of one statement.
pub fn parse_settings<'a>(session: &dyn Session, zone: &'a Zone, now: &'a dyn Fn() -> i64) -> ParseSettings<'a> {
    ParseSettings { order: session.format().date_order, zone, now }
}

pub fn timestamp_out_of_range() -> DbError {
    err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

pub fn date_out_of_range_for_timestamp() -> DbError {
    err!(DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

/// An instant plus an interval, whose months and days are of the session's wall clock.
pub fn add_interval_to_instant(session: &dyn Session, at: i64, interval: &melba_types::Interval) -> Result<i64> {
    arithmetic::add_interval(at, interval, Some(&session_zone(session)))
}

fn valid_timestamp(timestamp: Option<i64>) -> Result<i64> {
    timestamp.filter(|t| is_valid_timestamp(*t)).ok_or_else(timestamp_out_of_range)
}

#[cfg(test)]
mod tests;
