//! Case mapping, normalization and other properties of Unicode characters.

use melba_collation::Collator;
use melba_fmgr::{CallInfo, ScalarFn};
pub use melba_types::case::lower;
use melba_types::case::lower_char;
use melba_types::limits::{self, ticked};
use melba_types::{Datum, Result, err};
use unicode_normalization::UnicodeNormalization;

use super::collation;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("upper", |c, a| match Casing::of(c, "upper() function")? {
        Casing::Locale(locale) => Ok(Datum::text(locale.upper(a[0].as_str()))),
        Casing::Ascii => mapped(a[0].as_str(), str::to_ascii_uppercase),
        Casing::Simple => mapped(a[0].as_str(), upper),
        Casing::Full => mapped(a[0].as_str(), str::to_uppercase),
    }),
    ("lower", |c, a| lowered(c, a[0].as_str(), "lower() function")),
    ("casefold", |c, a| match Casing::of(c, "lower() function")? {
        Casing::Locale(locale) => Ok(Datum::text(locale.casefold(a[0].as_str()))),
        Casing::Ascii => mapped(a[0].as_str(), str::to_ascii_lowercase),
        Casing::Simple => mapped(a[0].as_str(), |piece| piece.chars().map(fold_char).collect::<String>()),
        Casing::Full => mapped(a[0].as_str(), |piece| piece.chars().map(fold_fully).collect::<String>()),
    }),
    ("initcap", |c, a| {
        let (casing, mut in_word) = (Casing::of(c, "initcap() function")?, false);
        if let Casing::Locale(locale) = casing {
            return Ok(Datum::text(locale.initcap(a[0].as_str())));
        }
        mapped(a[0].as_str(), |piece| initcap(piece, casing, &mut in_word))
    }),
    ("unicode_normalize_func", |_, a| Ok(Datum::text(normalize(a[0].as_str(), a[1].as_str())?))),
    ("unicode_is_normalized", |_, a| Ok(Datum::Bool(normalize(a[0].as_str(), a[1].as_str())? == a[0].as_str()))),
    ("unicode_assigned", |_, a| Ok(Datum::Bool(a[0].as_str().chars().all(is_assigned)))),
    ("unicode_version", |_, _| Ok(Datum::text("16.0"))),
    ("unistr", unistr),
];

/// How much of Unicode's case mapping a collation uses.
#[derive(Clone, Copy, Debug)]
enum Casing<'c> {
    /// That of a language.
    Locale(&'c Collator),
    Ascii,
    /// One character for one.
    Simple,
    /// Several for one too, and some by their neighbours.
    Full,
}

impl<'c> Casing<'c> {
    /// # Errors
    /// 42P22 without a collation.
    fn of(call: &'c CallInfo<'_>, purpose: &str) -> Result<Casing<'c>> {
        const C: u32 = 950;
        const POSIX: u32 = 951;
        const UCS_BASIC: u32 = 962;
        const PG_UNICODE_FAST: u32 = 6411;
        if let Some(locale) = collation::collator(call, purpose)? {
            return Ok(Casing::Locale(locale));
        }
        Ok(match call.collation.0 {
            C | POSIX | UCS_BASIC => Casing::Ascii,
            PG_UNICODE_FAST => Casing::Full,
            _ => Casing::Simple,
        })
    }
}

/// A text in lower case by the collation of a call. `purpose`: what needs one.
pub fn lowered(call: &CallInfo<'_>, text: &str, purpose: &str) -> Result<Datum> {
    match Casing::of(call, purpose)? {
        Casing::Locale(locale) => Ok(Datum::text(locale.lower(text))),
        Casing::Ascii => mapped(text, str::to_ascii_lowercase),
        Casing::Simple => mapped(text, lower),
        // The case of a sigma depends on its neighbours, so the text is not cut.
        Casing::Full => Ok(Datum::text(text.to_lowercase())),
    }
}

/// The mapping when it is one character: PostgreSQL's simple case mapping.
fn one(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(mapped), None) => mapped,
        _ => c,
    }
}

/// With several capitals for one letter, the simple mapping is to the letter with its iota, if there is such a one.
fn upper_char(c: char) -> char {
    let mut mapped = c.to_uppercase();
    if mapped.len() > 1 { one(title(c).chars(), c) } else { mapped.next().unwrap_or(c) }
}

/// Unicode's simple folding: lower case, and one form for letters that have several.
fn fold_char(c: char) -> char {
    match c {
        'ı' => c,
        // Of Cherokee the capitals.
        '\u{13a0}'..='\u{13f5}' => c,
        '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => upper_char(c),
        'İ' | 'ẞ' => one(c.to_lowercase(), c),
        c => lower_char(upper_char(lower_char(c))),
    }
}

/// Unicode's full folding.
fn fold_fully(c: char) -> String {
    match c {
        'ı' | '\u{13a0}'..='\u{13f5}' => c.into(),
        '\u{13f8}'..='\u{13fd}' | '\u{ab70}'..='\u{abbf}' => c.to_uppercase().collect(),
        c => {
            let upper = c.to_lowercase().flat_map(char::to_uppercase);
            upper.flat_map(char::to_lowercase).collect()
        }
    }
}

/// The first letter of a word: its capital, except digraphs, ligatures, letters with an iota, and Georgian, which has capitals
/// but begins no word with one.
fn title(c: char) -> String {
    const IOTA: char = 'Ι';
    const SMALL_IOTA: char = '\u{345}';
    match c {
        'Ǆ'..='ǆ' => "ǅ".into(),
        'Ǉ'..='ǉ' => "ǈ".into(),
        'Ǌ'..='ǌ' => "ǋ".into(),
        'Ǳ'..='ǳ' => "ǲ".into(),
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c.into(),
        'ß' | 'և' | '\u{fb00}'..='\u{fb06}' | '\u{fb13}'..='\u{fb17}' => {
            let mut upper = c.to_uppercase();
            upper.next().into_iter().chain(upper.flat_map(char::to_lowercase)).collect()
        }
        '\u{1f80}'..='\u{1faf}' => char::from_u32(u32::from(c) | 8).unwrap_or(c).into(),
        'ᾳ' | 'ᾼ' => "ᾼ".into(),
        'ῃ' | 'ῌ' => "ῌ".into(),
        'ῳ' | 'ῼ' => "ῼ".into(),
        'ᾲ' | 'ᾴ' | 'ᾷ' | 'ῂ' | 'ῄ' | 'ῇ' | 'ῲ' | 'ῴ' | 'ῷ' => {
            c.to_uppercase().map(|c| if c == IOTA { SMALL_IOTA } else { c }).collect()
        }
        c => c.to_uppercase().collect(),
    }
}

pub fn upper(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_uppercase() } else { s.chars().map(upper_char).collect() }
}

/// A text mapped piece by piece, with checks for the statement's end between the pieces of a long one.
pub fn mapped(s: &str, mut f: impl FnMut(&str) -> String) -> Result<Datum> {
    const PIECE_BYTES: usize = 256 << 10;
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

fn initcap(s: &str, casing: Casing, in_word: &mut bool) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match (casing, *in_word) {
            (Casing::Ascii, false) => out.push(c.to_ascii_uppercase()),
            (Casing::Ascii, true) => out.push(c.to_ascii_lowercase()),
            (Casing::Simple, false) => out.push(upper_char(c)),
            (Casing::Simple, true) => out.push(lower_char(c)),
            (Casing::Full | Casing::Locale(_), false) => out.push_str(&title(c)),
            (Casing::Full | Casing::Locale(_), true) => out.extend(c.to_lowercase()),
        }
        *in_word = match casing {
            Casing::Ascii => c.is_ascii_alphanumeric(),
            Casing::Simple => c.is_alphabetic() || c.is_ascii_digit(),
            Casing::Full | Casing::Locale(_) => c.is_alphabetic() || is_digit(c),
        };
    }
    out
}

/// Decimal digits of every script.
fn is_digit(c: char) -> bool {
    static DIGIT: std::sync::LazyLock<Option<regex::Regex>> = std::sync::LazyLock::new(|| regex::Regex::new(r"^\p{Nd}$").ok());
    c.is_ascii_digit() || (c.is_numeric() && DIGIT.as_ref().is_some_and(|r| r.is_match(c.encode_utf8(&mut [0; 4]))))
}

fn normalize(s: &str, form: &str) -> Result<String> {
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => ticked(s.nfc()).collect::<Result<_>>()?,
        "NFD" => ticked(s.nfd()).collect::<Result<_>>()?,
        "NFKC" => ticked(s.nfkc()).collect::<Result<_>>()?,
        "NFKD" => ticked(s.nfkd()).collect::<Result<_>>()?,
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
fn unistr(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let invalid = || {
        err!(SYNTAX_ERROR, "invalid Unicode escape").hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let surrogate = || err!(SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(s.len());
    let mut high: Option<u32> = None;
    let (mut rest, mut ticker) = (s, limits::Ticker::new());
    while let Some(c) = rest.chars().next() {
        ticker.step()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are PostgreSQL 18's.
    #[test]
    fn a_collation_says_how_much_is_mapped() {
        let session = crate::testing::session();
        let types = [melba_types::oids::TEXT];
        let apply = |function: &str, collation: u32, text: &str| {
            let call = CallInfo { collation: melba_types::Oid(collation), ..session.call(&types, types[0]) };
            let mapped = melba_fmgr::registry::scalar(function).expect("registered")(&call, &[Datum::text(text)]).expect("maps");
            mapped.as_str().to_owned()
        };
        for (function, text, c, simple, full) in [
            ("upper", "aß ŉ ﬃ ᾳ ä", "Aß ŉ ﬃ ᾳ ä", "Aß ŉ ﬃ ᾼ Ä", "ASS ʼN FFI ΑΙ Ä"),
            ("lower", "ÄΑΣ ΑΣΑ Σ İ", "ÄΑΣ ΑΣΑ Σ İ", "äασ ασα σ i", "äας ασα σ i̇"),
            ("initcap", "ǆab ßx ﬁre 1st ²nd ٣x", "ǆAb ßX ﬁRe 1st ²Nd ٣X", "Ǆab ßx ﬁre 1st ²Nd ٣X", "ǅab Ssx Fire 1st ²Nd ٣x"),
            ("casefold", "ΑΣ ẞ Ꭰ ꭰ", "ΑΣ ẞ Ꭰ ꭰ", "ασ ß Ꭰ Ꭰ", "ασ ss Ꭰ Ꭰ"),
        ] {
            assert_eq!(apply(function, 950, text), c, "{function}");
            assert_eq!(apply(function, 811, text), simple, "{function}");
            assert_eq!(apply(function, 6411, text), full, "{function}");
        }
    }
}
