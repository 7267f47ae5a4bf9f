//! Case mapping, normalization and other properties of Unicode characters.

use melba_types::{Datum, Result, err, limits};
use unicode_normalization::UnicodeNormalization;

use crate::{CallContext, ScalarFn};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("upper", |_, a| mapped(a[0].as_str(), upper)),
    ("lower", |_, a| mapped(a[0].as_str(), lower)),
    ("casefold", |_, a| mapped(a[0].as_str(), |piece| piece.chars().map(fold_char).collect::<String>())),
    ("initcap", |_, a| {
        let mut in_word = false;
        mapped(a[0].as_str(), |piece| initcap(piece, &mut in_word))
    }),
    ("unicode_normalize_func", |_, a| Ok(Datum::text(normalize(a[0].as_str(), a[1].as_str())?))),
    ("unicode_is_normalized", |_, a| Ok(Datum::Bool(normalize(a[0].as_str(), a[1].as_str())? == a[0].as_str()))),
    ("unicode_assigned", |_, a| Ok(Datum::Bool(a[0].as_str().chars().all(is_assigned)))),
    ("unicode_version", |_, _| Ok(Datum::text("16.0"))),
    ("icu_unicode_version", |_, _| Ok(Datum::Null)),
    ("unistr", unistr),
];

/// The mapping when it is one character: PostgreSQL's simple case mapping.
fn one(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(mapped), None) => mapped,
        _ => c,
    }
}

fn upper_char(c: char) -> char {
    one(c.to_uppercase(), c)
}

fn lower_char(c: char) -> char {
    one(c.to_lowercase(), c)
}

/// Unicode's simple folding: lower case, and one form for letters that have several.
fn fold_char(c: char) -> char {
    match c {
        // Letters whose capital is another letter's too.
        'ς' | 'ſ' | 'ß' | 'µ' | '\u{345}' | '\u{1e9b}' | '\u{1fbe}' | 'ϐ' | 'ϑ' | 'ϕ' | 'ϖ' | 'ϰ' | 'ϱ' | 'ϵ' => {
            lower_char(upper_char(c))
        }
        c => lower_char(c),
    }
}

pub fn upper(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_uppercase() } else { s.chars().map(upper_char).collect() }
}

pub fn lower(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_lowercase() } else { s.chars().map(lower_char).collect() }
}

/// A text mapped piece by piece, with looks at the statement's end between the pieces of a long one.
pub fn mapped(s: &str, mut f: impl FnMut(&str) -> String) -> Result<Datum> {
    const PIECE_BYTES: usize = 1 << 20;
    if s.len() <= PIECE_BYTES {
        return Ok(Datum::text(f(s)));
    }
    let mut out = String::with_capacity(s.len());
    let mut rest = s;
    while !rest.is_empty() {
        limits::check()?;
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES.min(rest.len())));
        out.push_str(&f(piece));
        rest = after;
    }
    Ok(Datum::text(out))
}

fn initcap(s: &str, in_word: &mut bool) -> String {
    let map = |c: char| {
        let mapped = if *in_word { lower_char(c) } else { upper_char(c) };
        *in_word = c.is_alphanumeric();
        mapped
    };
    s.chars().map(map).collect()
}

fn normalize(s: &str, form: &str) -> Result<String> {
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => s.nfc().collect(),
        "NFD" => s.nfd().collect(),
        "NFKC" => s.nfkc().collect(),
        "NFKD" => s.nfkd().collect(),
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "invalid normalization form: {form}")),
    })
}

fn is_assigned(c: char) -> bool {
    // Private use counts as assigned; the `regex` tables know the general categories.
    static UNASSIGNED: std::sync::LazyLock<Option<regex::Regex>> =
        std::sync::LazyLock::new(|| regex::Regex::new(r"^\p{Cn}$").ok());
    UNASSIGNED.as_ref().is_none_or(|r| !r.is_match(c.encode_utf8(&mut [0; 4])))
}

/// `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` and `\\` in a string, with surrogate pairs.
fn unistr(_: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let invalid = || {
        err!(SYNTAX_ERROR, "invalid Unicode escape").hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let surrogate = || err!(SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(s.len());
    let mut high: Option<u32> = None;
    let mut rest = s;
    while let Some(c) = rest.chars().next() {
        if c != '\\' {
            if high.is_some() {
                return Err(surrogate());
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if let Some(tail) = rest.strip_prefix("\\\\") {
            if high.is_some() {
                return Err(surrogate());
            }
            out.push('\\');
            rest = tail;
            continue;
        }
        let (skip, digits) = match rest.as_bytes().get(1) {
            Some(b'+') => (2, 6),
            Some(b'u') => (2, 4),
            Some(b'U') => (2, 8),
            _ => (1, 4),
        };
        let hex = rest.get(skip..skip + digits).filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(invalid)?;
        let code = u32::from_str_radix(hex, 16).map_err(|_| invalid())?;
        rest = &rest[skip + digits..];
        match (high.take(), code) {
            (Some(h), 0xdc00..=0xdfff) => {
                let c = char::from_u32(0x10000 + ((h - 0xd800) << 10) + (code - 0xdc00)).ok_or_else(surrogate)?;
                out.push(c);
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(surrogate()),
            (None, 0xd800..=0xdbff) => high = Some(code),
            (None, code) => {
                let c = char::from_u32(code).filter(|c| *c != '\0');
                out.push(c.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid Unicode code point: {code:04X}"))?);
            }
        }
    }
    if high.is_some() { Err(surrogate()) } else { Ok(Datum::text(out)) }
}
