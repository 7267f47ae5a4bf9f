//! Short keys as words: hash tables compare and hash them in one step.

use std::ops::Range;

use crate::column::{Column, ColumnData};
use crate::datum::Datum;
use crate::key::{KeyColumn, KeyType, encode, encode_at};

const WORD_BYTES: usize = size_of::<u128>();
/// Text has a byte before it and one behind it.
const TEXT_MAX: usize = WORD_BYTES - 2;
/// The length of a key that does not fit a word.
const LONG: u8 = u8::MAX;

/// The keys of some rows, as `key` encodes them, each in a word with its first byte on top and zeros behind it.
///
/// No key is the beginning of another one of the same columns, so different keys are different words.
pub struct KeyWords {
    words: Vec<u128>,
    lengths: Vec<u8>,
    buffer: Vec<u8>,
}

impl KeyWords {
    /// Keys of no columns yet.
    pub fn new(rows: usize) -> KeyWords {
        KeyWords { words: vec![0; rows], lengths: vec![0; rows], buffer: Vec::new() }
    }

    /// The key of a row, if it fits a word.
    #[inline]
    pub fn get(&self, row: usize) -> Option<u128> {
        (self.lengths[row] != LONG).then(|| self.words[row])
    }

    /// The words by row; those of keys that do not fit are arbitrary.
    pub fn words(&self) -> &[u128] {
        &self.words
    }

    /// The same, taken.
    pub fn into_words(self) -> Vec<u128> {
        self.words
    }

    /// Appends a column of the key: a value for each row.
    pub fn append_column(&mut self, column: &KeyColumn, values: &Column) {
        let is_bpchar = matches!(column.ty, KeyType::Bpchar);
        let are_texts = !column.descending && (is_bpchar || matches!(column.ty, KeyType::Plain(_)));
        match &values.data {
            ColumnData::Text(strings) if are_texts => {
                self.append_texts(column, values, &strings.bytes, strings.ranges(), is_bpchar);
            }
            ColumnData::Coded(coded) if are_texts && coded.is_text() => {
                let strings = coded.strings();
                let ranges = coded.codes().iter().map(|code| strings.range(*code as usize));
                self.append_texts(column, values, &strings.bytes, ranges, is_bpchar);
            }
            _ => (0..self.words.len()).for_each(|row| self.append_encoded(row, |out| encode_at(column, values, row, out))),
        }
    }

    /// Appends a column of the key that has the same value in each row.
    pub fn append_value(&mut self, column: &KeyColumn, value: &Datum) {
        (0..self.words.len()).for_each(|row| self.append_encoded(row, |out| encode(column, value, out)));
    }

    /// `ranges`: where in `bytes` the value of each row lies.
    fn append_texts(
        &mut self,
        column: &KeyColumn,
        values: &Column,
        bytes: &[u8],
        ranges: impl Iterator<Item = Range<usize>>,
        is_bpchar: bool,
    ) {
        for (row, range) in ranges.enumerate() {
            let start = range.start;
            let value = &bytes[range];
            if values.is_null(row) {
                self.append_encoded(row, |out| encode(column, &Datum::Null, out));
            } else {
                let length = if is_bpchar { crate::key::without_padding(value).len() } else { value.len() };
                match length {
                    0..=TEXT_MAX => self.append(row, text_word(bytes, start, length), length + 2),
                    _ => self.lengths[row] = LONG,
                }
            }
        }
    }

    fn append_encoded(&mut self, row: usize, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut part = std::mem::take(&mut self.buffer);
        part.clear();
        encode(&mut part);
        match word_of(&part) {
            Some(word) => self.append(row, word, part.len()),
            None => self.lengths[row] = LONG,
        }
        self.buffer = part;
    }

    /// Appends a part of `length` bytes, at least one, which begins on top of `part`.
    #[inline]
    fn append(&mut self, row: usize, part: u128, length: usize) {
        let at = usize::from(self.lengths[row]);
        if at + length > WORD_BYTES {
            self.lengths[row] = LONG;
            return;
        }
        self.words[row] |= part >> (8 * at);
        self.lengths[row] = (at + length) as u8;
    }
}

/// An encoded key as a word, if it fits.
#[inline]
pub fn word_of(key: &[u8]) -> Option<u128> {
    let mut word = [0; WORD_BYTES];
    word.get_mut(..key.len())?.copy_from_slice(key);
    Some(u128::from_be_bytes(word))
}

/// The key of a text of at most `TEXT_MAX` bytes that begins at `start`.
#[inline]
fn text_word(bytes: &[u8], start: usize, length: usize) -> u128 {
    let text = match bytes[start..].first_chunk::<WORD_BYTES>() {
        // A load of a known size is cheaper than one of the text's own.
        Some(wide) => u128::from_be_bytes(*wide) & !(u128::MAX >> (8 * length)),
        None => {
            let mut padded = [0; WORD_BYTES];
            padded[..length].copy_from_slice(&bytes[start..start + length]);
            u128::from_be_bytes(padded)
        }
    };
    1 << (u128::BITS - 8) | text >> 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oids::Kind;

    fn column(ty: KeyType) -> KeyColumn {
        KeyColumn { ty, descending: false, nulls_first: false }
    }

    fn texts(values: &[Option<&str>]) -> Column {
        let mut out = Column::with_capacity(Kind::Text, values.len());
        values.iter().for_each(|v| out.push(v.map_or(Datum::Null, |v| Datum::Text(v.into()))));
        out
    }

    #[test]
    fn words_are_the_keys_that_fit() {
        let first = texts(&[
            Some("A"),
            Some(""),
            None,
            Some("fourteen bytes"),
            Some("fifteen bytes !"),
            Some("twelve bytes"),
            Some("b  "),
        ]);
        let second = texts(&[Some("F "), None, Some("x"), None, Some("y"), Some(""), Some("    a long value")]);
        let mut numbers = Column::with_capacity(Kind::Int4, 7);
        (0..7).for_each(|n| numbers.push(if n == 3 { Datum::Null } else { Datum::Int4(n - 3) }));
        for first_ty in [KeyType::Plain(Kind::Text), KeyType::Bpchar] {
            for second_ty in [KeyType::Plain(Kind::Text), KeyType::Bpchar] {
                let (one, two) = (column(first_ty.clone()), column(second_ty));
                let three = column(KeyType::Plain(Kind::Int4));
                let (mut words, mut of_codes) = (KeyWords::new(7), KeyWords::new(7));
                let mut keys = vec![Vec::new(); 7];
                for (part, values) in [(&one, &first), (&two, &second), (&three, &numbers)] {
                    words.append_column(part, values);
                    of_codes.append_column(part, &values.clone().into_coded());
                    assert!((0..7).all(|row| of_codes.get(row) == words.get(row)));
                    for (row, key) in keys.iter_mut().enumerate() {
                        encode_at(part, values, row, key);
                        assert_eq!(words.get(row), word_of(key), "row {row} of {part:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_for_every_row_is_appended_to_each() {
        let part = column(KeyType::Plain(Kind::Text));
        let mut words = KeyWords::new(2);
        words.append_column(&part, &texts(&[Some("a"), Some("fourteen bytes")]));
        words.append_value(&part, &Datum::Text("b".into()));
        assert_eq!((words.get(0), words.get(1)), (Some(0x0161_0001_6200 << 80), None));
    }
}
