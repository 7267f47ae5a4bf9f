//! in_range: whether a value is within an interval of another, for RANGE window frames; and OVERLAPS of periods given by a
//! start and a length.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::datetime::{TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY};
use melba_types::timezone::Zone;
use melba_types::{Datum, Interval, Result, err};

use super::arithmetic::{add_interval, subtract_interval};
use super::convert::date_to_timestamp;
use super::session_zone;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("in_range_date_interval", |_, a| {
        let dates = [date_to_timestamp(a[0].as_i32())?, date_to_timestamp(a[1].as_i32())?];
        in_range(dates, a, None)
    }),
    ("in_range_timestamp_interval", |_, a| in_range([a[0].as_i64(), a[1].as_i64()], a, None)),
    ("in_range_timestamptz_interval", |c, a| in_range([a[0].as_i64(), a[1].as_i64()], a, Some(&session_zone(c.session)))),
    ("in_range_interval_interval", |_, a| {
        let (value, base, offset) = (a[0].as_interval(), a[1].as_interval(), a[2].as_interval());
        check_offset(offset.span() < 0)?;
        let (subtract, less) = (a[3].as_bool(), a[4].as_bool());
        let opposite = if subtract { Interval::INFINITY } else { Interval::NEGATIVE_INFINITY };
        if offset == Interval::INFINITY && base == opposite {
            return Ok(Datum::Bool(true));
        }
        let sum = if subtract { base.checked_sub(&offset)? } else { base.checked_add(&offset)? };
        let order = value.compare(&sum);
        Ok(Datum::Bool(if less { order.is_le() } else { order.is_ge() }))
    }),
    ("in_range_time_interval", |_, a| {
        let offset = a[2].as_interval().micros;
        check_offset(offset < 0)?;
        time_in_range(a[0].as_i64(), a[1].as_i64(), offset, a)
    }),
    ("in_range_timetz_interval", |_, a| {
        let offset = a[2].as_interval().micros;
        check_offset(offset < 0)?;
        // Both as UTC; the base keeps its zone, so equal instants are distinguished by zone.
        let (value, base) = (a[0].as_timetz(), a[1].as_timetz());
        let utc = |micros: i64, west: i32| (micros.wrapping_add(i64::from(west) * 1_000_000), west);
        let sum = match a[3].as_bool() {
            true => base.micros - offset,
            false => match base.micros.checked_add(offset) {
                Some(sum) => sum,
                None => return Ok(a[4].clone()),
            },
        };
        let order = utc(value.micros, value.zone_seconds_west).cmp(&utc(sum, base.zone_seconds_west));
        Ok(Datum::Bool(if a[4].as_bool() { order.is_le() } else { order.is_ge() }))
    }),
    ("overlaps_1305", |c, a| overlaps_zoned(c, a, true, true)),
    ("overlaps_1306", |c, a| overlaps_zoned(c, a, false, true)),
    ("overlaps_1307", |c, a| overlaps_zoned(c, a, true, false)),
    ("overlaps_2042", |c, a| overlaps_with(c, a, true, true, "timestamp_pl_interval", "overlaps_timestamp")),
    ("overlaps_2043", |c, a| overlaps_with(c, a, false, true, "timestamp_pl_interval", "overlaps_timestamp")),
    ("overlaps_2044", |c, a| overlaps_with(c, a, true, false, "timestamp_pl_interval", "overlaps_timestamp")),
    ("overlaps_1309", |c, a| overlaps_with(c, a, true, true, "time_pl_interval", "overlaps_time")),
    ("overlaps_1310", |c, a| overlaps_with(c, a, false, true, "time_pl_interval", "overlaps_time")),
    ("overlaps_1311", |c, a| overlaps_with(c, a, true, false, "time_pl_interval", "overlaps_time")),
];

fn check_offset(negative: bool) -> Result<()> {
    if negative {
        return Err(err!(INVALID_PRECEDING_OR_FOLLOWING_SIZE, "invalid preceding or following size in window function"));
    }
    Ok(())
}

fn in_range([value, base]: [i64; 2], a: &[Datum], zone: Option<&Zone>) -> Result<Datum> {
    let offset = a[2].as_interval();
    check_offset(offset.span() < 0)?;
    let (subtract, less) = (a[3].as_bool(), a[4].as_bool());
    // All values infinitely precede +infinity and infinitely follow -infinity.
    let opposite = if subtract { TIMESTAMP_INFINITY } else { TIMESTAMP_NEGATIVE_INFINITY };
    if offset == Interval::INFINITY && base == opposite {
        return Ok(Datum::Bool(true));
    }
    let sum = if subtract { subtract_interval(base, &offset, zone)? } else { add_interval(base, &offset, zone)? };
    Ok(Datum::Bool(if less { value <= sum } else { value >= sum }))
}

fn time_in_range(value: i64, base: i64, offset: i64, a: &[Datum]) -> Result<Datum> {
    let (subtract, less) = (a[3].as_bool(), a[4].as_bool());
    let sum = if subtract { Some(base - offset) } else { base.checked_add(offset) };
    Ok(Datum::Bool(match sum {
        None => less,
        Some(sum) if less => value <= sum,
        Some(sum) => value >= sum,
    }))
}

fn overlaps_zoned(call: &CallInfo<'_>, a: &[Datum], first: bool, second: bool) -> Result<Datum> {
    overlaps_with(call, a, first, second, "timestamptz_pl_interval", "overlaps_timestamp")
}

/// `(a, b) OVERLAPS (c, d)` where `b` (if `first`) and `d` (if `second`) are lengths.
fn overlaps_with(call: &CallInfo<'_>, a: &[Datum], first: bool, second: bool, plus: &str, overlaps: &str) -> Result<Datum> {
    let function =
        |name: &str| melba_fmgr::registry::scalar(name).ok_or_else(|| melba_types::DbError::internal(name.to_string()));
    let plus = function(plus)?;
    let end = |start: &Datum, length: &Datum, is_length: bool| -> Result<Datum> {
        match is_length {
            false => Ok(length.clone()),
            true if start.is_null() || length.is_null() => Ok(Datum::Null),
            true => plus(call, &[start.clone(), length.clone()]),
        }
    };
    let periods = [a[0].clone(), end(&a[0], &a[1], first)?, a[2].clone(), end(&a[2], &a[3], second)?];
    function(overlaps)?(call, &periods)
}
