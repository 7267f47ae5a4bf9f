//! bytea: input, output and functions.

use std::cmp::Ordering;

use melba_fmgr::{CallInfo, ScalarFn, TypeContext, TypeIo, comparison_table};
use melba_types::limits::{self, Ticker};
use melba_types::{Datum, Oid, Result, err, oids, shared};

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::BYTEA,
    TypeIo {
        input: |_, s| bytea_in(s).map(Datum::bytes),
        output: bytea_out,
        receive: |_, b| Ok(Datum::bytes(b)),
        send: |_, v, out| {
            out.extend_from_slice(v.as_bytes());
            Ok(())
        },
    },
)];

fn bytea_in(s: &str) -> Result<Vec<u8>> {
    if let Some(hex) = s.strip_prefix("\\x") {
        return decode_hex(hex);
    }
    let mut rest = s.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    let mut ticker = Ticker::new();
    while let Some((&c, tail)) = rest.split_first() {
        ticker.step()?;
        rest = match (c, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            (b'\\', [b'\\', tail @ ..]) => {
                out.push(b'\\');
                tail
            }
            (b'\\', _) => return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")),
            _ => {
                out.push(c);
                tail
            }
        };
    }
    Ok(out)
}

fn hex_value(c: u8) -> Option<u8> {
    (c as char).to_digit(16).map(|d| d as u8)
}

/// Hexadecimal digits in pairs, white space between pairs.
pub fn decode_hex(hex: &str) -> Result<Vec<u8>> {
    let bytes = hex.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 2);
    let mut i = 0;
    let mut ticker = Ticker::new();
    while i < bytes.len() {
        ticker.step()?;
        if matches!(bytes[i], b' ' | b'\n' | b'\t' | b'\r') {
            i += 1;
            continue;
        }
        let digit = |at: usize| -> Result<u8> {
            let Some(&c) = bytes.get(at) else {
                return Err(err!(INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits"));
            };
            hex_value(c).ok_or_else(|| {
                let shown = hex[floor_boundary(hex, at)..].chars().next().unwrap_or('?');
                err!(INVALID_PARAMETER_VALUE, "invalid hexadecimal digit: \"{shown}\"")
            })
        };
        out.push(digit(i)? << 4 | digit(i + 1)?);
        i += 2;
    }
    Ok(out)
}

fn floor_boundary(s: &str, at: usize) -> usize {
    (0..=at).rev().find(|&i| s.is_char_boundary(i)).unwrap_or(0)
}

/// Appends lower-case hexadecimal digits.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)]);
        out.push(DIGITS[usize::from(b & 15)]);
    }
}

pub fn bytea_out(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    limits::check_length(out.len() + 2 * value.as_bytes().len())?;
    if context.session.format().bytea_hex {
        out.extend_from_slice(b"\\x");
        write_hex(value.as_bytes(), out);
    } else {
        write_escaped(value.as_bytes(), out);
    }
    Ok(())
}

/// bytea_output = escape.
pub fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(b),
            _ => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
        }
    }
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_bytes().cmp(b.as_bytes())
}

comparison_table! {
    /// Comparisons by bytes.
    COMPARISONS: compare => "byteaeq", "byteane", "bytealt", "byteale", "byteagt", "byteage", "byteacmp";
}

pub const TABLES: &[&[(&str, ScalarFn)]] = &[COMPARISONS, FUNCTIONS];

const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("bytea_larger", |_, a| Ok(a[usize::from(compare(&a[0], &a[1]).is_le())].clone())),
    ("bytea_smaller", |_, a| Ok(a[usize::from(compare(&a[0], &a[1]).is_ge())].clone())),
    ("byteacat", |_, a| Ok(Datum::Bytes(shared::concat([a[0].as_bytes(), a[1].as_bytes()])))),
    ("byteaoctetlen", |_, a| Ok(Datum::Int4(a[0].as_bytes().len() as i32))),
    ("bytea_substr", |_, a| substring(a, Some(a[2].as_i32()))),
    ("bytea_substr_no_len", |_, a| substring(a, None)),
    ("byteaoverlay", |_, a| overlay(a, a[3].as_i32())),
    ("byteaoverlay_no_len", |_, a| overlay(a, a[1].as_bytes().len() as i32)),
    ("byteapos", |_, a| {
        let at = memchr::memmem::find(a[0].as_bytes(), a[1].as_bytes());
        Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
    }),
    ("byteaGetByte", get_byte),
    ("byteaSetByte", set_byte),
    ("byteaGetBit", get_bit),
    ("byteaSetBit", set_bit),
    ("bytea_bit_count", |_, a| Ok(Datum::Int8(a[0].as_bytes().iter().map(|b| i64::from(b.count_ones())).sum()))),
    ("bytea_reverse", |_, a| Ok(Datum::bytes(a[0].as_bytes().iter().rev().copied().collect::<Vec<u8>>()))),
    ("byteatrim", |_, a| trimmed(a, true, true)),
    ("bytealtrim", |_, a| trimmed(a, true, false)),
    ("byteartrim", |_, a| trimmed(a, false, true)),
    ("int2_bytea", |_, a| Ok(Datum::bytes(&a[0].as_i16().to_be_bytes()[..]))),
    ("int4_bytea", |_, a| Ok(Datum::bytes(&a[0].as_i32().to_be_bytes()[..]))),
    ("int8_bytea", |_, a| Ok(Datum::bytes(&a[0].as_i64().to_be_bytes()[..]))),
    ("bytea_int2", |_, a| Ok(Datum::Int2(i16::from_be_bytes(widened(a, "smallint")?)))),
    ("bytea_int4", |_, a| Ok(Datum::Int4(i32::from_be_bytes(widened(a, "integer")?)))),
    ("bytea_int8", |_, a| Ok(Datum::Int8(i64::from_be_bytes(widened(a, "bigint")?)))),
];

/// A big-endian integer of at most N bytes, filled up with zeros.
fn widened<const N: usize>(a: &[Datum], type_name: &str) -> Result<[u8; N]> {
    let bytes = a[0].as_bytes();
    let mut out = [0; N];
    if bytes.len() > N {
        return Err(crate::int::out_of_range(type_name));
    }
    out[N - bytes.len()..].copy_from_slice(bytes);
    Ok(out)
}

/// The range of positions that substring(… from start for length) takes of `total` units.
pub fn substring_range(start: i32, length: Option<i32>, total: usize) -> Result<std::ops::Range<usize>> {
    let first = i64::from(start).max(1) - 1;
    let end = match length {
        None => total as i64,
        Some(length) if length < 0 => return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed")),
        // An end beyond the integers is the end of the value.
        Some(length) => start.checked_add(length).map_or(total as i64, |end| i64::from(end) - 1),
    };
    let first = first.min(total as i64) as usize;
    Ok(first..(end.clamp(0, total as i64) as usize).max(first))
}

fn substring(a: &[Datum], length: Option<i32>) -> Result<Datum> {
    let bytes = a[0].as_bytes();
    Ok(Datum::bytes(&bytes[substring_range(a[1].as_i32(), length, bytes.len())?]))
}

/// The two parts of a value that overlay keeps, as ranges of positions.
pub fn overlay_ranges(start: i32, length: i32, total: usize) -> Result<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    if start <= 0 {
        return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let after = start.checked_add(length).ok_or_else(|| crate::int::out_of_range("integer"))?;
    Ok((substring_range(1, Some(start - 1), total)?, substring_range(after, None, total)?))
}

fn overlay(a: &[Datum], length: i32) -> Result<Datum> {
    let bytes = a[0].as_bytes();
    let (before, after) = overlay_ranges(a[2].as_i32(), length, bytes.len())?;
    Ok(Datum::bytes([&bytes[before], a[1].as_bytes(), &bytes[after]].concat()))
}

fn index_error(index: i64, length: i64) -> melba_types::DbError {
    err!(ARRAY_SUBSCRIPT_ERROR, "index {index} out of valid range, 0..{}", length - 1)
}

fn get_byte(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (bytes, n) = (a[0].as_bytes(), a[1].as_i32());
    let byte = usize::try_from(n).ok().and_then(|n| bytes.get(n));
    byte.map(|&b| Datum::Int4(i32::from(b))).ok_or_else(|| index_error(n.into(), bytes.len() as i64))
}

fn set_byte(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (mut bytes, n) = (a[0].as_bytes().to_vec(), a[1].as_i32());
    let length = bytes.len() as i64;
    let byte = usize::try_from(n).ok().and_then(|n| bytes.get_mut(n)).ok_or_else(|| index_error(n.into(), length))?;
    *byte = a[2].as_i32() as u8;
    Ok(Datum::bytes(bytes))
}

fn get_bit(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (bytes, n) = (a[0].as_bytes(), a[1].as_i64());
    if n < 0 || n >= bytes.len() as i64 * 8 {
        return Err(index_error(n, bytes.len() as i64 * 8));
    }
    Ok(Datum::Int4(i32::from(bytes[(n / 8) as usize] >> (n % 8) & 1)))
}

fn set_bit(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (mut bytes, n) = (a[0].as_bytes().to_vec(), a[1].as_i64());
    if n < 0 || n >= bytes.len() as i64 * 8 {
        return Err(index_error(n, bytes.len() as i64 * 8));
    }
    let byte = &mut bytes[(n / 8) as usize];
    match a[2].as_i32() {
        0 => *byte &= !(1 << (n % 8)),
        1 => *byte |= 1 << (n % 8),
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
    }
    Ok(Datum::bytes(bytes))
}

fn trimmed(a: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let mut bytes = a[0].as_bytes();
    let (mut set, mut ticker) = ([false; 256], Ticker::new());
    for b in limits::ticked(a[1].as_bytes().iter()) {
        set[usize::from(*b?)] = true;
    }
    while let Some((first, rest)) = bytes.split_first()
        && left
        && set[usize::from(*first)]
    {
        ticker.step()?;
        bytes = rest;
    }
    while let Some((last, rest)) = bytes.split_last()
        && right
        && set[usize::from(*last)]
    {
        ticker.step()?;
        bytes = rest;
    }
    Ok(Datum::bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytea_is_read_in_both_formats() {
        assert_eq!(bytea_in("\\xDE ad").expect("hex"), [0xde, 0xad]);
        assert_eq!(bytea_in("a\\\\b\\001").expect("escape"), b"a\\b\x01");
        assert_eq!(bytea_in("\\xabc").expect_err("odd").message(), "invalid hexadecimal data: odd number of digits");
        assert_eq!(bytea_in("\\x0é").expect_err("digit").message(), "invalid hexadecimal digit: \"é\"");
        assert!(bytea_in("a\\b").is_err());
    }

    #[test]
    fn substrings_may_start_before_the_value() {
        assert_eq!(substring_range(-1, Some(4), 10).expect("range"), 0..2);
        assert_eq!(substring_range(3, None, 10).expect("range"), 2..10);
        assert_eq!(substring_range(2, Some(i32::MAX), 10).expect("range"), 1..10);
        assert_eq!(substring_range(20, Some(1), 10).expect("range"), 10..10);
        assert!(substring_range(1, Some(-1), 10).is_err());
    }
}
