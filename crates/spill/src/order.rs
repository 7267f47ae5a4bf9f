//! The order of keys in memory.
//!
//! Up to `QUICKSORT_ROWS_MAX` rows, and groups, are sorted as PostgreSQL would (`quicksort`). More rows are split by their keys
//! into parts that fit a processor's cache, and each part is sorted alone: several threads take parts, and a statement is
//! cancelled between two. One word per key is compared (`packing`); the keys themselves are compared only where words are equal.

use std::cmp::Ordering;
use std::ops::Range;

use melba_types::merge_heap::head;
use melba_types::{ByteStrings, Result, limits};

use super::packing::{Packing, Span};
use super::quicksort::quicksort;

/// More rows than these have no order among equal keys that users would know from PostgreSQL, which would sort them in runs.
const QUICKSORT_ROWS_MAX: usize = 1 << 16;
const ROWS_A_PART: usize = 1 << 15;
const PARTS_MAX: usize = 256;
/// Keys sampled to find where parts begin.
const SAMPLED_A_PART: usize = 32;
/// Lists of keys that a thread takes at a time.
const LISTS_A_SHARE: usize = 32;
/// From this many keys with equal words on, new words are made of the bytes behind; fewer are compared as they are.
const REPACKED_MIN: usize = 64;
const REPACKED_TIMES_MAX: u32 = 8;

/// Runs several operations at a time.
pub trait Threads {
    /// The results of `f` for each item, in their order.
    fn each<I: Send, T: Send>(&self, items: Vec<I>, f: impl Fn(I) -> T + Sync) -> Result<Vec<T>>;
}

/// One thing after the other.
pub struct Alone;

impl Threads for Alone {
    fn each<I: Send, T: Send>(&self, items: Vec<I>, f: impl Fn(I) -> T + Sync) -> Result<Vec<T>> {
        items.into_iter().map(|item| limits::check_interrupt().map(|()| f(item))).collect()
    }
}

/// A row: its position, and the part of its key that is compared first.
#[derive(Clone, Copy)]
pub(super) struct OrderedRow {
    head: u64,
    pub list: u32,
    pub row: u32,
}

/// The memory of the order per row, and per row once more while many rows are sorted.
pub(super) const ENTRY_BYTES: usize = size_of::<OrderedRow>();

/// Keys of rows, in several lists.
pub(super) struct Keys<'a> {
    pub lists: &'a [ByteStrings],
    pub rows: usize,
    /// So many bytes are the same in all of them.
    pub shared: usize,
}

impl Keys<'_> {
    fn get(&self, e: &OrderedRow) -> &[u8] {
        self.lists[e.list as usize].get(e.row as usize)
    }

    /// The part of a key behind `from` bytes.
    fn behind(&self, e: &OrderedRow, from: usize) -> &[u8] {
        self.get(e).get(from..).unwrap_or_default()
    }

    /// All rows as they are.
    fn entries(&self, lists: Range<usize>) -> impl Iterator<Item = OrderedRow> {
        let rows =
            |list: usize| (0..self.lists[list].len() as u32).map(move |row| OrderedRow { head: 0, list: list as u32, row });
        lists.flat_map(rows)
    }

    /// The rows by their group, with which their keys begin; each group is sorted separately.
    pub fn order_groups(&self) -> Vec<OrderedRow> {
        let mut entries: Vec<OrderedRow> = self.entries(0..self.lists.len()).collect();
        entries.iter_mut().for_each(|e| e.head = head(self.get(e), 0));
        let group = |e: &OrderedRow| e.head >> 32;
        entries.sort_by_key(group);
        entries.chunk_by_mut(|a, b| group(a) == group(b)).for_each(|g| self.quicksort(g));
        entries
    }

    fn quicksort(&self, entries: &mut [OrderedRow]) {
        quicksort(entries, &|a: &OrderedRow, b: &OrderedRow| match a.head.cmp(&b.head) {
            Ordering::Equal => self.get(a).cmp(self.get(b)),
            different => different,
        });
    }

    /// The first `bound` rows in order, in parts that follow each other, and perhaps some more. `has_room`: whether this many
    /// bytes more may be used meanwhile.
    pub fn order(
        &self,
        bound: usize,
        threads: &impl Threads,
        has_room: impl FnOnce(usize) -> bool,
    ) -> Result<Vec<Vec<OrderedRow>>> {
        let all = 0..self.lists.len();
        if self.rows <= QUICKSORT_ROWS_MAX {
            let mut entries: Vec<OrderedRow> = self.entries(all).collect();
            entries.iter_mut().for_each(|e| e.head = head(self.get(e), self.shared));
            self.quicksort(&mut entries);
            return Ok(vec![entries]);
        }
        let shares: Vec<Range<usize>> =
            all.clone().step_by(LISTS_A_SHARE).map(|at| at..(at + LISTS_A_SHARE).min(all.end)).collect();
        let span = |share: Range<usize>| Span::of(self.entries(share).map(|e| self.behind_entry(e)));
        let span = threads.each(shares.clone(), span)?.into_iter().fold(Span::default(), Span::with);
        let packing = Packing::new(&span);
        if !has_room(self.rows * ENTRY_BYTES) {
            let mut entries: Vec<OrderedRow> = self.entries(all).collect();
            self.sort(&mut entries, self.shared, &packing, 0);
            return Ok(vec![entries]);
        }
        let firsts = self.firsts(&packing);
        let scattered = threads.each(shares, |share| self.scatter(share, &packing, &firsts))?;
        let mut parts = Vec::with_capacity(firsts.len() + 1);
        let mut before = 0;
        for part in 0..=firsts.len() {
            let rows = scattered.iter().map(|s| s.of(part).len()).sum::<usize>();
            if before < bound && rows > 0 {
                parts.push((part, rows));
            }
            before += rows;
        }
        let sort = |(part, rows): (usize, usize)| {
            let mut entries = Vec::with_capacity(rows);
            scattered.iter().for_each(|s| entries.extend_from_slice(s.of(part)));
            self.sort_by_heads(&mut entries, self.shared, &packing, 0);
            entries
        };
        threads.each(parts, sort)
    }

    fn behind_entry(&self, e: OrderedRow) -> &[u8] {
        self.behind(&e, self.shared)
    }

    /// The heads that parts but the first begin with, as a sample of the keys has them.
    fn firsts(&self, packing: &Packing) -> Vec<u64> {
        let parts = (self.rows / ROWS_A_PART).clamp(1, PARTS_MAX);
        let step = (self.rows / (parts * SAMPLED_A_PART)).max(1);
        let sampled = self.entries(0..self.lists.len()).step_by(step);
        let mut heads: Vec<u64> = sampled.map(|e| packing.pack(self.behind_entry(e))).collect();
        heads.sort_unstable();
        let mut firsts: Vec<u64> = heads.into_iter().step_by(SAMPLED_A_PART).skip(1).collect();
        firsts.dedup();
        firsts
    }

    /// The rows of some lists by the parts they belong to.
    fn scatter(&self, lists: Range<usize>, packing: &Packing, firsts: &[u64]) -> Scattered {
        let mut entries: Vec<OrderedRow> = self.entries(lists).collect();
        entries.iter_mut().for_each(|e| e.head = packing.pack(self.behind(e, self.shared)));
        let parts: Vec<u16> = entries.iter().map(|e| firsts.partition_point(|first| *first <= e.head) as u16).collect();
        let mut ends = vec![0u32; firsts.len() + 1];
        parts.iter().for_each(|part| ends[*part as usize] += 1);
        let mut all = 0;
        // Where each part begins, and then, as its rows are put there, ends.
        for end in &mut ends {
            all += std::mem::replace(end, all);
        }
        let mut by_part = entries.clone();
        for (e, part) in entries.iter().zip(&parts) {
            let at = &mut ends[*part as usize];
            by_part[*at as usize] = *e;
            *at += 1;
        }
        Scattered { entries: by_part, ends }
    }

    /// Sorts rows whose keys are the same up to `from`, packed as they are from there on.
    fn sort(&self, entries: &mut [OrderedRow], from: usize, packing: &Packing, times: u32) {
        entries.iter_mut().for_each(|e| e.head = packing.pack(self.behind(e, from)));
        self.sort_by_heads(entries, from, packing, times);
    }

    fn sort_by_heads(&self, entries: &mut [OrderedRow], from: usize, packing: &Packing, times: u32) {
        entries.sort_unstable_by_key(|e| e.head);
        if packing.is_exact {
            return;
        }
        let from = from + packing.bytes;
        for equal in entries.chunk_by_mut(|a, b| a.head == b.head).filter(|equal| equal.len() > 1) {
            if equal.len() < REPACKED_MIN || times == REPACKED_TIMES_MAX {
                equal.sort_unstable_by(|a, b| self.behind(a, from).cmp(self.behind(b, from)));
            } else {
                let packing = Packing::new(&Span::of(equal.iter().map(|e| self.behind(e, from))));
                self.sort(equal, from, &packing, times + 1);
            }
        }
    }
}

/// Rows by part.
struct Scattered {
    entries: Vec<OrderedRow>,
    ends: Vec<u32>,
}

impl Scattered {
    fn of(&self, part: usize) -> &[OrderedRow] {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[start as usize..self.ends[part] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of which none begins another, as `melba_types::key` makes them.
    fn ordered(key: impl Fn(u64) -> Vec<u8>, rows: u64, has_room: bool) {
        let mut lists = vec![ByteStrings::default()];
        for i in 0..rows {
            let random = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            if lists[lists.len() - 1].len() == 1000 {
                lists.push(ByteStrings::default());
            }
            let last = lists.len() - 1;
            lists[last].push(&key(random));
        }
        let keys = Keys { lists: &lists, rows: rows as usize, shared: 1 };
        let parts = keys.order(usize::MAX, &Alone, |_| has_room).unwrap();
        let found: Vec<&[u8]> = parts.iter().flatten().map(|e| keys.get(e)).collect();
        let mut expected: Vec<&[u8]> = keys.entries(0..lists.len()).map(|e| lists[e.list as usize].get(e.row as usize)).collect();
        expected.sort_unstable();
        assert!(found == expected);
        let first = keys.order(10, &Alone, |_| has_room).unwrap();
        let first: Vec<&[u8]> = first.iter().flatten().map(|e| keys.get(e)).take(10).collect();
        assert!(first == expected[..first.len()] && first.len() == 10.min(expected.len()));
    }

    #[test]
    fn keys_of_all_forms_are_ordered() {
        let rows = QUICKSORT_ROWS_MAX as u64 + 5000;
        // Short, of few bytes; long, with long beginnings in common; nearly all equal; of any bytes; hardly any.
        ordered(|r| format!("\u{1}13{:09}\0", r % 1_000_000_000).into_bytes(), rows, true);
        ordered(|r| format!("\u{1}{}{}\0", "/a/long/path".repeat((r % 7) as usize), r % 50_000).into_bytes(), rows, false);
        ordered(|r| format!("\u{1}{}\0", if r % 1000 == 0 { "other" } else { "same" }).into_bytes(), rows, true);
        ordered(|r| [&[1][..], &r.to_be_bytes(), &r.rotate_left(7).to_le_bytes()].concat(), rows, true);
        ordered(|r| vec![1, (r % 3) as u8], rows, true);
        ordered(|r| vec![1, (r % 200) as u8], 500, true);
        ordered(|_| vec![1], 0, true);
    }
}
