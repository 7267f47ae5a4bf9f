//! Chunks whose rows are all null: nothing is stored.

use std::ops::Range;

use melba_types::Bitmap;

use super::read::{ChunkView, HeldRow, Scan, total};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{StringsOut, ValueOut, WordsOut};
use super::write::{ChunkValues, Trained, Write, WriteOptions};
use crate::error::Result;

#[derive(Debug)]
pub(crate) struct Null;

impl ChunkEncoding for Null {
    fn tag(&self) -> u8 {
        0
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Nothing
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, _: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        (values.nulls == values.len()).then(|| Box::new(|_: &mut _, _: &mut Trained<'_>| ChunkEntry::Nothing) as _)
    }

    fn read_words(&self, _: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut WordsOut<'_>) -> Result<()> {
        out.words.fill(0, total(ranges));
        *out.validity = Some(Bitmap::filled(out.words.len(), false));
        Ok(())
    }

    fn read_strings(&self, _: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        (0..total(ranges)).for_each(|_| out.values.push(&[]));
        out.validity = Some(Bitmap::filled(out.values.len(), false));
        Ok(())
    }

    fn read_rows(&self, _: &ChunkView<'_>, rows: &[u32], _: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        rows.iter().for_each(|_| out.push_null());
        Ok(())
    }

    fn with_bytes(&self, _: &ChunkView<'_>, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<()> {
        Ok(())
    }
}
