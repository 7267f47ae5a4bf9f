//! bit and bit varying: input and output, casts, operators, substrings.

use std::cmp::Ordering;

use melba_types::bits::{bits, len, sort_key, store};
use melba_types::limits::Ticker;
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use crate::hash::{hash_bytes, hash_bytes_extended};
use crate::io::{TypeContext, TypeIo};
use crate::macros::comparison_table;
use crate::{CallContext, ScalarFn};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::BIT, TypeIo { input: |c, s| fixed(parse(s)?, c.typmod, false), output, receive, send }),
    (oids::VARBIT, TypeIo { input: |c, s| varying(parse(s)?, c.typmod, false), output, receive, send }),
];

fn datum(bits: &[bool]) -> Datum {
    Datum::bytes(store(bits))
}

fn load(value: &Datum) -> Vec<bool> {
    bits(value.as_bytes())
}

/// `101`, `b101` or `x1f`.
fn parse(text: &str) -> Result<Vec<bool>> {
    let mut ticker = Ticker::new();
    if let Some(hex) = text.strip_prefix(['x', 'X']) {
        let mut out = Vec::with_capacity(hex.len() * 4);
        for c in hex.chars() {
            ticker.step()?;
            let digit =
                c.to_digit(16).ok_or_else(|| err!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid hexadecimal digit"))?;
            out.extend((0..4).rev().map(|i| digit >> i & 1 != 0));
        }
        return Ok(out);
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    let digit = |c: char| {
        ticker.step()?;
        match c {
            '0' => Ok(false),
            '1' => Ok(true),
            _ => Err(err!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid binary digit")),
        }
    };
    digits.chars().map(digit).collect()
}

/// As bit(n): of exactly that length, an explicit cast cuts or pads.
fn fixed(mut bits: Vec<bool>, length: i32, explicit: bool) -> Result<Datum> {
    let Ok(wanted) = usize::try_from(length) else { return Ok(datum(&bits)) };
    if wanted == 0 || bits.len() == wanted {
        return Ok(datum(&bits));
    }
    if !explicit {
        let found = bits.len();
        return Err(err!(STRING_DATA_LENGTH_MISMATCH, "bit string length {found} does not match type bit({wanted})"));
    }
    bits.resize(wanted, false);
    Ok(datum(&bits))
}

/// As bit varying(n): of at most that length, an explicit cast cuts.
fn varying(mut bits: Vec<bool>, length: i32, explicit: bool) -> Result<Datum> {
    let Ok(most) = usize::try_from(length) else { return Ok(datum(&bits)) };
    if most == 0 || bits.len() <= most {
        return Ok(datum(&bits));
    }
    if !explicit {
        return Err(err!(STRING_DATA_RIGHT_TRUNCATION, "bit string too long for type bit varying({most})"));
    }
    bits.truncate(most);
    Ok(datum(&bits))
}

fn output(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend(load(v).into_iter().map(|bit| if bit { b'1' } else { b'0' }));
    Ok(())
}

fn receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let (length, rest) =
        bytes.split_first_chunk::<4>().ok_or_else(|| err!(PROTOCOL_VIOLATION, "insufficient data left in message"))?;
    let length = i32::from_be_bytes(*length);
    let count = usize::try_from(length).ok().filter(|n| n.div_ceil(8) == rest.len());
    let count = count.ok_or_else(|| err!(INVALID_BINARY_REPRESENTATION, "invalid length in external bit string"))?;
    let bits = (0..count).map(|i| rest[i / 8] >> (7 - i % 8) & 1 != 0).collect();
    if c.type_oid == oids::BIT { fixed(bits, c.typmod, false) } else { varying(bits, c.typmod, false) }
}

fn send(_: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let stored = v.as_bytes();
    out.extend_from_slice(&(len(stored) as u32).to_be_bytes());
    out.extend_from_slice(stored.get(4..).unwrap_or(&[]));
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
    ("bit", |_, a| fixed(load(&a[0]), a[1].as_i32(), a[2].as_bool())),
    ("varbit", |_, a| varying(load(&a[0]), a[1].as_i32(), a[2].as_bool())),
    ("bit_and", |_, a| combine(a, "AND", |x, y| x & y)),
    ("bit_or", |_, a| combine(a, "OR", |x, y| x | y)),
    ("bitxor", |_, a| combine(a, "XOR", |x, y| x ^ y)),
    ("bitnot", |_, a| Ok(datum(&load(&a[0]).into_iter().map(|bit| !bit).collect::<Vec<_>>()))),
    ("bitcat", |_, a| {
        let mut joined = load(&a[0]);
        joined.extend(load(&a[1]));
        Ok(datum(&joined))
    }),
    ("bitshiftleft", |_, a| Ok(shift(&a[0], i64::from(a[1].as_i32())))),
    ("bitshiftright", |_, a| Ok(shift(&a[0], -i64::from(a[1].as_i32())))),
    ("bitlength", |_, a| Ok(Datum::Int4(len(a[0].as_bytes()) as i32))),
    ("bitoctetlength", |_, a| Ok(Datum::Int4(len(a[0].as_bytes()).div_ceil(8) as i32))),
    ("bit_bit_count", |_, a| Ok(Datum::Int8(load(&a[0]).into_iter().filter(|bit| *bit).count() as i64))),
    ("bitposition", |_, a| {
        let (text, wanted) = (load(&a[0]), load(&a[1]));
        let at = if wanted.is_empty() {
            (!text.is_empty()).then_some(0)
        } else {
            text.windows(wanted.len()).position(|w| w == wanted)
        };
        Ok(Datum::Int4(at.map_or(0, |at| at as i32 + 1)))
    }),
    ("bitsubstr", |_, a| substring(&a[0], a[1].as_i32(), Some(a[2].as_i32()))),
    ("bitsubstr_no_len", |_, a| substring(&a[0], a[1].as_i32(), None)),
    ("bitoverlay", |_, a| overlay(&a[0], &a[1], a[2].as_i32(), a[3].as_i32())),
    ("bitoverlay_no_len", |_, a| overlay(&a[0], &a[1], a[2].as_i32(), len(a[1].as_bytes()) as i32)),
    ("bitgetbit", |_, a| {
        let bits = load(&a[0]);
        Ok(Datum::Int4(i32::from(bits[index(&bits, a[1].as_i32())?])))
    }),
    ("bitsetbit", |_, a| {
        let mut bits = load(&a[0]);
        let at = index(&bits, a[1].as_i32())?;
        bits[at] = match a[2].as_i32() {
            0 => false,
            1 => true,
            _ => return Err(err!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
        };
        Ok(datum(&bits))
    }),
    ("bitfromint4", |_, a| Ok(from_integer(i64::from(a[0].as_i32()), a[1].as_i32()))),
    ("bitfromint8", |_, a| Ok(from_integer(a[0].as_i64(), a[1].as_i32()))),
    ("bittoint4", |_, a| to_integer(&a[0], 32, "integer").map(|v| Datum::Int4(v as i32))),
    ("bittoint8", |_, a| to_integer(&a[0], 64, "bigint").map(|v| Datum::Int8(v as i64))),
    ("bithash", |_, a| Ok(Datum::Int4(hash_bytes(a[0].as_bytes()) as i32))),
    ("bithashextended", |_, a| Ok(Datum::Int8(hash_bytes_extended(a[0].as_bytes(), a[1].as_i64() as u64) as i64))),
    ("bittypmodin", |c, a| length_modifier(c, a, "bit")),
    ("varbittypmodin", |c, a| length_modifier(c, a, "varbit")),
    ("bittypmodout", |_, a| Ok(shown_modifier(a[0].as_i32()))),
    ("varbittypmodout", |_, a| Ok(shown_modifier(a[0].as_i32()))),
];

fn length_modifier(_: &CallContext<'_>, a: &[Datum], name: &str) -> Result<Datum> {
    let [Datum::Text(text)] = &a[0].as_array().elements[..] else {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid type modifier"));
    };
    let length = crate::int::int4_in(text)?;
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

pub fn combine(a: &[Datum], name: &str, combine: fn(bool, bool) -> bool) -> Result<Datum> {
    let (x, y) = (load(&a[0]), load(&a[1]));
    if x.len() != y.len() {
        return Err(err!(STRING_DATA_LENGTH_MISMATCH, "cannot {name} bit strings of different sizes"));
    }
    Ok(datum(&x.into_iter().zip(y).map(|(x, y)| combine(x, y)).collect::<Vec<_>>()))
}

/// To the left by `by` places, zeros come in.
fn shift(value: &Datum, by: i64) -> Datum {
    let bits = load(value);
    let at = |i: usize| usize::try_from(i as i64 + by).ok().and_then(|i| bits.get(i).copied()).unwrap_or(false);
    datum(&(0..bits.len()).map(at).collect::<Vec<_>>())
}

fn substring(value: &Datum, start: i32, length: Option<i32>) -> Result<Datum> {
    let bits = load(value);
    let range = crate::bytea::substring_range(start, length, bits.len())?;
    Ok(datum(&bits[range]))
}

fn overlay(value: &Datum, new: &Datum, start: i32, length: i32) -> Result<Datum> {
    let bits = load(value);
    let (before, after) = crate::bytea::overlay_ranges(start, length, bits.len())?;
    let mut out = bits[before].to_vec();
    out.extend(load(new));
    out.extend_from_slice(&bits[after]);
    Ok(datum(&out))
}

fn index(bits: &[bool], at: i32) -> Result<usize> {
    let found = usize::try_from(at).ok().filter(|at| *at < bits.len());
    found.ok_or_else(|| -> DbError {
        err!(ARRAY_SUBSCRIPT_ERROR, "bit index {at} out of valid range (0..{})", bits.len() as i64 - 1)
    })
}

/// The lowest bits of an integer, its sign in all places above.
fn from_integer(value: i64, length: i32) -> Datum {
    let length = if length <= 0 { 1 } else { length as u32 };
    datum(&(0..length).rev().map(|i| value >> i.min(63) & 1 != 0).collect::<Vec<_>>())
}

fn to_integer(value: &Datum, width: usize, type_name: &str) -> Result<u64> {
    let bits = load(value);
    if bits.len() > width {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "{type_name} out of range"));
    }
    Ok(bits.into_iter().fold(0, |number, bit| number << 1 | u64::from(bit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: Result<Datum>) -> String {
        match value {
            Ok(value) => load(&value).into_iter().map(|bit| if bit { '1' } else { '0' }).collect(),
            Err(e) => format!("{} {}", e.sqlstate(), e.message()),
        }
    }

    /// Expected values are PostgreSQL 18's.
    #[test]
    fn bit_strings() {
        let bits = |text: &str| datum(&parse(text).expect("valid"));
        assert_eq!(show(fixed(parse("x1F").expect("valid"), 10, true)), "0001111100");
        assert_eq!(show(fixed(parse("101").expect("valid"), 4, false)), "22026 bit string length 3 does not match type bit(4)");
        assert_eq!(show(Ok(shift(&bits("10001"), 3))), "01000");
        assert_eq!(show(Ok(shift(&bits("10001"), -2))), "00100");
        assert_eq!(show(Ok(from_integer(-5, 6))), "111011");
        assert_eq!(show(substring(&bits("110011"), 3, Some(2))), "00");
        assert_eq!(to_integer(&bits("101"), 32, "integer").expect("fits"), 5);
        assert_eq!(show(parse("12").map(|_| Datum::Null)), "22P02 \"2\" is not a valid binary digit");
    }
}
