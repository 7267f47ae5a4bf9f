//! Blocks of byte strings.
//!
//! ```text
//! tag u8 (3) | rows varint | validity | packed lengths | the strings' bytes end to end
//! tag u8 (6) | rows varint | validity | plain | packed lengths | the strings' bytes end to end
//! ```
//!
//! `plain` is a bitmap like validity: its unset rows hold values in stored form (docs/design/toast.md). A block of tag 3 has none.

use std::ops::Range;

use melba_types::{Bitmap, ByteStrings};

use super::packed::{self, Packed};
use super::validity::{self, Validity};
use crate::block::parse_rows;
use melba_types::bytes::{ByteReader, put_varint};

const TAG_STRINGS: u8 = 3;
const TAG_STORED: u8 = 6;

/// A parsed block.
#[derive(Debug)]
pub(crate) struct StringBlock {
    bytes: Vec<u8>,
    validity: Validity,
    /// Absent when no value is in stored form.
    plain: Option<Validity>,
    /// Where each string ends, relative to `at`.
    ends: Vec<u32>,
    /// Offset of the first string.
    at: usize,
}

/// Appends a block's content for rows `range` of a column; `plain` marks those that are not in stored form.
pub(crate) fn encode(
    values: &ByteStrings,
    validity: Option<&Bitmap>,
    plain: Option<&Bitmap>,
    range: Range<usize>,
    out: &mut Vec<u8>,
) {
    let bytes = encode_head(values, validity, plain, range, out);
    out.extend_from_slice(bytes);
}

/// The same without the strings' bytes, which follow and are returned.
pub(crate) fn encode_head<'a>(
    values: &'a ByteStrings,
    validity: Option<&Bitmap>,
    plain: Option<&Bitmap>,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> &'a [u8] {
    out.push(if plain.is_some() { TAG_STORED } else { TAG_STRINGS });
    put_varint(range.len() as u64, out);
    validity::encode(validity, range.start, range.len(), out);
    if plain.is_some() {
        validity::encode(plain, range.start, range.len(), out);
    }
    let lengths: Vec<i64> = values.lengths(range.clone()).map(|length| length as i64).collect();
    packed::encode(&lengths, out);
    let start = if range.start == 0 { 0 } else { values.ends[range.start - 1] as usize };
    let end = if range.end == 0 { 0 } else { values.ends[range.end - 1] as usize };
    &values.bytes[start..end]
}

/// The head of a block of one string of `length` bytes, which follow; `None`: null.
pub(crate) fn encode_single_head(length: Option<usize>, out: &mut Vec<u8>) {
    out.push(TAG_STRINGS);
    put_varint(1, out);
    let null = length.is_none().then(|| Bitmap::filled(1, false));
    validity::encode(null.as_ref(), 0, 1, out);
    packed::encode(&[length.unwrap_or(0) as i64], out);
}

impl StringBlock {
    pub fn parse(bytes: Vec<u8>) -> Option<StringBlock> {
        let mut reader = ByteReader::new(&bytes);
        let tag = reader.u8()?;
        if tag != TAG_STRINGS && tag != TAG_STORED {
            return None;
        }
        let rows = parse_rows(&mut reader)?;
        let validity = Validity::parse(&mut reader, rows)?;
        let plain = if tag == TAG_STORED { Some(Validity::parse(&mut reader, rows)?) } else { None };
        let lengths = Packed::parse(&mut reader)?;
        if lengths.count != rows {
            return None;
        }
        let at = reader.position();
        let total = reader.remaining() as u64;
        // A vector without bits may claim any count: each of its rows must at least be plausible before they are expanded.
        if rows > u32::MAX as usize / 8 {
            return None;
        }
        let mut ends: Vec<u32> = Vec::new();
        lengths.decode(&bytes, 0, rows, &mut ends);
        let mut end = 0u64;
        for slot in &mut ends {
            end += u64::from(*slot);
            *slot = end as u32;
        }
        (end == total).then_some(StringBlock { bytes, validity, plain, ends, at })
    }

    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4 + size_of::<StringBlock>()
    }

    /// Whether it is known that no row is null.
    pub fn is_all_valid(&self) -> bool {
        matches!(self.validity, Validity::All)
    }

    #[inline]
    pub fn is_valid(&self, i: usize) -> bool {
        self.validity.get(&self.bytes, i)
    }

    /// Whether string `i` is the value itself, not its stored form.
    #[inline]
    pub fn is_plain(&self, i: usize) -> bool {
        self.plain.as_ref().is_none_or(|plain| plain.get(&self.bytes, i))
    }

    #[inline]
    fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] as usize }
    }

    /// String `i`; empty when null.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.at + self.start(i)..self.at + self.ends[i] as usize]
    }

    /// Appends some strings, by their numbers.
    pub fn pick(&self, numbers: &[u32], out: &mut ByteStrings) {
        let part = |&i: &u32| self.start(i as usize)..self.ends[i as usize] as usize;
        out.push_parts(&self.bytes[self.at..], numbers.iter().map(part));
    }

    /// Appends the strings of `range`. False, with nothing appended, when `out` would pass 4 GB.
    #[must_use]
    pub fn decode(&self, range: Range<usize>, out: &mut ByteStrings) -> bool {
        if range.is_empty() {
            return true;
        }
        let (from, to) = (self.start(range.start), self.ends[range.end - 1] as usize);
        if out.bytes.len() + (to - from) > u32::MAX as usize {
            return false;
        }
        let shift = (out.bytes.len() as u32).wrapping_sub(from as u32);
        out.bytes.extend_from_slice(&self.bytes[self.at + from..self.at + to]);
        out.ends.extend(self.ends[range].iter().map(|end| end.wrapping_add(shift)));
        true
    }

    /// Appends the validity of `range` after `before` rows.
    pub fn decode_validity(&self, range: Range<usize>, before: usize, out: &mut Option<Bitmap>) {
        self.validity.decode(&self.bytes, range.start, range.len(), before, out);
    }

    /// Appends which of `range` are not in stored form, after `before` rows; `None` stands for all.
    pub fn decode_plain(&self, range: Range<usize>, before: usize, out: &mut Option<Bitmap>) {
        match &self.plain {
            Some(plain) => plain.decode(&self.bytes, range.start, range.len(), before, out),
            None => {
                if let Some(out) = out {
                    out.extend_filled(range.len(), true);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_nulls_come_back() {
        let mut values = ByteStrings::default();
        let mut validity = Bitmap::default();
        for i in 0..300usize {
            let valid = i % 7 != 0;
            values.push(if valid { &b"abcdefghijklmnopqrstuvwxyz"[..i % 27] } else { b"" });
            validity.push(valid);
        }
        let mut bytes = Vec::new();
        encode(&values, Some(&validity), None, 10..290, &mut bytes);
        let block = StringBlock::parse(bytes.clone()).unwrap();
        let mut out = ByteStrings::default();
        out.push(b"before");
        let mut out_validity = None;
        assert!(block.decode(5..280, &mut out));
        block.decode_validity(5..280, 1, &mut out_validity);
        for i in 5..280 {
            assert_eq!(block.get(i), values.get(i + 10));
            assert_eq!(out.get(i - 4), values.get(i + 10));
            assert_eq!(block.is_valid(i), validity.get(i + 10));
            assert_eq!(out_validity.as_ref().unwrap().get(i - 4), validity.get(i + 10));
        }
        bytes.pop();
        assert!(StringBlock::parse(bytes).is_none());
    }

    #[test]
    fn stored_forms_are_marked() {
        let mut values = ByteStrings::default();
        let mut plain = Bitmap::default();
        for i in 0..100usize {
            values.push(&[i as u8][..i % 2]);
            plain.push(i % 3 != 0);
        }
        let mut bytes = Vec::new();
        encode(&values, None, Some(&plain), 1..100, &mut bytes);
        let block = StringBlock::parse(bytes).unwrap();
        let mut out = None;
        block.decode_plain(2..99, 5, &mut out);
        let out = out.unwrap();
        for i in 2..99 {
            assert_eq!(block.is_plain(i), plain.get(i + 1));
            assert_eq!(out.get(i + 3), plain.get(i + 1));
        }
        assert!((0..5).all(|i| out.get(i)));
    }
}
