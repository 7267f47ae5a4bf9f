use super::*;

fn show(text: &str, style: IntervalStyle) -> String {
    let interval = parse(text, -1, IntervalStyle::Postgres).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut out = Vec::new();
    write(&interval, style, &mut out);
    String::from_utf8(out).expect("ASCII")
}

/// Expected values are PostgreSQL 18's.
#[test]
fn intervals_in_all_styles() {
    let text = "1 year 2 mons -3 days 04:05:06.789";
    assert_eq!(show(text, IntervalStyle::Postgres), "1 year 2 mons -3 days +04:05:06.789");
    assert_eq!(show(text, IntervalStyle::PostgresVerbose), "@ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs");
    assert_eq!(show(text, IntervalStyle::SqlStandard), "+1-2 -3 +4:05:06.789");
    assert_eq!(show(text, IntervalStyle::Iso8601), "P1Y2M-3DT4H5M6.789S");
}

#[test]
fn spellings() {
    for (text, expected) in [
        ("1.5 years", "1 year 6 mons"),
        ("1-2", "1 year 2 mons"),
        ("-1-2 +3 04:05", "-1 years -2 mons +3 days 04:05:00"),
        ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
        ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
        ("P00010203T040506", "1 year 2 mons 3 days 04:05:06"),
        ("1.5 weeks", "10 days 12:00:00"),
        ("1 day ago", "-1 days"),
        ("2 centuries 3 millennia", "3200 years"),
        ("100", "00:01:40"),
        ("1.5 mon", "1 mon 15 days"),
        ("-infinity", "-infinity"),
        ("1 12:00", "1 day 12:00:00"),
    ] {
        assert_eq!(show(text, IntervalStyle::Postgres), expected, "{text}");
    }
    let state = |text| parse(text, -1, IntervalStyle::Postgres).map_err(|e| e.sqlstate().as_str().to_string());
    assert_eq!(state("1 foo").err().as_deref(), Some("22007"));
    assert_eq!(state("10000000000 days").err().as_deref(), Some("22015"));
}

#[test]
fn scaling_cascades_down() {
    let interval = parse("1 mon 1 day", -1, IntervalStyle::Postgres).expect("valid");
    let mut out = Vec::new();
    write(&interval.multiply(0.3).expect("in range"), IntervalStyle::Postgres, &mut out);
    assert_eq!(String::from_utf8(out).expect("ASCII"), "9 days 07:12:00");
}
