//! tsvector: input and output.

use melba_fmgr::type_io::{received, send_text};
use melba_fmgr::{TypeContext, TypeIo};
use melba_types::tsvector::{
    LEXEME_BYTES_MAX, LexemePosition, PLACE_MAX, POSITIONS_MAX, STRING_BYTES_MAX, TsVector, TsVectorBuilder, too_long,
};
use melba_types::{Datum, DbError, Oid, Result, bail, oids, sort_by};

use crate::words::{Of, Words, weight_letter};

pub const TYPES: &[(Oid, TypeIo)] =
    &[(oids::TSVECTOR, TypeIo { input: |_, text| input(text), output: |_, value, out| output(value, out), receive, send })];

/// A vector of a datum.
pub fn vector(datum: &Datum) -> TsVector<'_> {
    TsVector::new(datum.as_bytes())
}

/// A datum of a vector.
///
/// # Errors
/// 54000 when the vector is too long.
pub fn finish(builder: TsVectorBuilder) -> Result<Datum> {
    builder.finish().map(Datum::bytes)
}

fn input(text: &str) -> Result<Datum> {
    let mut words = Words::new(text, Of::Vector);
    let mut found: Vec<(String, Vec<LexemePosition>)> = Vec::new();
    let mut bytes = 0;
    while let Some(word) = words.next()? {
        check_word(word.text.len())?;
        if bytes > STRING_BYTES_MAX {
            return Err(too_long(bytes));
        }
        bytes += word.text.len();
        found.push((word.text, word.positions));
    }
    build(found)
}

/// 54000 for a word that no vector may have.
pub fn check_word(bytes: usize) -> Result<()> {
    if bytes >= LEXEME_BYTES_MAX {
        bail!(PROGRAM_LIMIT_EXCEEDED, "word is too long ({bytes} bytes, max {} bytes)", LEXEME_BYTES_MAX - 1);
    }
    Ok(())
}

/// A vector of lexemes in any order, which may repeat.
pub fn build(mut lexemes: Vec<(String, Vec<LexemePosition>)>) -> Result<Datum> {
    sort_by(&mut lexemes, |a, b| a.0.as_bytes().cmp(b.0.as_bytes()))?;
    let mut builder = TsVectorBuilder::default();
    for same in lexemes.chunk_by_mut(|a, b| a.0 == b.0) {
        let mut positions: Vec<LexemePosition> = same.iter_mut().flat_map(|lexeme| std::mem::take(&mut lexeme.1)).collect();
        distinct(&mut positions);
        builder.push(same[0].0.as_bytes(), positions);
    }
    finish(builder)
}

/// Puts positions in order, each once, with the highest of its weights.
fn distinct(positions: &mut Vec<LexemePosition>) {
    positions.sort_by_key(|position| (position.place(), std::cmp::Reverse(position.weight())));
    positions.dedup_by_key(|position| position.place());
    positions.truncate(POSITIONS_MAX);
}

/// Whether a lexeme with these positions takes no more of them.
pub fn is_full(positions: &[LexemePosition]) -> bool {
    positions.len() >= POSITIONS_MAX || positions.last().is_some_and(|last| last.place() == PLACE_MAX)
}

/// Appends a lexeme in quotes.
pub fn put_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in text.bytes() {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

fn output(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    for (at, lexeme) in vector(value).iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        put_quoted(lexeme.str(), out);
        for (n, position) in lexeme.positions().enumerate() {
            out.push(if n == 0 { b':' } else { b',' });
            out.extend_from_slice(position.place().to_string().as_bytes());
            if position.weight() > 0 {
                out.push(weight_letter(position.weight()) as u8);
            }
        }
    }
    Ok(())
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let vector = vector(value);
    out.extend_from_slice(&(vector.len() as u32).to_be_bytes());
    for lexeme in vector.iter() {
        send_text(context, lexeme.str(), out)?;
        out.push(0);
        out.extend_from_slice(&(lexeme.positions().len() as u16).to_be_bytes());
        for position in lexeme.positions() {
            out.extend_from_slice(&position.bits().to_be_bytes());
        }
    }
    Ok(())
}

/// A reader of binary values.
pub struct Message<'a>(pub &'a [u8]);

impl<'a> Message<'a> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((bytes, rest)) = self.0.split_first_chunk::<N>() else {
            bail!(PROTOCOL_VIOLATION, "insufficient data left in message");
        };
        self.0 = rest;
        Ok(*bytes)
    }

    /// Bytes up to a zero.
    pub fn string(&mut self) -> Result<&'a [u8]> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            bail!(PROTOCOL_VIOLATION, "invalid string in message");
        };
        let (string, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Ok(string)
    }

    pub fn end(&self) -> Result<()> {
        if !self.0.is_empty() {
            bail!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format");
        }
        Ok(())
    }
}

fn receive(context: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let mut message = Message(bytes);
    let count = u32::from_be_bytes(message.take()?);
    if count as usize > STRING_BYTES_MAX {
        return Err(DbError::internal("invalid size of tsvector"));
    }
    let mut lexemes: Vec<(String, Vec<LexemePosition>)> = Vec::new();
    for _ in 0..count {
        let text = received(context, message.string()?)?.into_owned();
        let positions = u16::from_be_bytes(message.take()?);
        if text.is_empty() {
            return Err(DbError::internal("invalid tsvector: empty lexeme"));
        }
        if text.len() > LEXEME_BYTES_MAX {
            return Err(DbError::internal("invalid tsvector: lexeme too long"));
        }
        if usize::from(positions) > POSITIONS_MAX {
            return Err(DbError::internal("unexpected number of tsvector positions"));
        }
        let positions = (0..positions).map(|_| Ok(LexemePosition::from_bits(u16::from_be_bytes(message.take()?))));
        let positions = positions.collect::<Result<Vec<_>>>()?;
        if !positions.is_sorted_by(|a, b| a.place() < b.place()) {
            return Err(DbError::internal("position information is misordered"));
        }
        lexemes.push((text, positions));
    }
    message.end()?;
    // A lexeme that repeats would be no tsvector: PostgreSQL would keep both.
    build(lexemes)
}
