//! bit and bit varying: input and output, casts, operators, substrings.

use std::cmp::Ordering;

use melba_fmgr::type_io::{data_behind, insufficient_data};
use melba_fmgr::{CallInfo, ScalarFn, TypeContext, TypeIo, comparison_table};
use melba_types::bits::{BitStringBuilder, bit, len, octets, sort_key, spelled};
use melba_types::limits::Ticker;
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::hash::{hash_bytes, hash_bytes_extended};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::BIT, TypeIo { input: |c, s| fixed(&parse(s)?, c.typmod, false), output, receive, send }),
    (oids::VARBIT, TypeIo { input: |c, s| varying(&parse(s)?, c.typmod, false), output, receive, send }),
];

fn datum(bits: BitStringBuilder) -> Datum {
    Datum::bytes(bits.finish())
}

/// A part of a bit string, to which more may come.
fn part(value: &[u8], range: std::ops::Range<usize>) -> Result<BitStringBuilder> {
    let mut out = BitStringBuilder::with_capacity(len(value))?;
    out.append(value, range)?;
    Ok(out)
}

/// `101`, `b101` or `x1f`.
fn parse(text: &str) -> Result<Vec<u8>> {
    let mut ticker = Ticker::new();
    if let Some(hex) = text.strip_prefix(['x', 'X']) {
        let mut out = BitStringBuilder::with_capacity(hex.len() * 4)?;
        for c in hex.chars() {
            ticker.step()?;
            let digit =
                c.to_digit(16).ok_or_else(|| err!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid hexadecimal digit"))?;
            out.push((digit << 4) as u8, 4);
        }
        return Ok(out.finish());
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    let mut out = BitStringBuilder::with_capacity(digits.len())?;
    for c in digits.chars() {
        ticker.step()?;
        match c {
            '0' => out.push(0, 1),
            '1' => out.push(0x80, 1),
            _ => return Err(err!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid binary digit")),
        }
    }
    Ok(out.finish())
}

/// As bit(n): of exactly that length, an explicit cast cuts or pads.
fn fixed(value: &[u8], length: i32, explicit: bool) -> Result<Datum> {
    let found = len(value);
    let wanted = usize::try_from(length).unwrap_or(0);
    if wanted == 0 || found == wanted {
        return Ok(Datum::bytes(value));
    }
    if !explicit {
        return Err(err!(STRING_DATA_LENGTH_MISMATCH, "bit string length {found} does not match type bit({wanted})"));
    }
    let mut out = BitStringBuilder::with_capacity(wanted)?;
    out.append(value, 0..found.min(wanted))?;
    out.append_zeros(wanted.saturating_sub(found))?;
    Ok(datum(out))
}

/// As bit varying(n): of at most that length, an explicit cast cuts.
fn varying(value: &[u8], length: i32, explicit: bool) -> Result<Datum> {
    let most = usize::try_from(length).unwrap_or(0);
    if most == 0 || len(value) <= most {
        return Ok(Datum::bytes(value));
    }
    if !explicit {
        return Err(err!(STRING_DATA_RIGHT_TRUNCATION, "bit string too long for type bit varying({most})"));
    }
    part(value, 0..most).map(datum)
}

fn output(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&spelled(v.as_bytes(), b'0', b'1')?);
    Ok(())
}

fn receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
    let count = usize::try_from(i32::from_be_bytes(*length)).ok().filter(|n| *n <= (i32::MAX - 8) as usize);
    let count = count.ok_or_else(|| err!(INVALID_BINARY_REPRESENTATION, "invalid length in external bit string"))?;
    match rest.len().cmp(&count.div_ceil(8)) {
        Ordering::Less => return Err(insufficient_data()),
        Ordering::Greater => return Err(data_behind()),
        Ordering::Equal => {}
    }
    let mut bits = BitStringBuilder::with_capacity(count)?;
    rest.iter().enumerate().for_each(|(i, octet)| bits.push(*octet, (count - 8 * i).min(8)));
    let bits = bits.finish();
    if c.type_oid == oids::BIT { fixed(&bits, c.typmod, false) } else { varying(&bits, c.typmod, false) }
}

fn send(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let stored = v.as_bytes();
    out.extend_from_slice(&(len(stored) as u32).to_be_bytes());
    out.extend_from_slice(octets(stored));
    Ok(())
}

fn key(value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    sort_key(value.as_bytes(), &mut out);
    out
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    key(a).cmp(&key(b))
}

comparison_table! {
    COMPARISONS:
    compare => "biteq", "bitne", "bitlt", "bitle", "bitgt", "bitge", "bitcmp";
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("bit", |_, a| fixed(a[0].as_bytes(), a[1].as_i32(), a[2].as_bool())),
    ("varbit", |_, a| varying(a[0].as_bytes(), a[1].as_i32(), a[2].as_bool())),
    ("bit_and", |_, a| combine(a, "AND", |x, y| x & y)),
    ("bit_or", |_, a| combine(a, "OR", |x, y| x | y)),
    ("bitxor", |_, a| combine(a, "XOR", |x, y| x ^ y)),
    ("bitnot", |_, a| combine(&[a[0].clone(), a[0].clone()], "NOT", |x, _| !x)),
    ("bitcat", |_, a| {
        let (x, y) = (a[0].as_bytes(), a[1].as_bytes());
        let mut out = BitStringBuilder::with_capacity(len(x) + len(y))?;
        out.append(x, 0..len(x))?;
        out.append(y, 0..len(y))?;
        Ok(datum(out))
    }),
    ("bitshiftleft", |_, a| shift(a[0].as_bytes(), i64::from(a[1].as_i32()))),
    ("bitshiftright", |_, a| shift(a[0].as_bytes(), -i64::from(a[1].as_i32()))),
    ("bit_length_1812", |_, a| Ok(Datum::Int4(len(a[0].as_bytes()) as i32))),
    ("bitlength", |_, a| Ok(Datum::Int4(len(a[0].as_bytes()) as i32))),
    ("bitoctetlength", |_, a| Ok(Datum::Int4(len(a[0].as_bytes()).div_ceil(8) as i32))),
    ("bit_bit_count", |_, a| Ok(Datum::Int8(octets(a[0].as_bytes()).iter().map(|b| i64::from(b.count_ones())).sum()))),
    ("bitposition", |_, a| {
        let (text, wanted) = (spelled(a[0].as_bytes(), 0, 1)?, spelled(a[1].as_bytes(), 0, 1)?);
        let at = memchr::memmem::find(&text, &wanted).filter(|_| !text.is_empty());
        Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
    }),
    ("bitsubstr", |_, a| substring(a[0].as_bytes(), a[1].as_i32(), Some(a[2].as_i32()))),
    ("bitsubstr_no_len", |_, a| substring(a[0].as_bytes(), a[1].as_i32(), None)),
    ("bitoverlay", |_, a| overlay(a[0].as_bytes(), a[1].as_bytes(), a[2].as_i32(), a[3].as_i32())),
    ("bitoverlay_no_len", |_, a| {
        let new = a[1].as_bytes();
        overlay(a[0].as_bytes(), new, a[2].as_i32(), len(new) as i32)
    }),
    ("bitgetbit", |_, a| {
        let value = a[0].as_bytes();
        Ok(Datum::Int4(i32::from(bit(value, index(value, a[1].as_i32())?))))
    }),
    ("bitsetbit", |_, a| {
        let value = a[0].as_bytes();
        let at = index(value, a[1].as_i32())?;
        let octet = match a[2].as_i32() {
            0 => 0,
            1 => 0x80,
            _ => return Err(err!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
        };
        let mut out = part(value, 0..at)?;
        out.push(octet, 1);
        out.append(value, at + 1..len(value))?;
        Ok(datum(out))
    }),
    ("bitfromint4", |_, a| from_integer(i64::from(a[0].as_i32()), a[1].as_i32())),
    ("bitfromint8", |_, a| from_integer(a[0].as_i64(), a[1].as_i32())),
    ("bittoint4", |_, a| to_integer(a[0].as_bytes(), 32, "integer").map(|v| Datum::Int4(v as i32))),
    ("bittoint8", |_, a| to_integer(a[0].as_bytes(), 64, "bigint").map(|v| Datum::Int8(v as i64))),
    ("bithash", |_, a| Ok(Datum::Int4(hash_bytes(a[0].as_bytes()) as i32))),
    ("bithashextended", |_, a| Ok(Datum::Int8(hash_bytes_extended(a[0].as_bytes(), a[1].as_i64() as u64) as i64))),
    ("bittypmodin", |c, a| length_modifier(c, a, "bit")),
    ("varbittypmodin", |c, a| length_modifier(c, a, "varbit")),
    ("bittypmodout", |_, a| Ok(shown_modifier(a[0].as_i32()))),
    ("varbittypmodout", |_, a| Ok(shown_modifier(a[0].as_i32()))),
];

fn length_modifier(_: &CallInfo<'_>, a: &[Datum], name: &str) -> Result<Datum> {
    let [Datum::Text(text)] = &a[0].as_array().elements[..] else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier"));
    };
    let length = melba_fmgr::integer::int4_in(text)?;
    if length < 1 {
        return Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} must be at least 1"));
    }
    const BITS_MAX: i32 = 10 * 1024 * 1024 * 8;
    if length > BITS_MAX {
        return Err(err!(INVALID_PARAMETER_VALUE, "length for type {name} cannot exceed {BITS_MAX}"));
    }
    Ok(Datum::Int4(length))
}

fn shown_modifier(typmod: i32) -> Datum {
    Datum::text(if typmod >= 0 { format!("({typmod})") } else { String::new() })
}

/// Combines bits eight at a time.
pub fn combine(a: &[Datum], name: &str, combine: fn(u8, u8) -> u8) -> Result<Datum> {
    let (x, y) = (a[0].as_bytes(), a[1].as_bytes());
    if len(x) != len(y) {
        return Err(err!(STRING_DATA_LENGTH_MISMATCH, "cannot {name} bit strings of different sizes"));
    }
    let (mut out, mut left, mut ticker) = (BitStringBuilder::with_capacity(len(x))?, len(x), Ticker::new());
    for (x, y) in octets(x).iter().zip(octets(y)) {
        ticker.step()?;
        let count = left.min(8);
        out.push(combine(*x, *y), count);
        left -= count;
    }
    Ok(datum(out))
}

/// To the left by `by` places, zeros come in.
fn shift(value: &[u8], by: i64) -> Result<Datum> {
    let count = len(value);
    let places = usize::try_from(by.unsigned_abs()).map_or(count, |n| n.min(count));
    let mut out = BitStringBuilder::with_capacity(count)?;
    if by < 0 {
        out.append_zeros(places)?;
        out.append(value, 0..count - places)?;
    } else {
        out.append(value, places..count)?;
        out.append_zeros(places)?;
    }
    Ok(datum(out))
}

fn substring(value: &[u8], start: i32, length: Option<i32>) -> Result<Datum> {
    part(value, crate::bytea::substring_range(start, length, len(value))?).map(datum)
}

fn overlay(value: &[u8], new: &[u8], start: i32, length: i32) -> Result<Datum> {
    let (before, after) = crate::bytea::overlay_ranges(start, length, len(value))?;
    let mut out = part(value, before)?;
    out.append(new, 0..len(new))?;
    out.append(value, after)?;
    Ok(datum(out))
}

fn index(value: &[u8], at: i32) -> Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < len(value));
    found.ok_or_else(|| -> DbError {
        err!(ARRAY_SUBSCRIPT_ERROR, "bit index {at} out of valid range (0..{})", len(value) as i64 - 1)
    })
}

/// The lowest bits of an integer, its sign in all places above.
fn from_integer(value: i64, length: i32) -> Result<Datum> {
    let length = if length <= 0 { 1 } else { length as usize };
    let (mut out, mut ticker) = (BitStringBuilder::with_capacity(length)?, Ticker::new());
    for i in (0..length).rev() {
        ticker.step()?;
        out.push(if value >> i.min(63) & 1 != 0 { 0x80 } else { 0 }, 1);
    }
    Ok(datum(out))
}

fn to_integer(value: &[u8], width: usize, type_name: &str) -> Result<u64> {
    if len(value) > width {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "{type_name} out of range"));
    }
    Ok((0..len(value)).fold(0, |number, i| number << 1 | u64::from(bit(value, i))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: Result<Datum>) -> String {
        match value {
            Ok(value) => String::from_utf8(spelled(value.as_bytes(), b'0', b'1').expect("is short")).expect("is ascii"),
            Err(e) => format!("{} {}", e.sqlstate(), e.message()),
        }
    }

    /// Expected values are PostgreSQL 18's.
    #[test]
    fn bit_strings() {
        let bits = |text: &str| parse(text).expect("valid");
        assert_eq!(show(fixed(&bits("x1F"), 10, true)), "0001111100");
        assert_eq!(show(fixed(&bits("101"), 4, false)), "22026 bit string length 3 does not match type bit(4)");
        assert_eq!(show(shift(&bits("10001"), 3)), "01000");
        assert_eq!(show(shift(&bits("10001"), -2)), "00100");
        assert_eq!(show(shift(&bits("10001"), i64::from(i32::MIN))), "00000");
        assert_eq!(show(from_integer(-5, 6)), "111011");
        assert_eq!(show(from_integer(5, 70)), format!("{}101", "0".repeat(67)));
        assert_eq!(show(substring(&bits("110011"), 3, Some(2))), "00");
        assert_eq!(show(overlay(&bits("1111111111"), &bits("00"), 4, 3)), "111001111");
        assert_eq!(to_integer(&bits("101"), 32, "integer").expect("fits"), 5);
        assert_eq!(show(parse("12").map(Datum::bytes)), "22P02 \"2\" is not a valid binary digit");
        let operands = ["1100110011", "1010101010"].map(|text| Datum::bytes(bits(text)));
        assert_eq!(show(combine(&operands, "XOR", |x, y| x ^ y)), "0110011001");
        assert_eq!(show(combine(&operands, "NOT", |x, _| !x)), "0011001100");
    }
}
