//! Constructors from parts, the clock, and conversion from Unix time.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::datetime::{
    Civil, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, calendar,
    is_valid_timestamp, parse::parse_offset, to_local,
};
use melba_types::timezone::Zone;
use melba_types::{Datum, DbError, Interval, Result, err, interval};

use super::convert::{zone_of_name, zoned};
use super::{session_zone, timestamp_out_of_range, types::date_of_civil};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("make_date", |_, a| {
        let civil = civil_of_parts(a[0].as_i32(), a[1].as_i32(), a[2].as_i32())?;
        let date = date_of_civil(&civil);
        date.map(Datum::Int4).ok_or_else(|| date_out_of_range(a[0].as_i32(), a[1].as_i32(), a[2].as_i32()))
    }),
    ("make_time", |_, a| time_of_parts(a[0].as_i32(), a[1].as_i32(), a[2].as_f64()).map(Datum::Int8)),
    ("make_timestamp", |_, a| make_timestamp(a).map(Datum::Int8)),
    ("make_timestamptz", |c, a| zoned(make_timestamp(a)?, &session_zone(c.session)).map(Datum::Int8)),
    ("make_timestamptz_at_timezone", |c, a| {
        let zone = zone_of_argument(c, a[6].as_str())?;
        zoned(make_timestamp(a)?, &zone).map(Datum::Int8)
    }),
    ("make_interval", make_interval),
    ("float8_timestamptz", |_, a| from_unix_time(a[0].as_f64()).map(Datum::Int8)),
    ("now", |c, _| Ok(Datum::Int8(c.session.transaction_timestamp()))),
    ("statement_timestamp", |c, _| Ok(Datum::Int8(c.session.statement_timestamp()))),
    ("clock_timestamp", |c, _| Ok(Datum::Int8(c.session.clock_timestamp()))),
    ("timeofday", time_of_day_text),
];

fn date_out_of_range(year: i32, month: i32, day: i32) -> DbError {
    err!(DATETIME_FIELD_OVERFLOW, "date out of range: {year}-{month:02}-{day:02}")
}

/// A calendar day; negative years are BC.
fn civil_of_parts(year: i32, month: i32, day: i32) -> Result<Civil> {
    let invalid = |year: i32| err!(DATETIME_FIELD_OVERFLOW, "date field value out of range: {year}-{month:02}-{day:02}");
    let astronomical = match year {
        0 | i32::MIN => return Err(invalid(year)),
        1.. => year,
        _ => year + 1,
    };
    if !(1..=12).contains(&month) || day < 1 || day > calendar::days_of_month(astronomical, month) {
        return Err(invalid(astronomical));
    }
    if !calendar::is_valid_julian(astronomical, month) {
        return Err(date_out_of_range(astronomical, month, day));
    }
    Ok(Civil { year: astronomical, month, day, ..Civil::default() })
}

fn time_of_parts(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let invalid = || {
        let mut seconds = Vec::new();
        melba_types::float::write_general(&mut seconds, second, 6);
        let seconds = String::from_utf8_lossy(&seconds).into_owned();
        err!(DATETIME_FIELD_OVERFLOW, "time field value out of range: {hour}:{minute:02}:{seconds:0>2}")
    };
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&second) {
        return Err(invalid());
    }
    let micros = (second * 1e6).round_ties_even() as i64;
    let time = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE + micros;
    if time > MICROS_PER_DAY { Err(invalid()) } else { Ok(time) }
}

fn make_timestamp(a: &[Datum]) -> Result<i64> {
    let (year, month, day) = (a[0].as_i32(), a[1].as_i32(), a[2].as_i32());
    let (hour, minute, second) = (a[3].as_i32(), a[4].as_i32(), a[5].as_f64());
    let civil = civil_of_parts(year, month, day)?;
    let time = time_of_parts(hour, minute, second)?;
    civil.timestamp().and_then(|t| t.checked_add(time)).filter(|t| is_valid_timestamp(*t)).ok_or_else(|| {
        err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{second:0>2}")
    })
}

/// A zone name, abbreviation or numeric offset (whose sign may be missing) as make_timestamptz takes it.
fn zone_of_argument(call: &CallInfo<'_>, name: &str) -> Result<Zone> {
    use melba_types::datetime::DateTimeError;
    let explicit = name.starts_with(['+', '-']);
    let first_digit = name.starts_with(|c: char| c.is_ascii_digit());
    if !explicit && !first_digit {
        return zone_of_name(call, name);
    }
    if first_digit {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid input syntax for type numeric time zone: \"{name}\"")
            .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match parse_offset(name) {
        Ok(offset) => Ok(Zone::fixed(offset)),
        Err(DateTimeError::OffsetOverflow) => Err(err!(INVALID_PARAMETER_VALUE, "numeric time zone \"{name}\" out of range")),
        Err(_) => Err(err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized")),
    }
}

fn make_interval(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let part = |i: usize| a[i].as_i32();
    let seconds = a[6].as_f64();
    let make = || -> Option<Interval> {
        let micros = (seconds * 1e6).round_ties_even();
        if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros) {
            return None;
        }
        let hours = i64::from(part(4)) * MICROS_PER_HOUR + i64::from(part(5)) * MICROS_PER_MINUTE;
        Some(Interval {
            months: part(0).checked_mul(12)?.checked_add(part(1))?,
            days: part(2).checked_mul(7)?.checked_add(part(3))?,
            micros: hours.checked_add(micros as i64)?,
        })
    };
    make().filter(Interval::is_finite).map(Datum::Interval).ok_or_else(interval::out_of_range)
}

fn from_unix_time(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { TIMESTAMP_INFINITY } else { TIMESTAMP_NEGATIVE_INFINITY });
    }
    let out_of_range = || {
        let mut text = Vec::new();
        melba_types::float::write_general(&mut text, seconds, 6);
        err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range: \"{}\"", String::from_utf8_lossy(&text))
    };
    // Seconds from 4714-11-24 BC to 294277.
    const FIRST: f64 = 86_400.0 * -2_440_588.0;
    const END: f64 = 86_400.0 * (109_203_528.0 - 2_440_588.0);
    if !(FIRST..END).contains(&seconds) {
        return Err(out_of_range());
    }
    let micros = ((seconds - 946_684_800.0) * 1e6).round_ties_even() as i64;
    if is_valid_timestamp(micros) { Ok(micros) } else { Err(out_of_range()) }
}

/// `Wed Jul 07 10:01:02.123456 2021 UTC`.
fn time_of_day_text(call: &CallInfo<'_>, _: &[Datum]) -> Result<Datum> {
    use melba_types::datetime::keywords::{MONTHS, WEEKDAYS};
    let zone = session_zone(call.session);
    let now = call.session.clock_timestamp();
    let civil = to_local(now, &zone).and_then(Civil::of_timestamp).ok_or_else(timestamp_out_of_range)?;
    let weekday = &WEEKDAYS[calendar::weekday_of_julian(civil.julian()) as usize][..3];
    let month = &MONTHS[(civil.month - 1) as usize][..3];
    let Civil { year, day, hour, minute, second, micros, .. } = civil;
    let abbreviation = zone.at(melba_types::datetime::unix_seconds(now)).abbreviation;
    Ok(Datum::text(format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} {year} {abbreviation}")))
}
