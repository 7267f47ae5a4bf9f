//! A toy encoding, which stands in the table for tests alone: what adding one takes is this file and two lines of `mod.rs`.

use std::ops::Range;

use melba_types::{Batch, Column, ColumnData, Csn, Datum, Kind, RowId};
use melba_vfs::OsDirectory;

use super::read::{ChunkView, HeldRow, Scan};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{ValueOut, WordsOut};
use super::write::{ChunkData, ChunkValues, Trained, Write, WriteOptions};
use crate::error::Result;
use crate::{BlockCache, TableOptions, TableSegmentReader, TableSegmentWriter};

/// Fewer rows may be cubes by chance.
const ROWS_MIN: usize = 100;

/// Words that are the cubes of numbers which follow each other; the directory has the first number.
#[derive(Debug)]
pub(super) struct Cubes;

fn first_root(chunk: &ChunkView<'_>) -> Result<i64> {
    let bytes = chunk.bytes()?.try_into().map_err(|_| chunk.undecodable())?;
    Ok(i64::from_le_bytes(bytes))
}

impl ChunkEncoding for Cubes {
    fn tag(&self) -> u8 {
        200
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Bytes
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, _: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        let ChunkData::Words(words) = values.data else { return None };
        let first = (words[0] as f64).cbrt().round() as i64;
        let are_cubes = values.nulls == 0
            && words.len() >= ROWS_MIN
            && words.iter().zip(first..).all(|(word, root)| root.checked_pow(3) == Some(*word));
        are_cubes.then(|| Box::new(move |_: &mut _, _: &mut Trained<'_>| ChunkEntry::Bytes(first.to_le_bytes().into())) as _)
    }

    fn read_words(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut WordsOut<'_>) -> Result<()> {
        for row in ranges.iter().cloned().flatten() {
            out.words.fill(self.word(&scan.chunk, row)?, 1);
        }
        Ok(())
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], _: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        for row in rows {
            out.push_word(self.word(chunk, *row as usize)?);
        }
        Ok(())
    }

    fn word(&self, chunk: &ChunkView<'_>, row: usize) -> Result<i64> {
        let root = first_root(chunk)?.wrapping_add(row as i64);
        Ok(root.wrapping_mul(root).wrapping_mul(root))
    }
}

#[test]
fn a_toy_encoding_is_written_and_read_back_through_a_segment() {
    const ROWS: usize = 1000;
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    let cubes: Vec<i64> = (-300..-300 + ROWS as i64).map(|root| root * root * root).collect();
    let others: Vec<i64> = cubes.iter().map(|cube| cube + cube % 2).collect();
    // Row ids are cubes, too, so that they are searched by the encoding.
    let ids: Vec<RowId> = (1..=ROWS as u64).map(|root| RowId(root * root * root)).collect();
    let kinds = [Kind::Int8, Kind::Int8];
    let mut writer = TableSegmentWriter::create(&directory, "t", &kinds, &TableOptions::default()).unwrap();
    let columns = vec![Column::new(ColumnData::Int8(cubes.clone())), Column::new(ColumnData::Int8(others))];
    writer.append_uniform(&ids, Csn(5), &Batch::new(columns, ROWS)).unwrap();
    writer.finish().unwrap();

    let segment = TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    assert_eq!([0, 1, 2].map(|column| segment.chunk(0, column).encoding.tag()), [200, 2, 200]);
    segment.verify().unwrap();
    let mut reader = segment.group(0, &[0]);
    let column = reader.column(0, &[3..5, 700..ROWS], None).unwrap().unwrap();
    let expected: Vec<i64> = cubes[3..5].iter().chain(&cubes[700..]).copied().collect();
    assert_eq!((0..column.len()).map(|i| column.get(i).as_i64()).collect::<Vec<_>>(), expected);
    for row in [0, 1, 299, ROWS - 1] {
        let found = segment.find(ids[row], Csn(5)).unwrap().unwrap();
        let mut out = [Column::with_capacity(Kind::Int8, 1)];
        segment.read_row(found.position, &[0], &mut out).unwrap();
        assert!(matches!(out[0].get(0), Datum::Int8(value) if value == cubes[row]), "row {row}");
        assert_eq!(segment.find(RowId(ids[row].0 + 1), Csn(5)).unwrap(), None);
    }
}
