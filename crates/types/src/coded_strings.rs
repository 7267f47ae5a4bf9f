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
    /// `None` when the entries are no strings, or a code is none of them.
    pub fn new(entries: Arc<Column>, codes: Vec<u32>) -> Option<CodedStrings> {
        let are_strings = matches!(entries.data, ColumnData::Text(_) | ColumnData::Bytes(_));
        (are_strings && codes.iter().all(|code| (*code as usize) < entries.len())).then_some(CodedStrings { entries, codes })
    }

    /// What the codes stand for.
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
