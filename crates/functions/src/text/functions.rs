//! Functions that split and join text, by characters.

use std::collections::{HashMap, HashSet};

use melba_collation::Occurrences;
use melba_fmgr::varlena::HEADER_BYTES;
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::limits::{self, Ticker};
use melba_types::{Datum, Result, err, shared};

use super::case::mapped;
use super::collation::{self, fields_between};
use super::io::{char_text, unpadded};
use crate::bytea::{overlay_ranges, substring_range};

/// Bytes a text result may have.
const RESULT_BYTES_MAX: usize = 0x3fff_ffff - HEADER_BYTES;

fn strict(a: &[Datum], f: impl FnOnce(&str) -> String) -> Result<Datum> {
    Ok(Datum::text(f(a[0].as_str())))
}

fn count(n: usize) -> Result<Datum> {
    Ok(Datum::Int4(n as i32))
}

/// Number of characters.
pub fn length(s: &str) -> usize {
    s.chars().count()
}

/// The characters `range` of a text.
pub fn slice(s: &str, range: std::ops::Range<usize>) -> &str {
    if s.is_ascii() {
        return &s[range.start.min(s.len())..range.end.min(s.len())];
    }
    let start = s.char_indices().nth(range.start).map_or(s.len(), |(at, _)| at);
    let rest = &s[start..];
    let end = rest.char_indices().nth(range.end - range.start).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("textlen", |_, a| count(length(a[0].as_str()))),
    ("bpcharlen", |_, a| count(length(unpadded(a[0].as_str())))),
    ("textoctetlen", |_, a| count(a[0].as_str().len())),
    ("bpcharoctetlen", |_, a| count(a[0].as_str().len())),
    ("bit_length_1811", |_, a| count(a[0].as_str().len() * 8)),
    ("bit_length_1810", |_, a| count(a[0].as_bytes().len() * 8)),
    ("textcat", cat),
    ("textanycat_2003", |c, a| cat_any(c, &a[0], &a[1], 1)),
    ("anytextcat_2004", |c, a| cat_any(c, &a[1], &a[0], 0)),
    ("nameconcatoid", name_concat_oid),
    ("text_substr", |_, a| substring(a, Some(a[2].as_i32()))),
    ("text_substr_no_len", |_, a| substring(a, None)),
    ("textoverlay", |_, a| overlay(a, a[3].as_i32())),
    ("textoverlay_no_len", |_, a| overlay(a, length(a[1].as_str()) as i32)),
    ("textpos", |c, a| count(position(c, a[0].as_str(), a[1].as_str())?)),
    ("text_left", |_, a| strict(a, |s| slice(s, 0..end_of(s, a[1].as_i32())).into())),
    ("text_right", |_, a| {
        strict(a, |s| {
            let total = length(s);
            let n = a[1].as_i32();
            let skipped = match n {
                // Without a positive counterpart: PostgreSQL returns the whole text.
                i32::MIN => 0,
                n if n < 0 => n.unsigned_abs() as usize,
                n => total.saturating_sub(n as usize),
            };
            slice(s, skipped.min(total)..total).into()
        })
    }),
    ("text_reverse", |_, a| Ok(Datum::text(limits::ticked(a[0].as_str().chars().rev()).collect::<Result<String>>()?))),
    ("text_starts_with", |c, a| {
        collation::refuse_nondeterministic(c, "substring searches")?;
        Ok(Datum::Bool(a[0].as_str().starts_with(a[1].as_str())))
    }),
    ("repeat", repeat),
    ("replace_text", |c, a| replace(c, a[0].as_str(), a[1].as_str(), a[2].as_str())),
    ("lpad", |c, a| pad(c, a, a[2].as_str(), true)),
    ("rpad", |c, a| pad(c, a, a[2].as_str(), false)),
    ("lpad_879", |c, a| pad(c, a, " ", true)),
    ("rpad_880", |c, a| pad(c, a, " ", false)),
    ("btrim", |_, a| trimmed(a, true, true)),
    ("ltrim", |_, a| trimmed(a, true, false)),
    ("rtrim", |_, a| trimmed(a, false, true)),
    ("btrim1", |_, a| strict(a, |s| s.trim_matches(' ').into())),
    ("ltrim1", |_, a| strict(a, |s| s.trim_start_matches(' ').into())),
    ("translate", |_, a| translate(a[0].as_str(), a[1].as_str(), a[2].as_str())),
    ("ascii", |_, a| Ok(Datum::Int4(a[0].as_str().chars().next().map_or(0, |c| c as i32)))),
    ("chr", |_, a| chr(a[0].as_i32())),
    ("split_part", split_part),
    ("text_to_array", crate::setreturning::text_to_array),
    ("text_to_array_null", crate::setreturning::text_to_array),
];

/// Characters that `left(s, n)` takes.
fn end_of(s: &str, n: i32) -> usize {
    if n >= 0 { n as usize } else { length(s).saturating_sub(n.unsigned_abs() as usize) }
}

/// The text without the characters of a set that it begins or ends with.
fn trimmed(a: &[Datum], left: bool, right: bool) -> Result<Datum> {
    let set = limits::ticked(a[1].as_str().chars()).collect::<Result<HashSet<char>>>()?;
    let (s, mut ticker) = (a[0].as_str(), Ticker::new());
    let mut kept = 0..s.len();
    let mut chars = s.char_indices();
    while left
        && let Some((_, c)) = chars.next()
        && set.contains(&c)
    {
        ticker.step()?;
        kept.start = chars.offset();
    }
    let mut chars = s[kept.clone()].chars();
    while right
        && let Some(c) = chars.next_back()
        && set.contains(&c)
    {
        ticker.step()?;
        kept.end = kept.start + chars.as_str().len();
    }
    Ok(Datum::text(&s[kept]))
}

/// `text || any`: the other operand's text form.
fn cat_any(call: &CallInfo<'_>, text: &Datum, other: &Datum, other_at: usize) -> Result<Datum> {
    let ty = call.arg_types.get(other_at).copied().unwrap_or(melba_types::oids::TEXT);
    let other = match other {
        // A cast to text, so not as the output function prints it.
        Datum::Bool(v) => v.to_string(),
        Datum::Char(v) => char_text(*v),
        other => melba_fmgr::io::text_of(call.session, ty, other)?,
    };
    let parts = if other_at == 1 { [text.as_str(), &other] } else { [&other, text.as_str()] };
    Ok(Datum::text(parts.concat()))
}

fn name_concat_oid(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let suffix = format!("_{}", a[1].as_oid());
    let name = a[0].as_str();
    let mut end = name.len().min(super::io::NAME_BYTES_MAX - suffix.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Datum::text(format!("{}{suffix}", &name[..end])))
}

fn substring(a: &[Datum], chars: Option<i32>) -> Result<Datum> {
    let s = a[0].as_str();
    // The end beyond the text is cut there, so that the prefix is all that is read.
    let range = substring_range(a[1].as_i32(), chars, s.len())?;
    Ok(Datum::text(slice(s, range)))
}

fn overlay(a: &[Datum], chars: i32) -> Result<Datum> {
    let s = a[0].as_str();
    let (before, after) = overlay_ranges(a[2].as_i32(), chars, length(s))?;
    Ok(Datum::text([slice(s, before), a[1].as_str(), slice(s, after)].concat()))
}

/// 1-based character position of the first occurrence, 0 when there is none.
fn position(call: &CallInfo<'_>, s: &str, part: &str) -> Result<usize> {
    if let Some(collation) = collation::nondeterministic(call)
        && !part.is_empty()
    {
        let first = Occurrences::new(collation, s, part, false).next().transpose()?;
        return Ok(first.map_or(0, |(at, _)| length(&s[..at]) + 1));
    }
    Ok(match memchr::memmem::find(s.as_bytes(), part.as_bytes()) {
        Some(at) => length(&s[..at]) + 1,
        None => 0,
    })
}

fn too_long() -> melba_types::DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

fn cat(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (a, b) = (a[0].as_str(), a[1].as_str());
    if a.len() + b.len() > RESULT_BYTES_MAX {
        return Err(too_long());
    }
    limits::check_request(a.len() + b.len())?;
    shared::texts(&[(a, 1), (b, 1)]).map(Datum::Text)
}

fn repeat(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, n) = (a[0].as_str(), a[1].as_i32().max(0) as usize);
    if s.len().checked_mul(n).is_none_or(|bytes| bytes > RESULT_BYTES_MAX) {
        return Err(too_long());
    }
    call.session.check_interrupt()?;
    limits::check_request(s.len() * n)?;
    shared::repeat(s, n).map(Datum::Text)
}

fn replace(call: &CallInfo<'_>, s: &str, from: &str, to: &str) -> Result<Datum> {
    if from.is_empty() {
        return Ok(Datum::text(s));
    }
    if let Some(collation) = collation::nondeterministic(call) {
        return replace_equal(Occurrences::new(collation, s, from, true), s, to);
    }
    let finder = memchr::memmem::Finder::new(from);
    let (mut count, mut ticker) = (0, Ticker::new());
    for _ in finder.find_iter(s.as_bytes()) {
        ticker.step()?;
        count += 1;
    }
    if count == 0 {
        return Ok(Datum::text(s));
    }
    let length = (s.len() - count * from.len()).saturating_add(count.saturating_mul(to.len()));
    limits::check_length(length)?;
    let mut out = String::with_capacity(length);
    let mut copied = 0;
    for at in finder.find_iter(s.as_bytes()) {
        ticker.work(1 + to.len() / 256)?;
        out.push_str(&s[copied..at]);
        out.push_str(to);
        copied = at + from.len();
    }
    out.push_str(&s[copied..]);
    Ok(Datum::text(out))
}

fn pad(call: &CallInfo<'_>, a: &[Datum], filler: &str, left: bool) -> Result<Datum> {
    let (s, wanted) = (a[0].as_str(), a[1].as_i32().max(0) as usize);
    let have = length(s);
    if wanted > RESULT_BYTES_MAX / 4 && !filler.is_empty() {
        return Err(too_long());
    }
    call.session.check_interrupt()?;
    if have >= wanted || filler.is_empty() {
        return Ok(Datum::text(slice(s, 0..wanted.min(have))));
    }
    let (missing, each) = (wanted - have, length(filler));
    let rest = slice(filler, 0..missing % each);
    limits::check_request(s.len() + (missing / each) * filler.len() + rest.len())?;
    let fill = (filler, missing / each);
    shared::texts(&if left { [fill, (rest, 1), (s, 1)] } else { [(s, 1), fill, (rest, 1)] }).map(Datum::Text)
}

fn translate(s: &str, from: &str, to: &str) -> Result<Datum> {
    let mut to = to.chars();
    let mut map: HashMap<char, Option<char>> = HashMap::new();
    for c in limits::ticked(from.chars()) {
        let target = to.next();
        map.entry(c?).or_insert(target);
    }
    mapped(s, |piece| piece.chars().filter_map(|c| map.get(&c).copied().unwrap_or(Some(c))).collect())
}

fn chr(code: i32) -> Result<Datum> {
    if code < 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "character number must be positive"));
    }
    if code == 0 {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    if code > 0x10_ffff {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "requested character too large for encoding: {code}"));
    }
    let c = char::from_u32(code as u32);
    let c = c.ok_or_else(|| err!(PROGRAM_LIMIT_EXCEEDED, "requested character not valid for encoding: {code}"))?;
    Ok(Datum::text(c.to_string()))
}

/// The text with another one in the place of its parts.
fn replace_equal(parts: Occurrences<'_>, s: &str, to: &str) -> Result<Datum> {
    let (mut out, mut copied) = (String::new(), 0);
    for part in parts {
        let (start, end) = part?;
        limits::check_length(out.len() + (start - copied) + to.len())?;
        out.push_str(&s[copied..start]);
        out.push_str(to);
        copied = end;
    }
    out.push_str(&s[copied..]);
    Ok(Datum::text(out))
}

fn split_part(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, separator, n) = (a[0].as_str(), a[1].as_str(), a[2].as_i32());
    if n == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    if s.is_empty() {
        return Ok(Datum::text(""));
    }
    if separator.is_empty() {
        return Ok(Datum::text(if n == 1 || n == -1 { s } else { "" }));
    }
    if let Some(collation) = collation::nondeterministic(call) {
        let fields = fields_between(Occurrences::new(collation, s, separator, true), s)?;
        let place = n.unsigned_abs() as usize;
        let place = if n > 0 { Some(place - 1) } else { fields.len().checked_sub(place) };
        return Ok(Datum::text(place.and_then(|place| fields.get(place).copied()).unwrap_or_default()));
    }
    let finder = memchr::memmem::Finder::new(separator);
    let ends = || limits::ticked(finder.find_iter(s.as_bytes()).chain([s.len()]));
    let place = n.unsigned_abs() as usize - 1;
    // Fields are found from the start, also when they are counted from the end.
    let place = if n > 0 { Some(place) } else { (ends().try_fold(0, |n, end| end.map(|_| n + 1))? - 1usize).checked_sub(place) };
    let Some(place) = place else { return Ok(Datum::text("")) };
    let mut start = 0;
    for (i, end) in ends().enumerate() {
        let end = end?;
        if i == place {
            return Ok(Datum::text(&s[start..end]));
        }
        start = end + separator.len();
    }
    Ok(Datum::text(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_not_bytes() {
        assert_eq!(slice("añbñc", 1..3), "ñb");
        assert_eq!(slice("abc", 1..9), "bc");
        let session = crate::testing::session();
        assert_eq!(position(&session.call(&[], melba_types::oids::TEXT), "xñy", "y").ok(), Some(3));
        let translated = |s, from, to| translate(s, from, to).expect("is short").as_str().to_owned();
        assert_eq!(translated("12345", "143", "ax"), "a2x5");
        assert_eq!(translated("aa", "aa", "xy"), "xx");
    }

    #[test]
    fn texts_are_trimmed_and_split() {
        let trim = |s, set, left, right| trimmed(&[s, set].map(Datum::text), left, right).expect("is short").as_str().to_owned();
        assert_eq!(trim("éxaéé", "éx", true, false), "aéé");
        assert_eq!(trim("éxaéé", "éx", false, true), "éxa");
        assert_eq!(trim("éxaéé", "xé", true, true), "a");
        assert_eq!(trim("xxé", "éx", true, true), "");
        assert_eq!(trim("xx", "", true, true), "xx");
        let session = crate::testing::session();
        let call = session.call(&[], melba_types::oids::TEXT);
        let part = |s: &str, n| {
            split_part(&call, &[Datum::text(s), Datum::text(",,"), Datum::Int4(n)]).expect("is short").as_str().to_owned()
        };
        for (n, expected) in [(1, "a"), (2, ",b"), (3, ""), (4, ""), (-1, ""), (-2, ",b"), (-3, "a"), (-4, ""), (i32::MIN, "")] {
            assert_eq!(part("a,,,b,,", n), expected, "{n}");
        }
    }
}
