use melba_types::{Oid, oids};

/// Calls a function with arguments and result as text, in America/New_York.
fn call(source: &str, args: &[(Oid, &str)], result: Oid) -> Result<String, String> {
    let mut session = crate::testing::session();
    session.format.time_zone = "America/New_York".into();
    session.call_text(source, args, result)
}

const TS: Oid = oids::TIMESTAMP;
const TSTZ: Oid = oids::TIMESTAMPTZ;

/// Expected values are PostgreSQL 18's.
#[test]
fn sums_across_months_and_transitions() {
    let plus = |t, i| call("timestamp_pl_interval", &[(TS, t), (oids::INTERVAL, i)], TS);
    assert_eq!(plus("2024-01-31", "1 mon").as_deref(), Ok("2024-02-29 00:00:00"));
    assert_eq!(plus("2024-01-31", "-1 mon 1 day 02:00").as_deref(), Ok("2024-01-01 02:00:00"));
    assert_eq!(plus("294276-12-31", "1 day"), Err("22008 timestamp out of range".into()));
    let zoned = |t, i| call("timestamptz_pl_interval", &[(TSTZ, t), (oids::INTERVAL, i)], TSTZ);
    assert_eq!(zoned("2024-03-09 12:00", "1 day").as_deref(), Ok("2024-03-10 12:00:00-04"));
    assert_eq!(zoned("2024-03-09 12:00", "24:00").as_deref(), Ok("2024-03-10 13:00:00-04"));
    let age = |a, b| call("timestamp_age", &[(TS, a), (TS, b)], oids::INTERVAL);
    assert_eq!(age("2024-03-01", "2023-12-31 12:00").as_deref(), Ok("2 mons 12:00:00"));
    assert_eq!(age("2023-12-31 12:00", "2024-03-01").as_deref(), Ok("-2 mons -12:00:00"));
}

#[test]
fn parts_have_exact_scales() {
    let extract = |unit, t| call("extract_timestamp", &[(oids::TEXT, unit), (TS, t)], oids::NUMERIC);
    let at = "2024-12-30 04:05:06.7";
    for (unit, expected) in [
        ("second", "6.700000"),
        ("milliseconds", "6700.000"),
        ("microseconds", "6700000"),
        ("week", "1"),
        ("isoyear", "2025"),
        ("epoch", "1735531506.700000"),
        ("julian", "2460675.17021643518518518519"),
        ("century", "21"),
    ] {
        assert_eq!(extract(unit, at).as_deref(), Ok(expected), "{unit}");
    }
    assert_eq!(extract("year", "infinity").as_deref(), Ok("Infinity"));
    assert_eq!(extract("month", "infinity").as_deref(), Ok("NULL"));
    let unknown = Err("22023 unit \"nonsense\" not recognized for type timestamp without time zone".into());
    assert_eq!(extract("nonsense", at), unknown);
    let unsupported = Err("0A000 unit \"timezone\" not supported for type timestamp without time zone".into());
    assert_eq!(extract("timezone", at), unsupported);
}

#[test]
fn zones_convert_and_truncate() {
    let at = |zone, t| call("timestamptz_zone", &[(oids::TEXT, zone), (TSTZ, t)], TS);
    assert_eq!(at("Asia/Tokyo", "2024-07-01 12:00+00").as_deref(), Ok("2024-07-01 21:00:00"));
    assert_eq!(at("MSK", "2012-07-01 12:00+00").as_deref(), Ok("2012-07-01 16:00:00"));
    assert_eq!(at("nowhere", "2012-07-01"), Err("22023 time zone \"nowhere\" not recognized".into()));
    let trunc = |unit, t| call("timestamptz_trunc", &[(oids::TEXT, unit), (TSTZ, t)], TSTZ);
    assert_eq!(trunc("day", "2024-03-10 12:34:56").as_deref(), Ok("2024-03-10 00:00:00-05"));
    assert_eq!(trunc("hour", "2024-11-03 01:30-04").as_deref(), Ok("2024-11-03 01:00:00-04"));
    assert_eq!(trunc("week", "2024-01-03").as_deref(), Ok("2024-01-01 00:00:00-05"));
}

#[test]
fn equal_values_hash_alike() {
    let hash = |f: &str, ty, text| call(f, &[(ty, text)], oids::INT4);
    assert_eq!(hash("interval_hash", oids::INTERVAL, "1 mon"), hash("interval_hash", oids::INTERVAL, "30 days"));
    assert_ne!(hash("interval_hash", oids::INTERVAL, "1 mon"), hash("interval_hash", oids::INTERVAL, "31 days"));
    assert_ne!(hash("timetz_hash", oids::TIMETZ, "12:00+00"), hash("timetz_hash", oids::TIMETZ, "13:00+01"));
}
