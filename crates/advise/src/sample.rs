//! Neighbouring rows of a table, with the properties of its columns.

use std::borrow::Cow;

use crate::Result;

/// How PostgreSQL stores values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// `bytes` bytes at multiples of `align`.
    Fixed { bytes: usize, align: usize },
    /// Characters as they are.
    Text,
    /// Bytes; the text form is hexadecimal.
    Bytes,
    /// A tree in a separate form.
    Jsonb,
    /// Digits in groups of four.
    Numeric,
    /// Of varying width, about as long as its text.
    Other,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// As CREATE TABLE takes it.
    pub type_name: String,
    pub storage: Storage,
    pub in_primary_key: bool,
}

/// Values in text form; `None` is null.
pub type Row = Vec<Option<Box<[u8]>>>;

/// A part of a table, in shares of it.
pub type Window = std::ops::Range<f64>;

/// Calls a function with the rows of a window, in their order.
pub type Scan = dyn Fn(&Window, &mut dyn FnMut(&Row) -> Result<()>) -> Result<()>;

/// Neighbouring rows.
pub struct Sample {
    /// Of the table, as SQL has it.
    pub name: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Rows of the whole table.
    pub rows_total: f64,
    /// How many times as much the table has, at least 1: by bytes where they are known, for neighbours may be longer than others.
    pub scale: f64,
    /// Limits of the results' accuracy.
    pub notes: Vec<String>,
    /// Whether there is such a table already.
    pub exists: bool,
    /// Reads the table again.
    pub scan: Box<Scan>,
}

/// Stretches of a sample: tables differ from place to place.
pub const STRETCHES: u64 = 8;

/// Whether an item that begins at byte `at` of `total` is sampled: it lies in one of the stretches, which are equally spaced.
pub fn is_in_stretch(at: u64, total: u64, bytes_max: u64) -> Option<u64> {
    if total <= bytes_max {
        return Some(0);
    }
    let stretch = (u128::from(at) * u128::from(STRETCHES) / u128::from(total.max(1))) as u64;
    let start = (u128::from(stretch) * u128::from(total) / u128::from(STRETCHES)) as u64;
    (at - start < bytes_max / STRETCHES).then_some(stretch)
}

/// Columns whose values are shorter on average are not worth a method.
const CANDIDATE_BYTES_MIN: usize = 32;

impl Sample {
    /// Columns that a compression method is tried on.
    pub fn candidates(&self) -> Vec<usize> {
        let is_long = |at: &usize| self.raw_bytes(*at) >= (CANDIDATE_BYTES_MIN * self.rows.len().max(1)) as u64;
        let may = |storage| matches!(storage, Storage::Text | Storage::Bytes | Storage::Jsonb);
        let tried = |at: &usize| may(self.columns[*at].storage) && !self.columns[*at].in_primary_key;
        (0..self.columns.len()).filter(tried).filter(is_long).collect()
    }

    /// Bytes of the table's values, about.
    pub fn bytes_total(&self) -> f64 {
        (0..self.columns.len()).map(|at| self.raw_bytes(at) as f64).sum::<f64>() * self.scale
    }

    /// Bytes of a column's values.
    pub fn raw_bytes(&self, column: usize) -> u64 {
        let storage = self.columns[column].storage;
        self.rows.iter().filter_map(|row| row[column].as_deref()).map(|text| storage.raw_bytes(text)).sum()
    }
}

impl Storage {
    /// A value's bytes, given its text form; for types with a separate binary form the text.
    pub fn content(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Storage::Bytes { Cow::Owned(from_hexadecimal(text)) } else { Cow::Borrowed(text) }
    }

    /// Bytes of a value of varying width, without its length.
    pub fn raw_bytes(self, text: &[u8]) -> u64 {
        match self {
            Storage::Fixed { bytes, .. } => bytes as u64,
            Storage::Bytes => (text.len().saturating_sub(2) / 2) as u64,
            Storage::Numeric => {
                let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
                2 + 2 * (digits as u64).div_ceil(4)
            }
            Storage::Text | Storage::Other | Storage::Jsonb => text.len() as u64,
        }
    }
}

/// Appends a field in COPY's text format.
pub fn write_field(value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.extend_from_slice(b"\\N") };
    for &byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            _ => out.push(byte),
        }
    }
}

/// A line in COPY's text format, without its end.
pub fn read_line(line: &[u8]) -> Row {
    line.split(|b| *b == b'\t').map(read_field).collect()
}

fn read_field(field: &[u8]) -> Option<Box<[u8]>> {
    if field == b"\\N" {
        return None;
    }
    if !field.contains(&b'\\') {
        return Some(field.into());
    }
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        out.push(match escaped {
            None => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 11,
            Some(other) => *other,
        });
    }
    Some(out.into())
}

/// Bytes as bytea's text form.
pub fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut out = Vec::with_capacity(bytes.len() * 2 + 2);
    out.extend_from_slice(b"\\x");
    bytes.iter().for_each(|byte| out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
    out
}

/// The bytes of bytea's text form.
pub fn from_hexadecimal(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    text.get(2..).unwrap_or_default().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_equal_distances() {
        let taken: Vec<(u64, u64)> = (0..160).filter_map(|at| Some((is_in_stretch(at, 160, 40)?, at))).collect();
        assert_eq!(taken.len(), 40);
        assert_eq!((taken[0], taken[4], taken[5], taken[39]), ((0, 0), (0, 4), (1, 20), (7, 144)));
        assert!((0..160).all(|at| is_in_stretch(at, 160, 160) == Some(0)));
    }

    #[test]
    fn lines_of_copy_come_back() {
        let row: Row =
            vec![Some(b"a\tb\\c\nd".as_slice().into()), None, Some(b"".as_slice().into()), Some(b"\\N".as_slice().into())];
        let mut line = Vec::new();
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                line.push(b'\t');
            }
            write_field(value.as_deref(), &mut line);
        }
        assert_eq!(line, b"a\\tb\\\\c\\nd\t\\N\t\t\\\\N");
        assert_eq!(read_line(&line), row);
        assert_eq!(from_hexadecimal(&hexadecimal(&[0, 255, 16])), [0, 255, 16]);
    }
}
