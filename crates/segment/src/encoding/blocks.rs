//! Chunks of plain blocks: words bit-packed or as runs, byte strings end to end, both as a codec leaves them.

use std::ops::Range;
use std::sync::Arc;

use melba_types::Kind;

use super::read::{ChunkView, HeldRow, Scan};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind, LowerBound};
use super::values::{Coded, StringsOut, ValueOut, WordsOut, empty_column, push_words};
use super::write::{BlockList, ChunkData, ChunkValues, Trained, Write, WriteOptions};
use crate::block::{Block, BlockKind};
use crate::error::Result;
use crate::frame::Codec;
use crate::layout::words::partition_point;

/// Codes help expressions that are computed once per entry, where a row group has at least this many rows per entry.
pub(crate) const ROWS_AN_ENTRY: usize = 8;

#[derive(Debug)]
pub(crate) struct Plain;

/// For chunks that have no other encoding.
pub(crate) static BLOCKS: &dyn ChunkEncoding = &Plain;

impl ChunkEncoding for Plain {
    fn tag(&self) -> u8 {
        2
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Blocks { heads: 0 }
    }

    fn suits_filter(&self) -> bool {
        true
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, options: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        let (options, validity) = (*options, values.validity);
        match values.data {
            ChunkData::Words(words) => {
                let codec = if matches!(values.kind, Kind::Float4 | Kind::Float8) { options.codec } else { Codec::None };
                let bits_a_row = values.packed_bits(words).div_ceil(words.len());
                Some(Box::new(move |frames, _| {
                    let list = BlockList::new(frames);
                    ChunkEntry::Blocks(list.write_words((words, validity), bits_a_row, codec, &options, frames))
                }))
            }
            ChunkData::Strings(strings) => {
                let codec = options.string_codec(strings);
                Some(Box::new(move |frames, _| {
                    let list = BlockList::new(frames);
                    ChunkEntry::Blocks(list.write_strings((strings, validity), None, codec, &options, frames))
                }))
            }
            ChunkData::Stored { values: strings, plain } => {
                let codec = if plain.is_some() { options.string_codec(strings) } else { Codec::None };
                Some(Box::new(move |frames, _| {
                    let list = BlockList::new(frames);
                    ChunkEntry::Blocks(list.write_strings((strings, validity), plain, codec, &options, frames))
                }))
            }
        }
    }

    fn read_words(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut WordsOut<'_>) -> Result<()> {
        scan.each_block(0, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            out.decode(block, rows);
            true
        })
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        scan.each_block(0, BlockKind::Strings, ranges, |block, rows| {
            let Block::Strings(block) = block else { return false };
            block.decode_validity(rows.clone(), out.values.len(), &mut out.validity);
            block.decode_plain(rows.clone(), out.values.len(), &mut out.plain);
            block.decode(rows, &mut out.values)
        })
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], held: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        let (blocks, kind) = (chunk.blocks()?, chunk.value_kind());
        for row in rows.iter().map(|&row| row as usize) {
            let at = row & blocks.mask();
            let is_decoded = match held.block(chunk, blocks, row, kind)? {
                Block::Words(block) if block.is_valid(at) => {
                    out.push_word(block.get(at));
                    true
                }
                Block::Strings(block) if block.is_valid(at) => out.push_plain_or_stored(block.get(at), block.is_plain(at)),
                Block::Words(_) | Block::Strings(_) => {
                    out.push_null();
                    true
                }
                _ => false,
            };
            if !is_decoded {
                return Err(chunk.undecodable());
            }
        }
        Ok(())
    }

    fn word(&self, chunk: &ChunkView<'_>, row: usize) -> Result<i64> {
        let blocks = chunk.blocks()?;
        match &*chunk.block_of_row(blocks, row, 0, BlockKind::Words)? {
            Block::Words(block) => Ok(block.get(row & blocks.mask())),
            _ => Err(chunk.undecodable()),
        }
    }

    fn with_bytes(&self, chunk: &ChunkView<'_>, row: usize, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let blocks = chunk.blocks()?;
        let at = row & blocks.mask();
        match &*chunk.block_of_row(blocks, row, 0, chunk.value_kind())? {
            Block::Strings(block) if block.is_valid(at) => each(block.get(at)),
            Block::Strings(_) => {}
            _ => return Err(chunk.undecodable()),
        }
        Ok(())
    }

    /// Integers between close bounds, by how far they are above the least one.
    fn codes(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        let chunk = scan.chunk;
        let Some((least, greatest)) = chunk.integer_bounds() else { return Ok(None) };
        let span = greatest.abs_diff(least);
        if span >= (chunk.rows / ROWS_AN_ENTRY) as u64 {
            return Ok(None);
        }
        let mut validity = None;
        let mut codes = scan.numbers(0, ranges, &mut validity)?;
        // The lower halves of the words are enough.
        codes.iter_mut().for_each(|word| *word = word.wrapping_sub(least as u32));
        if let Some(validity) = &validity {
            codes.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, word)| *word = 0);
        }
        if codes.iter().any(|distance| u64::from(*distance) > span) {
            return Err(chunk.damaged("integer beyond its chunk's bounds"));
        }
        let entries = scan.held.entries.get_or_insert_with(|| {
            let mut entries = empty_column(chunk.kind, chunk.scale, 0);
            push_words(&mut entries.data, least..=greatest);
            Arc::new(entries)
        });
        Ok(Some(Coded { entries: Arc::clone(entries), codes, validity }))
    }

    fn lower_bound(&self, chunk: &ChunkView<'_>, word: u64) -> Result<LowerBound> {
        let blocks = chunk.blocks()?;
        // The block whose first word is the last one below; with several blocks each is touched at its first row.
        let (mut low, mut high) = (0, chunk.rows.div_ceil(1 << blocks.shift) - 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if (self.word(chunk, middle << blocks.shift)? as u64) < word {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let block = chunk.block_of_row(blocks, low << blocks.shift, 0, BlockKind::Words)?;
        let Block::Words(block) = &*block else { return Err(chunk.undecodable()) };
        let within = partition_point(block.rows(), |i| (block.get(i) as u64) < word);
        let found = (within < block.rows()).then(|| block.get(within) as u64);
        Ok(LowerBound { row: (low << blocks.shift) + within, word: found })
    }
}
