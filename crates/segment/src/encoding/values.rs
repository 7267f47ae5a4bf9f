//! Where encodings put the values that they read.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Bitmap, ByteStrings, Column, ColumnData, Datum, Kind, Mantissas, Numeric};

use crate::layout::packed::Word;
use crate::layout::words::WordBlock;

/// Whether values of `kind` are kept as 64-bit words; the others are byte strings in storage format.
pub(crate) fn is_word(kind: Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Oid | Kind::Char)
}

/// A vector of words as its column's type has them. A call is for many of them.
pub(crate) trait WordSink {
    fn len(&self) -> usize;
    /// Appends `n` times the same word.
    fn fill(&mut self, word: i64, n: usize);
    /// Appends rows of a block.
    fn decode(&mut self, block: &WordBlock, rows: Range<usize>);
    /// Appends the entries with these numbers.
    fn look_up(&mut self, entries: &[i64], codes: &[u32]);
    /// The same of entries that were not decoded.
    fn pick(&mut self, entries: &WordBlock, codes: &[u32]);
}

impl<T: Word> WordSink for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn fill(&mut self, word: i64, n: usize) {
        self.resize(Vec::len(self) + n, T::from_word(word));
    }

    fn decode(&mut self, block: &WordBlock, rows: Range<usize>) {
        block.decode(rows, self);
    }

    fn look_up(&mut self, entries: &[i64], codes: &[u32]) {
        self.extend(codes.iter().map(|&code| T::from_word(entries[code as usize])));
    }

    fn pick(&mut self, entries: &WordBlock, codes: &[u32]) {
        self.extend(codes.iter().map(|&code| T::from_word(entries.get(code as usize))));
    }
}

/// Words of some rows.
pub(crate) struct WordsOut<'a> {
    pub words: &'a mut dyn WordSink,
    /// Absent as long as nothing is null.
    pub validity: &'a mut Option<Bitmap>,
}

impl WordsOut<'_> {
    /// Appends rows of a block, nulls included.
    pub fn decode(&mut self, block: &WordBlock, rows: Range<usize>) {
        block.decode_validity(rows.clone(), self.words.len(), self.validity);
        self.words.decode(block, rows);
    }
}

/// Byte strings of some rows.
#[derive(Default)]
pub(crate) struct StringsOut {
    pub values: ByteStrings,
    /// Absent as long as nothing is null.
    pub validity: Option<Bitmap>,
    /// Unset where a value is in stored form; absent as long as none is.
    pub plain: Option<Bitmap>,
}

impl StringsOut {
    /// The next `rows` values are not null, nor in stored form.
    pub fn extend_valid(&mut self, rows: usize) {
        self.validity.iter_mut().for_each(|validity| validity.extend_filled(rows, true));
        self.plain.iter_mut().for_each(|plain| plain.extend_filled(rows, true));
    }

    /// Appends a value, and whether it is not in stored form; `None`: null.
    pub fn push(&mut self, value: Option<(&[u8], bool)>) {
        let (bytes, is_plain) = value.unwrap_or((&[], true));
        if value.is_none() {
            self.validity.get_or_insert_with(|| Bitmap::filled(self.values.len(), true));
        }
        if !is_plain {
            self.plain.get_or_insert_with(|| Bitmap::filled(self.values.len(), true));
        }
        self.validity.iter_mut().for_each(|validity| validity.push(value.is_some()));
        self.plain.iter_mut().for_each(|plain| plain.push(is_plain));
        self.values.push(bytes);
    }
}

/// Single values, appended to a column.
pub(crate) struct ValueOut<'a> {
    pub column: &'a mut Column,
    pub kind: Kind,
    /// Of numerics that are kept as words.
    pub scale: Option<u16>,
}

impl ValueOut<'_> {
    #[inline]
    pub fn push_null(&mut self) {
        self.column.push_null();
    }

    #[inline]
    pub fn push_word(&mut self, word: i64) {
        match self.scale {
            Some(scale) => self.column.push(Datum::Numeric(Numeric::from_parts(i128::from(word), scale))),
            None => push_word(self.column, word),
        }
    }

    /// Appends a value in storage format; false when it is none of the kind.
    #[must_use]
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        self.column.push_encoded(self.kind, bytes)
    }

    /// The same of a value that may be in stored form.
    #[must_use]
    #[inline]
    pub fn push_plain_or_stored(&mut self, bytes: &[u8], is_plain: bool) -> bool {
        if !is_plain {
            self.column.push(Datum::Stored(bytes.into()));
        }
        !is_plain || self.push_bytes(bytes)
    }
}

/// Rows of a column as places in its dictionary, or among the integers between its bounds.
pub struct Coded {
    /// The same for all rows of a row group, and none of them NULL. Not every one need be a row's.
    pub entries: Arc<Column>,
    pub codes: Vec<u32>,
    /// Codes of NULLs are arbitrary.
    pub validity: Option<Bitmap>,
}

/// A column for values of a chunk.
pub(crate) fn empty_column(kind: Kind, scale: Option<u16>, rows: usize) -> Column {
    match scale.and_then(|scale| Mantissas::new(Vec::with_capacity(rows), scale)) {
        Some(words) => Column::new(ColumnData::Numeric(words)),
        None => Column::with_capacity(kind, rows),
    }
}

/// Appends words to a column; false for one that does not hold words.
pub(crate) fn push_words(data: &mut ColumnData, words: impl Iterator<Item = i64>) -> bool {
    fn push<T: Word>(out: &mut Vec<T>, words: impl Iterator<Item = i64>) -> bool {
        out.extend(words.map(T::from_word));
        true
    }
    match data {
        ColumnData::Bool(out) => push(out, words),
        ColumnData::Int2(out) => push(out, words),
        ColumnData::Int4(out) => push(out, words),
        ColumnData::Int8(out) => push(out, words),
        ColumnData::Oid(out) => push(out, words),
        ColumnData::Float4(out) => push(out, words),
        ColumnData::Float8(out) => push(out, words),
        ColumnData::Numeric(out) => push(&mut out.values, words),
        ColumnData::Text(_) | ColumnData::Bytes(_) | ColumnData::Coded(_) | ColumnData::Datum(_) | ColumnData::Stored(_) => false,
    }
}

/// Appends a word to a column of a word kind.
#[inline]
fn push_word(out: &mut Column, word: i64) {
    let before = out.len();
    match &mut out.data {
        ColumnData::Bool(v) => v.push(Word::from_word(word)),
        ColumnData::Int2(v) => v.push(Word::from_word(word)),
        ColumnData::Int4(v) => v.push(Word::from_word(word)),
        ColumnData::Int8(v) => v.push(Word::from_word(word)),
        ColumnData::Float4(v) => v.push(Word::from_word(word)),
        ColumnData::Float8(v) => v.push(Word::from_word(word)),
        ColumnData::Oid(v) => v.push(Word::from_word(word)),
        ColumnData::Datum(v) => v.push(Datum::Char(word as u8)),
        ColumnData::Text(_) | ColumnData::Bytes(_) | ColumnData::Coded(_) | ColumnData::Numeric(_) | ColumnData::Stored(_) => {
            panic!("a word for a column of other values")
        }
    }
    if let Some(validity) = &mut out.validity {
        debug_assert_eq!(validity.len(), before);
        validity.push(true);
    }
}
