//! Comparison, hashing, the larger and the smaller of two.

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, ScalarFn, comparison_table};
use melba_types::datetime::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, MICROS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_INFINITY,
    TIMESTAMP_NEGATIVE_INFINITY, from_local, is_finite_date, is_finite_timestamp, is_valid_timestamp,
};
use melba_types::{Datum, TimeTz};

use super::session_zone;
use crate::hash::{extended, hash, hash_word, hash_word_extended};

fn dates(a: &Datum, b: &Datum) -> Ordering {
    a.as_i32().cmp(&b.as_i32())
}

fn micros(a: &Datum, b: &Datum) -> Ordering {
    a.as_i64().cmp(&b.as_i64())
}

fn intervals(a: &Datum, b: &Datum) -> Ordering {
    a.as_interval().compare(&b.as_interval())
}

/// By instant, then by zone, so that only identical values are equal.
fn timetzs(a: &Datum, b: &Datum) -> Ordering {
    let key = |v: TimeTz| {
        let west = i64::from(v.zone_seconds_west);
        (v.micros + west * MICROS_PER_SECOND, west)
    };
    key(a.as_timetz()).cmp(&key(b.as_timetz()))
}

/// A date as a timestamp that compares right even when it is beyond every timestamp.
pub(crate) fn widened(date: i32) -> i64 {
    match date {
        DATE_INFINITY => TIMESTAMP_INFINITY,
        DATE_NEGATIVE_INFINITY => TIMESTAMP_NEGATIVE_INFINITY,
        _ => (i64::from(date).saturating_mul(MICROS_PER_DAY)).min(TIMESTAMP_INFINITY - 1),
    }
}

fn date_timestamp(a: &Datum, b: &Datum) -> Ordering {
    widened(a.as_i32()).cmp(&b.as_i64())
}

fn timestamp_date(a: &Datum, b: &Datum) -> Ordering {
    date_timestamp(b, a).reverse()
}

comparison_table! {
    /// Comparisons that need no time zone.
    COMPARISONS:
    dates => "date_eq", "date_ne", "date_lt", "date_le", "date_gt", "date_ge", "date_cmp";
    micros => "time_eq", "time_ne", "time_lt", "time_le", "time_gt", "time_ge", "time_cmp";
    micros => "timestamp_eq", "timestamp_ne", "timestamp_lt", "timestamp_le", "timestamp_gt", "timestamp_ge", "timestamp_cmp";
    timetzs => "timetz_eq", "timetz_ne", "timetz_lt", "timetz_le", "timetz_gt", "timetz_ge", "timetz_cmp";
    intervals => "interval_eq", "interval_ne", "interval_lt", "interval_le", "interval_gt", "interval_ge", "interval_cmp";
    date_timestamp => "date_eq_timestamp", "date_ne_timestamp", "date_lt_timestamp", "date_le_timestamp",
        "date_gt_timestamp", "date_ge_timestamp", "date_cmp_timestamp";
    timestamp_date => "timestamp_eq_date", "timestamp_ne_date", "timestamp_lt_date", "timestamp_le_date",
        "timestamp_gt_date", "timestamp_ge_date", "timestamp_cmp_date";
}

/// A wall-clock time in the session's zone as an instant; times beyond the range keep their order.
fn instant(call: &CallInfo<'_>, timestamp: i64) -> i64 {
    if !is_finite_timestamp(timestamp) {
        return timestamp;
    }
    if timestamp >= TIMESTAMP_END {
        return TIMESTAMP_INFINITY - 1;
    }
    let beyond = if timestamp > 0 { TIMESTAMP_INFINITY - 1 } else { TIMESTAMP_NEGATIVE_INFINITY + 1 };
    from_local(timestamp, &session_zone(call.session)).filter(|t| is_valid_timestamp(*t)).unwrap_or(beyond)
}

fn date_timestamptz(call: &CallInfo<'_>, a: &[Datum]) -> Ordering {
    instant(call, widened(a[0].as_i32())).cmp(&a[1].as_i64())
}

fn timestamptz_date(call: &CallInfo<'_>, a: &[Datum]) -> Ordering {
    a[0].as_i64().cmp(&instant(call, widened(a[1].as_i32())))
}

fn timestamp_timestamptz(call: &CallInfo<'_>, a: &[Datum]) -> Ordering {
    instant(call, a[0].as_i64()).cmp(&a[1].as_i64())
}

fn timestamptz_timestamp(call: &CallInfo<'_>, a: &[Datum]) -> Ordering {
    a[0].as_i64().cmp(&instant(call, a[1].as_i64()))
}

fn larger(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Datum {
    if compare(&a[0], &a[1]).is_gt() { a[0].clone() } else { a[1].clone() }
}

fn smaller(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Datum {
    if compare(&a[0], &a[1]).is_lt() { a[0].clone() } else { a[1].clone() }
}

/// Rows of the comparisons that depend on the session's zone.
macro_rules! zoned {
    ($compare:ident, $left:literal, $right:literal) => {
        [
            (concat!($left, "_eq_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_eq()))),
            (concat!($left, "_ne_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_ne()))),
            (concat!($left, "_lt_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_lt()))),
            (concat!($left, "_le_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_le()))),
            (concat!($left, "_gt_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_gt()))),
            (concat!($left, "_ge_", $right), |c, a| Ok(Datum::Bool($compare(c, a).is_ge()))),
            (concat!($left, "_cmp_", $right), |c, a| Ok(Datum::Int4($compare(c, a) as i32))),
        ]
    };
}

type Row = (&'static str, ScalarFn);

pub const DATE_TIMESTAMPTZ: [Row; 7] = zoned!(date_timestamptz, "date", "timestamptz");
pub const TIMESTAMPTZ_DATE: [Row; 7] = zoned!(timestamptz_date, "timestamptz", "date");
pub const TIMESTAMP_TIMESTAMPTZ: [Row; 7] = zoned!(timestamp_timestamptz, "timestamp", "timestamptz");
pub const TIMESTAMPTZ_TIMESTAMP: [Row; 7] = zoned!(timestamptz_timestamp, "timestamptz", "timestamp");

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("date_larger", |_, a| Ok(larger(a, dates))),
    ("date_smaller", |_, a| Ok(smaller(a, dates))),
    ("time_larger", |_, a| Ok(larger(a, micros))),
    ("time_smaller", |_, a| Ok(smaller(a, micros))),
    ("timestamp_larger", |_, a| Ok(larger(a, micros))),
    ("timestamp_smaller", |_, a| Ok(smaller(a, micros))),
    ("timetz_larger", |_, a| Ok(larger(a, timetzs))),
    ("timetz_smaller", |_, a| Ok(smaller(a, timetzs))),
    ("interval_larger", |_, a| Ok(larger(a, intervals))),
    ("interval_smaller", |_, a| Ok(smaller(a, intervals))),
    ("date_finite", |_, a| Ok(Datum::Bool(is_finite_date(a[0].as_i32())))),
    ("timestamp_finite", |_, a| Ok(Datum::Bool(is_finite_timestamp(a[0].as_i64())))),
    ("interval_finite", |_, a| Ok(Datum::Bool(a[0].as_interval().is_finite()))),
    ("hashdate", hash),
    ("hashdateextended", extended),
    ("time_hash", hash),
    ("time_hash_extended", extended),
    ("timestamp_hash", hash),
    ("timestamp_hash_extended", extended),
    ("timestamptz_hash", hash),
    ("timestamptz_hash_extended", extended),
    ("interval_hash", |c, a| hash(c, &[span(&a[0])])),
    ("interval_hash_extended", |c, a| extended(c, &[span(&a[0]), a[1].clone()])),
    ("timetz_hash", |c, a| {
        let TimeTz { micros, zone_seconds_west } = a[0].as_timetz();
        let time = hash(c, &[Datum::Int8(micros)])?.as_i32();
        Ok(Datum::Int4(time ^ hash_word(zone_seconds_west as u32) as i32))
    }),
    ("timetz_hash_extended", |c, a| {
        let TimeTz { micros, zone_seconds_west } = a[0].as_timetz();
        let time = extended(c, &[Datum::Int8(micros), a[1].clone()])?.as_i64();
        Ok(Datum::Int8(time ^ hash_word_extended(zone_seconds_west as u32, a[1].as_i64() as u64) as i64))
    }),
    ("overlaps_time", |_, a| Ok(overlaps(a, micros))),
    ("overlaps_timetz", |_, a| Ok(overlaps(a, timetzs))),
    ("overlaps_timestamp", |_, a| Ok(overlaps(a, micros))),
];

/// The common value of equal intervals.
fn span(interval: &Datum) -> Datum {
    Datum::Int8(interval.as_interval().span() as i64)
}

/// SQL's OVERLAPS, with its rules for nulls: an unknown end makes the period a point, or the answer unknown.
fn overlaps(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Datum {
    let period = |start: &Datum, end: &Datum| -> Option<(Datum, Datum)> {
        match (start.is_null(), end.is_null()) {
            (true, true) => None,
            (true, false) => Some((end.clone(), Datum::Null)),
            (false, false) if compare(start, end).is_gt() => Some((end.clone(), start.clone())),
            _ => Some((start.clone(), end.clone())),
        }
    };
    let (Some((start1, end1)), Some((start2, end2))) = (period(&a[0], &a[1]), period(&a[2], &a[3])) else {
        return Datum::Null;
    };
    // Whether the earlier period reaches the later one's start.
    let reaches = |later: &Datum, end: &Datum, other_end: &Datum| -> Datum {
        if end.is_null() {
            return Datum::Null;
        }
        if compare(later, end).is_lt() {
            return Datum::Bool(true);
        }
        if other_end.is_null() { Datum::Null } else { Datum::Bool(false) }
    };
    match compare(&start1, &start2) {
        Ordering::Greater => reaches(&start1, &end2, &end1),
        Ordering::Less => reaches(&start2, &end1, &end2),
        Ordering::Equal if end1.is_null() || end2.is_null() => Datum::Null,
        Ordering::Equal => Datum::Bool(true),
    }
}
