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

    /// Makes room for the codes of as many more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.codes.reserve(rows);
    }

    /// Appends the rows of another; false, with nothing changed, when its dictionary is another.
    pub(crate) fn append(&mut self, other: &CodedStrings) -> bool {
        let is_same = Arc::ptr_eq(&self.entries, &other.entries);
        if is_same {
            self.codes.extend_from_slice(&other.codes);
        }
        is_same
    }

    /// The values one after the other.
    pub fn decode(&self) -> ColumnData {
        let mut out = ByteStrings { ends: Vec::with_capacity(self.codes.len()), bytes: Vec::new() };
        self.decode_into(&mut out);
        if self.is_text() { ColumnData::Text(out) } else { ColumnData::Bytes(out) }
    }

    /// Appends the values one after the other.
    pub(crate) fn decode_into(&self, out: &mut ByteStrings) {
        let strings = self.strings();
        out.push_parts(&strings.bytes, self.codes.iter().map(|&code| strings.range(code as usize)));
    }

    pub(crate) fn strings(&self) -> &ByteStrings {
        match &self.entries.data {
            ColumnData::Text(strings) | ColumnData::Bytes(strings) => strings,
            other => unreachable!("a dictionary of strings that is {other:?}"),
        }
    }
}

impl Column {
    /// Strings as their own dictionary, each row an entry: rows taken from it are codes, and share the strings. Other columns stay
    /// as they are.
    pub fn into_coded(self) -> Column {
        let Column { data, validity } = self;
        if !matches!(data, ColumnData::Text(_) | ColumnData::Bytes(_)) {
            return Column { data, validity };
        }
        let entries = Arc::new(Column::new(data));
        let codes = (0..entries.len() as u32).collect();
        Column { data: ColumnData::Coded(CodedStrings { entries, codes }), validity }
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

    /// The same codes with other entries.
    fn coded_as(entries: &Arc<Column>, column: &Column) -> Column {
        let ColumnData::Coded(strings) = &column.data else { panic!("a column with codes") };
        let strings = CodedStrings::new(Arc::clone(entries), strings.codes().to_vec()).unwrap();
        Column { data: ColumnData::Coded(strings), validity: column.validity.clone() }
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
        let again = coded_as(&Arc::new(texts(&[Some("red"), Some(""), Some(long.as_str())])), &coded);
        for (mut all, more) in
            [(&coded, &coded), (&plain, &coded), (&coded, &again), (&coded, &plain)].map(|(a, b)| (a.clone(), b))
        {
            all.append(more);
            all.push(Datum::text("more"));
            all.push_null();
            let mut expected = plain.clone();
            expected.append(&plain);
            expected.push(Datum::text("more"));
            expected.push_null();
            assert_eq!(shown(&all), shown(&expected));
        }
        let mut both = coded.clone();
        both.append(&coded);
        assert!(matches!(&both.data, ColumnData::Coded(v) if v.codes().len() == 10), "one dictionary stays one");
        let own = plain.clone().into_coded();
        assert!(matches!(&own.take(&[4, 3]).data, ColumnData::Coded(_)));
        assert_eq!((shown(&own), shown(&own.take(&[4, 3]))), (shown(&plain), shown(&plain.take(&[4, 3]))));
        assert!(CodedStrings::new(Arc::clone(&entries), vec![3]).is_none(), "a code beyond the entries");
        assert!(
            CodedStrings::new(Arc::new(Column::with_capacity(Kind::Int4, 0)), vec![]).is_none(),
            "entries that are no strings"
        );
    }
}
