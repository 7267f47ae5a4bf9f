//! A whole row as bytes, in write sets, the row store and WAL records.
//!
//! ```text
//! u16 columns | null bitmap (1: null) | fixed-width values | u32 end of each varying value | varying values
//! ```
//!
//! The highest bit of an end says that the value is in stored form (docs/design/toast.md), so a row holds less than 2 GB.
//!
//! A null occupies its fixed slot (zeros) or an empty varying value, so every column is found without reading the ones before it.
//! Rows written before ALTER TABLE ADD COLUMN have fewer columns than the layout: `RowView::get` returns `Field::Absent` for
//! those.

use std::sync::Arc;

use crate::codec;
use crate::column::Column;
use crate::datum::Datum;
use crate::oids::Kind;
use crate::shared;

/// A varying value and its end, for which room is made.
const VARYING_BYTES_TYPICAL: usize = 32;
/// The bit of a varying value's end that marks the stored form.
const STORED: u32 = 1 << 31;

/// Where each column of a table lies within an encoded row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLayout {
    kinds: Vec<Kind>,
    /// For column i: bytes of fixed values before it, and varying values before it.
    before: Vec<(u32, u32)>,
}

/// A column of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// The row is older than the column: the catalog's missing value applies.
    Absent,
    Null,
    /// In storage format.
    Value(&'a [u8]),
    /// Compressed, or a pointer: the content of `Datum::Stored`.
    Stored(&'a [u8]),
}

impl RowLayout {
    pub fn new(kinds: Vec<Kind>) -> RowLayout {
        let mut before = Vec::with_capacity(kinds.len() + 1);
        let (mut fixed, mut varying) = (0, 0);
        for kind in &kinds {
            before.push((fixed, varying));
            match kind.width() {
                Some(width) => fixed += width as u32,
                None => varying += 1,
            }
        }
        before.push((fixed, varying));
        RowLayout { kinds, before }
    }

    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Appends the encoding of one row; `values` yields a datum a column of the layout.
    pub fn encode<'d>(&self, values: impl ExactSizeIterator<Item = &'d Datum> + Clone, out: &mut Vec<u8>) {
        let columns = values.len();
        debug_assert!(columns <= self.kinds.len());
        let (fixed, varying) = self.before[columns];
        out.reserve(2 + columns.div_ceil(8) + fixed as usize + varying as usize * VARYING_BYTES_TYPICAL);
        out.extend_from_slice(&(columns as u16).to_le_bytes());
        let bitmap_at = out.len();
        out.resize(bitmap_at + columns.div_ceil(8), 0);
        for (i, (datum, kind)) in values.clone().zip(&self.kinds).enumerate() {
            if datum.is_null() {
                out[bitmap_at + i / 8] |= 1 << (i % 8);
            }
            if let Some(width) = kind.width() {
                if datum.is_null() {
                    out.resize(out.len() + width, 0);
                } else {
                    codec::encode(datum, out);
                }
            }
        }
        let mut end_at = out.len();
        out.resize(end_at + varying as usize * 4, 0);
        let start = out.len();
        for (datum, kind) in values.zip(&self.kinds) {
            if kind.width().is_none() {
                if !datum.is_null() {
                    codec::encode(datum, out);
                }
                assert!(out.len() - start < STORED as usize, "a row of more than 2 GB");
                let stored = if matches!(datum, Datum::Stored(_)) { STORED } else { 0 };
                let end = (out.len() - start) as u32 | stored;
                out[end_at..end_at + 4].copy_from_slice(&end.to_le_bytes());
                end_at += 4;
            }
        }
    }

    /// The row of a single value of varying width, given in storage format, in parts.
    pub fn encode_bytes(&self, parts: &[&[u8]]) -> Arc<[u8]> {
        debug_assert!(self.kinds.len() == 1 && self.kinds[0].width().is_none());
        let length: usize = parts.iter().map(|part| part.len()).sum();
        assert!(length < STORED as usize, "a row of more than 2 GB");
        let [a, b, c, d] = (length as u32).to_le_bytes();
        // One column, which is not null, and where it ends.
        let head = [1, 0, 0, a, b, c, d];
        shared::concat(std::iter::once(&head[..]).chain(parts.iter().copied()))
    }

    pub fn encode_row(&self, values: &[Datum]) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 + values.len() * 9);
        self.encode(values.iter(), &mut out);
        out
    }

    /// A reader of one encoded row; `None` when the bytes are not one.
    pub fn view<'a>(&'a self, row: &'a [u8]) -> Option<RowView<'a>> {
        let columns = u16::from_le_bytes(row.get(0..2)?.try_into().ok()?) as usize;
        let (fixed, varying) = *self.before.get(columns)?;
        let fixed_at = 2 + columns.div_ceil(8);
        let ends_at = fixed_at + fixed as usize;
        let values_at = ends_at + varying as usize * 4;
        if row.len() < values_at {
            return None;
        }
        Some(RowView { layout: self, row, columns, fixed_at, ends_at, values_at })
    }
}

/// A row being read.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    row: &'a [u8],
    columns: usize,
    fixed_at: usize,
    ends_at: usize,
    values_at: usize,
}

impl<'a> RowView<'a> {
    /// Columns the row was written with.
    pub fn columns(&self) -> usize {
        self.columns
    }

    #[inline]
    pub fn get(&self, column: usize) -> Field<'a> {
        if column >= self.columns {
            return Field::Absent;
        }
        if self.row[2 + column / 8] >> (column % 8) & 1 != 0 {
            return Field::Null;
        }
        let (fixed, varying) = self.layout.before[column];
        match self.layout.kinds[column].width() {
            Some(width) => {
                let at = self.fixed_at + fixed as usize;
                Field::Value(&self.row[at..at + width])
            }
            None => {
                let end = |i: usize| {
                    let at = self.ends_at + i * 4;
                    u32::from_le_bytes([self.row[at], self.row[at + 1], self.row[at + 2], self.row[at + 3]])
                };
                let start = if varying == 0 { 0 } else { end(varying as usize - 1) & !STORED };
                let marked = end(varying as usize);
                let end = (marked & !STORED) as usize;
                match self.row.get(self.values_at + start as usize..self.values_at + end) {
                    Some(value) if marked & STORED != 0 => Field::Stored(value),
                    Some(value) => Field::Value(value),
                    // A damaged row: its checksum was verified, so this is ours to report as null rather than to crash on.
                    None => Field::Null,
                }
            }
        }
    }

    /// The datum of a column; `missing` is the value of columns added after the row was written.
    pub fn datum(&self, column: usize, missing: &Datum) -> Datum {
        match self.get(column) {
            Field::Absent => missing.clone(),
            Field::Null => Datum::Null,
            Field::Value(bytes) => codec::decode(self.layout.kinds[column], bytes).unwrap_or(Datum::Null),
            Field::Stored(bytes) => Datum::Stored(bytes.into()),
        }
    }

    /// Appends a column's value to a vector of its kind.
    pub fn push_to(&self, column: usize, missing: &Datum, out: &mut Column) {
        match self.get(column) {
            Field::Absent => out.push(missing.clone()),
            Field::Null => out.push_null(),
            Field::Stored(bytes) => out.push(Datum::Stored(bytes.into())),
            Field::Value(bytes) => {
                if !out.push_encoded(self.layout.kinds[column], bytes) {
                    out.push_null();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_written_and_absent_columns_are_missing() {
        let layout = RowLayout::new(vec![Kind::Int4, Kind::Text, Kind::Bool, Kind::Bytes, Kind::Int8]);
        let values = [Datum::Int4(7), Datum::text("melba"), Datum::Null, Datum::bytes(&b"xy"[..])];
        let row = layout.encode_row(&values);
        let view = layout.view(&row).expect("just written");
        for (i, v) in values.iter().enumerate() {
            assert_eq!(format!("{:?}", view.datum(i, &Datum::Null)), format!("{v:?}"));
        }
        assert_eq!(view.get(4), Field::Absent);
        assert_eq!(view.datum(4, &Datum::Int8(1)).as_i64(), 1);
        assert!(layout.view(&row[..6]).is_none());
    }

    #[test]
    fn stored_forms_are_told_from_values() {
        let layout = RowLayout::new(vec![Kind::Text, Kind::Text, Kind::Bytes]);
        let row = layout.encode_row(&[Datum::Stored(b"abc"[..].into()), Datum::text("de"), Datum::Stored(b""[..].into())]);
        let view = layout.view(&row).expect("just written");
        assert_eq!(view.get(0), Field::Stored(b"abc"));
        assert_eq!(view.get(1), Field::Value(b"de"));
        assert_eq!(view.get(2), Field::Stored(b""));
        let mut column = Column::with_capacity(Kind::Text, 2);
        view.push_to(1, &Datum::Null, &mut column);
        view.push_to(0, &Datum::Null, &mut column);
        column.push_null();
        assert!(column.is_stored());
        assert_eq!(column.get(0).as_str(), "de");
        assert!(matches!(column.get(1), Datum::Stored(b) if &*b == b"abc"));
        assert!(column.is_null(2));
    }
}
