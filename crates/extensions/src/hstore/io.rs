//! `"key"=>"value", other => NULL`: hstore's text form, and its binary one.

use std::borrow::Cow;

use melba_fmgr::type_io::is_space;
use melba_fmgr::type_io::{received, send_text};
use melba_fmgr::{TypeContext, TypeIo};
use melba_types::hstore::{self, Pair};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use super::{datum, null_key};

pub const TYPES: &[(Oid, TypeIo)] = &[(oids::HSTORE, TypeIo { input, output, receive, send })];

fn input(_: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let mut parser = Parser { text, at: 0 };
    let mut pairs = Vec::new();
    while let Some((key, _)) = parser.word(b'=')? {
        parser.expect(b'=')?;
        parser.next_is(b'>')?;
        let (value, quoted) = parser.word(b',')?.ok_or_else(end_of_string)?;
        let value = (quoted || !value.eq_ignore_ascii_case("null")).then_some(value);
        pairs.push((key, value));
        if !parser.at_end() {
            parser.expect(b',')?;
        }
    }
    datum(pairs.iter().map(|(key, value)| (&**key, value.as_deref())).collect())
}

fn end_of_string() -> DbError {
    err!(SYNTAX_ERROR, "syntax error in hstore: unexpected end of string")
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Whether nothing but blanks is left.
    fn at_end(&mut self) -> bool {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.peek().is_none()
    }

    fn error(&self) -> DbError {
        let near = self.text.get(self.at..).and_then(|rest| rest.chars().next()).map(String::from).unwrap_or_default();
        err!(SYNTAX_ERROR, "syntax error in hstore, near \"{near}\" at position {}", self.at)
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        self.at_end();
        self.next_is(wanted)
    }

    fn next_is(&mut self, wanted: u8) -> Result<()> {
        match self.peek() {
            Some(c) if c == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.error()),
            None => Err(end_of_string()),
        }
    }

    /// A word in quotes, or one that ends with a blank or `end`; whether it was in quotes.
    fn word(&mut self, end: u8) -> Result<Option<(String, bool)>> {
        if self.at_end() {
            return Ok(None);
        }
        let quoted = self.peek() == Some(b'"');
        self.at += usize::from(quoted);
        if !quoted && end == b'=' && self.peek() == Some(b'=') {
            return Err(self.error());
        }
        let mut word = String::new();
        let start = self.at;
        loop {
            match self.peek() {
                None if quoted => return Err(end_of_string()),
                None => break,
                Some(b'"') if quoted => {
                    self.at += 1;
                    break;
                }
                // A comma that begins a value is a part of it.
                Some(c) if !quoted && (is_space(c) || c == end && self.at > start) => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.peek().ok_or_else(end_of_string)?;
                }
                Some(_) => {}
            }
            let c = self.text[self.at..].chars().next().ok_or_else(end_of_string)?;
            word.push(c);
            self.at += c.len_utf8();
        }
        Ok(Some((word, quoted)))
    }
}

fn output(_: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    for (i, (key, value)) in hstore::pairs(value.as_bytes()).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        quote(key, out);
        out.extend_from_slice(b"=>");
        match value {
            Some(value) => quote(value, out),
            None => out.extend_from_slice(b"NULL"),
        }
    }
    Ok(())
}

fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.bytes() {
        if matches!(c, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(c);
    }
    out.push(b'"');
}

fn insufficient() -> DbError {
    err!(PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn integer(rest: &mut &[u8]) -> Result<i32> {
    let (integer, behind) = rest.split_first_chunk::<4>().ok_or_else(insufficient)?;
    *rest = behind;
    Ok(i32::from_be_bytes(*integer))
}

/// A text of `length` bytes.
fn text<'a>(context: &TypeContext<'_>, length: i32, rest: &mut &'a [u8]) -> Result<Cow<'a, str>> {
    let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let (text, behind) = split.ok_or_else(insufficient)?;
    *rest = behind;
    received(context, text)
}

fn receive(context: &TypeContext<'_>, mut bytes: &[u8]) -> Result<Datum> {
    const PAIR_BYTES: i32 = 40;
    const PAIRS_MAX: i32 = 0x3fff_ffff / PAIR_BYTES;
    let count = integer(&mut bytes)?;
    if !(0..=PAIRS_MAX).contains(&count) {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "number of pairs ({count}) exceeds the maximum allowed ({PAIRS_MAX})"));
    }
    let mut pairs: Vec<(Cow<'_, str>, Option<Cow<'_, str>>)> = Vec::new();
    for _ in 0..count {
        let length = integer(&mut bytes)?;
        if length < 0 {
            return Err(null_key());
        }
        let key = text(context, length, &mut bytes)?;
        let length = integer(&mut bytes)?;
        let value = if length < 0 { None } else { Some(text(context, length, &mut bytes)?) };
        pairs.push((key, value));
    }
    if !bytes.is_empty() {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format"));
    }
    datum(pairs.iter().map(|(key, value)| (&**key, value.as_deref())).collect())
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let pairs: Vec<Pair<'_>> = super::pairs(value);
    out.extend_from_slice(&(pairs.len() as i32).to_be_bytes());
    for part in pairs.into_iter().flat_map(|(key, value)| [Some(key), value]) {
        let at = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        if let Some(part) = part {
            send_text(context, part, out)?;
            let length = (out.len() - at - 4) as i32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}
