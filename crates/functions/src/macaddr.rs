//! macaddr and macaddr8: input and output, comparison, bits, conversion. Held as their 6 and 8 bytes, whose order is theirs.

use std::cmp::Ordering;

use melba_fmgr::{ScalarFn, TypeIo, comparison_table, type_io};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::hash::{hash_bytes, hash_bytes_extended};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (
        oids::MACADDR,
        TypeIo {
            input: |_, s| parse(s).map(datum),
            output,
            receive: |_, b| if b.len() < 6 { Err(type_io::no_data()) } else { type_io::fixed(b).map(datum::<6>) },
            send,
        },
    ),
    (
        oids::MACADDR8,
        TypeIo {
            input: |_, s| parse_8(s).map(datum).ok_or_else(|| type_io::invalid_text("macaddr8", s)),
            output,
            receive: |_, b| {
                if b.len() == 6 { type_io::fixed(b).map(widened).map(datum) } else { type_io::fixed(b).map(datum::<8>) }
            },
            send,
        },
    ),
];

fn datum<const N: usize>(bytes: [u8; N]) -> Datum {
    Datum::bytes(bytes.to_vec())
}

fn output(_: &melba_fmgr::TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let pairs: Vec<String> = value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    out.extend_from_slice(pairs.join(":").as_bytes());
    Ok(())
}

fn send(_: &melba_fmgr::TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value.as_bytes());
    Ok(())
}

/// The separators between the six numbers of a macaddr, and the most digits of a number: PostgreSQL's forms, in the order in
/// which it tries them.
const FORMS: &[([&str; 5], usize)] = &[
    ([":"; 5], usize::MAX),
    (["-"; 5], usize::MAX),
    (["", "", ":", "", ""], 2),
    (["", "", "-", "", ""], 2),
    (["", ".", "", ".", ""], 2),
    (["", "-", "", "-", ""], 2),
    ([""; 5], 2),
];

fn parse(text: &str) -> Result<[u8; 6]> {
    let numbers = FORMS.iter().find_map(|(between, digits_max)| scan(text, between, *digits_max));
    let numbers = numbers.ok_or_else(|| type_io::invalid_text("macaddr", text))?;
    let mut bytes = [0; 6];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::try_from(number)
            .map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "invalid octet value in \"macaddr\" value: \"{text}\""))?;
    }
    Ok(bytes)
}

fn scan(text: &str, between: &[&str; 5], digits_max: usize) -> Option<[u32; 6]> {
    let mut rest = text;
    let mut numbers = [0u32; 6];
    for (i, number) in numbers.iter_mut().enumerate() {
        if let Some(separator) = i.checked_sub(1).map(|before| between[before]) {
            rest = rest.strip_prefix(separator)?;
        }
        rest = rest.trim_ascii_start();
        let digits = rest.bytes().take(digits_max).take_while(u8::is_ascii_hexdigit).count();
        // Digits that do not fit are a number that is too large for a byte.
        *number = if digits == 0 { return None } else { u32::from_str_radix(&rest[..digits], 16).unwrap_or(u32::MAX) };
        rest = &rest[digits..];
    }
    rest.trim_ascii().is_empty().then_some(numbers)
}

/// 6 or 8 pairs of digits, one sort of separator allowed after any of them.
fn parse_8(text: &str) -> Option<[u8; 8]> {
    let mut rest = text.trim_ascii_start().as_bytes();
    let mut bytes = Vec::with_capacity(8);
    let mut separator = None;
    // Like PostgreSQL, which reads pairs: a single character at the end is ignored.
    while let [high, low, after @ ..] = rest {
        let digit = |c: u8| char::from(c).to_digit(16);
        if bytes.len() == 8 {
            return None;
        }
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
        rest = after;
        if let [mark @ (b':' | b'-' | b'.'), after @ ..] = rest {
            if *separator.get_or_insert(*mark) != *mark {
                return None;
            }
            rest = after;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(u8::is_ascii_whitespace) {
            rest = rest.trim_ascii_start();
            if !rest.is_empty() {
                return None;
            }
        }
    }
    match <[u8; 6]>::try_from(bytes.as_slice()) {
        Ok(short) => Some(widened(short)),
        Err(_) => bytes.try_into().ok(),
    }
}

/// An address of 48 bits as one of 64.
fn widened([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a, b, c, 0xff, 0xfe, d, e, f]
}

fn compare(a: &Datum, b: &Datum) -> Ordering {
    a.as_bytes().cmp(b.as_bytes())
}

comparison_table! {
    COMPARISONS:
    compare => "macaddr_eq", "macaddr_ne", "macaddr_lt", "macaddr_le", "macaddr_gt", "macaddr_ge", "macaddr_cmp";
    compare => "macaddr8_eq", "macaddr8_ne", "macaddr8_lt", "macaddr8_le", "macaddr8_gt", "macaddr8_ge", "macaddr8_cmp";
}

const HASH: ScalarFn = |_, a| Ok(Datum::Int4(hash_bytes(a[0].as_bytes()) as i32));
const HASH_EXTENDED: ScalarFn = |_, a| Ok(Datum::Int8(hash_bytes_extended(a[0].as_bytes(), a[1].as_i64() as u64) as i64));
const NOT: ScalarFn = |_, a| Ok(mapped(&a[0], |_, byte| !byte));
const AND: ScalarFn = |_, a| Ok(mapped(&a[0], |i, byte| byte & a[1].as_bytes()[i]));
const OR: ScalarFn = |_, a| Ok(mapped(&a[0], |i, byte| byte | a[1].as_bytes()[i]));
/// Only the manufacturer's prefix is kept.
const TRUNCATE: ScalarFn = |_, a| Ok(mapped(&a[0], |i, byte| if i < 3 { byte } else { 0 }));

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("hashmacaddr", HASH),
    ("hashmacaddr8", HASH),
    ("hashmacaddrextended", HASH_EXTENDED),
    ("hashmacaddr8extended", HASH_EXTENDED),
    ("macaddr_not", NOT),
    ("macaddr8_not", NOT),
    ("macaddr_and", AND),
    ("macaddr8_and", AND),
    ("macaddr_or", OR),
    ("macaddr8_or", OR),
    ("macaddr_trunc", TRUNCATE),
    ("macaddr8_trunc", TRUNCATE),
    ("macaddr8_set7bit", |_, a| Ok(mapped(&a[0], |i, byte| if i == 0 { byte | 2 } else { byte }))),
    ("macaddrtomacaddr8", |_, a| Ok(datum(widened(type_io::fixed(a[0].as_bytes())?)))),
    ("macaddr8tomacaddr", |_, a| match a[0].as_bytes() {
        &[x, y, z, 0xff, 0xfe, d, e, f] => Ok(datum([x, y, z, d, e, f])),
        _ => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "macaddr8 data out of range to convert to macaddr").hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
             xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
    }),
];

fn mapped(value: &Datum, byte: impl Fn(usize, u8) -> u8) -> Datum {
    Datum::bytes(value.as_bytes().iter().enumerate().map(|(i, b)| byte(i, *b)).collect::<Vec<u8>>())
}
