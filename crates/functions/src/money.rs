//! money: cents in 64 bits, written as `$1,234.56` (lc_monetary = C).

use melba_fmgr::{ScalarFn, TypeIo, comparison_table, type_io};
use melba_types::{Datum, Numeric, Oid, Result, err, oids};

use crate::float::f64_checked;
use crate::int::{division_by_zero, out_of_range, wide};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::MONEY,
    TypeIo {
        input: |_, s| money_in(s).map(Datum::Int8),
        output: |_, v, out| {
            write(v.as_i64(), out);
            Ok(())
        },
        receive: |_, b| Ok(Datum::Int8(i64::from_be_bytes(type_io::fixed(b)?))),
        send: |_, v, out| {
            out.extend_from_slice(&v.as_i64().to_be_bytes());
            Ok(())
        },
    },
)];

fn money_in(text: &str) -> Result<i64> {
    let invalid = || type_io::invalid_text("money", text);
    let mut rest = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '$');
    let mut negative = false;
    if let Some(tail) = rest.strip_prefix(['-', '(']) {
        (negative, rest) = (true, tail);
    } else if let Some(tail) = rest.strip_prefix('+') {
        rest = tail;
    }
    rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '$');
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(rest.len());
    let (number, tail) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Without digits it is 0, as in PostgreSQL.
    if fraction.contains([',', '.']) {
        return Err(invalid());
    }
    for c in tail.chars() {
        match c {
            '-' => negative = true,
            ')' | '+' | '$' => {}
            c if c.is_ascii_whitespace() => {}
            _ => return Err(invalid()),
        }
    }
    let digits = whole.bytes().filter(|c| *c != b',').map(|c| i128::from(c - b'0'));
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |c| i128::from(c - b'0'));
    let dollars = digits.fold(0i128, |v, d| (v * 10 + d).min(i128::from(u64::MAX)));
    let cents = dollars * 100 + digit(0) * 10 + digit(1) + i128::from(digit(2) >= 5);
    let cents = if negative { -cents } else { cents };
    i64::try_from(cents).map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type money"))
}

fn write(cents: i64, out: &mut Vec<u8>) {
    let magnitude = cents.unsigned_abs();
    out.extend_from_slice(if cents < 0 { b"-$" } else { b"$" });
    let dollars = (magnitude / 100).to_string();
    for (i, digit) in dollars.bytes().enumerate() {
        if i > 0 && (dollars.len() - i).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(format!(".{:02}", magnitude % 100).as_bytes());
}

fn compare(a: &Datum, b: &Datum) -> std::cmp::Ordering {
    a.as_i64().cmp(&b.as_i64())
}

comparison_table! {
    /// Comparisons by amount.
    COMPARISONS: compare => "cash_eq", "cash_ne", "cash_lt", "cash_le", "cash_gt", "cash_ge", "cash_cmp";
}

fn checked(cents: Option<i64>) -> Result<Datum> {
    cents.map(Datum::Int8).ok_or_else(|| out_of_range("money"))
}

fn times(cents: &Datum, factor: f64) -> Result<Datum> {
    from_float(f64_checked::mul(cents.as_i64() as f64, factor)?)
}

fn from_float(cents: f64) -> Result<Datum> {
    let cents = cents.round_ties_even();
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cents);
    checked(fits.then_some(cents as i64))
}

fn divide_float(a: &[Datum]) -> Result<Datum> {
    from_float(f64_checked::div(a[0].as_i64() as f64, crate::float::wide(&a[1]))?)
}

fn divide(a: &[Datum]) -> Result<Datum> {
    if wide(&a[1]) == 0 {
        return Err(division_by_zero());
    }
    checked(a[0].as_i64().checked_div(wide(&a[1])))
}

fn from_numeric(amount: &Numeric) -> Result<Datum> {
    let cents = amount.mul(&Numeric::from(100i32))?.to_i64();
    // The message names bigint, as PostgreSQL's conversion on the way does.
    cents.map(Datum::Int8)
}

/// Up to 999 in words.
fn small_words(n: u64, out: &mut String) {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 10] = ["", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let (hundreds, below) = (n / 100, n % 100);
    if hundreds > 0 {
        out.push_str(SMALL[hundreds as usize]);
        out.push_str(" hundred");
        if below == 0 {
            return;
        }
        out.push_str(if below < 20 { " and " } else { " " });
    }
    if below < 20 {
        out.push_str(SMALL[below as usize]);
        return;
    }
    out.push_str(TENS[(below / 10) as usize]);
    if below % 10 > 0 {
        out.push(' ');
        out.push_str(SMALL[(below % 10) as usize]);
    }
}

fn words(cents: i64) -> String {
    let magnitude = cents.unsigned_abs();
    let (dollars, rest) = (magnitude / 100, magnitude % 100);
    let mut out = String::from(if cents < 0 { "minus " } else { "" });
    for (name, unit) in [
        (" quadrillion ", 10u64.pow(15)),
        (" trillion ", 10u64.pow(12)),
        (" billion ", 10u64.pow(9)),
        (" million ", 1_000_000),
        (" thousand ", 1000),
    ] {
        let group = dollars / unit % 1000;
        if group > 0 {
            small_words(group, &mut out);
            out.push_str(name);
        }
    }
    if dollars % 1000 > 0 || dollars == 0 {
        small_words(dollars % 1000, &mut out);
    }
    out.push_str(if dollars == 1 { " dollar and " } else { " dollars and " });
    small_words(rest, &mut out);
    out.push_str(if rest == 1 { " cent" } else { " cents" });
    out[..1].to_ascii_uppercase() + &out[1..]
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("cash_pl", |_, a| checked(a[0].as_i64().checked_add(a[1].as_i64()))),
    ("cash_mi", |_, a| checked(a[0].as_i64().checked_sub(a[1].as_i64()))),
    ("cash_mul_int2", |_, a| checked(a[0].as_i64().checked_mul(wide(&a[1])))),
    ("cash_mul_int4", |_, a| checked(a[0].as_i64().checked_mul(wide(&a[1])))),
    ("cash_mul_int8", |_, a| checked(a[0].as_i64().checked_mul(wide(&a[1])))),
    ("int2_mul_cash", |_, a| checked(a[1].as_i64().checked_mul(wide(&a[0])))),
    ("int4_mul_cash", |_, a| checked(a[1].as_i64().checked_mul(wide(&a[0])))),
    ("int8_mul_cash", |_, a| checked(a[1].as_i64().checked_mul(wide(&a[0])))),
    ("cash_mul_flt4", |_, a| times(&a[0], crate::float::wide(&a[1]))),
    ("cash_mul_flt8", |_, a| times(&a[0], crate::float::wide(&a[1]))),
    ("flt4_mul_cash", |_, a| times(&a[1], crate::float::wide(&a[0]))),
    ("flt8_mul_cash", |_, a| times(&a[1], crate::float::wide(&a[0]))),
    ("cash_div_int2", |_, a| divide(a)),
    ("cash_div_int4", |_, a| divide(a)),
    ("cash_div_int8", |_, a| divide(a)),
    ("cash_div_flt4", |_, a| divide_float(a)),
    ("cash_div_flt8", |_, a| divide_float(a)),
    ("cash_div_cash", |_, a| {
        if a[1].as_i64() == 0 {
            return Err(division_by_zero());
        }
        Ok(Datum::Float8(a[0].as_i64() as f64 / a[1].as_i64() as f64))
    }),
    ("cashlarger", |_, a| Ok(Datum::Int8(a[0].as_i64().max(a[1].as_i64())))),
    ("cashsmaller", |_, a| Ok(Datum::Int8(a[0].as_i64().min(a[1].as_i64())))),
    ("cash_numeric", |_, a| Ok(Datum::Numeric(Numeric::from_parts(i128::from(a[0].as_i64()), 2)))),
    ("numeric_cash", |_, a| from_numeric(a[0].as_numeric())),
    ("int4_cash", |_, a| checked(wide(&a[0]).checked_mul(100))),
    ("int8_cash", |_, a| match wide(&a[0]).checked_mul(100) {
        Some(cents) => Ok(Datum::Int8(cents)),
        None => Err(out_of_range("bigint")),
    }),
    ("cash_words", |_, a| Ok(Datum::text(words(a[0].as_i64())))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_beyond_the_floats_overflow_as_floats_do() {
        assert_eq!(times(&Datum::Int8(100), 1e308).expect_err("overflow").message(), "value out of range: overflow");
        assert_eq!(times(&Datum::Int8(100), 1e300).expect_err("range").message(), "money out of range");
    }

    #[test]
    fn amounts_print_with_separators() {
        for (text, shown) in [("1234567.895", "$1,234,567.90"), ("($5)", "-$5.00"), ("-$0.5", "-$0.50"), (" $ 1,0 ", "$10.00")] {
            let mut out = Vec::new();
            write(money_in(text).expect(text), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown);
        }
        assert!(money_in("$").is_ok_and(|cents| cents == 0) && money_in("1.2.3").is_err());
    }
}
