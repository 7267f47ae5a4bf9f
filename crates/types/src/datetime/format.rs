//! Prints dates, times and timestamps in PostgreSQL's styles. Everything appends to a byte buffer.

use super::calendar::{Civil, weekday_of_julian};
use super::keywords::{MONTHS, WEEKDAYS};
use super::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, DateOrder, DateStyle, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, unix_seconds,
};
use crate::datum::TimeTz;
use crate::timezone::{LocalInfo, Zone};

/// Appends `value` with at least `width` digits.
pub fn pad(value: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len())));
    out.extend_from_slice(digits);
}

fn two(value: i32, out: &mut Vec<u8>) {
    let value = value.unsigned_abs();
    if value < 100 {
        out.extend_from_slice(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
    } else {
        pad(u64::from(value), 2, out);
    }
}

/// Appends `.ffffff` without trailing zeros; nothing for 0.
pub fn write_fraction(micros: u32, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    let (mut value, mut digits) = (micros, 6);
    while value % 10 == 0 {
        value /= 10;
        digits -= 1;
    }
    pad(u64::from(value), digits, out);
}

/// The year as written: 1 BC for year 0.
fn year(civil: &Civil, out: &mut Vec<u8>) {
    let written = if civil.year > 0 { i64::from(civil.year) } else { 1 - i64::from(civil.year) };
    pad(written as u64, 4, out);
}

fn clock(civil: &Civil, out: &mut Vec<u8>) {
    two(civil.hour, out);
    out.push(b':');
    two(civil.minute, out);
    out.push(b':');
    two(civil.second, out);
    write_fraction(civil.micros.unsigned_abs(), out);
}

/// Appends an offset as `+hh[:mm[:ss]]`.
pub fn write_offset(seconds_east: i32, out: &mut Vec<u8>) {
    out.push(if seconds_east >= 0 { b'+' } else { b'-' });
    let seconds = seconds_east.abs();
    two(seconds / 3600, out);
    if seconds % 3600 != 0 {
        out.push(b':');
        two(seconds / 60 % 60, out);
    }
    if seconds % 60 != 0 {
        out.push(b':');
        two(seconds % 60, out);
    }
}

/// Day and month in the order that SQL style, or the delimiter's users, want.
fn day_and_month(civil: &Civil, day_first: bool, delimiter: u8, out: &mut Vec<u8>) {
    let (first, second) = if day_first { (civil.day, civil.month) } else { (civil.month, civil.day) };
    two(first, out);
    out.push(delimiter);
    two(second, out);
}

pub fn write_date(date: i32, style: DateStyle, order: DateOrder, out: &mut Vec<u8>) {
    match date {
        DATE_INFINITY => return out.extend_from_slice(b"infinity"),
        DATE_NEGATIVE_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let civil = Civil::of_date(date);
    match style {
        DateStyle::Iso => iso_date(&civil, out),
        DateStyle::Sql => {
            day_and_month(&civil, order == DateOrder::Dmy, b'/', out);
            out.push(b'/');
            year(&civil, out);
        }
        DateStyle::German => {
            day_and_month(&civil, true, b'.', out);
            out.push(b'.');
            year(&civil, out);
        }
        DateStyle::Postgres => {
            day_and_month(&civil, order == DateOrder::Dmy, b'-', out);
            out.push(b'-');
            year(&civil, out);
        }
    }
    era(&civil, out);
}

fn iso_date(civil: &Civil, out: &mut Vec<u8>) {
    year(civil, out);
    out.push(b'-');
    day_and_month(civil, false, b'-', out);
}

fn era(civil: &Civil, out: &mut Vec<u8>) {
    if civil.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

pub fn write_time(time: i64, out: &mut Vec<u8>) {
    clock(&Civil::of_time(time), out);
}

pub fn write_timetz(value: TimeTz, out: &mut Vec<u8>) {
    write_time(value.micros, out);
    write_offset(-value.zone_seconds_west, out);
}

/// As JSON has it.
pub fn write_timetz_xsd(value: TimeTz, out: &mut Vec<u8>) {
    write_time(value.micros, out);
    write_offset_xsd(-value.zone_seconds_west, out);
}

fn infinity(timestamp: i64, out: &mut Vec<u8>) -> bool {
    match timestamp {
        TIMESTAMP_INFINITY => out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp without time zone.
pub fn write_timestamp(timestamp: i64, style: DateStyle, order: DateOrder, out: &mut Vec<u8>) {
    if !infinity(timestamp, out) {
        let civil = Civil::of_timestamp(timestamp).unwrap_or_default();
        date_and_time(&civil, style, order, None, out);
    }
}

/// Appends a timestamp with time zone, in `zone`.
pub fn write_zoned(timestamp: i64, style: DateStyle, order: DateOrder, zone: &Zone, out: &mut Vec<u8>) {
    if infinity(timestamp, out) {
        return;
    }
    let seconds = unix_seconds(timestamp);
    // The abbreviation is not needed for ISO output, and costs an allocation.
    let info = match style {
        DateStyle::Iso => LocalInfo { offset: zone.offset_at(seconds), dst: false, abbreviation: String::new() },
        _ => zone.at(seconds),
    };
    let local = timestamp.saturating_add(i64::from(info.offset) * 1_000_000);
    let civil = Civil::of_timestamp(local).unwrap_or_default();
    date_and_time(&civil, style, order, Some(&info), out);
}

fn date_and_time(civil: &Civil, style: DateStyle, order: DateOrder, zone: Option<&LocalInfo>, out: &mut Vec<u8>) {
    match style {
        DateStyle::Iso => {
            iso_date(civil, out);
            out.push(b' ');
            clock(civil, out);
            if let Some(zone) = zone {
                write_offset(zone.offset, out);
            }
        }
        DateStyle::Sql | DateStyle::German => {
            let delimiter = if style == DateStyle::Sql { b'/' } else { b'.' };
            day_and_month(civil, style == DateStyle::German || order == DateOrder::Dmy, delimiter, out);
            out.push(delimiter);
            year(civil, out);
            out.push(b' ');
            clock(civil, out);
        }
        DateStyle::Postgres => {
            out.extend_from_slice(&WEEKDAYS[weekday_of_julian(civil.julian()) as usize].as_bytes()[..3]);
            out.push(b' ');
            let month = &MONTHS[(civil.month - 1).clamp(0, 11) as usize].as_bytes()[..3];
            if order == DateOrder::Dmy {
                two(civil.day, out);
                out.push(b' ');
                out.extend_from_slice(month);
            } else {
                out.extend_from_slice(month);
                out.push(b' ');
                two(civil.day, out);
            }
            out.push(b' ');
            clock(civil, out);
            out.push(b' ');
            year(civil, out);
        }
    }
    if let Some(zone) = zone.filter(|_| style != DateStyle::Iso) {
        out.push(b' ');
        out.extend_from_slice(zone.abbreviation.as_bytes());
    }
    era(civil, out);
}

/// Appends a date or timestamp in XML Schema style (`T` between date and time), which JSON output uses.
pub fn write_timestamp_xsd(timestamp: i64, zone: Option<&Zone>, out: &mut Vec<u8>) {
    if infinity(timestamp, out) {
        return;
    }
    let offset = zone.map(|zone| zone.offset_at(unix_seconds(timestamp)));
    let local = timestamp.saturating_add(i64::from(offset.unwrap_or(0)) * 1_000_000);
    write_civil_xsd(&Civil::of_timestamp(local).unwrap_or_default(), offset, out);
}

/// As `write_timestamp_xsd`, of a wall-clock time and its offset.
pub fn write_civil_xsd(civil: &Civil, offset: Option<i32>, out: &mut Vec<u8>) {
    iso_date(civil, out);
    out.push(b'T');
    clock(civil, out);
    if let Some(offset) = offset {
        write_offset_xsd(offset, out);
    }
    era(civil, out);
}

/// Appends an offset with its minutes even when they are 0.
pub fn write_offset_xsd(seconds_east: i32, out: &mut Vec<u8>) {
    let before = out.len();
    write_offset(seconds_east, out);
    if out.len() - before == 3 {
        out.extend_from_slice(b":00");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zoned(style: DateStyle, order: DateOrder) -> String {
        let zone = Zone::lookup("Europe/Berlin").expect("bundled");
        let mut out = Vec::new();
        // 1997-12-17 15:37:16.5 UTC.
        write_zoned(-64_484_563_500_000, style, order, &zone, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn the_date_styles() {
        assert_eq!(zoned(DateStyle::Iso, DateOrder::Mdy), "1997-12-15 16:37:16.5+01");
        assert_eq!(zoned(DateStyle::Sql, DateOrder::Dmy), "15/12/1997 16:37:16.5 CET");
        assert_eq!(zoned(DateStyle::German, DateOrder::Mdy), "15.12.1997 16:37:16.5 CET");
        assert_eq!(zoned(DateStyle::Postgres, DateOrder::Mdy), "Mon Dec 15 16:37:16.5 1997 CET");
    }
}
