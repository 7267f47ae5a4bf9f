//! Byte strings end to end.

use std::ops::Range;

/// Room made at once for strings not seen yet: the first one may be longer than all others.
const RESERVED_BYTES_MAX: usize = 256 << 10;

/// Varying-width values end to end; value `i` is `bytes[ends[i-1]..ends[i]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByteStrings {
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

impl ByteStrings {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.range(i)]
    }

    /// Where in `bytes` value `i` lies.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        start..self.ends[i] as usize
    }

    /// Where in `bytes` each value lies.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.ends.iter().scan(0, |start, &end| Some(std::mem::replace(start, end as usize)..end as usize))
    }

    /// Appends all of another.
    pub fn append(&mut self, other: &ByteStrings) {
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + base));
    }

    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How many bytes each string of a range has.
    pub fn lengths(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let start = if range.start == 0 { 0 } else { self.ends[range.start - 1] };
        self.ends[range].iter().scan(start, |start, &end| Some((end - std::mem::replace(start, end)) as usize))
    }

    /// Appends parts of `source` as values; how many.
    pub fn push_parts(&mut self, source: &[u8], parts: impl Iterator<Item = Range<usize>>) -> usize {
        self.push_parts_of(parts.map(|part| (source, part)))
    }

    /// Appends parts of any sources as values; returns how many. Short ones are copied without a call, always sixteen bytes.
    pub fn push_parts_of<'a>(&mut self, parts: impl Iterator<Item = (&'a [u8], Range<usize>)>) -> usize {
        const WIDE: usize = 16;
        const GROWTH_BYTES_MAX: usize = 64 << 10;
        let (mut at, before) = (self.bytes.len(), self.ends.len());
        for (source, Range { start, end }) in parts {
            let length = end - start;
            if self.bytes.len() < at + length + WIDE {
                self.bytes.resize(at + length + WIDE + at.min(GROWTH_BYTES_MAX), 0);
            }
            match source.get(start..start + WIDE) {
                Some(wide) if length <= WIDE => self.bytes[at..at + WIDE].copy_from_slice(wide),
                _ => self.bytes[at..at + length].copy_from_slice(&source[start..end]),
            }
            at += length;
            self.ends.push(at as u32);
        }
        self.bytes.truncate(at);
        self.ends.len() - before
    }

    /// Strings picked from several lists: `picks` are (which list, which string of it). `None` when one of these lists is not there.
    pub fn gather<'a>(lists: impl Fn(u32) -> Option<&'a ByteStrings>, picks: &[(u32, u32)]) -> Option<ByteStrings> {
        /// This many are prefetched before they are copied.
        const AHEAD: usize = 64;
        let mut out = ByteStrings { ends: Vec::with_capacity(picks.len()), bytes: Vec::new() };
        let mut found: Vec<(&[u8], Range<usize>)> = Vec::with_capacity(AHEAD);
        for (i, some) in picks.chunks(AHEAD).enumerate() {
            found.clear();
            for &(list, string) in some {
                let strings = lists(list)?;
                found.push((&strings.bytes, strings.range(string as usize)));
            }
            // One read after the other, none of which waits for another; copying would wait for each string.
            let first = |(bytes, range): &(&[u8], Range<usize>)| bytes.get(range.start).copied().unwrap_or(0);
            std::hint::black_box(found.iter().fold(0, |all, string| all ^ first(string)));
            out.push_parts_of(found.drain(..));
            if i == 0 {
                out.bytes.reserve((out.bytes.len() / some.len()).saturating_mul(picks.len()).min(RESERVED_BYTES_MAX));
            }
        }
        Some(out)
    }

    /// Reserves capacity for `rows` more strings of about the length of the first one.
    pub fn reserve_like_first(&mut self, rows: usize) {
        let first = self.ends.first().map_or(0, |end| *end as usize);
        self.bytes.reserve((first + first / 8).saturating_mul(rows).min(RESERVED_BYTES_MAX));
    }

    /// Appends rows `from..to` of others.
    pub fn extend(&mut self, others: &ByteStrings, from: usize, to: usize) {
        let start = if from == 0 { 0 } else { others.ends[from - 1] };
        let end = if to == 0 { 0 } else { others.ends[to - 1] };
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&others.bytes[start as usize..end as usize]);
        self.ends.extend(others.ends[from..to].iter().map(|e| e - start + base));
    }

    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_length_are_pushed() {
        let source: Vec<u8> = (0..100).collect();
        let parts = [0..0, 0..16, 1..18, 5..6, 90..100, 99..100, 100..100, 0..100];
        let (mut strings, mut expected) = (ByteStrings::default(), ByteStrings::default());
        for _ in 0..100 {
            assert_eq!(strings.push_parts(&source, parts.iter().cloned()), parts.len());
            parts.iter().for_each(|part| expected.push(&source[part.clone()]));
        }
        assert!(strings == expected);
    }
}
