//! Strings as places in a dictionary.

use std::sync::Arc;

use crate::byte_strings::ByteStrings;
use crate::column::{Column, ColumnData};

/// Values of a column of strings by their codes: value `i` is row `codes[i]` of the entries.
///
/// Invariant: the entries are `ColumnData::Text` or `ColumnData::Bytes`, none of them is NULL, and every code is one of them.
#[derive(Clone, Debug)]
pub struct CodedStrings {
    entries: Arc<Column>,
    codes: Vec<u32>,
}

impl CodedStrings {
    /// `None` when the entries are no strings, or a code is out of range.
    pub fn new(entries: Arc<Column>, codes: Vec<u32>) -> Option<CodedStrings> {
        let are_strings = matches!(entries.data, ColumnData::Text(_) | ColumnData::Bytes(_));
        (are_strings && codes.iter().all(|code| (*code as usize) < entries.len())).then_some(CodedStrings { entries, codes })
    }

    /// The values of the codes.
    pub fn entries(&self) -> &Arc<Column> {
        &self.entries
    }

    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    pub fn is_text(&self) -> bool {
        matches!(self.entries.data, ColumnData::Text(_))
    }

    pub fn get(&self, i: usize) -> &[u8] {
        self.strings().get(self.codes[i] as usize)
    }

    /// The values at some rows.
    pub fn take(&self, indices: &[u32]) -> CodedStrings {
        let codes = indices.iter().map(|&i| self.codes[i as usize]).collect();
        CodedStrings { entries: Arc::clone(&self.entries), codes }
    }

    pub fn slice(&self, rows: std::ops::Range<usize>) -> CodedStrings {
        CodedStrings { entries: Arc::clone(&self.entries), codes: self.codes[rows].to_vec() }
    }

    pub fn truncate(&mut self, rows: usize) {
        self.codes.truncate(rows);
    }

    pub fn memory_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<u32>()
    }

    /// The values one after the other.
    pub fn decode(&self) -> ColumnData {
        let strings = self.strings();
        let mut out = ByteStrings { ends: Vec::with_capacity(self.codes.len()), bytes: Vec::new() };
        out.push_parts(&strings.bytes, self.codes.iter().map(|&code| strings.range(code as usize)));
        if self.is_text() { ColumnData::Text(out) } else { ColumnData::Bytes(out) }
    }

    fn strings(&self) -> &ByteStrings {
        match &self.entries.data {
            ColumnData::Text(strings) | ColumnData::Bytes(strings) => strings,
            other => unreachable!("a dictionary of strings that is {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitmap::Bitmap;
    use crate::datum::Datum;
    use crate::oids::Kind;

    fn texts(values: &[Option<&str>]) -> Column {
        let mut out = Column::with_capacity(Kind::Text, values.len());
        values.iter().for_each(|value| out.push(value.map_or(Datum::Null, Datum::text)));
        out
    }

    fn shown(column: &Column) -> Vec<String> {
        (0..column.len()).map(|i| format!("{:?}", column.get(i))).collect()
    }

    #[test]
    fn a_coded_column_is_the_column_of_its_values() {
        let entries = Arc::new(texts(&[Some("red"), Some(""), Some("a string longer than sixteen bytes")]));
        let mut validity = Bitmap::filled(5, true);
        validity.set(3, false);
        let strings = CodedStrings::new(Arc::clone(&entries), vec![2, 0, 1, 0, 2]).unwrap();
        let coded = Column { data: ColumnData::Coded(strings), validity: Some(validity) };
        let long = entries.get(2);
        let plain = texts(&[Some(long.as_str()), Some("red"), Some(""), None, Some(long.as_str())]);
        assert_eq!(shown(&coded), shown(&plain));
        assert_eq!(shown(&coded.take(&[4, 3, 1])), shown(&plain.take(&[4, 3, 1])));
        assert_eq!(shown(&coded.slice(1..4)), shown(&plain.slice(1..4)));
        assert_eq!(shown(&coded.take_or_null(&[Some(1), None])), shown(&plain.take_or_null(&[Some(1), None])));
        let picks = [(0, 1), (1, 3), (0, 4)];
        assert_eq!(shown(&Column::gather(&[&coded, &plain], &picks)), shown(&Column::gather(&[&plain, &plain], &picks)));
        for mut all in [coded.clone(), plain.clone()] {
            all.append(&coded);
            all.push(Datum::text("more"));
            all.push_null();
            let mut expected = plain.clone();
            expected.append(&plain);
            expected.push(Datum::text("more"));
            expected.push_null();
            assert_eq!(shown(&all), shown(&expected));
        }
        assert!(CodedStrings::new(Arc::clone(&entries), vec![3]).is_none(), "a code beyond the entries");
        assert!(
            CodedStrings::new(Arc::new(Column::with_capacity(Kind::Int4, 0)), vec![]).is_none(),
            "entries that are no strings"
        );
    }
}
