//! Integers from text, as the integer types read them.

use melba_types::{DbError, Result, err};

use crate::type_io::{invalid_text, trim};

pub fn int2_in(text: &str) -> Result<i16> {
    let wide = parse_integer(text, "smallint", i16::MIN.into())?;
    i16::try_from(wide).map_err(|_| out_of_text_range(text, "smallint"))
}

pub fn int4_in(text: &str) -> Result<i32> {
    let wide = parse_integer(text, "integer", i32::MIN.into())?;
    i32::try_from(wide).map_err(|_| out_of_text_range(text, "integer"))
}

pub fn int8_in(text: &str) -> Result<i64> {
    parse_integer(text, "bigint", i64::MIN)
}

fn out_of_text_range(text: &str, type_name: &str) -> DbError {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type {type_name}")
}

/// An integer literal as the integer types read it: spaces around, a sign, decimal or 0x/0o/0b digits, underscores
/// between digits.
fn parse_integer(text: &str, type_name: &str, min: i64) -> Result<i64> {
    let bytes = text.as_bytes();
    // The common case first: a sign and up to 18 digits.
    let (negative, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    if !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit) {
        let value = digits.iter().fold(0i64, |v, d| v * 10 + i64::from(d - b'0'));
        return Ok(if negative { -value } else { value });
    }
    parse_integer_slowly(text, type_name, min)
}

/// Too many digits are out of range before what follows them is looked at, as in PostgreSQL (pg_strtoint32_safe).
fn parse_integer_slowly(text: &str, type_name: &str, min: i64) -> Result<i64> {
    let invalid = || invalid_text(type_name, text);
    let mut rest = trim(text).as_bytes();
    let negative = rest.first() == Some(&b'-');
    if matches!(rest.first(), Some(b'-' | b'+')) {
        rest = &rest[1..];
    }
    let radix = match rest {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    if radix != 10 {
        rest = &rest[2..];
    } else if rest.first() == Some(&b'_') {
        return Err(invalid());
    }
    let limit = min.unsigned_abs();
    let (mut value, mut digits) = (0u64, 0);
    let mut i = 0;
    while i < rest.len() {
        // An underscore stands before a digit.
        if rest[i] == b'_' {
            i += 1;
        }
        let digit = rest.get(i).and_then(|&c| (c as char).to_digit(radix)).ok_or_else(invalid)?;
        if value > limit / u64::from(radix) {
            return Err(out_of_text_range(text, type_name));
        }
        value = value * u64::from(radix) + u64::from(digit);
        digits += 1;
        i += 1;
    }
    if digits == 0 {
        return Err(invalid());
    }
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.ok_or_else(|| out_of_text_range(text, type_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        int4_in(text).expect_err("invalid").message().to_string()
    }

    #[test]
    fn integers_are_read_as_postgresql_reads_them() {
        assert_eq!(int4_in(" -0x1F ").expect("hex"), -31);
        assert_eq!(int4_in("1_000").expect("underscore"), 1000);
        assert_eq!(int4_in("0b_11").expect("underscore after the prefix"), 3);
        assert_eq!(int8_in("-9223372036854775808").expect("minimum"), i64::MIN);
        assert_eq!(message("1__0"), "invalid input syntax for type integer: \"1__0\"");
        assert_eq!(message("1_"), "invalid input syntax for type integer: \"1_\"");
        assert_eq!(message(""), "invalid input syntax for type integer: \"\"");
        assert_eq!(message("0x"), "invalid input syntax for type integer: \"0x\"");
        assert_eq!(message("2147483648"), "value \"2147483648\" is out of range for type integer");
        assert!(int8_in("9223372036854775808").is_err());
        assert!(int8_in("-9223372036854775809").is_err());
        assert_eq!(message("99999999999x"), "value \"99999999999x\" is out of range for type integer");
        assert_eq!(message("2147483648x"), "invalid input syntax for type integer: \"2147483648x\"");
    }
}
