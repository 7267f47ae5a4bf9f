//! Casts among the date and time types, and AT TIME ZONE.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::datetime::parse::{Abbreviation, dynamic_offset, zone_abbreviation};
use melba_types::datetime::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, MICROS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_INFINITY,
    TIMESTAMP_NEGATIVE_INFINITY, from_local, is_finite_timestamp, to_local, unix_seconds,
};
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, TimeTz, err, interval};

use super::{date_out_of_range_for_timestamp, session_zone, timestamp_out_of_range, valid_timestamp};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("date_timestamp", |_, a| date_to_timestamp(a[0].as_i32()).map(Datum::Int8)),
    ("date_timestamptz", |c, a| zoned(date_to_timestamp(a[0].as_i32())?, &session_zone(c.session)).map(Datum::Int8)),
    ("timestamp_date", |_, a| Ok(Datum::Int4(timestamp_to_date(a[0].as_i64())))),
    ("timestamptz_date", |c, a| Ok(Datum::Int4(timestamp_to_date(local(a[0].as_i64(), &session_zone(c.session))?)))),
    ("timestamp_time", |_, a| Ok(time_of_day(a[0].as_i64()))),
    ("timestamptz_time", |c, a| {
        let timestamp = a[0].as_i64();
        if !is_finite_timestamp(timestamp) {
            return Ok(Datum::Null);
        }
        Ok(time_of_day(local(timestamp, &session_zone(c.session))?))
    }),
    ("timestamptz_timetz", |c, a| {
        let timestamp = a[0].as_i64();
        if !is_finite_timestamp(timestamp) {
            return Ok(Datum::Null);
        }
        let offset = session_zone(c.session).offset_at(unix_seconds(timestamp));
        let local = timestamp + i64::from(offset) * MICROS_PER_SECOND;
        Ok(Datum::TimeTz(TimeTz { micros: local.rem_euclid(MICROS_PER_DAY), zone_seconds_west: -offset }))
    }),
    ("timestamp_timestamptz", |c, a| zoned(a[0].as_i64(), &session_zone(c.session)).map(Datum::Int8)),
    ("timestamptz_timestamp", |c, a| local(a[0].as_i64(), &session_zone(c.session)).map(Datum::Int8)),
    ("timestamp_at_local", |c, a| zoned(a[0].as_i64(), &session_zone(c.session)).map(Datum::Int8)),
    ("timestamptz_at_local", |c, a| local(a[0].as_i64(), &session_zone(c.session)).map(Datum::Int8)),
    ("time_timetz", |c, a| {
        let zone = session_zone(c.session);
        let today = to_local(c.session.transaction_timestamp(), &zone).unwrap_or(0);
        let at = today - today.rem_euclid(MICROS_PER_DAY) + a[0].as_i64();
        let offset = zone.offset_of_local(unix_seconds(at));
        Ok(Datum::TimeTz(TimeTz { micros: a[0].as_i64(), zone_seconds_west: -offset }))
    }),
    ("timetz_time", |_, a| Ok(Datum::Int8(a[0].as_timetz().micros))),
    ("time_interval", |_, a| Ok(Datum::Interval(Interval { months: 0, days: 0, micros: a[0].as_i64() }))),
    ("interval_time", |_, a| {
        let value = a[0].as_interval();
        if !value.is_finite() {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "cannot convert infinite interval to time"));
        }
        Ok(Datum::Int8(value.micros.rem_euclid(MICROS_PER_DAY)))
    }),
    ("datetime_timestamp", |_, a| date_and_time(a[0].as_i32(), a[1].as_i64()).map(Datum::Int8)),
    ("timedate_pl_1296", |_, a| date_and_time(a[1].as_i32(), a[0].as_i64()).map(Datum::Int8)),
    ("datetimetz_timestamptz", |_, a| date_and_timetz(a[0].as_i32(), a[1].as_timetz()).map(Datum::Int8)),
    ("timetzdate_pl_1298", |_, a| date_and_timetz(a[1].as_i32(), a[0].as_timetz()).map(Datum::Int8)),
    ("timestamptz_1176", |c, a| zoned(date_and_time(a[0].as_i32(), a[1].as_i64())?, &session_zone(c.session)).map(Datum::Int8)),
    ("timestamp_zone", |c, a| {
        at_zone(a[1].as_i64(), |timestamp| {
            let place = place_of_name(c, a[0].as_str())?;
            let offset = place.offset_of_local(unix_seconds(timestamp));
            Ok(timestamp.checked_sub(i64::from(offset) * MICROS_PER_SECOND))
        })
    }),
    ("timestamptz_zone", |c, a| {
        at_zone(a[1].as_i64(), |timestamp| {
            let place = place_of_name(c, a[0].as_str())?;
            let offset = place.offset_at(unix_seconds(timestamp));
            Ok(timestamp.checked_add(i64::from(offset) * MICROS_PER_SECOND))
        })
    }),
    ("timestamp_izone", |c, a| {
        at_zone(a[1].as_i64(), |t| Ok(t.checked_sub(offset_of_interval(c, a[0].as_interval())? * MICROS_PER_SECOND)))
    }),
    ("timestamptz_izone", |c, a| {
        at_zone(a[1].as_i64(), |t| Ok(t.checked_add(offset_of_interval(c, a[0].as_interval())? * MICROS_PER_SECOND)))
    }),
    ("timetz_zone", |c, a| {
        let place = place_of_name(c, a[0].as_str())?;
        Ok(timetz_at(a[1].as_timetz(), place.offset_at(unix_seconds(c.session.transaction_timestamp()))))
    }),
    ("timetz_izone", |c, a| Ok(timetz_at(a[1].as_timetz(), offset_of_interval(c, a[0].as_interval())? as i32))),
    ("timetz_at_local", |c, a| {
        let offset = session_zone(c.session).offset_at(unix_seconds(c.session.transaction_timestamp()));
        Ok(timetz_at(a[0].as_timetz(), offset))
    }),
];

/// Midnight at the start of a date.
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEGATIVE_INFINITY => Ok(TIMESTAMP_NEGATIVE_INFINITY),
        _ => {
            let midnight = i64::from(date).checked_mul(MICROS_PER_DAY).filter(|t| *t < TIMESTAMP_END);
            midnight.ok_or_else(date_out_of_range_for_timestamp)
        }
    }
}

/// The date part.
pub fn timestamp_to_date(timestamp: i64) -> i32 {
    match timestamp {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEGATIVE_INFINITY => DATE_NEGATIVE_INFINITY,
        // Timestamps span fewer days than dates do.
        _ => timestamp.div_euclid(MICROS_PER_DAY) as i32,
    }
}

fn time_of_day(timestamp: i64) -> Datum {
    if is_finite_timestamp(timestamp) { Datum::Int8(timestamp.rem_euclid(MICROS_PER_DAY)) } else { Datum::Null }
}

/// The wall-clock time of an instant; infinities stay.
pub fn local(timestamptz: i64, zone: &Zone) -> Result<i64> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(timestamptz);
    }
    valid_timestamp(to_local(timestamptz, zone))
}

/// The instant of a wall-clock time; infinities stay.
pub fn zoned(timestamp: i64, zone: &Zone) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    from_local(timestamp, zone).ok_or_else(timestamp_out_of_range)
}

fn date_and_time(date: i32, time: i64) -> Result<i64> {
    let midnight = date_to_timestamp(date)?;
    if !is_finite_timestamp(midnight) {
        return Ok(midnight);
    }
    valid_timestamp(midnight.checked_add(time))
}

fn date_and_timetz(date: i32, time: TimeTz) -> Result<i64> {
    let midnight = match date_to_timestamp(date) {
        Ok(midnight) if !is_finite_timestamp(midnight) => return Ok(midnight),
        Ok(midnight) => midnight,
        // The zone may move the last day's times back into range; PostgreSQL still refuses the day.
        Err(_) => return Err(date_out_of_range_for_timestamp()),
    };
    let instant = midnight + time.micros + i64::from(time.zone_seconds_west) * MICROS_PER_SECOND;
    valid_timestamp(Some(instant)).map_err(|_| date_out_of_range_for_timestamp())
}

fn timetz_at(time: TimeTz, offset: i32) -> Datum {
    let shift = i64::from(time.zone_seconds_west) + i64::from(offset);
    let micros = (time.micros + shift * MICROS_PER_SECOND).rem_euclid(MICROS_PER_DAY);
    Datum::TimeTz(TimeTz { micros, zone_seconds_west: -offset })
}

fn at_zone(timestamp: i64, move_it: impl Fn(i64) -> Result<Option<i64>>) -> Result<Datum> {
    if !is_finite_timestamp(timestamp) {
        return Ok(Datum::Int8(timestamp));
    }
    valid_timestamp(move_it(timestamp)?).map(Datum::Int8)
}

/// The meaning of a zone name given to AT TIME ZONE.
enum Place {
    Fixed(i32),
    Zone(Zone),
    Abbreviation(Zone, String),
}

impl Place {
    fn offset_of_local(&self, local_seconds: i64) -> i32 {
        match self {
            Place::Fixed(offset) => *offset,
            Place::Zone(zone) => zone.offset_of_local(local_seconds),
            Place::Abbreviation(zone, name) => dynamic_offset(local_seconds, name, zone),
        }
    }

    fn offset_at(&self, seconds: i64) -> i32 {
        match self {
            Place::Fixed(offset) => *offset,
            Place::Zone(zone) => zone.offset_at(seconds),
            Place::Abbreviation(zone, name) => zone
                .abbreviation_offset_at(&name.to_ascii_uppercase(), seconds)
                .map_or_else(|| zone.offset_at(seconds), |(offset, _)| offset),
        }
    }
}

/// Abbreviations come before zone names.
fn place_of_name(call: &CallInfo<'_>, name: &str) -> Result<Place> {
    let lower = name.to_ascii_lowercase();
    if let Some(meaning) = zone_abbreviation(&lower, &session_zone(call.session)) {
        return Ok(match meaning {
            Abbreviation::Fixed(offset, _) => Place::Fixed(offset),
            Abbreviation::Dynamic(zone) => Place::Abbreviation(zone, lower),
        });
    }
    let zone = Zone::lookup(name);
    zone.map(Place::Zone).ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized"))
}

/// The zone of a name or abbreviation.
pub fn zone_of_name(call: &CallInfo<'_>, name: &str) -> Result<Zone> {
    Ok(match place_of_name(call, name)? {
        Place::Fixed(offset) => Zone::fixed(offset),
        Place::Zone(zone) | Place::Abbreviation(zone, _) => zone,
    })
}

/// Seconds east.
fn offset_of_interval(call: &CallInfo<'_>, zone: Interval) -> Result<i64> {
    let shown = || {
        let mut out = Vec::new();
        interval::write(&zone, call.session.format().interval_style, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    if !zone.is_finite() {
        return Err(err!(INVALID_PARAMETER_VALUE, "interval time zone \"{}\" must be finite", shown()));
    }
    if zone.months != 0 || zone.days != 0 {
        let shown = shown();
        return Err(err!(INVALID_PARAMETER_VALUE, "interval time zone \"{shown}\" must not include months or days"));
    }
    Ok(zone.micros / MICROS_PER_SECOND)
}
