//! Blocks of fixed-width values as 64-bit words: integers, booleans, floats (by their bits), dictionary codes.
//!
//! ```text
//! tag u8 | rows varint | validity | packed values                      tag 1
//! tag u8 | rows varint | validity | packed run ends | packed values    tag 2
//! ```

use std::mem::MaybeUninit;
use std::ops::Range;

use melba_types::Bitmap;

use super::packed::{self, Packed, Word};
use super::validity::{self, Validity};
use crate::block::parse_rows;
use melba_types::bytes::{ByteReader, put_varint};

const TAG_PACKED: u8 = 1;
const TAG_RUNS: u8 = 2;

/// Runs decoded together, at most.
const RUNS_AT_A_TIME: usize = 256;
/// Values that are decoded in the time of one that is looked up, about.
const DECODED_FOR_ONE: usize = 3;
/// Rows that are written for a run of any length.
const SHORT_RUN: usize = 8;

/// A parsed block.
#[derive(Debug)]
pub(crate) struct WordBlock {
    bytes: Vec<u8>,
    rows: usize,
    validity: Validity,
    layout: Layout,
}

#[derive(Debug)]
enum Layout {
    Packed(Packed),
    /// `ends[i]` is the row after run `i`.
    Runs {
        ends: Packed,
        values: Packed,
    },
}

/// Number of runs of equal values.
pub(crate) fn count_runs(values: &[i64]) -> usize {
    values.len().min(1) + values.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Appends a block's content. `validity` is that of rows `start..` of the column that `values` are from.
pub(crate) fn encode(values: &[i64], validity: Option<&Bitmap>, start: usize, out: &mut Vec<u8>) {
    let fit = packed::Fit::of(values);
    let width = fit.width() as usize;
    let runs = if width > 0 { count_runs(values) } else { values.len() };
    // A run costs its value and its end; decoding runs is faster too, so they win a draw.
    let use_runs = width > 0 && runs * (width + 16) <= values.len() * width;
    out.push(if use_runs { TAG_RUNS } else { TAG_PACKED });
    put_varint(values.len() as u64, out);
    validity::encode(validity, start, values.len(), out);
    if use_runs {
        let (mut ends, mut run_values) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
        for (i, &value) in values.iter().enumerate() {
            if i + 1 == values.len() || values[i + 1] != value {
                ends.push(i as i64 + 1);
                run_values.push(value);
            }
        }
        packed::encode(&ends, out);
        packed::encode(&run_values, out);
    } else {
        packed::encode_by(fit, values, out);
    }
}

impl WordBlock {
    pub fn parse(bytes: Vec<u8>) -> Option<WordBlock> {
        let mut reader = ByteReader::new(&bytes);
        let tag = reader.u8()?;
        let rows = parse_rows(&mut reader)?;
        let validity = Validity::parse(&mut reader, rows)?;
        let layout = match tag {
            TAG_PACKED => {
                let values = Packed::parse(&mut reader)?;
                (values.count == rows).then_some(Layout::Packed(values))?
            }
            TAG_RUNS => {
                let ends = Packed::parse(&mut reader)?;
                let values = Packed::parse(&mut reader)?;
                let layout = Layout::Runs { ends, values };
                (ends.count == values.count && ends_ascend_to(&ends, &bytes, rows)).then_some(layout)?
            }
            _ => return None,
        };
        if reader.remaining() != 0 {
            return None;
        }
        Some(WordBlock { bytes, rows, validity, layout })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<WordBlock>()
    }

    /// Whether it is known that no row is null.
    pub fn is_all_valid(&self) -> bool {
        matches!(self.validity, Validity::All)
    }

    #[inline]
    pub fn is_valid(&self, i: usize) -> bool {
        self.validity.get(&self.bytes, i)
    }

    /// Value `i`; unspecified when null.
    #[inline]
    pub fn get(&self, i: usize) -> i64 {
        match &self.layout {
            Layout::Packed(values) => values.get(&self.bytes, i),
            Layout::Runs { ends, values } => values.get(&self.bytes, self.run_of(ends, i)),
        }
    }

    /// The run that holds row `i`.
    fn run_of(&self, ends: &Packed, i: usize) -> usize {
        partition_point(ends.count, |run| ends.get(&self.bytes, run) <= i as i64)
    }

    /// Appends the values of `range`; null ones are unspecified.
    pub fn decode<T: Word>(&self, range: Range<usize>, out: &mut Vec<T>) {
        match &self.layout {
            Layout::Packed(values) => values.decode(&self.bytes, range.start, range.len(), out),
            Layout::Runs { ends, values } => self.decode_runs(ends, values, range, out),
        }
    }

    /// Appends the values of some rows, ascending; null ones are unspecified.
    pub fn pick<T: Word>(&self, rows: &[u32], out: &mut Vec<T>) {
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return };
        let span = first as usize..last as usize + 1;
        // A value that is looked up takes as long as some that are decoded.
        if rows.len() * DECODED_FOR_ONE < span.len() {
            return out.extend(rows.iter().map(|row| T::from_word(self.get(*row as usize))));
        }
        let mut all: Vec<T> = Vec::with_capacity(span.len());
        self.decode(span, &mut all);
        out.extend(rows.iter().map(|row| all[(row - first) as usize]));
    }

    fn decode_runs<T: Word>(&self, ends: &Packed, values: &Packed, range: Range<usize>, out: &mut Vec<T>) {
        out.reserve(range.len());
        let target = &mut out.spare_capacity_mut()[..range.len()];
        let (mut run_ends, mut run_values): (Vec<u32>, Vec<T>) = (Vec::new(), Vec::new());
        let mut run = if range.start == 0 { 0 } else { self.run_of(ends, range.start) };
        let mut at = 0;
        while at < range.len() {
            // As many as the remaining rows have on average, and a few more. No run is empty.
            let left = range.len() - at;
            let likely = left * ends.count / self.rows + SHORT_RUN;
            let some = (ends.count - run).min(likely).min(left).min(RUNS_AT_A_TIME);
            run_ends.clear();
            run_values.clear();
            ends.decode(&self.bytes, run, some, &mut run_ends);
            values.decode(&self.bytes, run, some, &mut run_values);
            for (end, value) in run_ends.iter().zip(&run_values) {
                let end = (*end as usize).min(range.end) - range.start;
                let (value, mut from) = (MaybeUninit::new(*value), at);
                // Most runs of a column with many runs are short: they are written without a loop. The next run writes over the rest.
                if let Some(first) = target[at..].first_chunk_mut::<SHORT_RUN>() {
                    *first = [value; SHORT_RUN];
                    from += SHORT_RUN;
                }
                if end > from {
                    target[from..end].fill(value);
                }
                at = end;
                if at == range.len() {
                    break;
                }
            }
            run += some;
        }
        // SAFETY: runs follow each other without a gap (`ends_ascend_to`), so every row up to `at`, the range's length, is written.
        unsafe { out.set_len(out.len() + at) };
    }

    /// Appends the validity of `range` after `before` rows.
    pub fn decode_validity(&self, range: Range<usize>, before: usize, out: &mut Option<Bitmap>) {
        self.validity.decode(&self.bytes, range.start, range.len(), before, out);
    }
}

/// Whether run ends ascend strictly from above 0 to exactly `rows`: decoding them is safe then.
fn ends_ascend_to(ends: &Packed, bytes: &[u8], rows: usize) -> bool {
    let mut before = 0;
    for run in 0..ends.count {
        let end = ends.get(bytes, run);
        if end <= before {
            return false;
        }
        before = end;
    }
    before == rows as i64
}

/// First index of `0..count` for which `before` is false; it must be true up to there.
#[inline]
pub(crate) fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[i64], runs: bool) {
        let mut bytes = Vec::new();
        encode(values, None, 0, &mut bytes);
        assert_eq!(bytes[0] == TAG_RUNS, runs);
        let block = WordBlock::parse(bytes).unwrap();
        let mut out: Vec<i64> = Vec::new();
        block.decode(0..values.len(), &mut out);
        assert_eq!(out, values);
        out.clear();
        block.decode(3..values.len() - 2, &mut out);
        assert_eq!(out, &values[3..values.len() - 2]);
        assert!((0..values.len()).all(|i| block.get(i) == values[i] && block.is_valid(i)));
    }

    #[test]
    fn any_part_of_runs_of_any_length_comes_back() {
        // Short and long ones, more of them than are decoded at a time.
        let lengths = (0..700usize).map(|run| if run % 97 == 0 { 200 } else { 1 + run * 7 % 13 });
        let values: Vec<i64> = lengths.enumerate().flat_map(|(run, n)| std::iter::repeat_n(run as i64 * 1_000_003, n)).collect();
        let mut bytes = Vec::new();
        encode(&values, None, 0, &mut bytes);
        assert_eq!(bytes[0], TAG_RUNS);
        let block = WordBlock::parse(bytes).unwrap();
        for start in (0..values.len()).step_by(131) {
            for rows in [0, 1, 7, 8, 9, 100, 2048, values.len()] {
                let range = start..(start + rows).min(values.len());
                let mut out: Vec<i64> = vec![5];
                block.decode(range.clone(), &mut out);
                assert_eq!((out[0], &out[1..]), (5, &values[range]));
            }
        }
    }

    #[test]
    fn runs_and_packed_values_come_back() {
        check(&(0..1000).map(|i| i / 100 * 1_000_003).collect::<Vec<_>>(), true);
        check(&(0..1000).map(|i| i * 7919 % 1009).collect::<Vec<_>>(), false);
    }
}
