//! Input and output of the date and time types, text and binary, and their type modifiers.

use melba_fmgr::{CallInfo, ScalarFn, TypeContext, TypeIo, type_io};
use melba_types::datetime::parse::{parse_date_time, parse_time};
use melba_types::datetime::{
    Civil, DATE_INFINITY, DATE_NEGATIVE_INFINITY, EPOCH_JULIAN, MICROS_PER_DAY, MICROS_PER_SECOND, ParsedTimestamp,
    TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH_DATE, UNIX_EPOCH_MICROS, calendar, format, is_finite_date,
    is_finite_timestamp, is_valid_date, is_valid_timestamp, round_micros,
};
use melba_types::{Datum, Interval, Oid, Result, TimeTz, err, interval, oids};

use super::{parse_settings, session_zone, timestamp_out_of_range};

/// Digits of a second that are kept.
const PRECISION_MAX: i32 = 6;

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::DATE, TypeIo { input: date_in, output: date_out, receive: date_receive, send: send_i32 }),
    (oids::TIME, TypeIo { input: time_in, output: time_out, receive: time_receive, send: send_i64 }),
    (oids::TIMETZ, TypeIo { input: timetz_in, output: timetz_out, receive: timetz_receive, send: timetz_send }),
    (oids::TIMESTAMP, TypeIo { input: timestamp_in, output: timestamp_out, receive: timestamp_receive, send: send_i64 }),
    (oids::TIMESTAMPTZ, TypeIo { input: timestamptz_in, output: timestamptz_out, receive: timestamp_receive, send: send_i64 }),
    (oids::INTERVAL, TypeIo { input: interval_in, output: interval_out, receive: interval_receive, send: interval_send }),
];

fn send_i32(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&v.as_i32().to_be_bytes());
    Ok(())
}

fn send_i64(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&v.as_i64().to_be_bytes());
    Ok(())
}

fn date_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let zone = session_zone(c.session);
    let now = || c.session.transaction_timestamp();
    let settings = parse_settings(c.session, &zone, &now);
    let parsed = parse_date_time(text, &settings).map_err(|e| e.into_error(text, "date"))?;
    Ok(Datum::Int4(match parsed {
        ParsedTimestamp::Epoch => UNIX_EPOCH_DATE,
        ParsedTimestamp::Infinity => DATE_INFINITY,
        ParsedTimestamp::NegativeInfinity => DATE_NEGATIVE_INFINITY,
        ParsedTimestamp::Civil(civil, _) => {
            date_of_civil(&civil).ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "date out of range: \"{text}\""))?
        }
    }))
}

/// The date of a calendar day; `None` when it is out of range.
pub fn date_of_civil(civil: &Civil) -> Option<i32> {
    if !calendar::is_valid_julian(civil.year, civil.month) {
        return None;
    }
    civil.julian().checked_sub(EPOCH_JULIAN).filter(|date| is_valid_date(*date))
}

fn date_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let settings = c.session.format();
    format::write_date(v.as_i32(), settings.date_style, settings.date_order, out);
    Ok(())
}

fn date_receive(_: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let date = i32::from_be_bytes(type_io::fixed(bytes)?);
    if is_finite_date(date) && !is_valid_date(date) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range"));
    }
    Ok(Datum::Int4(date))
}

fn time_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let zone = session_zone(c.session);
    let now = || c.session.transaction_timestamp();
    let (civil, _) = parse_time(text, &parse_settings(c.session, &zone, &now)).map_err(|e| e.into_error(text, "time"))?;
    Ok(Datum::Int8(round_micros(civil.time(), c.typmod)))
}

fn time_out(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    format::write_time(v.as_i64(), out);
    Ok(())
}

fn time_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let time = i64::from_be_bytes(type_io::fixed(bytes)?);
    if !(0..=MICROS_PER_DAY).contains(&time) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "time out of range"));
    }
    Ok(Datum::Int8(round_micros(time, c.typmod)))
}

fn timetz_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let zone = session_zone(c.session);
    let now = || c.session.transaction_timestamp();
    let (civil, offset) =
        parse_time(text, &parse_settings(c.session, &zone, &now)).map_err(|e| e.into_error(text, "time with time zone"))?;
    Ok(Datum::TimeTz(TimeTz { micros: round_micros(civil.time(), c.typmod), zone_seconds_west: -offset }))
}

fn timetz_out(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    format::write_timetz(v.as_timetz(), out);
    Ok(())
}

fn timetz_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let bytes: [u8; 12] = type_io::fixed(bytes)?;
    let micros = i64::from_be_bytes(type_io::fixed(&bytes[..8])?);
    let west = i32::from_be_bytes(type_io::fixed(&bytes[8..])?);
    if !(0..=MICROS_PER_DAY).contains(&micros) {
        return Err(err!(DATETIME_FIELD_OVERFLOW, "time out of range"));
    }
    if west.unsigned_abs() >= 16 * 3600 {
        return Err(err!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement out of range"));
    }
    Ok(Datum::TimeTz(TimeTz { micros: round_micros(micros, c.typmod), zone_seconds_west: west }))
}

fn timetz_send(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let TimeTz { micros, zone_seconds_west } = v.as_timetz();
    out.extend_from_slice(&micros.to_be_bytes());
    out.extend_from_slice(&zone_seconds_west.to_be_bytes());
    Ok(())
}

/// The timestamp that was read, `with_zone` or as it stands.
fn timestamp_of(c: &TypeContext<'_>, text: &str, with_zone: bool, type_name: &str) -> Result<Datum> {
    let zone = session_zone(c.session);
    let now = || c.session.transaction_timestamp();
    let settings = parse_settings(c.session, &zone, &now);
    let parsed = parse_date_time(text, &settings).map_err(|e| e.into_error(text, type_name))?;
    let timestamp = match parsed {
        ParsedTimestamp::Epoch => UNIX_EPOCH_MICROS,
        ParsedTimestamp::Infinity => TIMESTAMP_INFINITY,
        ParsedTimestamp::NegativeInfinity => TIMESTAMP_NEGATIVE_INFINITY,
        ParsedTimestamp::Civil(civil, offset) => {
            let east = if with_zone { i64::from(offset) * MICROS_PER_SECOND } else { 0 };
            // The zone may move a time into range, or out of it.
            wall_clock(&civil)
                .and_then(|t| t.checked_sub(east))
                .filter(|t| is_valid_timestamp(*t))
                .ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range: \"{text}\""))?
        }
    };
    Ok(Datum::Int8(round_timestamp(timestamp, c.typmod)))
}

fn wall_clock(civil: &Civil) -> Option<i64> {
    if !calendar::is_valid_julian(civil.year, civil.month) {
        return None;
    }
    let days = i64::from(civil.julian()) - i64::from(EPOCH_JULIAN);
    days.checked_mul(MICROS_PER_DAY)?.checked_add(civil.time())
}

/// Rounds to a precision; infinities stay.
pub fn round_timestamp(timestamp: i64, typmod: i32) -> i64 {
    if is_finite_timestamp(timestamp) { round_micros(timestamp, typmod) } else { timestamp }
}

fn timestamp_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    timestamp_of(c, text, false, "timestamp")
}

fn timestamptz_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    timestamp_of(c, text, true, "timestamp with time zone")
}

fn timestamp_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let settings = c.session.format();
    format::write_timestamp(v.as_i64(), settings.date_style, settings.date_order, out);
    Ok(())
}

fn timestamptz_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let settings = c.session.format();
    format::write_zoned(v.as_i64(), settings.date_style, settings.date_order, &session_zone(c.session), out);
    Ok(())
}

fn timestamp_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let timestamp = i64::from_be_bytes(type_io::fixed(bytes)?);
    if is_finite_timestamp(timestamp) && !is_valid_timestamp(timestamp) {
        return Err(timestamp_out_of_range());
    }
    Ok(Datum::Int8(round_timestamp(timestamp, c.typmod)))
}

fn interval_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    interval::parse(text, c.typmod, c.session.format().interval_style).map(Datum::Interval)
}

fn interval_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    interval::write(&v.as_interval(), c.session.format().interval_style, out);
    Ok(())
}

fn interval_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let bytes: [u8; 16] = type_io::fixed(bytes)?;
    let value = Interval {
        micros: i64::from_be_bytes(type_io::fixed(&bytes[..8])?),
        days: i32::from_be_bytes(type_io::fixed(&bytes[8..12])?),
        months: i32::from_be_bytes(type_io::fixed(&bytes[12..])?),
    };
    value.with_typmod(c.typmod).map(Datum::Interval)
}

fn interval_send(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let Interval { months, days, micros } = v.as_interval();
    out.extend_from_slice(&micros.to_be_bytes());
    out.extend_from_slice(&days.to_be_bytes());
    out.extend_from_slice(&months.to_be_bytes());
    Ok(())
}

/// Casts to a type's own precision, and type modifiers from and to text.
pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("time_scale", |_, a| Ok(Datum::Int8(round_micros(a[0].as_i64(), a[1].as_i32())))),
    ("timetz_scale", |_, a| {
        let TimeTz { micros, zone_seconds_west } = a[0].as_timetz();
        Ok(Datum::TimeTz(TimeTz { micros: round_micros(micros, a[1].as_i32()), zone_seconds_west }))
    }),
    ("timestamp_scale", |_, a| Ok(Datum::Int8(round_timestamp(a[0].as_i64(), a[1].as_i32())))),
    ("timestamptz_scale", |_, a| Ok(Datum::Int8(round_timestamp(a[0].as_i64(), a[1].as_i32())))),
    ("interval_scale", |_, a| a[0].as_interval().with_typmod(a[1].as_i32()).map(Datum::Interval)),
    ("timetypmodin", |c, a| precision_in(c, a, "TIME", "")),
    ("timetztypmodin", |c, a| precision_in(c, a, "TIME", " WITH TIME ZONE")),
    ("timestamptypmodin", |c, a| precision_in(c, a, "TIMESTAMP", "")),
    ("timestamptztypmodin", |c, a| precision_in(c, a, "TIMESTAMP", " WITH TIME ZONE")),
    ("timetypmodout", |_, a| Ok(precision_out(a[0].as_i32(), " without time zone"))),
    ("timetztypmodout", |_, a| Ok(precision_out(a[0].as_i32(), " with time zone"))),
    ("timestamptypmodout", |_, a| Ok(precision_out(a[0].as_i32(), " without time zone"))),
    ("timestamptztypmodout", |_, a| Ok(precision_out(a[0].as_i32(), " with time zone"))),
    ("intervaltypmodin", interval_typmod_in),
    ("intervaltypmodout", |_, a| Ok(Datum::text(interval_typmod_out(a[0].as_i32())))),
];

/// The modifiers of a type as integers.
fn modifiers(arg: &Datum) -> Result<Vec<i32>> {
    let parse = |d: &Datum| melba_fmgr::integer::int4_in(d.as_str());
    arg.as_array().elements.iter().map(parse).collect()
}

fn precision_in(call: &CallInfo<'_>, a: &[Datum], name: &str, suffix: &str) -> Result<Datum> {
    let [precision] = modifiers(&a[0])?[..] else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier"));
    };
    if precision < 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "{name}({precision}){suffix} precision must not be negative"));
    }
    if precision > PRECISION_MAX {
        call.session.notice(
            err!(INVALID_PARAMETER_VALUE, "{name}({precision}){suffix} precision reduced to maximum allowed, {PRECISION_MAX}")
                .severity(melba_types::Severity::Warning),
        );
    }
    Ok(Datum::Int4(precision.min(PRECISION_MAX)))
}

fn precision_out(typmod: i32, suffix: &str) -> Datum {
    Datum::text(if typmod >= 0 { format!("({typmod}){suffix}") } else { suffix.to_string() })
}

const RANGES: &[(i32, &str)] = {
    use interval::range::*;
    &[
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
        (FULL, ""),
    ]
};

fn interval_typmod_in(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let modifiers = modifiers(&a[0])?;
    let Some(&fields) = modifiers.first() else { return Err(err!(INVALID_PARAMETER_VALUE, "invalid INTERVAL type modifier")) };
    if !RANGES.iter().any(|(range, _)| *range == fields) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid INTERVAL type modifier"));
    }
    let precision = match modifiers[1..] {
        [] if fields == interval::range::FULL => return Ok(Datum::Int4(-1)),
        [] => 0xffff,
        [precision] if precision < 0 => {
            return Err(err!(INVALID_PARAMETER_VALUE, "INTERVAL({precision}) precision must not be negative"));
        }
        [precision] if precision > PRECISION_MAX => {
            call.session.notice(
                err!(INVALID_PARAMETER_VALUE, "INTERVAL({precision}) precision reduced to maximum allowed, {PRECISION_MAX}")
                    .severity(melba_types::Severity::Warning),
            );
            PRECISION_MAX
        }
        [precision] => precision,
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "invalid INTERVAL type modifier")),
    };
    Ok(Datum::Int4(fields << 16 | precision))
}

fn interval_typmod_out(typmod: i32) -> String {
    if typmod < 0 {
        return String::new();
    }
    let (fields, precision) = (typmod >> 16 & 0x7fff, typmod & 0xffff);
    let fields = RANGES.iter().find(|(range, _)| *range == fields).map_or("", |(_, name)| name);
    if precision == 0xffff { fields.to_string() } else { format!("{fields}({precision})") }
}
