//! Prints intervals in PostgreSQL's styles.

use crate::Interval;
use crate::datetime::format::{pad, write_fraction};
use crate::datetime::{IntervalStyle, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// The fields that are printed.
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Parts {
    fn of(interval: &Interval) -> Parts {
        let micros = interval.micros;
        Parts {
            years: i64::from(interval.months / 12),
            months: i64::from(interval.months % 12),
            days: i64::from(interval.days),
            hours: micros / MICROS_PER_HOUR,
            minutes: micros / MICROS_PER_MINUTE % 60,
            seconds: micros / MICROS_PER_SECOND % 60,
            micros: micros % MICROS_PER_SECOND,
        }
    }

    fn time_is_negative(&self) -> bool {
        self.hours < 0 || self.minutes < 0 || self.seconds < 0 || self.micros < 0
    }

    fn has_time(&self) -> bool {
        self.hours != 0 || self.minutes != 0 || self.has_seconds()
    }

    fn has_seconds(&self) -> bool {
        self.seconds != 0 || self.micros != 0
    }

    /// `hh:mm:ss.ffffff` without sign.
    fn clock(&self, hour_width: usize, out: &mut Vec<u8>) {
        pad(self.hours.unsigned_abs(), hour_width, out);
        out.push(b':');
        pad(self.minutes.unsigned_abs(), 2, out);
        out.push(b':');
        self.seconds(2, out);
    }

    fn seconds(&self, width: usize, out: &mut Vec<u8>) {
        pad(self.seconds.unsigned_abs(), width, out);
        write_fraction(self.micros.unsigned_abs() as u32, out);
    }
}

/// Appends an interval in a style.
pub fn write(interval: &Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    match *interval {
        Interval::INFINITY => return out.extend_from_slice(b"infinity"),
        Interval::NEGATIVE_INFINITY => return out.extend_from_slice(b"-infinity"),
        _ => {}
    }
    let parts = Parts::of(interval);
    match style {
        IntervalStyle::Postgres => write_postgres(&parts, out),
        IntervalStyle::PostgresVerbose => write_verbose(&parts, out),
        IntervalStyle::SqlStandard => write_sql_standard(interval, &parts, out),
        IntervalStyle::Iso8601 => write_iso(&parts, out),
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = out.write_fmt(text);
}

fn write_postgres(parts: &Parts, out: &mut Vec<u8>) {
    let mut first = true;
    let mut after_negative = false;
    for (value, unit) in [(parts.years, "year"), (parts.months, "mon"), (parts.days, "day")] {
        if value == 0 {
            continue;
        }
        let space = if first { "" } else { " " };
        let plus = if after_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        append(out, format_args!("{space}{plus}{value} {unit}{plural}"));
        after_negative = value < 0;
        first = false;
    }
    if first || parts.has_time() {
        if !first {
            out.push(b' ');
        }
        if parts.time_is_negative() {
            out.push(b'-');
        } else if after_negative {
            out.push(b'+');
        }
        parts.clock(2, out);
    }
}

fn write_verbose(parts: &Parts, out: &mut Vec<u8>) {
    out.push(b'@');
    let mut first = true;
    let mut ago = false;
    let units =
        [(parts.years, "year"), (parts.months, "mon"), (parts.days, "day"), (parts.hours, "hour"), (parts.minutes, "min")];
    for (value, unit) in units {
        if value == 0 {
            continue;
        }
        if first {
            ago = value < 0;
        }
        let value = if ago { -value } else { value };
        append(out, format_args!(" {value} {unit}{}", if value == 1 { "" } else { "s" }));
        first = false;
    }
    if parts.has_seconds() {
        out.push(b' ');
        if parts.seconds < 0 || parts.micros < 0 {
            if first {
                ago = true;
            } else if !ago {
                out.push(b'-');
            }
        } else if ago {
            out.push(b'-');
        }
        parts.seconds(1, out);
        append(out, format_args!(" sec{}", if parts.seconds.abs() != 1 || parts.micros != 0 { "s" } else { "" }));
        first = false;
    }
    if first {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

fn write_sql_standard(interval: &Interval, parts: &Parts, out: &mut Vec<u8>) {
    let fields = [i64::from(interval.months), parts.days, interval.micros];
    let negative = fields.iter().any(|f| *f < 0);
    let positive = fields.iter().any(|f| *f > 0);
    let has_day_time = fields[1] != 0 || fields[2] != 0;
    if !negative && !positive {
        return out.push(b'0');
    }
    if (negative && positive) || (fields[0] != 0 && has_day_time) {
        let sign = |negative: bool| if negative { '-' } else { '+' };
        append(out, format_args!("{}{}-{}", sign(fields[0] < 0), parts.years.abs(), parts.months.abs()));
        append(out, format_args!(" {}{} {}", sign(fields[1] < 0), parts.days.abs(), sign(fields[2] < 0)));
        return parts.clock(1, out);
    }
    if negative {
        out.push(b'-');
    }
    if fields[0] != 0 {
        return append(out, format_args!("{}-{}", parts.years.abs(), parts.months.abs()));
    }
    if fields[1] != 0 {
        append(out, format_args!("{} ", parts.days.abs()));
    }
    parts.clock(1, out);
}

fn write_iso(parts: &Parts, out: &mut Vec<u8>) {
    out.push(b'P');
    let start = out.len();
    for (value, unit) in [(parts.years, 'Y'), (parts.months, 'M'), (parts.days, 'D')] {
        if value != 0 {
            append(out, format_args!("{value}{unit}"));
        }
    }
    if !parts.has_time() {
        if out.len() == start {
            out.extend_from_slice(b"T0S");
        }
        return;
    }
    out.push(b'T');
    for (value, unit) in [(parts.hours, 'H'), (parts.minutes, 'M')] {
        if value != 0 {
            append(out, format_args!("{value}{unit}"));
        }
    }
    if parts.has_seconds() {
        if parts.seconds < 0 || parts.micros < 0 {
            out.push(b'-');
        }
        parts.seconds(1, out);
        out.push(b'S');
    }
}
