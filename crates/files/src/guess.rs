//! The type of a column, from all of its values: the narrowest that keeps each of them as it is written.

use std::ops::BitOr;

/// Types that a value may be of, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u16);

impl Types {
    const BOOLEAN: Types = Types(1);
    const BIGINT: Types = Types(2);
    const NUMERIC: Types = Types(4);
    const DOUBLE: Types = Types(8);
    const DATE: Types = Types(16);
    const TIMESTAMP: Types = Types(32);
    const TIMESTAMPTZ: Types = Types(64);
    const UUID: Types = Types(128);
    const JSONB: Types = Types(256);
    const TEXT: Types = Types(512);
    const ANY: Types = Types(1023);
    const NUMBER: Types = Types(2 | 4 | 8);

    fn has(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }
}

impl BitOr for Types {
    type Output = Types;

    fn bitor(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }
}

/// The narrowest first; their names.
const ORDER: [(Types, &str); 10] = [
    (Types::BOOLEAN, "boolean"),
    (Types::BIGINT, "bigint"),
    (Types::NUMERIC, "numeric"),
    (Types::DOUBLE, "double precision"),
    (Types::DATE, "date"),
    (Types::TIMESTAMP, "timestamp"),
    (Types::TIMESTAMPTZ, "timestamptz"),
    (Types::UUID, "uuid"),
    (Types::JSONB, "jsonb"),
    (Types::TEXT, "text"),
];

/// The possible types of all values of a column so far.
#[derive(Clone, Copy, Debug)]
pub struct Guess {
    types: Types,
    has_values: bool,
    /// A number with an exponent: `1e5`, or no number of numeric's.
    has_floats: bool,
    /// Values of JSON, whose strings are jsonb only beside objects.
    is_of_json: bool,
}

impl Default for Guess {
    fn default() -> Guess {
        Guess { types: Types::ANY, has_values: false, has_floats: false, is_of_json: false }
    }
}

/// Decimal digits that double precision always keeps.
const DOUBLE_DIGITS: usize = 15;

impl Guess {
    /// A value of a CSV file.
    pub fn add_text(&mut self, value: &[u8]) {
        self.has_values = true;
        // Most columns are decided soon; a text stays one.
        if self.types == Types::TEXT {
            return;
        }
        let (types, is_float) = of_text(value);
        self.narrow(types, is_float);
    }

    /// A string of JSON: a date may be one, a number is not.
    pub fn add_string(&mut self, value: &str) {
        (self.has_values, self.is_of_json) = (true, true);
        let others = Types::DATE | Types::TIMESTAMP | Types::TIMESTAMPTZ | Types::UUID | Types::TEXT;
        self.narrow(of_text(value.as_bytes()).0.and(others) | Types::JSONB, false);
    }

    /// Any other value of JSON as it is written, but null.
    pub fn add_json(&mut self, value: &str) {
        (self.has_values, self.is_of_json) = (true, true);
        let (types, is_float) = match value.as_bytes().first() {
            Some(b't' | b'f') => (Types::BOOLEAN | Types::JSONB | Types::TEXT, false),
            Some(b'{' | b'[') => (Types::JSONB, false),
            _ => {
                let (types, is_float) = of_text(value.as_bytes());
                (types.and(Types::NUMBER | Types::TEXT) | Types::JSONB, is_float)
            }
        };
        self.narrow(types, is_float);
    }

    fn narrow(&mut self, types: Types, is_float: bool) {
        self.types = self.types.and(types);
        self.has_floats |= is_float;
    }

    /// Adds the values of another file.
    pub fn merge(&mut self, other: Guess) {
        self.has_values |= other.has_values;
        self.is_of_json |= other.is_of_json;
        self.narrow(other.types, other.has_floats);
    }

    /// PostgreSQL's name of the type.
    pub fn type_name(self) -> &'static str {
        if !self.has_values {
            return "text";
        }
        // With an exponent, digits are not exact; numeric could write a hundred zeros for it.
        let types = match self.types {
            types if self.has_floats && types.has(Types::DOUBLE) => Types::DOUBLE,
            types if self.is_of_json && types == Types::JSONB | Types::TEXT => Types::TEXT,
            types => types,
        };
        ORDER.iter().find(|(one, _)| types.has(*one)).map_or("text", |(_, name)| name)
    }

    pub fn is_text(self) -> bool {
        self.type_name() == "text"
    }
}

/// The possible types of a value, and whether it is a number with an exponent.
fn of_text(value: &[u8]) -> (Types, bool) {
    let text = Types::TEXT;
    let Some(first) = value.first() else { return (text, false) };
    match first {
        b'0'..=b'9' | b'-' | b'.' => match number(value) {
            Some(Number::Integer) => (Types::NUMBER | text, false),
            Some(Number::Decimal { digits }) => {
                let double = if digits <= DOUBLE_DIGITS { Types::DOUBLE } else { text };
                (Types::NUMERIC | double | text, false)
            }
            Some(Number::Float { digits }) if digits <= DOUBLE_DIGITS => (Types::NUMERIC | Types::DOUBLE | text, true),
            Some(Number::Float { .. }) => (Types::NUMERIC | text, false),
            None => (moment(value) | uuid(value) | text, false),
        },
        b'{' | b'[' => (json(value) | text, false),
        b'N' if value == b"NaN" => (Types::DOUBLE | text, true),
        b'a'..=b'f' | b'A'..=b'F' | b't' | b'T' => (boolean(value) | uuid(value) | text, false),
        _ => (text, false),
    }
}

fn boolean(value: &[u8]) -> Types {
    let is_one = ["true", "false", "t", "f"].iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    if is_one { Types::BOOLEAN } else { Types::TEXT }
}

enum Number {
    /// Of 64 bits.
    Integer,
    Decimal {
        digits: usize,
    },
    Float {
        digits: usize,
    },
}

/// A number in PostgreSQL's spelling: `007` and `+5` are none.
fn number(value: &[u8]) -> Option<Number> {
    let unsigned = value.strip_prefix(b"-").unwrap_or(value);
    let count = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = count(unsigned);
    let mut rest = &unsigned[whole..];
    if (unsigned.starts_with(b"0") && whole > 1) || (whole == 0 && !rest.starts_with(b".")) {
        return None;
    }
    let mut fraction = 0;
    let has_point = rest.first() == Some(&b'.');
    if has_point {
        fraction = count(&rest[1..]);
        rest = &rest[1 + fraction..];
    }
    if whole + fraction == 0 {
        return None;
    }
    let digits = unsigned[..whole + usize::from(has_point) + fraction]
        .iter()
        .filter(|b| b.is_ascii_digit())
        .skip_while(|b| **b == b'0')
        .count();
    match rest {
        [] if !has_point && (digits < 19 || std::str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok())) => {
            // There is no integer -0.
            Some(if value == b"-0" { Number::Float { digits } } else { Number::Integer })
        }
        [] => Some(Number::Decimal { digits }),
        [b'e' | b'E', exponent @ ..] => {
            let exponent = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+")).unwrap_or(exponent);
            // Of larger ones double precision has none.
            let is_one = matches!(exponent.len(), 1..=2) && count(exponent) == exponent.len();
            is_one.then_some(Number::Float { digits })
        }
        _ => None,
    }
}

/// A date or a time of a day, in ISO 8601's order.
fn moment(value: &[u8]) -> Types {
    let Some((day, rest)) = value.split_at_checked(10) else { return Types::TEXT };
    if !is_date(day) {
        return Types::TEXT;
    }
    match rest {
        [] => Types::DATE | Types::TIMESTAMP,
        [b' ' | b'T', time @ ..] => match after_time(time) {
            Some([]) => Types::TIMESTAMP,
            Some(zone) if is_zone(zone) => Types::TIMESTAMPTZ,
            _ => Types::TEXT,
        },
        _ => Types::TEXT,
    }
}

fn two(text: &[u8]) -> Option<u32> {
    match text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0')),
        _ => None,
    }
}

/// YYYY-MM-DD, of the calendar.
fn is_date(day: &[u8]) -> bool {
    if day[4] != b'-' || day[7] != b'-' {
        return false;
    }
    let (Some(century), Some(year), Some(month), Some(day)) =
        (two(&day[..2]), two(&day[2..4]), two(&day[5..7]), two(&day[8..10]))
    else {
        return false;
    };
    let year = century * 100 + year;
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    year > 0 && (1..=days).contains(&day)
}

/// The text after HH:MM, HH:MM:SS or HH:MM:SS.FFFFFF.
fn after_time(time: &[u8]) -> Option<&[u8]> {
    let part = |text: &[u8], below: u32| text.get(..2).and_then(two).filter(|number| *number < below).map(drop);
    part(time, 24)?;
    (time.get(2) == Some(&b':')).then_some(())?;
    part(&time[3..], 60)?;
    let rest = &time[5..];
    let Some(seconds) = rest.strip_prefix(b":") else { return Some(rest) };
    part(seconds, 60)?;
    let Some(fraction) = seconds[2..].strip_prefix(b".") else { return Some(&seconds[2..]) };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // More would be rounded.
    (1..=6).contains(&digits).then(|| &fraction[digits..])
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        b"Z" => true,
        [b'+' | b'-', hours @ ..] => match hours.len() {
            2 => two(hours).is_some_and(|h| h < 16),
            4 => two(&hours[..2]).is_some_and(|h| h < 16) && two(&hours[2..]).is_some_and(|m| m < 60),
            5 => two(&hours[..2]).is_some_and(|h| h < 16) && hours[2] == b':' && two(&hours[3..]).is_some_and(|m| m < 60),
            _ => false,
        },
        _ => false,
    }
}

fn uuid(value: &[u8]) -> Types {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let is_one =
        value.len() == 36 && value.iter().enumerate().all(|(at, b)| if is_dash(at) { *b == b'-' } else { b.is_ascii_hexdigit() });
    if is_one { Types::UUID } else { Types::TEXT }
}

/// An object or an array that jsonb takes.
fn json(value: &[u8]) -> Types {
    let has_zero = value.windows(6).any(|part| part == b"\\u0000");
    let is_json = !has_zero && serde_json::from_slice::<serde::de::IgnoredAny>(value).is_ok();
    if is_json { Types::JSONB } else { Types::TEXT }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> &'static str {
        let mut guess = Guess::default();
        values.iter().for_each(|value| guess.add_text(value.as_bytes()));
        guess.type_name()
    }

    #[test]
    fn the_narrowest_type_that_keeps_all_values() {
        assert_eq!(of(&["1", "-20", "9223372036854775807"]), "bigint");
        assert_eq!(of(&["1", "9223372036854775808"]), "numeric");
        assert_eq!(of(&["1", "2.50", "-.5"]), "numeric");
        assert_eq!(of(&["1", "2e10", "NaN"]), "double precision");
        assert_eq!(of(&["1e5", "1.2345678901234567890"]), "numeric");
        assert_eq!(of(&["1e400"]), "text");
        assert_eq!(of(&["NaN", "1.2345678901234567890"]), "text");
        assert_eq!(of(&["true", "F"]), "boolean");
        assert_eq!(of(&["2024-02-29", "1999-12-31"]), "date");
        assert_eq!(of(&["2024-02-29", "1999-12-31 23:59", "1999-12-31T23:59:59.123456"]), "timestamp");
        assert_eq!(of(&["2024-02-29T00:00:00Z", "1999-12-31 23:59:59+05:30"]), "timestamptz");
        assert_eq!(of(&["0b6a1c1e-0000-4000-8000-00000000000F", "AB6A1C1E-0000-4000-8000-00000000000F"]), "uuid");
        assert_eq!(of(&["{\"a\": 1}", "[1, 2]"]), "jsonb");
        assert_eq!(of(&["1e9999", "-0"]), "text");
        assert_eq!(of(&[]), "text");
    }

    #[test]
    fn what_would_be_changed_or_refused_stays_text() {
        for values in [
            ["007", "1"],
            ["+5", "1"],
            ["2023-02-29", "2024-01-01"],
            ["2024-01-01 24:00:00", "2024-01-01"],
            ["2024-01-01 10:00:00", "2024-01-01 10:00:00Z"],
            ["{\"a\": \"\\u0000\"}", "{}"],
            ["{a: 1}", "{}"],
            ["1", "true"],
            [" 5", "6"],
            ["", "6"],
            ["1,5", "6"],
            ["yes", "no"],
        ] {
            assert_eq!(of(&values), "text", "{values:?}");
        }
    }

    #[test]
    fn json_strings_of_digits_are_text_and_json_numbers_are_numeric() {
        let of = |strings: &[&str], others: &[&str]| {
            let mut guess = Guess::default();
            strings.iter().for_each(|value| guess.add_string(value));
            others.iter().for_each(|value| guess.add_json(value));
            guess.type_name()
        };
        assert_eq!(of(&["12"], &[]), "text");
        assert_eq!(of(&["2024-01-01"], &[]), "date");
        assert_eq!(of(&[], &["12", "1.5"]), "numeric");
        assert_eq!(of(&[], &["true"]), "boolean");
        assert_eq!(of(&["x"], &["12"]), "text");
        assert_eq!(of(&["x"], &["{}"]), "jsonb");
        assert_eq!(of(&[], &["12", "[1]", "true"]), "jsonb");
    }
}
