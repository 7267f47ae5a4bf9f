//! Chunks whose rows all hold one value: it stands in the directory.

use std::ops::Range;
use std::sync::Arc;

use melba_types::ColumnData;

use super::read::{ChunkView, HeldRow, Scan, total};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{Coded, StringsOut, ValueOut, WordsOut, empty_column};
use super::write::{ChunkData, ChunkValues, Trained, Write, WriteOptions};
use crate::error::Result;

/// Longer constants are left to dictionaries: the directory stays in memory.
const BYTES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Constant;

impl ChunkEncoding for Constant {
    fn tag(&self) -> u8 {
        1
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Bytes
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, _: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        let value: Box<[u8]> = match values.data {
            ChunkData::Words(words) if values.is_uniform => words[0].to_le_bytes().into(),
            ChunkData::Strings(strings) if values.is_uniform && strings.get(0).len() <= BYTES_MAX => strings.get(0).into(),
            _ => return None,
        };
        Some(Box::new(|_, _| ChunkEntry::Bytes(value)))
    }

    fn read_words(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut WordsOut<'_>) -> Result<()> {
        out.words.fill(self.word(&scan.chunk, 0)?, total(ranges));
        Ok(())
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        let value = scan.chunk.bytes()?;
        (0..total(ranges)).for_each(|_| out.values.push(value));
        Ok(())
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], _: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        if chunk.holds_words() {
            let word = self.word(chunk, 0)?;
            rows.iter().for_each(|_| out.push_word(word));
            return Ok(());
        }
        let value = chunk.bytes()?;
        if rows.iter().all(|_| out.push_bytes(value)) { Ok(()) } else { Err(chunk.undecodable()) }
    }

    fn word(&self, chunk: &ChunkView<'_>, _: usize) -> Result<i64> {
        let bytes = chunk.bytes()?.try_into().map_err(|_| chunk.damaged("constant of the wrong length"))?;
        Ok(i64::from_le_bytes(bytes))
    }

    fn codes(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        let chunk = scan.chunk;
        let mut entries = empty_column(chunk.kind, chunk.scale, 1);
        let (ColumnData::Text(out) | ColumnData::Bytes(out)) = &mut entries.data else { return Ok(None) };
        out.push(chunk.bytes()?);
        let entries = Arc::clone(scan.held.entries.get_or_insert_with(|| Arc::new(entries)));
        Ok(Some(Coded { entries, codes: vec![0; total(ranges)], validity: None }))
    }
}
