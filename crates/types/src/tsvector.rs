//! tsvector: lexemes in order, each with the positions at which a document has it.
//!
//! ```text
//! u8 width of numbers (1 to 4 bytes, little-endian)
//! number of lexemes; of each the number of bytes of the entries up to its end
//! entries: a lexeme's length (one byte, or two with the high bit of the first set, the upper bits first), its bytes, its positions
//! position: u16, little-endian: weight << 14 | place
//! ```
//!
//! Invariants:
//! 1. Lexemes differ, are not empty and stand in the order of their bytes; positions ascend.
//! 2. A lexeme is found by binary search, without a look at others' positions.
//! 3. Malformed bytes read as fewer lexemes: a reader cannot be made to panic by them.
//!
//! These bytes are stored: the form must not change. The empty vector has no bytes.

use std::cmp::Ordering;

use crate::{Result, err, limits};

/// Bytes of a lexeme at most, less one (PostgreSQL's MAXSTRLEN).
pub const LEXEME_BYTES_MAX: usize = (1 << 11) - 1;
/// Bytes of lexemes and positions at most, as PostgreSQL holds them (its MAXSTRPOS).
pub const STRING_BYTES_MAX: usize = (1 << 20) - 1;
/// Positions of a lexeme at most (PostgreSQL's MAXNUMPOS).
pub const POSITIONS_MAX: usize = 256;
/// The last place in a document; those behind it have its number (PostgreSQL's MAXENTRYPOS - 1).
pub const PLACE_MAX: u16 = (1 << 14) - 1;

const LONG: u8 = 0x80;

/// A place in a document with a weight: 0 is D, 3 is A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexemePosition(u16);

impl LexemePosition {
    /// A place behind the last one counts as the last.
    pub fn new(place: u32, weight: u8) -> LexemePosition {
        LexemePosition(place.min(u32::from(PLACE_MAX)) as u16 | u16::from(weight) << 14)
    }

    pub fn from_bits(bits: u16) -> LexemePosition {
        LexemePosition(bits)
    }

    /// As PostgreSQL's binary form has it, too.
    pub fn bits(self) -> u16 {
        self.0
    }

    pub fn place(self) -> u16 {
        self.0 & PLACE_MAX
    }

    pub fn weight(self) -> u8 {
        (self.0 >> 14) as u8
    }

    pub fn with_weight(self, weight: u8) -> LexemePosition {
        LexemePosition(self.place() | u16::from(weight) << 14)
    }
}

/// A stored tsvector.
#[derive(Clone, Copy, Debug)]
pub struct TsVector<'a> {
    width: usize,
    count: usize,
    ends: &'a [u8],
    entries: &'a [u8],
}

/// A lexeme and its positions.
#[derive(Clone, Copy, Debug)]
pub struct Lexeme<'a> {
    pub text: &'a [u8],
    positions: &'a [u8],
}

impl<'a> Lexeme<'a> {
    pub fn positions(self) -> impl DoubleEndedIterator<Item = LexemePosition> + ExactSizeIterator + Clone + 'a {
        self.positions.chunks_exact(2).map(|pair| LexemePosition(u16::from_le_bytes([pair[0], pair[1]])))
    }

    pub fn has_positions(self) -> bool {
        !self.positions.is_empty()
    }

    /// The text; lexemes are made of texts.
    pub fn str(self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }
}

fn number(table: &[u8], width: usize, at: usize) -> Option<usize> {
    let mut bytes = [0; 4];
    bytes[..width].copy_from_slice(table.get(at * width..(at + 1) * width)?);
    Some(u32::from_le_bytes(bytes) as usize)
}

impl<'a> TsVector<'a> {
    pub const EMPTY: TsVector<'static> = TsVector { width: 1, count: 0, ends: &[], entries: &[] };

    pub fn new(bytes: &'a [u8]) -> TsVector<'a> {
        TsVector::read(bytes).unwrap_or(TsVector::EMPTY)
    }

    fn read(bytes: &'a [u8]) -> Option<TsVector<'a>> {
        let (&width, rest) = bytes.split_first()?;
        let width = usize::from(width).clamp(1, 4);
        let count = number(rest, width, 0)?;
        let (ends, entries) = rest.get(width..)?.split_at_checked(count.checked_mul(width)?)?;
        Some(TsVector { width, count, ends, entries })
    }

    /// Number of lexemes.
    pub fn len(self) -> usize {
        self.count
    }

    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// A lexeme by its place; an empty one when there is none.
    #[inline]
    pub fn get(self, at: usize) -> Lexeme<'a> {
        self.entry(at).unwrap_or(Lexeme { text: &[], positions: &[] })
    }

    #[inline]
    fn entry(self, at: usize) -> Option<Lexeme<'a>> {
        let start = if at == 0 { 0 } else { number(self.ends, self.width, at - 1)? };
        let entry = self.entries.get(start..number(self.ends, self.width, at)?)?;
        let (&first, rest) = entry.split_first()?;
        let (length, rest) = match first & LONG {
            0 => (usize::from(first), rest),
            _ => (usize::from(first & !LONG) << 8 | usize::from(*rest.first()?), &rest[1..]),
        };
        let (text, positions) = rest.split_at_checked(length)?;
        Some(Lexeme { text, positions })
    }

    pub fn iter(self) -> impl Iterator<Item = Lexeme<'a>> {
        (0..self.count).map(move |at| self.get(at))
    }

    /// The place of a lexeme, or where it would be.
    pub fn find(self, text: &[u8]) -> std::result::Result<usize, usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            match self.get(middle).text.cmp(text) {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Bytes of the value as PostgreSQL holds it, which decide its order first.
    fn postgres_bytes(self) -> usize {
        8 + 4 * self.count + self.iter().fold(0, |used, lexeme| entry_end(used, lexeme.text.len(), lexeme.positions().len()))
    }
}

/// Where an entry ends that begins at `used`, as PostgreSQL lays it out: positions behind a count, at even places.
fn entry_end(used: usize, text: usize, positions: usize) -> usize {
    match positions {
        0 => used + text,
        n => (used + text).next_multiple_of(2) + 2 + 2 * n,
    }
}

/// Makes a tsvector of lexemes in order.
#[derive(Default)]
pub struct TsVectorBuilder {
    ends: Vec<u32>,
    entries: Vec<u8>,
    /// Bytes as PostgreSQL holds them.
    used: usize,
}

impl TsVectorBuilder {
    /// Appends a lexeme, which must be behind all others, with positions that ascend.
    pub fn push(&mut self, text: &[u8], positions: impl IntoIterator<Item = LexemePosition>) {
        match text.len() {
            length @ 0..0x80 => self.entries.push(length as u8),
            length => self.entries.extend_from_slice(&[LONG | (length >> 8) as u8, length as u8]),
        }
        self.entries.extend_from_slice(text);
        let start = self.entries.len();
        for position in positions {
            self.entries.extend_from_slice(&position.bits().to_le_bytes());
        }
        self.used = entry_end(self.used, text.len(), (self.entries.len() - start) / 2);
        self.ends.push(self.entries.len() as u32);
    }

    /// # Errors
    /// 54000 when the vector is too long for PostgreSQL.
    pub fn finish(self) -> Result<Vec<u8>> {
        if self.used > STRING_BYTES_MAX {
            return Err(too_long(self.used));
        }
        if self.ends.is_empty() {
            return Ok(Vec::new());
        }
        limits::check_request(self.entries.len() + 4 * self.ends.len())?;
        let width = (1..4).find(|width| self.entries.len() >> (8 * width) == 0).unwrap_or(4);
        let mut out = Vec::with_capacity(1 + width * (1 + self.ends.len()) + self.entries.len());
        out.push(width as u8);
        for number in std::iter::once(self.ends.len() as u32).chain(self.ends) {
            out.extend_from_slice(&number.to_le_bytes()[..width]);
        }
        out.extend_from_slice(&self.entries);
        Ok(out)
    }
}

/// 54000: `string is too long for tsvector`.
pub fn too_long(bytes: usize) -> crate::DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "string is too long for tsvector ({bytes} bytes, max {STRING_BYTES_MAX} bytes)")
}

/// The sort key of a value, in the order of PostgreSQL's tsvector_cmp: by size, number of lexemes, and lexemes: those with positions
/// first, then by their bytes, then more and later positions first.
pub fn sort_key(bytes: &[u8], out: &mut Vec<u8>) {
    let vector = TsVector::new(bytes);
    out.extend_from_slice(&(vector.postgres_bytes() as u32).to_be_bytes());
    out.extend_from_slice(&(vector.len() as u32).to_be_bytes());
    for lexeme in vector.iter() {
        out.push(u8::from(!lexeme.has_positions()));
        out.extend_from_slice(lexeme.text);
        out.push(0);
        out.extend_from_slice(&(!(lexeme.positions().len() as u16)).to_be_bytes());
        for position in lexeme.positions() {
            out.extend_from_slice(&(!position.place()).to_be_bytes());
            out.push(!position.weight());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(lexemes: &[(&str, &[u32])]) -> Vec<u8> {
        let mut builder = TsVectorBuilder::default();
        for (text, places) in lexemes {
            builder.push(text.as_bytes(), places.iter().map(|place| LexemePosition::new(*place, 1)));
        }
        builder.finish().unwrap()
    }

    /// The bytes are on disk.
    #[test]
    fn form_of_bytes() {
        assert_eq!(vector(&[("a", &[]), ("bc", &[3, 700])]), b"\x01\x02\x02\x09\x01a\x02bc\x03\x40\xbc\x42");
        assert_eq!(vector(&[]), b"");
        let long = "x".repeat(300);
        assert_eq!(vector(&[(&long, &[])])[..7], [2, 1, 0, 46, 1, 0x81, 44]);
    }

    #[test]
    fn lexemes_are_found() {
        let texts: Vec<String> = (100..400).map(|n| format!("lexeme{n}")).collect();
        let bytes = vector(&texts.iter().map(|text| (&**text, &[1, 2][..])).collect::<Vec<_>>());
        let read = TsVector::new(&bytes);
        assert!(texts.iter().enumerate().all(|(at, text)| read.find(text.as_bytes()) == Ok(at)));
        assert_eq!(read.find(b"lexeme1000"), Err(1));
        assert_eq!(read.get(7).positions().map(|p| (p.place(), p.weight())).collect::<Vec<_>>(), [(1, 1), (2, 1)]);
    }

    #[test]
    fn damaged_bytes_have_empty_lexemes() {
        let bytes = vector(&[("a", &[]), ("bc", &[3, 700])]);
        for end in 0..bytes.len() {
            let read = TsVector::new(&bytes[..end]);
            assert!(read.iter().filter(|lexeme| !lexeme.text.is_empty()).count() < 2);
        }
    }
}
