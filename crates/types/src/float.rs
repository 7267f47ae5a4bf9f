//! Floating-point numbers as PostgreSQL compares, prints and reads them.
//!
//! Output is the shortest decimal that reads back as the same value (extra_float_digits > 0, the default), or `%g` with a
//! number of digits.

use std::cmp::Ordering;

/// NaN equals itself and is greater than everything; -0 equals 0.
#[inline]
pub fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// See `compare_f64`.
#[inline]
pub fn compare_f32(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The errors of a float's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatError {
    Syntax,
    OutOfRange,
}

macro_rules! parse_float {
    ($name:ident, $ty:ty) => {
        /// Reads text by the rules of float input, without white space around it.
        pub fn $name(text: &str) -> Result<$ty, FloatError> {
            let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            if bare.eq_ignore_ascii_case("nan") {
                return Ok(<$ty>::NAN);
            }
            if bare.eq_ignore_ascii_case("inf") || bare.eq_ignore_ascii_case("infinity") {
                return Ok(sign * <$ty>::INFINITY);
            }
            if let Some(hex) = bare.strip_prefix("0x").or_else(|| bare.strip_prefix("0X")) {
                return Ok(sign * parse_hex(hex)? as $ty);
            }
            if !bare.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return Err(FloatError::Syntax);
            }
            let value: $ty = bare.parse().map_err(|_| FloatError::Syntax)?;
            let mantissa = bare.split(['e', 'E']).next().unwrap_or("");
            let vanished = value == 0.0 && mantissa.bytes().any(|c| (b'1'..=b'9').contains(&c));
            if value.is_infinite() || vanished { Err(FloatError::OutOfRange) } else { Ok(sign * value) }
        }
    };
}
parse_float!(parse_f64, f64);
parse_float!(parse_f32, f32);

/// Hexadecimal floats as C's strtod reads them, after the 0x.
fn parse_hex(text: &str) -> Result<f64, FloatError> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().map_err(|_| FloatError::Syntax)?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(FloatError::Syntax);
    }
    let mut value = 0.0f64;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16).ok_or(FloatError::Syntax)?);
    }
    let value = value * 2f64.powi(exponent - 4 * fraction.len() as i32);
    if value.is_infinite() { Err(FloatError::OutOfRange) } else { Ok(value) }
}

fn write_special(out: &mut Vec<u8>, negative: bool, nan: bool) {
    out.extend_from_slice(match (nan, negative) {
        (true, _) => b"NaN",
        (false, true) => b"-Infinity",
        (false, false) => b"Infinity",
    });
}

/// Appends the shortest decimal that reads back as `v`.
pub fn write_f64(out: &mut Vec<u8>, v: f64) {
    if !v.is_finite() {
        return write_special(out, v < 0.0, v.is_nan());
    }
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(v);
    let bits = v.to_bits();
    if is_halfway(text, bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32, 52, 1075) {
        return write_shortest(out, &between(text, 17, |digits| format!("{v:.digits$e}"), |t| t.parse() == Ok(v)), 15);
    }
    write_shortest(out, text, 15);
}

/// Appends the shortest decimal that reads back as `v`.
pub fn write_f32(out: &mut Vec<u8>, v: f32) {
    if !v.is_finite() {
        return write_special(out, v < 0.0, v.is_nan());
    }
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(v);
    let bits = v.to_bits();
    if is_halfway(text, u64::from(bits & ((1 << 23) - 1)), (bits >> 23 & 0xff) as i32, 23, 150) {
        return write_shortest(out, &between(text, 9, |digits| format!("{v:.digits$e}"), |t| t.parse() == Ok(v)), 6);
    }
    write_shortest(out, text, 6);
}

/// Whether the shortest decimal lies exactly between a number and its neighbour. It reads back as the number, whose last bit is
/// even then, but PostgreSQL leaves such decimals out, as not every reader rounds halves to even.
fn is_halfway(text: &str, fraction: u64, exponent: i32, fraction_bits: u32, bias: i32) -> bool {
    let (mantissa, binary) = if exponent == 0 { (fraction, 1 - bias) } else { (fraction | 1 << fraction_bits, exponent - bias) };
    // Beyond these powers of two no short decimal lies halfway.
    if mantissa & 1 != 0 || !(-30..=90).contains(&binary) {
        return false;
    }
    let (digits, decimal) = decimal_of(text);
    if digits == 0 {
        return false;
    }
    let is = |odd: u64, power: i32| {
        let zeros = digits.trailing_zeros();
        let (rest, fives) = (u128::from(digits >> zeros), 5u128.checked_pow(decimal.unsigned_abs()));
        let (Some(fives), true) = (fives.filter(|_| decimal.abs() < 30), zeros as i32 + decimal == power) else { return false };
        if decimal >= 0 {
            rest.checked_mul(fives) == Some(u128::from(odd))
        } else {
            fives.checked_mul(u128::from(odd)) == Some(rest)
        }
    };
    // Below a power of two the neighbour is half as far.
    let below = if fraction == 0 && exponent > 1 { (4 * mantissa - 1, binary - 2) } else { (2 * mantissa - 1, binary - 1) };
    is(2 * mantissa + 1, binary - 1) || is(below.0, below.1)
}

/// The digits of a decimal as a number, and the power of ten that it is multiplied by; the sign is left out.
fn decimal_of(text: &str) -> (u64, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    let number = digits.fold(0u64, |n, c| n.wrapping_mul(10).wrapping_add(u64::from(c - b'0')));
    (number, exponent.parse().unwrap_or(0) - fraction.len() as i32)
}

/// The next longer decimal that reads back as the number, and does not lie halfway to another.
fn between(text: &str, most: usize, form: impl Fn(usize) -> String, reads_back: impl Fn(&str) -> bool) -> String {
    let halfway = decimal_of(text);
    let differs = |t: &str| {
        let (digits, power) = decimal_of(t);
        (digits, power) != halfway && digits.checked_mul(10u64.pow((power - halfway.1).clamp(0, 19) as u32)) != Some(halfway.0)
    };
    let longer = (0..most).map(form).find(|t| differs(t) && reads_back(t));
    longer.unwrap_or_else(|| text.to_owned())
}

/// Lays out ryu's digits as PostgreSQL does: an exponent from `10^exponent_from` up and below 10^-4.
fn write_shortest(out: &mut Vec<u8>, ryu: &str, exponent_from: i32) {
    let (mantissa, exponent) = match ryu.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
        None => (ryu, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [0u8; 40];
    let mut count = 0;
    for &c in whole.as_bytes().iter().chain(fraction.as_bytes()) {
        digits[count] = c;
        count += 1;
    }
    let leading = digits[..count].iter().take_while(|&&c| c == b'0').count();
    let mut point = whole.len() as i32 + exponent - leading as i32;
    let mut digits = &digits[leading..count];
    while let Some((b'0', rest)) = digits.split_last() {
        digits = rest;
    }
    if digits.is_empty() {
        (digits, point) = (b"0", 1);
    }
    if negative {
        out.push(b'-');
    }
    write_digits(out, digits, point, exponent_from, 0);
}

/// Writes `0.digits * 10^point` in fixed notation, or with an exponent outside [10^-4, 10^exponent_from).
/// `pad_to` is the number of significant digits that fixed notation fills up with zeros before the point.
fn write_digits(out: &mut Vec<u8>, digits: &[u8], point: i32, exponent_from: i32, pad_to: usize) {
    let exponent = point - 1;
    if exponent < -4 || exponent >= exponent_from.max(pad_to as i32) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.push(if exponent < 0 { b'-' } else { b'+' });
        let magnitude = exponent.unsigned_abs();
        if magnitude < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + point.unsigned_abs() as usize, b'0');
        out.extend_from_slice(digits);
    } else if digits.len() <= point as usize {
        out.extend_from_slice(digits);
        out.resize(out.len() + point as usize - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    }
}

/// Appends `v` as C's `%.*g` prints it (extra_float_digits <= 0).
pub fn write_general(out: &mut Vec<u8>, v: f64, precision: usize) {
    if !v.is_finite() {
        return write_special(out, v < 0.0, v.is_nan());
    }
    let precision = precision.max(1);
    if v.is_sign_negative() {
        out.push(b'-');
    }
    let text = format!("{:.*e}", precision - 1, v.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(|&c| c != b'.').collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let point = if v == 0.0 { 1 } else { exponent.parse::<i32>().unwrap_or(0) + 1 };
    write_digits(out, &digits, point, precision as i32, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f64_text(v: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, v);
        String::from_utf8(out).expect("ascii")
    }

    #[test]
    fn floats_print_as_postgresql_prints_them() {
        for (v, text) in [
            // A shorter decimal lies halfway to the next number.
            (2e23, "1.9999999999999998e+23"),
            (9_007_199_254_740_996.0, "9.007199254740996e+15"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (123456789012345.0, "123456789012345"),
            (100.0, "100"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (1.5e300, "1.5e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(f64_text(v), text);
        }
        let mut out = Vec::new();
        write_f32(&mut out, 1234567.0);
        assert_eq!(out, b"1.234567e+06");
        out.clear();
        write_general(&mut out, 1.0 / 3.0, 15);
        write_general(&mut out, 1e15, 15);
        write_general(&mut out, 123000.0, 15);
        assert_eq!(String::from_utf8_lossy(&out), "0.3333333333333331e+15123000");
    }

    #[test]
    fn floats_are_read_as_postgresql_reads_them() {
        assert_eq!(parse_f64("-1.5e3"), Ok(-1500.0));
        assert_eq!(parse_f64(".5"), Ok(0.5));
        assert_eq!(parse_f64("-Infinity"), Ok(f64::NEG_INFINITY));
        assert_eq!(parse_f64("1e400"), Err(FloatError::OutOfRange));
        assert_eq!(parse_f64("1e-400"), Err(FloatError::OutOfRange));
        assert_eq!(parse_f64("0e-400"), Ok(0.0));
        assert_eq!(parse_f64("5e-324"), Ok(5e-324));
        for bad in ["", "-", "1e", "1_0", "abc", "1 2", "."] {
            assert_eq!(parse_f64(bad), Err(FloatError::Syntax), "{bad}");
        }
    }
}
