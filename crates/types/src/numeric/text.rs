//! Text form of numerics.

use num_bigint::BigInt;

use super::decimal::{self, Decimal, pow10};
use super::{Numeric, Repr, SMALL_SCALE_MAX, overflow};
use crate::{DbError, Result, err};

fn invalid(text: &str) -> DbError {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type numeric: \"{text}\"")
}

pub fn parse(text: &str) -> Result<Numeric> {
    if let Some(value) = parse_short(text.as_bytes()) {
        return Ok(value);
    }
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (negative, bare) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    if trimmed.eq_ignore_ascii_case("nan") {
        return Ok(Numeric::NAN);
    }
    if bare.eq_ignore_ascii_case("infinity") || bare.eq_ignore_ascii_case("inf") {
        return Ok(if negative { Numeric::NEGATIVE_INFINITY } else { Numeric::INFINITY });
    }
    let magnitude = match bare.as_bytes() {
        [b'0', b'x' | b'X', rest @ ..] => integer(rest, 16),
        [b'0', b'o' | b'O', rest @ ..] => integer(rest, 8),
        [b'0', b'b' | b'B', rest @ ..] => integer(rest, 2),
        bytes => decimal(bytes)?,
    };
    let mut d = magnitude.ok_or_else(|| invalid(text))?;
    if negative {
        d.mantissa = -d.mantissa;
    }
    Numeric::from_decimal(d)
}

pub fn write(value: &Numeric, out: &mut Vec<u8>) {
    match &value.0 {
        Repr::Small { mantissa, scale } => write_small(*mantissa, usize::from(*scale), out),
        Repr::Big(d) => write_decimal(d, out),
        Repr::NaN => out.extend_from_slice(b"NaN"),
        Repr::PositiveInfinity => out.extend_from_slice(b"Infinity"),
        Repr::NegativeInfinity => out.extend_from_slice(b"-Infinity"),
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// The common case: an optional minus, up to 18 digits, at most one point.
fn parse_short(text: &[u8]) -> Option<Numeric> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    if digits.len() > 19 {
        return None;
    }
    let (mut mantissa, mut scale, mut seen, mut point) = (0i64, 0u16, 0, false);
    for &c in digits {
        match c {
            b'0'..=b'9' if seen < 18 => {
                mantissa = mantissa * 10 + i64::from(c - b'0');
                scale += u16::from(point);
                seen += 1;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    debug_assert!(scale <= SMALL_SCALE_MAX);
    (seen > 0).then(|| Numeric::small(if negative { -mantissa } else { mantissa }, scale))
}

fn integer(digits: &[u8], radix: u32) -> Option<Decimal> {
    // An underscore stands before a digit; one may follow the prefix.
    let well_formed = digits.iter().enumerate().all(|(i, c)| *c != b'_' || digits.get(i + 1).is_some_and(|next| *next != b'_'));
    let bare: Vec<u8> = digits.iter().copied().filter(|c| *c != b'_').collect();
    if !well_formed || bare.is_empty() || !bare.iter().all(|c| (*c as char).is_digit(radix)) {
        return None;
    }
    BigInt::parse_bytes(&bare, radix).map(Decimal::integer)
}

/// Digits with a point and an exponent. The outer error: an exponent beyond the format.
fn decimal(text: &[u8]) -> Result<Option<Decimal>> {
    let mut digits: Vec<u8> = Vec::with_capacity(text.len());
    let (mut scale, mut point) = (0i64, false);
    let mut i = 0;
    while let Some(&c) = text.get(i) {
        let next_is_digit = text.get(i + 1).is_some_and(u8::is_ascii_digit);
        match c {
            b'0'..=b'9' => {
                digits.push(c);
                scale += i64::from(point);
            }
            b'.' if !point => {
                point = true;
                if text.get(i + 1) == Some(&b'_') {
                    return Ok(None);
                }
            }
            b'_' if !digits.is_empty() && text[i - 1].is_ascii_digit() && next_is_digit => {}
            b'e' | b'E' if !digits.is_empty() => break,
            _ => return Ok(None),
        }
        i += 1;
    }
    if digits.is_empty() {
        return Ok(None);
    }
    let exponent = match text.get(i + 1..) {
        None => 0,
        Some(exponent) => match parse_exponent(exponent) {
            None => return Ok(None),
            Some(exponent) if exponent.abs() >= i64::from(i32::MAX / 2) => return Err(overflow()),
            Some(exponent) => exponent,
        },
    };
    scale -= exponent;
    // Reading digits takes time quadratic in their number: too many are refused first.
    let significant = digits.iter().skip_while(|c| **c == b'0').count() as i64;
    if significant - scale.min(i64::from(super::SCALE_MAX)) > super::INTEGER_DIGITS_MAX {
        return Err(overflow());
    }
    let mantissa = BigInt::parse_bytes(&digits, 10).unwrap_or_default();
    if scale > i64::from(super::SCALE_MAX) || -scale > super::INTEGER_DIGITS_MAX {
        // Zero has no weight that could overflow.
        return if scale < 0 && mantissa == BigInt::from(0) { Ok(Some(Decimal::integer(0))) } else { Err(overflow()) };
    }
    Ok(Some(if scale >= 0 { Decimal::new(mantissa, scale as u32) } else { Decimal::integer(mantissa * pow10(-scale as u32)) }))
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let mut value = 0i64;
    for (i, &c) in digits.iter().enumerate() {
        match c {
            b'0'..=b'9' => value = (value * 10 + i64::from(c - b'0')).min(i64::from(i32::MAX)),
            b'_' if digits[i - 1].is_ascii_digit() && digits.get(i + 1).is_some_and(u8::is_ascii_digit) => {}
            _ => return None,
        }
    }
    Some(if negative { -value } else { value })
}

fn write_small(mantissa: i64, scale: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    if mantissa < 0 {
        out.push(b'-');
    }
    write_digits(buffer.format(mantissa.unsigned_abs()).as_bytes(), scale, out);
}

/// Appends a finite value.
pub fn write_decimal(d: &Decimal, out: &mut Vec<u8>) {
    if d.is_negative() {
        out.push(b'-');
    }
    let (magnitude, zeros) = decimal::without_zeros(d.mantissa.magnitude());
    let mut digits = magnitude.to_str_radix(10).into_bytes();
    digits.resize(digits.len() + zeros as usize, b'0');
    write_digits(&digits, d.scale as usize, out);
}

fn write_digits(digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}
