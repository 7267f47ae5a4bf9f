//! Dates and times in paths: read from strings, cast, compared by PostgreSQL's rules.

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, Session};
use melba_functions::datetime::{round_timestamp, session_zone, timestamp_out_of_range};
use melba_functions::format::{DateTimeFields, Standard, parse_standard};
use melba_types::datetime::{MICROS_PER_SECOND, unix_seconds};
use melba_types::timezone::Zone;
use melba_types::{Datum, DbError, Oid, Result, Severity, TimeTz, err, oids};

use super::ast::Expr;
use super::item::{DateTime, Item};

/// The forms of ISO 8601 that are read without a template, the first that fits.
const TEMPLATES: [&str; 13] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZ",
    "HH24:MI:SSTZ",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZ",
    "yyyy-mm-dd HH24:MI:SSTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZ",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// The order of two; `None`: types that do not compare.
pub fn compare(session: &dyn Session, use_zone: bool, a: &DateTime, b: &DateTime) -> Result<Option<Ordering>> {
    let name = |ty| match ty {
        oids::DATE => "date",
        oids::TIME => "time",
        oids::TIMETZ => "timetz",
        oids::TIMESTAMP => "timestamp",
        _ => "timestamptz",
    };
    let is_time = |ty| matches!(ty, oids::TIME | oids::TIMETZ);
    if is_time(a.ty) != is_time(b.ty) {
        return Ok(None);
    }
    let zoned = |ty| matches!(ty, oids::TIMETZ | oids::TIMESTAMPTZ);
    if zoned(a.ty) != zoned(b.ty) {
        let (from, to) = if zoned(a.ty) { (b.ty, a.ty) } else { (a.ty, b.ty) };
        check_zone_is_used(use_zone, name(from), name(to))?;
    }
    let function = match (a.ty, b.ty) {
        (oids::TIME | oids::TIMETZ, _) if a.ty != b.ty => {
            let timetz =
                |v: &DateTime| if v.ty == oids::TIME { cast(session, "time_timetz", &v.value) } else { Ok(v.value.clone()) };
            return ordering(session, "timetz_cmp", &timetz(a)?, &timetz(b)?);
        }
        (left, right) if left == right && left == oids::TIMESTAMPTZ => "timestamp_cmp".to_owned(),
        (left, right) if left == right => format!("{}_cmp", name(left)),
        (left, right) => format!("{}_cmp_{}", name(left), name(right)),
    };
    ordering(session, &function, &a.value, &b.value)
}

fn ordering(session: &dyn Session, function: &str, a: &Datum, b: &Datum) -> Result<Option<Ordering>> {
    Ok(Some(call(session, function, &[a.clone(), b.clone()])?.as_i32().cmp(&0)))
}

fn call(session: &dyn Session, function: &str, args: &[Datum]) -> Result<Datum> {
    let run = melba_fmgr::registry::scalar(function).ok_or_else(|| err!(INTERNAL_ERROR, "no function {function}"))?;
    let context = CallInfo {
        session,
        arg_types: &[],
        return_type: Oid(0),
        collation: Oid(0),
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    run(&context, args)
}

fn cast(session: &dyn Session, function: &str, value: &Datum) -> Result<Datum> {
    call(session, function, std::slice::from_ref(value))
}

fn check_zone_is_used(use_zone: bool, from: &str, to: &str) -> Result<()> {
    if use_zone {
        return Ok(());
    }
    Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert value from {from} to {to} without time zone usage")
        .hint("Use *_tz() function for time zone support."))
}

/// A method that reads a date or time from a string: datetime(), date(), time() and so on.
pub fn apply<'a>(session: &dyn Session, use_zone: bool, item: &Item<'a>, method: &str, args: &[Expr]) -> Result<Item<'a>> {
    let Some(melba_types::jsonb::JsonbValue::String(text)) = item.value() else {
        return Err(err!(
            INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            "jsonpath item method .{method}() can only be applied to a string"
        ));
    };
    let zone = session_zone(session);
    let read = match (method, args.first()) {
        ("datetime", Some(Expr::String(template))) => of_standard(&parse_standard(&zone, text, template)?)?,
        _ => {
            let fits = |template: &&str| parse_standard(&zone, text, template).and_then(|read| of_standard(&read)).ok();
            TEMPLATES.iter().find_map(fits).ok_or_else(|| not_recognized(method, text))?
        }
    };
    if method == "datetime" {
        return Ok(Item::DateTime(read));
    }
    let precision = match args.first() {
        Some(Expr::Number(digits)) => Some(digits.to_i32().map_err(|_| {
            err!(
                INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                "time precision of jsonpath item method .{method}() is out of range for type integer"
            )
        })?),
        _ => None,
    };
    let mut value = converted(session, use_zone, &zone, read, method, text)?;
    if let Some(precision) = precision {
        value.round(session, precision);
    }
    Ok(Item::DateTime(value))
}

fn not_recognized(method: &str, text: &str) -> DbError {
    let error = err!(INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION, "{method} format is not recognized: \"{text}\"");
    match method {
        "datetime" => error.hint("Use a datetime template argument to specify the input data format."),
        _ => error,
    }
}

/// The type of a value that a template read: its patterns decide.
fn of_standard(read: &Standard) -> Result<DateTime> {
    let Standard { fields: DateTimeFields { civil, offset, precision }, .. } = *read;
    let digits = precision.map_or(6, i32::from);
    let clock = round_timestamp(civil.time(), digits);
    let out_of_range = |what: &str| err!(DATETIME_FIELD_OVERFLOW, "{what} out of range");
    let offset = offset.unwrap_or(0);
    Ok(match (read.dated, read.timed, read.zoned) {
        (true, true, true) => {
            let local = civil.timestamp().ok_or_else(|| out_of_range("timestamptz"))?;
            let instant = round_timestamp(local - i64::from(offset) * MICROS_PER_SECOND, digits);
            DateTime { ty: oids::TIMESTAMPTZ, value: Datum::Int8(instant), offset }
        }
        (true, true, false) => {
            let local = civil.timestamp().ok_or_else(timestamp_out_of_range)?;
            DateTime { ty: oids::TIMESTAMP, value: Datum::Int8(round_timestamp(local, digits)), offset: 0 }
        }
        (true, false, false) => {
            let date = melba_functions::datetime::date_of_civil(&civil).ok_or_else(|| out_of_range("date"))?;
            DateTime { ty: oids::DATE, value: Datum::Int4(date), offset: 0 }
        }
        (false, true, true) => {
            let time = TimeTz { micros: clock, zone_seconds_west: -offset };
            DateTime { ty: oids::TIMETZ, value: Datum::TimeTz(time), offset }
        }
        (false, true, false) => DateTime { ty: oids::TIME, value: Datum::Int8(clock), offset: 0 },
        (_, false, true) => return Err(err!(INVALID_DATETIME_FORMAT, "datetime format is zoned but not timed")),
        (false, false, false) => {
            return Err(err!(INVALID_DATETIME_FORMAT, "datetime format is not dated and not timed"));
        }
    })
}

/// The value as the type that a method is named for.
fn converted(session: &dyn Session, use_zone: bool, zone: &Zone, read: DateTime, method: &str, text: &str) -> Result<DateTime> {
    let (ty, wanted) = match method {
        "date" => (oids::DATE, "date"),
        "time" => (oids::TIME, "time"),
        "time_tz" => (oids::TIMETZ, "timetz"),
        "timestamp" => (oids::TIMESTAMP, "timestamp"),
        _ => (oids::TIMESTAMPTZ, "timestamptz"),
    };
    if ty == read.ty {
        return Ok(read);
    }
    let (function, given) = match (read.ty, ty) {
        (oids::TIMESTAMP, oids::DATE) => ("timestamp_date", None),
        (oids::TIMESTAMPTZ, oids::DATE) => ("timestamptz_date", Some("timestamptz")),
        (oids::TIMETZ, oids::TIME) => ("timetz_time", Some("timetz")),
        (oids::TIMESTAMP, oids::TIME) => ("timestamp_time", None),
        (oids::TIMESTAMPTZ, oids::TIME) => ("timestamptz_time", Some("timestamptz")),
        (oids::TIME, oids::TIMETZ) => ("time_timetz", Some("time")),
        (oids::TIMESTAMPTZ, oids::TIMETZ) => ("timestamptz_timetz", None),
        (oids::DATE, oids::TIMESTAMP) => ("date_timestamp", None),
        (oids::TIMESTAMPTZ, oids::TIMESTAMP) => ("timestamptz_timestamp", Some("timestamptz")),
        (oids::DATE, oids::TIMESTAMPTZ) => ("date_timestamptz", Some("date")),
        (oids::TIMESTAMP, oids::TIMESTAMPTZ) => ("timestamp_timestamptz", Some("timestamp")),
        _ => return Err(not_recognized(method, text)),
    };
    if let Some(given) = given {
        check_zone_is_used(use_zone, given, wanted)?;
    }
    let value = cast(session, function, &read.value)?;
    let offset = if ty == oids::TIMESTAMPTZ { zone.offset_at(unix_seconds(value.as_i64())) } else { 0 };
    Ok(DateTime { ty, value, offset })
}

impl DateTime {
    /// Rounds the seconds to `digits` digits; more than six are six, with a warning.
    fn round(&mut self, session: &dyn Session, digits: i32) {
        if digits > 6 {
            let (name, suffix) = match self.ty {
                oids::TIME => ("TIME", ""),
                oids::TIMETZ => ("TIME", " WITH TIME ZONE"),
                oids::TIMESTAMP => ("TIMESTAMP", ""),
                _ => ("TIMESTAMP", " WITH TIME ZONE"),
            };
            let message = format!("{name}({digits}){suffix} precision reduced to maximum allowed, 6");
            session.notice(err!(INVALID_PARAMETER_VALUE, "{message}").severity(Severity::Warning));
        }
        let round = |micros| round_timestamp(micros, digits.min(6));
        self.value = match &self.value {
            Datum::Int8(micros) => Datum::Int8(round(*micros)),
            Datum::TimeTz(time) => Datum::TimeTz(TimeTz { micros: round(time.micros), ..*time }),
            other => other.clone(),
        };
    }
}
