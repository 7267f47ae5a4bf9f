use super::*;
use crate::datetime::format::{write_timestamp, write_zoned};
use crate::datetime::{DateStyle, from_local};

fn parse(text: &str) -> Result<String, DateTimeError> {
    let zone = Zone::lookup("America/Los_Angeles").expect("bundled");
    let settings = ParseSettings { order: DateOrder::Mdy, zone: &zone, now: &|| 0 };
    let parsed = parse_date_time(text, &settings)?;
    let mut out = Vec::new();
    match parsed {
        ParsedTimestamp::Civil(civil, offset) => {
            let at = civil.timestamp().expect("in range") - i64::from(offset) * 1_000_000;
            write_zoned(at, DateStyle::Iso, DateOrder::Mdy, &zone, &mut out);
        }
        other => return Ok(format!("{other:?}")),
    }
    Ok(String::from_utf8(out).expect("ASCII"))
}

/// Expected values are PostgreSQL 18's, with time zone America/Los_Angeles.
#[test]
fn timestamps_in_many_spellings() {
    for (text, expected) in [
        ("1997-02-10 17:32:01", "1997-02-10 17:32:01-08"),
        ("Mon Feb 10 17:32:01 1997 PST", "1997-02-10 17:32:01-08"),
        ("Feb 10 17:32:01.5 1997", "1997-02-10 17:32:01.5-08"),
        ("19970210 173201", "1997-02-10 17:32:01-08"),
        ("1997.041 17:32:01 UTC", "1997-02-10 09:32:01-08"),
        ("20000215T173201.4-0800", "2000-02-15 17:32:01.4-08"),
        ("J2452271T040506.789-08", "2001-12-27 04:05:06.789-08"),
        ("J2452271.25 +00", "2001-12-26 22:00:00-08"),
        ("2/10/97 America/New_York", "1997-02-09 21:00:00-08"),
        ("10 February 1997 BC", "1997-02-10 00:00:00-07:52:58 BC"),
        ("2024-03-10 02:30", "2024-03-10 03:30:00-07"),
        ("2024-11-03 01:30", "2024-11-03 01:30:00-08"),
        ("2011-03-27 00:00:00 MSK", "2011-03-26 14:00:00-07"),
        ("2000-01-01 24:00:00 UTC", "2000-01-01 16:00:00-08"),
        ("infinity", "Infinity"),
        ("epoch", "Epoch"),
    ] {
        assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn bad_timestamps() {
    use DateTimeError::*;
    for (text, expected) in [
        ("1997-02-30", FieldOverflow),
        ("1997-13-01", MonthDayOverflow),
        ("13/13/1997", MonthDayOverflow),
        ("1997-02-10 25:00", FieldOverflow),
        ("0000-01-01", FieldOverflow),
        ("foo", BadFormat),
        ("", BadFormat),
        ("1997-02-10 10:00 +16:00", OffsetOverflow),
        ("1997-02-10 10:00 America/Nowhere", UnknownZone("america/nowhere".into())),
        ("now now", BadFormat),
    ] {
        assert_eq!(parse(text), Err(expected), "{text}");
    }
}

#[test]
fn local_times_become_instants() {
    let zone = Zone::lookup("America/Los_Angeles").expect("bundled");
    let mut out = Vec::new();
    write_timestamp(from_local(0, &zone).expect("in range"), DateStyle::Iso, DateOrder::Mdy, &mut out);
    assert_eq!(out, b"2000-01-01 08:00:00");
}
