//! Chunks of strings that differ in decimal digits only: the first block has their pattern, the others words for its digits.

use std::ops::Range;

use super::read::{ChunkView, HeldRow, Scan, total};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{StringsOut, ValueOut};
use super::write::{BlockList, ChunkData, ChunkValues, Trained, Write, WriteOptions};
use crate::block::{Block, BlockKind};
use crate::error::Result;
use crate::frame::Codec;
use crate::layout::digits::DigitPattern;
use crate::layout::packed;
use crate::statistics::ZoneOp;

#[derive(Debug)]
pub(crate) struct Digits;

impl ChunkEncoding for Digits {
    fn tag(&self) -> u8 {
        8
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Blocks { heads: 1 }
    }

    fn suits_filter(&self) -> bool {
        true
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, options: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        let ChunkData::Strings(strings) = values.data else { return None };
        let (options, validity) = (*options, values.validity);
        let pattern = DigitPattern::of(strings, validity)?;
        Some(Box::new(move |frames, _| {
            let mut content = Vec::new();
            pattern.encode(&mut content);
            let list = BlockList::begin(frames, &content, Codec::None);
            let is_valid = |i: usize| validity.is_none_or(|validity| validity.get(i));
            let mut words: Vec<i64> = Vec::with_capacity(strings.len());
            for i in 0..strings.len() {
                // Nulls widen nothing.
                words.push(if is_valid(i) { pattern.word(strings.get(i)) } else { words.last().copied().unwrap_or(0) });
            }
            let bits_a_row = packed::Fit::of(&words).width() as usize;
            ChunkEntry::Blocks(list.write_words((&words, validity), bits_a_row, Codec::None, &options, frames))
        }))
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        let head = scan.head(BlockKind::Digits)?;
        let Block::Digits(pattern) = &*head else { return Err(scan.chunk.damaged("not a pattern of digits")) };
        let mut words: Vec<u64> = Vec::new();
        scan.each_block(1, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            words.clear();
            block.decode(rows.clone(), &mut words);
            if block.is_all_valid() {
                out.extend_valid(rows.len());
                return pattern.decode_all(&mut words, &mut out.values);
            }
            let mut scratch = Vec::new();
            rows.zip(&words).all(|(row, word)| {
                let value = pattern.decode(*word as i64, &mut scratch);
                out.push(value.filter(|_| block.is_valid(row)).map(|value| (value, true)));
                value.is_some()
            })
        })
    }

    fn read_picked(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], picks: &[u32], out: &mut StringsOut) -> Result<bool> {
        let head = scan.head(BlockKind::Digits)?;
        let Block::Digits(pattern) = &*head else { return Err(scan.chunk.damaged("not a pattern of digits")) };
        let (mut words, mut scratch): (Vec<u64>, Vec<u8>) = Default::default();
        scan.each_block_picked(1, BlockKind::Words, ranges, picks, |block, rows| {
            let Block::Words(block) = block else { return false };
            if block.is_all_valid() {
                words.clear();
                block.pick(rows, &mut words);
                out.extend_valid(rows.len());
                return pattern.decode_all(&mut words, &mut out.values);
            }
            rows.iter().all(|row| {
                let value = pattern.decode(block.get(*row as usize), &mut scratch);
                out.push(value.filter(|_| block.is_valid(*row as usize)).map(|value| (value, true)));
                value.is_some()
            })
        })?;
        Ok(true)
    }

    fn compares(&self) -> bool {
        true
    }

    fn rows_where(
        &self,
        scan: &mut Scan<'_>,
        ranges: &[Range<usize>],
        comparisons: &[(ZoneOp, &[u8])],
    ) -> Result<Option<Vec<u32>>> {
        let head = scan.head(BlockKind::Digits)?;
        let Block::Digits(pattern) = &*head else { return Err(scan.chunk.damaged("not a pattern of digits")) };
        let mut wanted = 0..u64::MAX;
        for (op, value) in comparisons {
            let Some(some) = pattern.words_where(*op, value) else { return Ok(None) };
            wanted = wanted.start.max(some.start)..wanted.end.min(some.end);
        }
        let (first, many) = (wanted.start, wanted.end.saturating_sub(wanted.start));
        let (mut rows_before, mut count, mut found) = (0, 0, vec![0; total(ranges)]);
        let mut words: Vec<u64> = Vec::new();
        scan.each_block(1, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            words.clear();
            block.decode(rows.clone(), &mut words);
            let is_all_valid = block.is_all_valid();
            // Each row's number is written, and kept when the next one is written behind it.
            for (i, word) in words.iter().enumerate() {
                found[count] = (rows_before + i) as u32;
                let is_wanted = word.wrapping_sub(first) < many && (is_all_valid || block.is_valid(rows.start + i));
                count += usize::from(is_wanted);
            }
            rows_before += rows.len();
            true
        })?;
        found.truncate(count);
        Ok(Some(found))
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], held: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        let (blocks, kinds) = (chunk.blocks()?, (BlockKind::Digits, BlockKind::Words));
        for row in rows.iter().map(|&row| row as usize) {
            let at = row & blocks.mask();
            let (Block::Digits(pattern), Block::Words(words), scratch) = held.head_and_block(chunk, blocks, row, kinds)? else {
                return Err(chunk.undecodable());
            };
            if !words.is_valid(at) {
                out.push_null();
            } else if !pattern.decode(words.get(at), scratch).is_some_and(|value| out.push_bytes(value)) {
                return Err(chunk.undecodable());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use melba_types::{Batch, Column, Csn, Datum, Kind, RowId};
    use melba_vfs::OsDirectory;

    use super::*;
    use crate::{BlockCache, TableOptions, TableSegmentReader, TableSegmentWriter};

    const ROWS: u64 = 5000;

    /// A phone, a phone or null, a phone or another text, and hexadecimal digits with symbols of their own, some null.
    fn row(i: u64) -> [Datum; 4] {
        let phone = Datum::text(format!("13{:09}", i * 499_979 % 1_000_000_000));
        let other = if i == ROWS / 2 { Datum::text("withheld") } else { phone.clone() };
        let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = if i % 7 == 1 { Datum::Null } else { Datum::text(format!("{hash:x}").repeat(1 + i as usize % 2)) };
        [phone.clone(), if i % 5 == 3 { Datum::Null } else { phone }, other, hash]
    }

    fn segment(directory: &OsDirectory) -> Arc<TableSegmentReader> {
        let kinds = [Kind::Text; 4];
        let mut columns: Vec<Column> = kinds.iter().map(|&kind| Column::with_capacity(kind, 0)).collect();
        for i in 0..ROWS {
            columns.iter_mut().zip(row(i)).for_each(|(column, value)| column.push(value));
        }
        let ids: Vec<RowId> = (0..ROWS).map(RowId).collect();
        // Several blocks a chunk.
        let options = TableOptions { block_bytes: 2048, ..TableOptions::default() };
        let mut writer = TableSegmentWriter::create(directory, "t", &kinds, &options).unwrap();
        writer.append_uniform(&ids, Csn(5), &Batch::new(columns, ids.len())).unwrap();
        writer.finish().unwrap();
        let segment = TableSegmentReader::open(directory, "t", &BlockCache::new(1 << 20)).unwrap();
        assert_eq!([0, 1, 2, 3].map(|column| segment.chunk(0, column).encoding.tag()), [8, 8, 4, 4]);
        segment
    }

    fn shown(values: impl Iterator<Item = Datum>) -> Vec<String> {
        values.map(|value| format!("{value:?}")).collect()
    }

    #[test]
    fn all_ways_of_reading_answer_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&OsDirectory::open(folder.path()).unwrap());
        segment.verify().unwrap();
        let mut reader = segment.group(0, &[0, 1, 2, 3]);
        for ranges in [vec![0..1, 1..ROWS as usize], vec![3..4, 10..1500, 1501..1502, 4000..ROWS as usize]] {
            let rows: Vec<u64> = ranges.iter().cloned().flatten().map(|row| row as u64).collect();
            for step in [1, 2, 3, 50, 900] {
                let picks: Vec<u32> = (0..rows.len() as u32).skip(step / 2).step_by(step).collect();
                for column in 0..4 {
                    let expected = shown(picks.iter().map(|pick| row(rows[*pick as usize])[column].clone()));
                    let picked = reader.column(column, &ranges, Some(&picks)).unwrap().unwrap();
                    assert_eq!(shown((0..picked.len()).map(|i| picked.get(i))), expected, "column {column}, step {step}");
                }
            }
            for column in 0..4 {
                let all = reader.column(column, &ranges, None).unwrap().unwrap();
                assert_eq!(shown((0..all.len()).map(|i| all.get(i))), shown(rows.iter().map(|i| row(*i)[column].clone())));
            }
        }
        for i in (0..ROWS).step_by(97) {
            let found = segment.find(RowId(i), Csn(5)).unwrap().unwrap();
            let mut out = [Kind::Text; 4].map(|kind| Column::with_capacity(kind, 1));
            segment.read_row(found.position, &[0, 1, 2, 3], &mut out).unwrap();
            assert_eq!(shown(out.iter().map(|column| column.get(0))), shown(row(i).into_iter()));
        }
    }

    #[test]
    fn rows_are_compared_without_being_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&OsDirectory::open(folder.path()).unwrap());
        let mut reader = segment.group(0, &[0, 1, 2, 3]);
        let ranges = [7..900, 1000..ROWS as usize];
        let rows: Vec<u64> = ranges.iter().cloned().flatten().map(|row| row as u64).collect();
        let comparisons = [(ZoneOp::GreaterOrEqual, Datum::text("132")), (ZoneOp::Less, Datum::text("13500000000"))];
        for column in [0, 1] {
            let is_wanted =
                |i: &&u64| matches!(&row(**i)[column], Datum::Text(text) if "132" <= &**text && &**text < "13500000000");
            let expected: Vec<u64> = rows.iter().filter(is_wanted).copied().collect();
            let found = reader.rows_where(column, &ranges, &comparisons).unwrap().unwrap();
            assert_eq!(found.iter().map(|i| rows[*i as usize]).collect::<Vec<_>>(), expected);
            assert!(!expected.is_empty() && expected.len() < rows.len() / 2);
            let none = [(ZoneOp::Less, Datum::text("13")), (ZoneOp::Greater, Datum::text("14"))];
            assert_eq!(reader.rows_where(column, &ranges, &none).unwrap(), Some(vec![]));
        }
        assert_eq!(reader.rows_where(2, &ranges, &comparisons).unwrap(), None);
        assert_eq!(reader.rows_where(0, &ranges, &[(ZoneOp::NotEqual, Datum::text("132"))]).unwrap(), None);
    }
}
