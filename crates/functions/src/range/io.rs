//! Text and binary forms of ranges and multiranges.

use std::sync::Arc;

use melba_fmgr::type_io::{insufficient_data, no_data};
use melba_fmgr::{TypeContext, TypeIo, io, type_io};
use melba_types::limits::tick;
use melba_types::{Datum, DbError, Multirange, Oid, Range, Result, err, oids};

use super::types::{Bound, RangeType};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::ANYRANGE, TypeIo { input: range_in, output: range_out, receive: range_receive, send: range_send }),
    (
        oids::ANYMULTIRANGE,
        TypeIo { input: multirange_in, output: multirange_out, receive: multirange_receive, send: multirange_send },
    ),
];

// The flag bits of the binary form.
const EMPTY: u8 = 1;
const LOWER_INCLUSIVE: u8 = 2;
const UPPER_INCLUSIVE: u8 = 4;
const LOWER_INFINITE: u8 = 8;
const UPPER_INFINITE: u8 = 16;

fn malformed(text: &str, detail: &str) -> DbError {
    err!(INVALID_TEXT_REPRESENTATION, "malformed range literal: \"{text}\"").detail(detail)
}

fn is_space(c: char) -> bool {
    c.is_ascii() && type_io::is_space(c as u8)
}

/// A range literal, taken apart.
struct Literal {
    lower: Option<String>,
    upper: Option<String>,
    lower_inclusive: bool,
    upper_inclusive: bool,
    empty: bool,
}

fn parse_literal(text: &str) -> Result<Literal> {
    let trimmed = text.trim_start_matches(is_space);
    if trimmed.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("empty")) {
        if !trimmed[5..].trim_start_matches(is_space).is_empty() {
            return Err(malformed(text, "Junk after \"empty\" key word."));
        }
        return Ok(Literal { lower: None, upper: None, lower_inclusive: false, upper_inclusive: false, empty: true });
    }
    let lower_inclusive = trimmed.starts_with('[');
    if !lower_inclusive && !trimmed.starts_with('(') {
        return Err(malformed(text, "Missing left parenthesis or bracket."));
    }
    let (lower, rest) = parse_bound(text, &trimmed[1..])?;
    let rest = rest.strip_prefix(',').ok_or_else(|| malformed(text, "Missing comma after lower bound."))?;
    let (upper, rest) = parse_bound(text, rest)?;
    let upper_inclusive = rest.starts_with(']');
    if !upper_inclusive && !rest.starts_with(')') {
        return Err(malformed(text, "Too many commas."));
    }
    if !rest[1..].trim_start_matches(is_space).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis or bracket."));
    }
    Ok(Literal { lower, upper, lower_inclusive, upper_inclusive, empty: false })
}

/// The text of a bound, `None` when it is missing, and the rest.
fn parse_bound<'a>(literal: &str, text: &'a str) -> Result<(Option<String>, &'a str)> {
    if text.starts_with([',', ')', ']']) {
        return Ok((None, text));
    }
    let unexpected_end = || malformed(literal, "Unexpected end of input.");
    let mut out = String::new();
    let mut in_quotes = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' | ')' | ']' if !in_quotes => return Ok((Some(out), &text[at..])),
            '\\' => out.push(chars.next().ok_or_else(unexpected_end)?.1),
            '"' if in_quotes && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                out.push('"');
                chars.next();
            }
            '"' => in_quotes = !in_quotes,
            _ => out.push(c),
        }
    }
    Err(unexpected_end())
}

fn read_range(c: &TypeContext<'_>, ty: &RangeType, text: &str) -> Result<Range> {
    let literal = parse_literal(text)?;
    if literal.empty {
        return Ok(ty.empty());
    }
    let bound = |text: Option<String>, inclusive: bool, lower: bool| -> Result<Bound> {
        let value = text.map(|text| io::text_in(c.session, ty.subtype, c.typmod, &text)).transpose()?;
        Ok(Bound { value, inclusive, lower })
    };
    let lower = bound(literal.lower, literal.lower_inclusive, true)?;
    let upper = bound(literal.upper, literal.upper_inclusive, false)?;
    ty.make(lower, upper)
}

fn range_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let ty = RangeType::of(c.session, c.type_oid)?;
    Ok(Datum::Range(Arc::new(read_range(c, &ty, text)?)))
}

/// Appends a bound, quoted where it must be.
fn write_bound(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let special = |c: &u8| b"\"\\()[],".contains(c) || type_io::is_space(*c);
    if !text.is_empty() && !text.iter().any(special) {
        out.extend_from_slice(text);
        return Ok(());
    }
    type_io::append_quoted(text, None, out)
}

fn write_range(c: &TypeContext<'_>, ty: &RangeType, range: &Range, out: &mut Vec<u8>) -> Result<()> {
    if range.empty {
        out.extend_from_slice(b"empty");
        return Ok(());
    }
    let bound = |value: &Option<Datum>, out: &mut Vec<u8>| -> Result<()> {
        if let Some(value) = value {
            let mut text = Vec::new();
            io::text_out(c.session, ty.subtype, value, &mut text)?;
            write_bound(&text, out)?;
        }
        Ok(())
    };
    out.push(if range.lower_inclusive { b'[' } else { b'(' });
    bound(&range.lower, out)?;
    out.push(b',');
    bound(&range.upper, out)?;
    out.push(if range.upper_inclusive { b']' } else { b')' });
    Ok(())
}

fn range_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    write_range(c, &RangeType::of(c.session, c.type_oid)?, v.as_range(), out)
}

/// Nothing may follow a range or a multirange.
fn check_end(rest: &[u8]) -> Result<()> {
    if rest.is_empty() { Ok(()) } else { Err(err!(PROTOCOL_VIOLATION, "invalid message format")) }
}

/// A length and that many bytes.
fn take_sized<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
    let length = u32::from_be_bytes(*length) as usize;
    let (value, rest) = rest.split_at_checked(length).ok_or_else(insufficient_data)?;
    *bytes = rest;
    Ok(value)
}

fn receive(c: &TypeContext<'_>, ty: &RangeType, mut bytes: &[u8]) -> Result<Range> {
    let (&flags, rest) = bytes.split_first().ok_or_else(no_data)?;
    bytes = rest;
    if flags & EMPTY != 0 {
        check_end(bytes)?;
        return Ok(ty.empty());
    }
    let mut bound = |infinite: u8, inclusive: u8, lower: bool| -> Result<Bound> {
        let value = match flags & infinite {
            0 => Some(io::binary_in(c.session, ty.subtype, c.typmod, take_sized(&mut bytes)?)?),
            _ => None,
        };
        Ok(Bound { value, inclusive: flags & inclusive != 0, lower })
    };
    let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE, true)?;
    let upper = bound(UPPER_INFINITE, UPPER_INCLUSIVE, false)?;
    check_end(bytes)?;
    ty.make(lower, upper)
}

fn range_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let ty = RangeType::of(c.session, c.type_oid)?;
    Ok(Datum::Range(Arc::new(receive(c, &ty, bytes)?)))
}

fn write_sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out)?;
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn send(c: &TypeContext<'_>, ty: &RangeType, range: &Range, out: &mut Vec<u8>) -> Result<()> {
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    out.push(
        flag(range.empty, EMPTY)
            | flag(range.lower_inclusive, LOWER_INCLUSIVE)
            | flag(range.upper_inclusive, UPPER_INCLUSIVE)
            | flag(!range.empty && range.lower.is_none(), LOWER_INFINITE)
            | flag(!range.empty && range.upper.is_none(), UPPER_INFINITE),
    );
    for bound in [&range.lower, &range.upper].into_iter().flatten() {
        write_sized(out, |out| io::binary_out(c.session, ty.subtype, bound, out))?;
    }
    Ok(())
}

fn range_send(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    send(c, &RangeType::of(c.session, c.type_oid)?, v.as_range(), out)
}

fn multirange_in(c: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let bad = |detail: &str| -> DbError {
        err!(INVALID_TEXT_REPRESENTATION, "malformed multirange literal: \"{text}\"").detail(detail)
    };
    let ty = RangeType::of_multirange(c.session, c.type_oid)?;
    let mut rest = text.trim_start_matches(is_space).strip_prefix('{').ok_or_else(|| bad("Missing left brace."))?;
    let mut ranges = Vec::new();
    rest = rest.trim_start_matches(is_space);
    if let Some(after) = rest.strip_prefix('}') {
        rest = after;
    } else {
        loop {
            rest = rest.trim_start_matches(is_space);
            let length = range_length(rest).ok_or_else(|| {
                bad(if rest.is_empty() || rest.starts_with(['(', '[']) {
                    "Unexpected end of input."
                } else {
                    "Expected range start."
                })
            })?;
            tick()?;
            ranges.push(read_range(c, &ty, &rest[..length])?);
            rest = rest[length..].trim_start_matches(is_space);
            if let Some(after) = rest.strip_prefix(',') {
                rest = after;
            } else if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            } else {
                let end = rest.is_empty();
                return Err(bad(if end { "Unexpected end of input." } else { "Expected comma or end of multirange." }));
            }
        }
    }
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(bad("Junk after closing right brace."));
    }
    multirange(c.type_oid, ty.normalize(ranges)?)
}

/// How long the range literal at the start of the text is.
fn range_length(text: &str) -> Option<usize> {
    if text.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("empty")) {
        return Some(5);
    }
    if !text.starts_with(['(', '[']) {
        return None;
    }
    let mut in_quotes = false;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => in_quotes = !in_quotes,
            ')' | ']' if !in_quotes => return Some(at + 1),
            _ => {}
        }
    }
    None
}

pub fn multirange(type_oid: Oid, ranges: Vec<Range>) -> Result<Datum> {
    Ok(Datum::Multirange(Arc::new(Multirange { type_oid, ranges })))
}

fn multirange_out(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let ty = RangeType::of_multirange(c.session, c.type_oid)?;
    out.push(b'{');
    for (i, range) in v.as_multirange().ranges.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        tick()?;
        write_range(c, &ty, range, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn multirange_receive(c: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let ty = RangeType::of_multirange(c.session, c.type_oid)?;
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
    let mut ranges = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        tick()?;
        ranges.push(receive(c, &ty, take_sized(&mut rest)?)?);
    }
    check_end(rest)?;
    multirange(c.type_oid, ty.normalize(ranges)?)
}

fn multirange_send(c: &TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let ty = RangeType::of_multirange(c.session, c.type_oid)?;
    let ranges = &v.as_multirange().ranges;
    out.extend_from_slice(&(ranges.len() as u32).to_be_bytes());
    for range in ranges {
        tick()?;
        write_sized(out, |out| send(c, &ty, range, out))?;
    }
    Ok(())
}
