//! EXTRACT (numeric results) and date_part (double precision results).

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::datetime::calendar::{self, iso_week, iso_year, julian_of_date};
use melba_types::datetime::keywords::{Unit, unit};
use melba_types::datetime::{
    Civil, DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND,
    TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH_MICROS, is_finite_date, is_finite_timestamp, unix_seconds,
};
use melba_types::{Datum, DbError, Interval, Numeric, Result, TimeTz, err};

use super::convert::date_to_timestamp;
use super::{session_zone, timestamp_out_of_range};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("extract_date", |_, a| numeric(date_part(a[0].as_str(), a[1].as_i32())?)),
    ("extract_time", |_, a| numeric(time_part(a[0].as_str(), a[1].as_i64(), None)?)),
    ("extract_timetz", |_, a| numeric(timetz_part(a[0].as_str(), a[1].as_timetz())?)),
    ("extract_timestamp", |_, a| numeric(timestamp_part(a[0].as_str(), a[1].as_i64(), None)?)),
    ("extract_timestamptz", |c, a| numeric(timestamptz_part(c, a)?)),
    ("extract_interval", |_, a| numeric(interval_part(a[0].as_str(), a[1].as_interval())?)),
    ("date_part_1384", |_, a| double(timestamp_part(a[0].as_str(), date_to_timestamp(a[1].as_i32())?, None)?)),
    ("time_part", |_, a| double(time_part(a[0].as_str(), a[1].as_i64(), None)?)),
    ("timetz_part", |_, a| double(timetz_part(a[0].as_str(), a[1].as_timetz())?)),
    ("timestamp_part", |_, a| double(timestamp_part(a[0].as_str(), a[1].as_i64(), None)?)),
    ("timestamptz_part", |c, a| double(timestamptz_part(c, a)?)),
    ("interval_part", |_, a| double(interval_part(a[0].as_str(), a[1].as_interval())?)),
];

/// A part before it becomes a numeric or a double.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ExtractedPart {
    Integer(i64),
    /// `value / 10^scale`.
    Scaled(i64, u16),
    /// Microseconds of the day, and seconds that the zone adds.
    Instant(i64, i64),
    /// Microseconds, too many for 64 bits.
    Seconds(i128),
    /// Microseconds since 1970 of a timestamp too far from then for 64 bits: division decides how many decimals are exact.
    Remote(i128),
    /// Whole days and microseconds of the day.
    Julian(i64, i64),
    Infinity,
    NegativeInfinity,
    Null,
}

fn numeric(part: ExtractedPart) -> Result<Datum> {
    let integer = |value: i64| Numeric::from_parts(i128::from(value), 0);
    Ok(Datum::Numeric(match part {
        ExtractedPart::Integer(value) => integer(value),
        ExtractedPart::Scaled(value, scale) => Numeric::from_parts(i128::from(value), scale),
        ExtractedPart::Instant(time, seconds) => Numeric::from_parts(i128::from(time + seconds * MICROS_PER_SECOND), 6),
        ExtractedPart::Seconds(micros) => Numeric::from_parts(micros, 6),
        ExtractedPart::Remote(micros) => Numeric::from_parts(micros, 0).div(&integer(MICROS_PER_SECOND))?.round(6)?,
        // Division decides how many decimals there are.
        ExtractedPart::Julian(days, micros) => integer(days).add(&integer(micros).div(&integer(MICROS_PER_DAY))?)?,
        ExtractedPart::Infinity => Numeric::INFINITY,
        ExtractedPart::NegativeInfinity => Numeric::NEGATIVE_INFINITY,
        ExtractedPart::Null => return Ok(Datum::Null),
    }))
}

fn double(part: ExtractedPart) -> Result<Datum> {
    Ok(Datum::Float8(match part {
        ExtractedPart::Integer(value) => value as f64,
        ExtractedPart::Scaled(value, scale) => value as f64 / 10f64.powi(i32::from(scale)),
        ExtractedPart::Instant(time, seconds) => time as f64 / 1e6 + seconds as f64,
        ExtractedPart::Seconds(micros) | ExtractedPart::Remote(micros) => micros as f64 / 1e6,
        ExtractedPart::Julian(days, micros) => days as f64 + micros as f64 / MICROS_PER_DAY as f64,
        ExtractedPart::Infinity => f64::INFINITY,
        ExtractedPart::NegativeInfinity => f64::NEG_INFINITY,
        ExtractedPart::Null => return Ok(Datum::Null),
    }))
}

fn not_recognized(name: &str, type_name: &str) -> DbError {
    err!(INVALID_PARAMETER_VALUE, "unit \"{}\" not recognized for type {type_name}", name.to_lowercase())
}

fn not_supported(name: &str, type_name: &str) -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "unit \"{}\" not supported for type {type_name}", name.to_lowercase())
}

/// The unit of a name, or the error that the name is no unit.
pub fn unit_of(name: &str, type_name: &str) -> Result<Unit> {
    unit(name).ok_or_else(|| not_recognized(name, type_name))
}

const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";

fn timestamptz_part(call: &CallInfo<'_>, a: &[Datum]) -> Result<ExtractedPart> {
    let timestamp = a[1].as_i64();
    let offset = match is_finite_timestamp(timestamp) {
        true => session_zone(call.session).offset_at(unix_seconds(timestamp)),
        false => 0,
    };
    timestamp_part(a[0].as_str(), timestamp, Some(offset))
}

/// The part of a timestamp; `offset` (seconds east) when it has a time zone.
fn timestamp_part(name: &str, timestamp: i64, offset: Option<i32>) -> Result<ExtractedPart> {
    let type_name = if offset.is_some() { TIMESTAMPTZ } else { TIMESTAMP };
    let unit = unit_of(name, type_name)?;
    if !is_finite_timestamp(timestamp) {
        let oscillates = oscillates(unit) || matches!(unit, Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute);
        return infinite_part(unit, oscillates, timestamp == TIMESTAMP_NEGATIVE_INFINITY)
            .ok_or_else(|| not_supported(name, type_name));
    }
    part_of_timestamp(unit, timestamp, offset)?.ok_or_else(|| not_supported(name, type_name)).map(|part| part.0)
}

/// A part, for callers in other modules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimestampPart(ExtractedPart);

impl TimestampPart {
    /// The part as a double, as date_part returns it.
    pub fn double(self) -> f64 {
        match double(self.0) {
            Ok(Datum::Float8(value)) => value,
            _ => 0.0,
        }
    }
}

/// The parts of dates, if all are integers: of a unit that dates have, and of finite dates.
pub fn integer_parts_of_dates(name: &str, dates: &[i32]) -> Option<Vec<i64>> {
    let unit = unit(name)?;
    let mut last = (DATE_INFINITY, 0);
    let mut parts = Vec::with_capacity(dates.len());
    for date in dates {
        if *date != last.0 {
            let Ok(ExtractedPart::Integer(part)) = part_of_date(unit, name, *date) else { return None };
            last = (*date, part);
        } else if *date == DATE_INFINITY {
            return None;
        }
        parts.push(last.1);
    }
    Some(parts)
}

/// The part of a finite timestamp; `None` when timestamps have no such unit.
pub fn part_of_timestamp(unit: Unit, timestamp: i64, offset: Option<i32>) -> Result<Option<TimestampPart>> {
    let east = i64::from(offset.unwrap_or(0));
    if unit == Unit::Epoch {
        let part = match timestamp.checked_sub(UNIX_EPOCH_MICROS) {
            Some(micros) => ExtractedPart::Scaled(micros, 6),
            None => ExtractedPart::Remote(i128::from(timestamp) - i128::from(UNIX_EPOCH_MICROS)),
        };
        return Ok(Some(TimestampPart(part)));
    }
    let local = timestamp.checked_add(east * MICROS_PER_SECOND).ok_or_else(timestamp_out_of_range)?;
    let civil = Civil::of_timestamp(local).ok_or_else(timestamp_out_of_range)?;
    let part = match unit {
        Unit::Timezone => offset.map(|_| ExtractedPart::Integer(east)),
        Unit::TimezoneHour => offset.map(|_| ExtractedPart::Integer(east / 3600)),
        Unit::TimezoneMinute => offset.map(|_| ExtractedPart::Integer(east / 60 % 60)),
        Unit::Julian => Some(ExtractedPart::Julian(i64::from(civil.julian()), civil.time())),
        _ => clock_part(unit, &civil).or_else(|| calendar_part(unit, &civil)),
    };
    Ok(part.map(TimestampPart))
}

fn clock_part(unit: Unit, civil: &Civil) -> Option<ExtractedPart> {
    let micros = i64::from(civil.second) * MICROS_PER_SECOND + i64::from(civil.micros);
    Some(match unit {
        Unit::Microsecond => ExtractedPart::Integer(micros),
        Unit::Millisecond => ExtractedPart::Scaled(micros, 3),
        Unit::Second => ExtractedPart::Scaled(micros, 6),
        Unit::Minute => ExtractedPart::Integer(i64::from(civil.minute)),
        Unit::Hour => ExtractedPart::Integer(i64::from(civil.hour)),
        _ => return None,
    })
}

fn calendar_part(unit: Unit, civil: &Civil) -> Option<ExtractedPart> {
    let Civil { year, month, day, .. } = *civil;
    let weekday = || calendar::weekday_of_julian(civil.julian());
    // There is no year 0, nor decade, century or millennium of it.
    let group = |size: i32| if year > 0 { (year + size - 1) / size } else { -((size - 1 - (year - 1)) / size) };
    let value = match unit {
        Unit::Day => day,
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        Unit::Week => iso_week(year, month, day),
        Unit::Year if year > 0 => year,
        Unit::Year => year - 1,
        Unit::Decade if year >= 0 => year / 10,
        Unit::Decade => -((8 - (year - 1)) / 10),
        Unit::Century => group(100),
        Unit::Millennium => group(1000),
        Unit::IsoYear => match iso_year(year, month, day) {
            positive @ 1.. => positive,
            other => other - 1,
        },
        Unit::Dow => weekday(),
        Unit::IsoDow if weekday() == 0 => 7,
        Unit::IsoDow => weekday(),
        Unit::Doy => civil.julian() - julian_of_date(year, 1, 1) + 1,
        _ => return None,
    };
    Some(ExtractedPart::Integer(i64::from(value)))
}

/// Units whose value comes back again and again.
fn oscillates(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Microsecond
            | Unit::Millisecond
            | Unit::Second
            | Unit::Minute
            | Unit::Hour
            | Unit::Day
            | Unit::Month
            | Unit::Quarter
            | Unit::Week
            | Unit::Dow
            | Unit::IsoDow
            | Unit::Doy
    )
}

fn infinite_part(unit: Unit, oscillates: bool, negative: bool) -> Option<ExtractedPart> {
    if oscillates {
        return Some(ExtractedPart::Null);
    }
    let grows =
        matches!(unit, Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium | Unit::Julian | Unit::IsoYear | Unit::Epoch);
    grows.then_some(if negative { ExtractedPart::NegativeInfinity } else { ExtractedPart::Infinity })
}

fn date_part(name: &str, date: i32) -> Result<ExtractedPart> {
    part_of_date(unit_of(name, "date")?, name, date)
}

/// `name`: of the unit, for errors.
fn part_of_date(unit: Unit, name: &str, date: i32) -> Result<ExtractedPart> {
    let of_day = matches!(unit, Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour);
    if !is_finite_date(date) {
        debug_assert!(date == DATE_INFINITY || date == DATE_NEGATIVE_INFINITY);
        let part = infinite_part(unit, oscillates(unit) && !of_day, date == DATE_NEGATIVE_INFINITY);
        return part.filter(|_| !of_day).ok_or_else(|| not_supported(name, "date"));
    }
    let civil = Civil::of_date(date);
    let part = match unit {
        Unit::Julian => Some(ExtractedPart::Integer(i64::from(civil.julian()))),
        Unit::Epoch => Some(ExtractedPart::Integer((i64::from(date) - UNIX_EPOCH_MICROS / MICROS_PER_DAY) * 86_400)),
        _ => calendar_part(unit, &civil),
    };
    part.ok_or_else(|| not_supported(name, "date"))
}

const TIME: &str = "time without time zone";
const TIMETZ: &str = "time with time zone";

fn timetz_part(name: &str, time: TimeTz) -> Result<ExtractedPart> {
    time_part(name, time.micros, Some(time.zone_seconds_west))
}

fn time_part(name: &str, time: i64, west: Option<i32>) -> Result<ExtractedPart> {
    let type_name = if west.is_some() { TIMETZ } else { TIME };
    let unit = unit_of(name, type_name)?;
    let east = -i64::from(west.unwrap_or(0));
    let part = match unit {
        Unit::Timezone => west.map(|_| ExtractedPart::Integer(east)),
        Unit::TimezoneHour => west.map(|_| ExtractedPart::Integer(east / 3600)),
        Unit::TimezoneMinute => west.map(|_| ExtractedPart::Integer(east / 60 % 60)),
        Unit::Epoch => Some(ExtractedPart::Instant(time, -east)),
        // Words that are no unit of intervals are not recognized here at all.
        Unit::Dow | Unit::IsoDow | Unit::Doy | Unit::IsoYear | Unit::Julian | Unit::Reserved(_) => {
            return Err(if matches!(unit, Unit::Reserved(_)) {
                not_recognized(name, type_name)
            } else {
                not_supported(name, type_name)
            });
        }
        _ => clock_part(unit, &Civil::of_time(time)),
    };
    part.ok_or_else(|| not_supported(name, type_name))
}

fn interval_part(name: &str, interval: Interval) -> Result<ExtractedPart> {
    let unit = unit_of(name, "interval")?;
    if !interval.is_finite() {
        let oscillates = oscillates(unit) && !matches!(unit, Unit::Hour | Unit::Day | Unit::Dow | Unit::IsoDow | Unit::Doy);
        let negative = interval == Interval::NEGATIVE_INFINITY;
        let part = match unit {
            Unit::Hour | Unit::Day if negative => Some(ExtractedPart::NegativeInfinity),
            Unit::Hour | Unit::Day => Some(ExtractedPart::Infinity),
            Unit::Julian | Unit::IsoYear => None,
            _ => infinite_part(unit, oscillates, negative),
        };
        return part.ok_or_else(|| not_supported(name, "interval"));
    }
    let Interval { months, days, micros } = interval;
    let of_minute = micros % MICROS_PER_MINUTE;
    let years = i64::from(months / 12);
    let month = i64::from(months % 12);
    Ok(match unit {
        Unit::Microsecond => ExtractedPart::Integer(of_minute),
        Unit::Millisecond => ExtractedPart::Scaled(of_minute, 3),
        Unit::Second => ExtractedPart::Scaled(of_minute, 6),
        Unit::Minute => ExtractedPart::Integer(micros / MICROS_PER_MINUTE % 60),
        Unit::Hour => ExtractedPart::Integer(micros / MICROS_PER_HOUR),
        Unit::Day => ExtractedPart::Integer(i64::from(days)),
        Unit::Week => ExtractedPart::Integer(i64::from(days / 7)),
        Unit::Month => ExtractedPart::Integer(month),
        Unit::Quarter if months >= 0 => ExtractedPart::Integer(month / 3 + 1),
        Unit::Quarter => ExtractedPart::Integer(-(-month / 3 + 1)),
        Unit::Year => ExtractedPart::Integer(years),
        Unit::Decade => ExtractedPart::Integer(years / 10),
        Unit::Century => ExtractedPart::Integer(years / 100),
        Unit::Millennium => ExtractedPart::Integer(years / 1000),
        Unit::Epoch => {
            // A year is 365.25 days: count quarter days.
            let quarter_days = 1461 * i128::from(years) + 120 * i128::from(month) + 4 * i128::from(days);
            let total = quarter_days * i128::from(MICROS_PER_DAY / 4) + i128::from(micros);
            i64::try_from(total).map_or(ExtractedPart::Seconds(total), |micros| ExtractedPart::Scaled(micros, 6))
        }
        Unit::Reserved(_) => return Err(not_recognized(name, "interval")),
        _ => return Err(not_supported(name, "interval")),
    })
}
