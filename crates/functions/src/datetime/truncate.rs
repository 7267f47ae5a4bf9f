//! date_trunc and date_bin.

use melba_fmgr::ScalarFn;
use melba_types::datetime::calendar::{Civil, date_of_julian, iso_week, iso_year, iso_year_start};
use melba_types::datetime::keywords::Unit;
use melba_types::datetime::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use melba_types::datetime::{from_local, is_finite_timestamp, to_local, unix_seconds};
use melba_types::timezone::Zone;
use melba_types::{Datum, DbError, Interval, Result, err, interval};

use super::extract::unit_of;
use super::{session_zone, timestamp_out_of_range, valid_timestamp};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("timestamp_trunc", |_, a| truncate_timestamp(a[0].as_str(), a[1].as_i64()).map(Datum::Int8)),
    ("timestamptz_trunc", |c, a| truncate_zoned(a[0].as_str(), a[1].as_i64(), &session_zone(c.session)).map(Datum::Int8)),
    ("timestamptz_trunc_zone", |c, a| {
        let zone = super::convert::zone_of_name(c, a[2].as_str())?;
        truncate_zoned(a[0].as_str(), a[1].as_i64(), &zone).map(Datum::Int8)
    }),
    ("interval_trunc", |_, a| truncate_interval(a[0].as_str(), a[1].as_interval()).map(Datum::Interval)),
    ("timestamp_bin", |_, a| bin(a[0].as_interval(), a[1].as_i64(), a[2].as_i64()).map(Datum::Int8)),
    ("timestamptz_bin", |_, a| bin(a[0].as_interval(), a[1].as_i64(), a[2].as_i64()).map(Datum::Int8)),
];

const TIMESTAMP: &str = "timestamp without time zone";
const TIMESTAMPTZ: &str = "timestamp with time zone";

/// The unit to truncate to.
pub fn truncation_unit(name: &str, type_name: &str) -> Result<Unit> {
    match unit_of(name, type_name)? {
        // Only EXTRACT knows these.
        Unit::Dow | Unit::IsoDow | Unit::Doy | Unit::IsoYear | Unit::Julian | Unit::Epoch | Unit::Reserved(_) => {
            Err(err!(INVALID_PARAMETER_VALUE, "unit \"{}\" not recognized for type {type_name}", name.to_lowercase()))
        }
        Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute => Err(not_supported(name, type_name)),
        unit => Ok(unit),
    }
}

fn not_supported(name: &str, type_name: &str) -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "unit \"{}\" not supported for type {type_name}", name.to_lowercase())
}

/// Microseconds of a unit that divides the day.
fn unit_micros(unit: Unit) -> Option<i64> {
    Some(match unit {
        Unit::Microsecond => 1,
        Unit::Millisecond => 1000,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Minute => MICROS_PER_MINUTE,
        Unit::Hour => MICROS_PER_HOUR,
        Unit::Day => MICROS_PER_DAY,
        _ => return None,
    })
}

/// A wall-clock time truncated; `None` when it is out of range.
pub fn truncate_local(unit: Unit, timestamp: i64) -> Option<i64> {
    if let Some(micros) = unit_micros(unit) {
        return Some(timestamp - timestamp.rem_euclid(micros));
    }
    let civil = Civil::of_timestamp(timestamp)?;
    let Civil { year, month, day, .. } = civil;
    let group = |size: i32| match year {
        1.. => (year + size - 1) / size * size - (size - 1),
        _ => -((size - 1 - (year - 1)) / size) * size + 1,
    };
    let (year, month, day) = match unit {
        Unit::Week => {
            let monday = iso_year_start(iso_year(year, month, day)) + (iso_week(year, month, day) - 1) * 7;
            date_of_julian(monday)
        }
        Unit::Month => (year, month, 1),
        Unit::Quarter => (year, (month - 1) / 3 * 3 + 1, 1),
        Unit::Year => (year, 1, 1),
        Unit::Decade if year > 0 => (year / 10 * 10, 1, 1),
        Unit::Decade => (-((8 - (year - 1)) / 10) * 10, 1, 1),
        Unit::Century => (group(100), 1, 1),
        _ => (group(1000), 1, 1),
    };
    Civil { year, month, day, ..Civil::default() }.timestamp()
}

fn truncate_timestamp(name: &str, timestamp: i64) -> Result<i64> {
    let unit = truncation_unit(name, TIMESTAMP)?;
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    valid_timestamp(truncate_local(unit, timestamp))
}

fn truncate_zoned(name: &str, timestamp: i64, zone: &Zone) -> Result<i64> {
    let unit = truncation_unit(name, TIMESTAMPTZ)?;
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let local = to_local(timestamp, zone).ok_or_else(timestamp_out_of_range)?;
    let truncated = truncate_local(unit, local).ok_or_else(timestamp_out_of_range)?;
    match unit {
        // Within a day the offset stays, so that an hour repeated by a transition is not confused with its second occurrence.
        Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour => {
            let offset = i64::from(zone.offset_at(unix_seconds(timestamp)));
            valid_timestamp(truncated.checked_sub(offset * MICROS_PER_SECOND))
        }
        _ => from_local(truncated, zone).ok_or_else(timestamp_out_of_range),
    }
}

fn truncate_interval(name: &str, value: Interval) -> Result<Interval> {
    let unit = truncation_unit(name, "interval")?;
    if unit == Unit::Week {
        return Err(not_supported(name, "interval").detail("Months usually have fractional weeks."));
    }
    if !value.is_finite() {
        return Ok(value);
    }
    let Interval { months, days, micros } = value;
    if unit == Unit::Day {
        return Ok(Interval { months, days, micros: 0 });
    }
    if let Some(size) = unit_micros(unit) {
        return Ok(Interval { months, days, micros: micros / size * size });
    }
    let size = match unit {
        Unit::Month => 1,
        Unit::Quarter => 3,
        Unit::Year => 12,
        Unit::Decade => 120,
        Unit::Century => 1200,
        _ => 12_000,
    };
    Ok(Interval { months: months / size * size, days: 0, micros: 0 })
}

fn bin(stride: Interval, timestamp: i64, origin: i64) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    if !is_finite_timestamp(origin) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "origin out of range"));
    }
    if !stride.is_finite() {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "timestamps cannot be binned into infinite intervals"));
    }
    if stride.months != 0 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "timestamps cannot be binned into intervals containing months or years"));
    }
    let size = i64::from(stride.days).checked_mul(MICROS_PER_DAY).and_then(|days| days.checked_add(stride.micros));
    let size = size.ok_or_else(interval::out_of_range)?;
    if size <= 0 {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "stride must be greater than zero"));
    }
    let distance = timestamp.checked_sub(origin).ok_or_else(interval::out_of_range)?;
    valid_timestamp(timestamp.checked_sub(distance.rem_euclid(size)))
}
