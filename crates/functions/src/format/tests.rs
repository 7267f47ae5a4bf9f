use melba_types::{Datum, Numeric};

use super::{date_out, number_in, number_out};

fn text(datum: melba_types::Result<Datum>) -> String {
    match datum {
        Ok(datum) => datum.as_str().to_string(),
        Err(e) => format!("{} {}", e.sqlstate(), e.message()),
    }
}

/// Expected values are PostgreSQL 18's.
#[test]
fn numbers_by_template() {
    let numeric = |value: &str, template| {
        let value: Numeric = Numeric::parse(value).expect("a number");
        text(number_out::numeric(&value, template))
    };
    for (value, template, expected) in [
        ("-12", "999", " -12"),
        ("0.1", "9.9", "  .1"),
        ("0.1", "FM9.9", ".1"),
        ("0", "FM9.9", "0."),
        ("485", "L 999", "   485"),
        ("-485", "999PR", "<485>"),
        ("1485", "9,999", " 1,485"),
        ("12.45", "99V9", " 125"),
        ("485", "FMRN", "CDLXXXV"),
        ("0.00001234", "9.99EEEE", " 1.23e-05"),
        ("123456", "999", " ###"),
        ("482", "999th", " 482nd"),
        ("-0.5", "S0.00", "-0.50"),
    ] {
        assert_eq!(numeric(value, template), expected, "{value} {template}");
    }
    assert_eq!(text(number_out::integer(12, true, "9.9.9")), "42601 multiple decimal points");
}

#[test]
fn dates_by_template() {
    // 2024-02-29 13:05:06.789012
    let at = 762_527_106_789_012;
    let show = |template| text(date_out::timestamp(at, None, template));
    assert_eq!(show("YYYY-MM-DD HH24:MI:SS.US"), "2024-02-29 13:05:06.789012");
    assert_eq!(show("Day, DDth FMMonth YYYY, HH12:MI p.m."), "Thursday , 29th February 2024, 01:05 p.m.");
    assert_eq!(show("IYYY-IW-ID \"week\" WW Q J RM"), "2024-09-4 week 09 1 2460370 II  ");
}

#[test]
fn numbers_are_read_by_template() {
    let read = |text, template| number_in::to_number(text, template).map(|n| n.to_string()).map_err(|e| e.to_string());
    assert_eq!(read("-34,338,492", "99G999G999").as_deref(), Ok("-34338492"));
    assert_eq!(read("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9").as_deref(), Ok("544448.78"));
    assert_eq!(read("12.4-", "99.9S").as_deref(), Ok("-12.4"));
    assert_eq!(read("MCMXCIX", "RN").as_deref(), Ok("1999"));
    assert_eq!(read("IIII", "RN"), Err("invalid Roman numeral".into()));
}
