//! LIKE and ILIKE.
//!
//! Patterns match the whole value: `%` any characters, `_` one, backslash takes the next character literally (an ESCAPE
//! clause is turned into backslashes by `like_escape`).

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::limits::Ticker;
use melba_types::{Datum, DbError, Result, err};

use super::case::lowered;
use super::collation;

mod collated;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("textlike", |c, a| like(c, a, false)),
    ("textnlike", |c, a| like(c, a, true)),
    ("namelike", |c, a| like(c, a, false)),
    ("namenlike", |c, a| like(c, a, true)),
    ("texticlike", |c, a| ilike(c, a, false)),
    ("texticnlike", |c, a| ilike(c, a, true)),
    ("nameiclike", |c, a| ilike(c, a, false)),
    ("nameicnlike", |c, a| ilike(c, a, true)),
    ("bytealike", |_, a| matches(a[0].as_bytes(), a[1].as_bytes(), false).map(Datum::Bool)),
    ("byteanlike", |_, a| matches(a[0].as_bytes(), a[1].as_bytes(), false).map(|m| Datum::Bool(!m))),
    ("like_escape", |_, a| {
        let (pattern, escape) = (a[0].as_str(), a[1].as_str());
        let first = escape.chars().next().map_or(0, char::len_utf8);
        if first != escape.len() {
            return Err(invalid_escape());
        }
        let bytes = normalize_escape(pattern.as_bytes(), escape.as_bytes());
        Ok(Datum::text(melba_fmgr::io::into_string(bytes)?))
    }),
    ("like_escape_bytea", |_, a| {
        if a[1].as_bytes().len() > 1 {
            return Err(invalid_escape());
        }
        Ok(Datum::bytes(normalize_escape(a[0].as_bytes(), a[1].as_bytes())))
    }),
];

pub fn invalid_escape() -> DbError {
    err!(INVALID_ESCAPE_SEQUENCE, "invalid escape string").hint("Escape string must be empty or one character.")
}

fn like(call: &CallInfo<'_>, a: &[Datum], negate: bool) -> Result<Datum> {
    let (text, pattern) = (a[0].as_str(), a[1].as_str());
    collation::collator(call, "LIKE")?;
    let is_match = match collation::nondeterministic(call) {
        Some(collation) => collated::matches(collation, text, pattern)?,
        None => matches(text.as_bytes(), pattern.as_bytes(), true)?,
    };
    Ok(Datum::Bool(is_match != negate))
}

/// Of lower case.
fn ilike(call: &CallInfo<'_>, a: &[Datum], negate: bool) -> Result<Datum> {
    collation::collator(call, "ILIKE")?;
    collation::refuse_nondeterministic(call, "ILIKE")?;
    let lower = |text| lowered(call, text, "ILIKE");
    let (value, pattern) = (lower(a[0].as_str())?, lower(a[1].as_str())?);
    matches(value.as_str().as_bytes(), pattern.as_str().as_bytes(), true).map(|m| Datum::Bool(m != negate))
}

/// The pattern with backslash as its escape character, from one with another (or none).
fn normalize_escape(pattern: &[u8], escape: &[u8]) -> Vec<u8> {
    if escape == b"\\" {
        return pattern.to_vec();
    }
    let mut out = Vec::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut after_escape = false;
    while let Some((&c, tail)) = rest.split_first() {
        if !escape.is_empty() && !after_escape && rest.starts_with(escape) {
            out.push(b'\\');
            rest = &rest[escape.len()..];
            after_escape = true;
            continue;
        }
        if c == b'\\' && !after_escape {
            out.push(b'\\');
        }
        out.push(c);
        after_escape = false;
        rest = tail;
    }
    out
}

fn dangling_escape() -> DbError {
    err!(INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
}

/// Length of the character that starts a string.
fn char_length(s: &[u8], utf8: bool) -> usize {
    match s[0] {
        _ if !utf8 => 1,
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
    .min(s.len())
}

/// As in PostgreSQL, the pattern behind a % is read up to the first character to be found, as far as the value has characters for each _.
fn check_behind(value: &[u8], pattern: &[u8], utf8: bool) -> Result<()> {
    let wildcards = pattern.iter().take_while(|c| matches!(c, b'%' | b'_')).count();
    if pattern[wildcards..] != *b"\\" {
        return Ok(());
    }
    let mut rest = value;
    for _ in pattern[..wildcards].iter().filter(|c| **c == b'_') {
        if rest.is_empty() {
            return Ok(());
        }
        rest = &rest[char_length(rest, utf8)..];
    }
    Err(dangling_escape())
}

/// Whether the whole of `value` matches. Backtracking is only needed to the last `%`, so the time is at most quadratic.
pub fn matches(value: &[u8], pattern: &[u8], utf8: bool) -> Result<bool> {
    let (mut v, mut p) = (0, 0);
    // Where to continue when the literal part fails: behind the last %, and the next place in the value.
    let mut retry: Option<(usize, usize)> = None;
    let mut ticker = Ticker::new();
    loop {
        ticker.step()?;
        let fails = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                if p == pattern.len() {
                    return Ok(true);
                }
                check_behind(&value[v..], &pattern[p..], utf8)?;
                retry = Some((p, v));
                false
            }
            None if v == value.len() => return Ok(true),
            None => true,
            Some(b'_') if v < value.len() => {
                v += char_length(&value[v..], utf8);
                p += 1;
                false
            }
            Some(b'_') => true,
            // A value at its end fails before the pattern is read, a dangling escape included.
            Some(_) if v == value.len() => true,
            Some(&c) => {
                let literal = if c == b'\\' { *pattern.get(p + 1).ok_or_else(dangling_escape)? } else { c };
                if value.get(v) == Some(&literal) {
                    v += 1;
                    p += if c == b'\\' { 2 } else { 1 };
                    false
                } else {
                    true
                }
            }
        };
        if fails {
            let Some((pattern_at, value_at)) = retry else { return Ok(false) };
            if value_at >= value.len() {
                return Ok(false);
            }
            let mut next = value_at + char_length(&value[value_at..], utf8);
            // The literal after the % decides where it can match at all.
            if let Some(&c) = pattern.get(pattern_at)
                && !matches!(c, b'%' | b'_' | b'\\')
            {
                match memchr::memchr(c, &value[next..]) {
                    Some(offset) => next += offset,
                    None => return Ok(false),
                }
            }
            retry = Some((pattern_at, next));
            (p, v) = (pattern_at, next);
        }
    }
}

/// The literal that every match begins with, and whether the pattern is exactly that, or exactly that and a `%`.
pub fn fixed_prefix(pattern: &str) -> (String, PrefixKind) {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' if chars.as_str().chars().all(|c| c == '%') => return (prefix, PrefixKind::PrefixOnly),
            '%' | '_' => return (prefix, PrefixKind::Partial),
            '\\' => match chars.next() {
                Some(c) => prefix.push(c),
                None => return (prefix, PrefixKind::Partial),
            },
            c => prefix.push(c),
        }
    }
    (prefix, PrefixKind::Exact)
}

/// How much of a pattern its prefix says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixKind {
    Exact,
    PrefixOnly,
    Partial,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_values() {
        for (value, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "_b_", true),
            ("añc", "a_c", true),
            ("abc", "ab", false),
            ("", "%", true),
            ("", "_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("aaab", "%aab", true),
            ("mississippi", "%iss%ip%", true),
            ("mississippi", "%iss%ipx%", false),
            ("日本語", "%本_", true),
        ] {
            assert_eq!(matches(value.as_bytes(), pattern.as_bytes(), true).expect("pattern"), expected, "{value} {pattern}");
        }
        assert!(matches(b"ab", b"a\\", true).is_err());
        for (value, pattern) in [("a", "%_\\"), ("", "%\\"), ("日本", "%__%\\")] {
            assert!(matches(value.as_bytes(), pattern.as_bytes(), true).is_err(), "{value} {pattern}");
        }
        assert!(!matches("日本".as_bytes(), b"%___\\", true).expect("the value ends first"));
        assert_eq!(fixed_prefix("ab\\%c%"), ("ab%c".into(), PrefixKind::PrefixOnly));
    }
}
