//! Numerics of a row group, collected as words for as long as all of them are mantissas of one scale.

use melba_types::{Bitmap, ByteStrings, Column, ColumnData, Datum, Numeric, codec};

/// Words of a column; 0 where it is null.
#[derive(Default)]
pub(super) struct MantissaBuffer {
    pub words: Vec<i64>,
    /// Unknown as long as all rows are null.
    pub scale: Option<u16>,
}

impl MantissaBuffer {
    /// Appends rows `from..to` of a column; false, with nothing appended, when one of them is of another scale or no word.
    pub fn append(&mut self, column: &Column, from: usize, to: usize) -> bool {
        let (before, scale) = (self.words.len(), self.scale);
        let taken = match &column.data {
            ColumnData::Numeric(v) if self.scale.is_none_or(|scale| scale == v.scale) => {
                self.scale = Some(v.scale);
                self.words.extend((from..to).map(|i| if column.is_null(i) { 0 } else { v.values[i] }));
                true
            }
            ColumnData::Datum(values) => (from..to).all(|i| column.is_null(i) && self.push_null() || self.push(&values[i])),
            _ => false,
        };
        if !taken {
            self.words.truncate(before);
            self.scale = scale;
        }
        taken
    }

    fn push_null(&mut self) -> bool {
        self.words.push(0);
        true
    }

    fn push(&mut self, value: &Datum) -> bool {
        let Datum::Numeric(value) = value else { return false };
        let Some((mantissa, scale)) = value.small_parts() else { return false };
        if *self.scale.get_or_insert(scale) != scale {
            return false;
        }
        self.words.push(mantissa);
        true
    }

    /// A row's value.
    fn value(&self, word: i64) -> Datum {
        Datum::Numeric(Numeric::from_parts(i128::from(word), self.scale.unwrap_or(0)))
    }

    /// Least and greatest of the values; `None` when all are null.
    pub fn extremes(&self, validity: Option<&Bitmap>) -> Option<(Datum, Datum)> {
        let valid = |&(i, _): &(usize, i64)| validity.is_none_or(|v| v.get(i));
        let words = self.words.iter().copied().enumerate().filter(valid).map(|(_, word)| word);
        let (min, max) = words.fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(word), max.max(word)));
        (min <= max).then(|| (self.value(min), self.value(max)))
    }

    /// The values in storage format, and nothing for those that are null.
    pub fn to_strings(&self, validity: Option<&Bitmap>) -> ByteStrings {
        let mut out = ByteStrings::default();
        for (i, word) in self.words.iter().enumerate() {
            if validity.is_none_or(|v| v.get(i)) {
                codec::encode(&self.value(*word), &mut out.bytes);
            }
            out.ends.push(out.bytes.len() as u32);
        }
        out
    }
}
