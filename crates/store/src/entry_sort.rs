//! Index entries in memory, to be sorted.
//!
//! Entries lie end to end in their order of arrival; only their places are sorted. They are compared eight bytes at a time as
//! numbers, from the position where the entries begin to differ: that position is found once for all comparisons, not in each.

use std::sync::Arc;

use melba_types::{Csn, RowId};

use crate::error::Result;
use crate::files::{Files, IndexRun};
use crate::key::{HEAD_BYTES, head};
use crate::output::IndexOutput;

/// Entries that agree in this many bytes are compared as a whole.
const HEADS_BYTES_MAX: usize = 32;
/// With fewer entries it does not pay to look their next bytes up.
const HEADS_ENTRIES_MIN: usize = 12;
/// The bit of `Entry::len` that says that the key may repeat.
const MAY_REPEAT: u32 = 1 << 31;

/// Entries of an index.
#[derive(Default)]
pub struct EntryPiece {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Bytes that all entries begin with.
    common: usize,
}

/// Where an entry is, and the bytes that are being compared.
#[derive(Clone, Copy)]
struct Entry {
    head: u64,
    start: u32,
    len: u32,
}

impl Entry {
    #[inline]
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..(self.len & !MAY_REPEAT) as usize]
    }

    fn may_repeat(self) -> bool {
        self.len & MAY_REPEAT != 0
    }
}

fn sort(bytes: &[u8], entries: &mut [Entry], at: usize) {
    entries.iter_mut().for_each(|entry| entry.head = head(entry.of(bytes), at));
    entries.sort_unstable_by_key(|entry| entry.head);
    let next = at + HEAD_BYTES;
    for equal in entries.chunk_by_mut(|a, b| a.head == b.head).filter(|equal| equal.len() > 1) {
        // An entry that ends within the head may only seem equal to one with zeros there.
        let go_on = next < HEADS_BYTES_MAX && equal.len() >= HEADS_ENTRIES_MIN;
        if go_on && equal.iter().all(|entry| entry.of(bytes).len() > next) {
            sort(bytes, equal, next);
        } else {
            equal.sort_unstable_by(|a, b| a.of(bytes)[at..].cmp(&b.of(bytes)[at..]));
        }
    }
}

/// Some of a piece's entries.
pub struct PiecePart<'a> {
    bytes: &'a [u8],
    entries: Vec<Entry>,
    common: usize,
}

impl PiecePart<'_> {
    pub fn sort(&mut self) {
        sort(self.bytes, &mut self.entries, self.common);
    }

    /// The entries in their order, and whether their keys may repeat.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.entries.iter().map(|entry| (entry.of(self.bytes), entry.may_repeat()))
    }
}

impl EntryPiece {
    /// Adds an entry; see `IndexBuilder::add`.
    pub fn push(&mut self, key: &[u8], row: RowId, may_repeat: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(&row.0.to_be_bytes());
        let len = (self.bytes.len() - start) as u32;
        self.common = match self.entries.first() {
            None => len as usize,
            Some(first) => {
                let (first, new) = (&first.of(&self.bytes)[..self.common], &self.bytes[start..]);
                let same = new.len() >= first.len() && new[..first.len()] == *first;
                if same { self.common } else { first.iter().zip(new).take_while(|(a, b)| a == b).count() }
            }
        };
        self.entries.push(Entry { head: 0, start: start as u32, len: len | if may_repeat { MAY_REPEAT } else { 0 } });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// The entries below the first bound, between it and the next, and so on; the bounds ascend.
    pub fn split(&mut self, bounds: &[Vec<u8>]) -> Vec<PiecePart<'_>> {
        let mut parts: Vec<Vec<Entry>> = Vec::new();
        if bounds.is_empty() {
            parts.push(std::mem::take(&mut self.entries));
        } else {
            let room = self.entries.len() / bounds.len();
            parts.resize_with(bounds.len() + 1, || Vec::with_capacity(room));
            for entry in std::mem::take(&mut self.entries) {
                let key = entry.of(&self.bytes);
                parts[bounds.partition_point(|bound| bound.as_slice() <= key)].push(entry);
            }
        }
        parts.into_iter().map(|entries| PiecePart { bytes: &self.bytes, entries, common: self.common }).collect()
    }

    /// Sorts the entries, writes them into a file, and forgets them. The file is deleted with the run.
    pub fn write_run(&mut self, files: &Arc<Files>) -> Result<Option<Arc<IndexRun>>> {
        sort(&self.bytes, &mut self.entries, self.common);
        let mut output = IndexOutput::new(files, false, usize::MAX);
        for entry in &self.entries {
            // Only the builder reads it, and it has no tombstones: the mark says that the key may repeat.
            output.push(entry.of(&self.bytes), Csn(0), entry.may_repeat())?;
        }
        self.bytes.clear();
        self.entries.clear();
        let run = output.finish()?.pop();
        run.iter().for_each(|run| run.discard());
        Ok(run)
    }

    /// Some entries, spread over all.
    pub fn sample(&self, n: usize) -> Vec<Vec<u8>> {
        let step = (self.entries.len() / n).max(1);
        self.entries.iter().step_by(step).map(|entry| entry.of(&self.bytes).to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sorted_as_the_bytes_are() {
        // Few different bytes, so that many keys agree for long, end early or continue with zeros.
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut piece = EntryPiece::default();
        let mut expected = Vec::new();
        for row in 0..5000 {
            let key: Vec<u8> = std::iter::once(1).chain((0..random(40)).map(|_| (random(8) / 7) as u8)).collect();
            piece.push(&key, RowId(row), row % 2 == 0);
            expected.push(([&key[..], &row.to_be_bytes()].concat(), row % 2 == 0));
        }
        expected.sort();
        let bounds = [expected[100].0.clone(), expected[4000].0.clone()];
        assert_eq!(piece.sample(10).len(), 10);
        let mut found = Vec::new();
        for mut part in piece.split(&bounds) {
            part.sort();
            found.extend(part.iter().map(|(entry, may_repeat)| (entry.to_vec(), may_repeat)));
        }
        assert!(found == expected);
    }
}
