//! Sums and differences of dates, times and intervals.

use melba_fmgr::ScalarFn;
use melba_types::datetime::{
    Civil, DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, calendar,
    from_local, is_finite_date, is_finite_timestamp, is_valid_date, to_local, unix_seconds,
};
use melba_types::interval::out_of_range;
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, TimeTz, err};

use super::convert::date_to_timestamp;
use super::{session_zone, timestamp_out_of_range, valid_timestamp};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("date_pli", |_, a| add_days_to_date(a[0].as_i32(), i64::from(a[1].as_i32()))),
    ("date_mii", |_, a| add_days_to_date(a[0].as_i32(), -i64::from(a[1].as_i32()))),
    ("integer_pl_date_2550", |_, a| add_days_to_date(a[1].as_i32(), i64::from(a[0].as_i32()))),
    ("date_mi", |_, a| {
        let (a, b) = (a[0].as_i32(), a[1].as_i32());
        if !is_finite_date(a) || !is_finite_date(b) {
            return Err(err!(DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
        }
        Ok(Datum::Int4(a.wrapping_sub(b)))
    }),
    ("date_pl_interval", |_, a| date_plus_interval(&a[0], a[1].as_interval())),
    ("date_mi_interval", |_, a| {
        let timestamp = date_to_timestamp(a[0].as_i32())?;
        subtract_interval(timestamp, &a[1].as_interval(), None).map(Datum::Int8)
    }),
    ("interval_pl_date_2546", |_, a| date_plus_interval(&a[1], a[0].as_interval())),
    ("time_mi_time", |_, a| Ok(Datum::Interval(Interval { months: 0, days: 0, micros: a[0].as_i64() - a[1].as_i64() }))),
    ("time_pl_interval", |_, a| time_plus(a[0].as_i64(), a[1].as_interval(), false).map(Datum::Int8)),
    ("time_mi_interval", |_, a| time_plus(a[0].as_i64(), a[1].as_interval(), true).map(Datum::Int8)),
    ("interval_pl_time_1848", |_, a| time_plus(a[1].as_i64(), a[0].as_interval(), false).map(Datum::Int8)),
    ("timetz_pl_interval", |_, a| timetz_plus(a[0].as_timetz(), a[1].as_interval(), false)),
    ("timetz_mi_interval", |_, a| timetz_plus(a[0].as_timetz(), a[1].as_interval(), true)),
    ("interval_pl_timetz_2547", |_, a| timetz_plus(a[1].as_timetz(), a[0].as_interval(), false)),
    ("timestamp_mi", |_, a| difference(a[0].as_i64(), a[1].as_i64()).map(Datum::Interval)),
    ("timestamp_pl_interval", |_, a| add_interval(a[0].as_i64(), &a[1].as_interval(), None).map(Datum::Int8)),
    ("timestamp_mi_interval", |_, a| subtract_interval(a[0].as_i64(), &a[1].as_interval(), None).map(Datum::Int8)),
    ("interval_pl_timestamp_2548", |_, a| add_interval(a[1].as_i64(), &a[0].as_interval(), None).map(Datum::Int8)),
    ("timestamptz_pl_interval", |c, a| {
        add_interval(a[0].as_i64(), &a[1].as_interval(), Some(&session_zone(c.session))).map(Datum::Int8)
    }),
    ("timestamptz_mi_interval", |c, a| {
        subtract_interval(a[0].as_i64(), &a[1].as_interval(), Some(&session_zone(c.session))).map(Datum::Int8)
    }),
    ("interval_pl_timestamptz_2549", |c, a| {
        add_interval(a[1].as_i64(), &a[0].as_interval(), Some(&session_zone(c.session))).map(Datum::Int8)
    }),
    ("timestamptz_pl_interval_at_zone", |c, a| {
        let zone = super::convert::zone_of_name(c, a[2].as_str())?;
        add_interval(a[0].as_i64(), &a[1].as_interval(), Some(&zone)).map(Datum::Int8)
    }),
    ("timestamptz_mi_interval_at_zone", |c, a| {
        let zone = super::convert::zone_of_name(c, a[2].as_str())?;
        subtract_interval(a[0].as_i64(), &a[1].as_interval(), Some(&zone)).map(Datum::Int8)
    }),
    ("interval_pl", |_, a| a[0].as_interval().checked_add(&a[1].as_interval()).map(Datum::Interval)),
    ("interval_mi", |_, a| a[0].as_interval().checked_sub(&a[1].as_interval()).map(Datum::Interval)),
    ("interval_um", |_, a| a[0].as_interval().checked_neg().map(Datum::Interval)),
    ("interval_mul", |_, a| a[0].as_interval().multiply(a[1].as_f64()).map(Datum::Interval)),
    ("mul_d_interval", |_, a| a[1].as_interval().multiply(a[0].as_f64()).map(Datum::Interval)),
    ("interval_div", |_, a| a[0].as_interval().divide(a[1].as_f64()).map(Datum::Interval)),
    ("interval_justify_hours", |_, a| a[0].as_interval().justify_hours().map(Datum::Interval)),
    ("interval_justify_days", |_, a| a[0].as_interval().justify_days().map(Datum::Interval)),
    ("interval_justify_interval", |_, a| a[0].as_interval().justify().map(Datum::Interval)),
    ("timestamp_age", |_, a| age(a[0].as_i64(), a[1].as_i64(), 0, 0).map(Datum::Interval)),
    ("timestamptz_age", |c, a| zoned_age(a[0].as_i64(), a[1].as_i64(), &session_zone(c.session)).map(Datum::Interval)),
    // PostgreSQL defines these two in SQL: the age at midnight today.
    ("age_1386", |c, a| {
        let zone = session_zone(c.session);
        let today = midnight_today(c.session.transaction_timestamp(), &zone)?;
        let today = from_local(today, &zone).ok_or_else(timestamp_out_of_range)?;
        zoned_age(today, a[0].as_i64(), &zone).map(Datum::Interval)
    }),
    ("age_2059", |c, a| {
        let today = midnight_today(c.session.transaction_timestamp(), &session_zone(c.session))?;
        age(today, a[0].as_i64(), 0, 0).map(Datum::Interval)
    }),
    ("daterange_subdiff", |_, a| Ok(Datum::Float8(f64::from(a[0].as_i32()) - f64::from(a[1].as_i32())))),
    ("tsrange_subdiff", |_, a| Ok(Datum::Float8((a[0].as_i64() as f64 - a[1].as_i64() as f64) / 1e6))),
    ("tstzrange_subdiff", |_, a| Ok(Datum::Float8((a[0].as_i64() as f64 - a[1].as_i64() as f64) / 1e6))),
];

fn midnight_today(now: i64, zone: &Zone) -> Result<i64> {
    let local = to_local(now, zone).ok_or_else(timestamp_out_of_range)?;
    Ok(local - local.rem_euclid(MICROS_PER_DAY))
}

fn add_days_to_date(date: i32, days: i64) -> Result<Datum> {
    if date == DATE_INFINITY || date == DATE_NEGATIVE_INFINITY {
        return Ok(Datum::Int4(date));
    }
    let sum = i32::try_from(i64::from(date) + days).ok().filter(|d| is_valid_date(*d));
    sum.map(Datum::Int4).ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "date out of range"))
}

fn date_plus_interval(date: &Datum, interval: Interval) -> Result<Datum> {
    add_interval(date_to_timestamp(date.as_i32())?, &interval, None).map(Datum::Int8)
}

fn time_plus(time: i64, interval: Interval, subtract: bool) -> Result<i64> {
    if !interval.is_finite() {
        let verb = if subtract { "subtract infinite interval from" } else { "add infinite interval to" };
        return Err(err!(DATETIME_FIELD_OVERFLOW, "cannot {verb} time"));
    }
    let micros = if subtract { interval.micros.wrapping_neg() } else { interval.micros };
    Ok(time.wrapping_add(micros).rem_euclid(MICROS_PER_DAY))
}

fn timetz_plus(time: TimeTz, interval: Interval, subtract: bool) -> Result<Datum> {
    let micros = time_plus(time.micros, interval, subtract)?;
    Ok(Datum::TimeTz(TimeTz { micros, ..time }))
}

/// The difference of two timestamps in days and time.
pub fn difference(a: i64, b: i64) -> Result<Interval> {
    if let Some(infinite) = infinite_difference(a, b)? {
        return Ok(infinite);
    }
    let micros = a.checked_sub(b).ok_or_else(out_of_range)?;
    Interval { months: 0, days: 0, micros }.justify_hours()
}

/// The difference when either is infinite.
fn infinite_difference(a: i64, b: i64) -> Result<Option<Interval>> {
    let is_infinite = |t: i64| !is_finite_timestamp(t);
    match (a, b) {
        _ if a == b && is_infinite(a) => Err(out_of_range()),
        (TIMESTAMP_INFINITY, _) | (_, TIMESTAMP_NEGATIVE_INFINITY) => Ok(Some(Interval::INFINITY)),
        (TIMESTAMP_NEGATIVE_INFINITY, _) | (_, TIMESTAMP_INFINITY) => Ok(Some(Interval::NEGATIVE_INFINITY)),
        _ => Ok(None),
    }
}

/// A timestamp plus an interval: months, then days, then time. With a zone, months and days are of its wall clock.
pub fn add_interval(timestamp: i64, interval: &Interval, zone: Option<&Zone>) -> Result<i64> {
    let infinite = match *interval {
        Interval::INFINITY => Some(TIMESTAMP_INFINITY),
        Interval::NEGATIVE_INFINITY => Some(TIMESTAMP_NEGATIVE_INFINITY),
        _ => None,
    };
    if let Some(infinite) = infinite {
        if !is_finite_timestamp(timestamp) && timestamp != infinite {
            return Err(timestamp_out_of_range());
        }
        return Ok(infinite);
    }
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let mut sum = timestamp;
    if interval.months != 0 {
        sum = on_wall_clock(sum, zone, |local| add_months(local, interval.months))?;
    }
    if interval.days != 0 {
        sum = on_wall_clock(sum, zone, |local| {
            let civil = Civil::of_timestamp(local)?;
            let julian = civil.julian().checked_add(interval.days).filter(|j| *j >= 0)?;
            let (year, month, day) = calendar::date_of_julian(julian);
            Civil { year, month, day, ..civil }.timestamp()
        })?;
    }
    valid_timestamp(sum.checked_add(interval.micros))
}

pub fn subtract_interval(timestamp: i64, interval: &Interval, zone: Option<&Zone>) -> Result<i64> {
    add_interval(timestamp, &interval.checked_neg()?, zone)
}

fn on_wall_clock(timestamp: i64, zone: Option<&Zone>, change: impl Fn(i64) -> Option<i64>) -> Result<i64> {
    let changed = match zone {
        None => change(timestamp),
        Some(zone) => to_local(timestamp, zone).and_then(change).and_then(|local| from_local(local, zone)),
    };
    changed.ok_or_else(timestamp_out_of_range)
}

/// The same day of another month, or that month's last day.
fn add_months(timestamp: i64, months: i32) -> Option<i64> {
    let civil = Civil::of_timestamp(timestamp)?;
    let month_count = i64::from(civil.year) * 12 + i64::from(civil.month - 1) + i64::from(months);
    let year = i32::try_from(month_count.div_euclid(12)).ok()?;
    let month = month_count.rem_euclid(12) as i32 + 1;
    let day = civil.day.min(calendar::days_of_month(year, month));
    Civil { year, month, day, ..civil }.timestamp()
}

fn zoned_age(a: i64, b: i64, zone: &Zone) -> Result<Interval> {
    let offset = |t: i64| if is_finite_timestamp(t) { zone.offset_at(unix_seconds(t)) } else { 0 };
    age(a, b, offset(a), offset(b))
}

/// The difference in years, months, days and time. Offsets are those of the timestamps' zone, for timestamptz.
fn age(a: i64, b: i64, offset_a: i32, offset_b: i32) -> Result<Interval> {
    if let Some(infinite) = infinite_difference(a, b)? {
        return Ok(infinite);
    }
    let broken_down = |t: i64, offset: i32| {
        let local = t.checked_add(i64::from(offset) * 1_000_000);
        local.and_then(Civil::of_timestamp).ok_or_else(timestamp_out_of_range)
    };
    let (civil_a, civil_b) = (broken_down(a, offset_a)?, broken_down(b, offset_b)?);
    let negative = a < b;
    let (from, to) = if negative { (&civil_a, &civil_b) } else { (&civil_b, &civil_a) };
    let mut micros = to.time() - from.time();
    let mut days = to.day - from.day;
    let mut months = (to.year - from.year) * 12 + to.month - from.month;
    while micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    while days < 0 {
        days += calendar::days_of_month(from.year, from.month);
        months -= 1;
    }
    let interval = Interval { months, days, micros };
    if negative { interval.checked_neg() } else { Ok(interval) }
}
