//! Dates and times: the calendar, the parser, the printer.
//!
//! A date is days since 2000-01-01, a time microseconds since midnight, a timestamp microseconds since 2000-01-01 00:00
//! (UTC for timestamptz). The extreme values of each integer are the infinities.

pub mod abbreviations;
pub mod calendar;
pub mod format;
pub mod keywords;
pub mod parse;
pub(crate) mod scan;

pub use calendar::{Civil, date_of_julian, julian_of_date};
pub use parse::{DateTimeError, ParseSettings, ParsedTimestamp};

use crate::timezone::Zone;

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
pub const DATE_INFINITY: i32 = i32::MAX;
pub const TIMESTAMP_NEGATIVE_INFINITY: i64 = i64::MIN;
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;

/// Julian day of 2000-01-01.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// 1970-01-01 as a date.
pub const UNIX_EPOCH_DATE: i32 = -10_957;
/// 1970-01-01 as a timestamp.
pub const UNIX_EPOCH_MICROS: i64 = UNIX_EPOCH_DATE as i64 * MICROS_PER_DAY;
/// The first finite date, 4714-11-24 BC.
pub const DATE_MIN: i32 = -EPOCH_JULIAN;
/// The day after the last finite date, 5874897-12-31.
pub const DATE_END: i32 = 2_147_483_494 - EPOCH_JULIAN;
/// The first finite timestamp.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// The instant after the last finite timestamp, 294276-12-31.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateStyle {
    Iso,
    Sql,
    Postgres,
    German,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

pub fn is_finite_date(date: i32) -> bool {
    date != DATE_NEGATIVE_INFINITY && date != DATE_INFINITY
}

pub fn is_finite_timestamp(timestamp: i64) -> bool {
    timestamp != TIMESTAMP_NEGATIVE_INFINITY && timestamp != TIMESTAMP_INFINITY
}

pub fn is_valid_timestamp(timestamp: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp)
}

pub fn is_valid_date(date: i32) -> bool {
    (DATE_MIN..DATE_END).contains(&date)
}

/// Whole seconds since 1970-01-01 of a timestamp (rounded down).
pub fn unix_seconds(timestamp: i64) -> i64 {
    timestamp.div_euclid(MICROS_PER_SECOND) - UNIX_EPOCH_MICROS / MICROS_PER_SECOND
}

/// Wall-clock microseconds in `zone` of an instant; `None` on overflow.
pub fn to_local(timestamptz: i64, zone: &Zone) -> Option<i64> {
    let offset = zone.offset_at(unix_seconds(timestamptz));
    timestamptz.checked_add(i64::from(offset) * MICROS_PER_SECOND)
}

/// The instant of wall-clock microseconds in `zone`; `None` when it is out of range.
pub fn from_local(timestamp: i64, zone: &Zone) -> Option<i64> {
    let offset = zone.offset_of_local(unix_seconds(timestamp));
    timestamp.checked_sub(i64::from(offset) * MICROS_PER_SECOND).filter(|t| is_valid_timestamp(*t))
}

/// Rounds microseconds to `precision` fractional digits of a second, halves away from zero.
pub fn round_micros(micros: i64, precision: i32) -> i64 {
    const SCALES: [i64; 7] = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let Some(&scale) = usize::try_from(precision).ok().and_then(|p| SCALES.get(p)) else { return micros };
    if scale == 1 {
        return micros;
    }
    let half = scale / 2;
    if micros >= 0 { micros.saturating_add(half) / scale * scale } else { -((half - micros) / scale * scale) }
}
