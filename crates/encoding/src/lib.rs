//! Character sets of clients: PostgreSQL's encodings by name and number, and their conversion to and from UTF-8.
//!
//! Databases are UTF8. Text from a client with another encoding is decoded where it enters the session, and text to it is encoded
//! where it leaves; in between all text is UTF-8. The mappings are those of the crate `encoding_rs`, corrected where PostgreSQL
//! 18 differs (`data/differences.tsv`), so that every byte sequence means what it means there.
//!
//! Invariants:
//! 1. `decode` and `encode` borrow if the encoding needs no conversion.
//! 2. Text that cannot be converted is an error with PostgreSQL's SQLSTATE and message: 22021 for bytes that are no character,
//!    22P05 for characters without an equivalent.

mod forms;
mod map;
mod names;

use std::borrow::Cow;

use melba_types::limits::{Ticker, ticked};
use melba_types::{DbError, Result, SqlState, err};

pub use names::{Encoding, SQL_ASCII, UTF8};

impl Encoding {
    /// Text is exchanged unchanged: the bytes are UTF-8 or must be.
    #[inline]
    pub fn is_plain(self) -> bool {
        self == UTF8 || self == SQL_ASCII
    }

    /// There is a conversion to and from UTF8.
    pub fn is_convertible(self) -> bool {
        self.is_plain() || self.base().is_some()
    }

    /// The text of a client's bytes.
    ///
    /// # Errors
    /// 22021 for bytes that are no character (among them a zero byte), 22P05 for characters that Unicode lacks; those of
    /// `limits::check`.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if self.is_plain() {
            return utf8(bytes).map(Cow::Borrowed);
        }
        let mut out = String::with_capacity(bytes.len() + bytes.len() / 2);
        self.decode_to(bytes, &mut out)?;
        Ok(Cow::Owned(out))
    }

    /// Appends the text of bytes, as far as there is one.
    ///
    /// # Errors
    /// As `decode`, for an encoding that needs a conversion.
    pub fn decode_to(self, bytes: &[u8], out: &mut String) -> Result<()> {
        let map = self.map()?;
        let mut rest = bytes;
        let mut ticker = Ticker::new();
        while let Some(&first) = rest.first() {
            ticker.step()?;
            let width = self.forms().character(rest).ok_or_else(|| self.invalid(rest))?;
            if width == 1 && first < 0x80 {
                out.push(char::from(first));
            } else {
                let (sequence, all) = (&rest[..width], rest);
                out.push(map.decode(sequence).ok_or_else(|| self.untranslatable(all, UTF8))?);
            }
            rest = &rest[width..];
        }
        Ok(())
    }

    /// The bytes of a text for a client.
    ///
    /// # Errors
    /// 22P05 for a character that the encoding lacks; those of `limits::check`.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>> {
        if self.is_plain() || text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let map = self.map()?;
        let mut out = Vec::with_capacity(text.len());
        for c in ticked(text.chars()) {
            let c = c?;
            if c.is_ascii() {
                out.push(c as u8);
            } else if !map.encode(c, &mut out) {
                return Err(UTF8.untranslatable(c.encode_utf8(&mut [0; 4]).as_bytes(), self));
            }
        }
        Ok(Cow::Owned(out))
    }

    /// The same with a question mark for characters that the encoding lacks: for messages, which must reach the client.
    pub fn encode_lossy(self, text: &str) -> Cow<'_, [u8]> {
        self.encode(text).unwrap_or_else(|_| {
            let each =
                text.chars().map(|c| self.encode(c.encode_utf8(&mut [0; 4])).map_or_else(|_| b"?".to_vec(), Cow::into_owned));
            Cow::Owned(each.flatten().collect())
        })
    }

    /// How many characters bytes are.
    ///
    /// # Errors
    /// 22021 for bytes that are no character.
    pub fn characters(self, bytes: &[u8]) -> Result<usize> {
        let (mut rest, mut count) = (bytes, 0);
        let mut ticker = Ticker::new();
        while !rest.is_empty() {
            ticker.step()?;
            rest = &rest[self.forms().character(rest).ok_or_else(|| self.invalid(rest))?..];
            count += 1;
        }
        Ok(count)
    }

    /// Length of the whole characters at the start of a piece of input; the rest may be the start of one.
    pub fn whole(self, bytes: &[u8]) -> usize {
        if self.is_plain() {
            return bytes.len();
        }
        let mut at = 0;
        while at < bytes.len() {
            let width = self.forms().width(&bytes[at..]);
            if at + width > bytes.len() {
                break;
            }
            at += width;
        }
        at
    }

    /// Bytes in this encoding, in another one.
    ///
    /// # Errors
    /// Those of `decode` and `encode`; 42883 when PostgreSQL has no conversion between the two.
    pub fn convert(self, bytes: &[u8], to: Encoding) -> Result<Vec<u8>> {
        if self == to && !self.is_plain() {
            return self.decode(bytes).map(|_| bytes.to_vec());
        }
        if self == SQL_ASCII || to == SQL_ASCII {
            // The characters are unknown: they stay unchanged, and must be valid where their encoding is known.
            let known = if self == SQL_ASCII { to } else { self };
            return if known == SQL_ASCII { Ok(bytes.to_vec()) } else { known.decode(bytes).map(|_| bytes.to_vec()) };
        }
        if !names::has_conversion(self, to) {
            let (from, to) = (self.name(), to.name());
            return Err(err!(
                UNDEFINED_FUNCTION,
                "default conversion function for encoding \"{from}\" to \"{to}\" does not exist"
            ));
        }
        let text = self.decode(bytes)?;
        Ok(to.encode(&text)?.into_owned())
    }

    fn map(self) -> Result<&'static map::Map> {
        map::of(self).ok_or_else(|| DbError::unsupported(format!("conversion between {} and UTF8", self.name())))
    }

    /// 22021 for the bytes that begin here.
    fn invalid(self, bytes: &[u8]) -> DbError {
        let sequence = shown(bytes, self.forms().width_of_start(bytes));
        err!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"{}\": {sequence}", self.name())
    }

    /// 22P05 for the character that begins here.
    fn untranslatable(self, bytes: &[u8], to: Encoding) -> DbError {
        let width = if self == UTF8 { bytes.len() } else { self.forms().width(bytes) };
        let (sequence, from, to) = (shown(bytes, width), self.name(), to.name());
        let message =
            format!("character with byte sequence {sequence} in encoding \"{from}\" has no equivalent in encoding \"{to}\"");
        DbError::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
    }
}

/// The text of client bytes, or 22021 naming the offending bytes as PostgreSQL does. A zero byte is no character of a text.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    let decoded = std::str::from_utf8(bytes).map_err(|e| e.valid_up_to());
    let valid = decoded.map_or_else(|end| &bytes[..end], str::as_bytes);
    match (decoded, valid.iter().position(|b| *b == 0)) {
        (Ok(text), None) => Ok(text),
        (Err(end), None) | (_, Some(end)) => Err(UTF8.invalid(&bytes[end..])),
    }
}

/// Length of the whole characters at the start of a piece of UTF-8; the rest is the start of one.
///
/// # Errors
/// 22021 for bytes that are no character, and for a zero byte.
pub fn utf8_start(bytes: &[u8]) -> Result<usize> {
    let whole = match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    };
    utf8(&bytes[..whole]).map(str::len)
}

fn shown(bytes: &[u8], width: usize) -> String {
    let shown: Vec<String> = bytes.iter().take(width).map(|b| format!("0x{b:02x}")).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests;
