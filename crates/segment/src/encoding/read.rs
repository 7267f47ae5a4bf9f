//! What encodings read a chunk by: the chunk, and the blocks of it that a scan or lookups hold.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Bitmap, Column, Kind};

use super::section::{HeldSection, Section};
use super::stages::{ChunkEncoding, ChunkEntry};
use super::values::is_word;
use crate::block::{Block, BlockKind};
use crate::cache::BlockRef;
use crate::error::{Result, SegmentError};
use crate::file::{BlockFile, Blocks};
use crate::layout::strings::StringBlock;
use crate::layout::words::WordBlock;
use crate::statistics::Statistics;

/// A chunk to be read.
#[derive(Clone, Copy)]
pub(crate) struct ChunkView<'a> {
    pub file: &'a BlockFile,
    pub encoding: &'static dyn ChunkEncoding,
    pub entry: &'a ChunkEntry,
    pub kind: Kind,
    /// Of numerics that are kept as words.
    pub scale: Option<u16>,
    pub rows: usize,
    pub statistics: &'a Statistics,
    /// Of a chunk whose entry says so: its section, and the number of its first row there.
    pub section: Option<(&'a Section, usize)>,
}

impl<'a> ChunkView<'a> {
    /// Whether the values are words, not byte strings.
    #[inline]
    pub fn holds_words(&self) -> bool {
        is_word(self.kind) || self.scale.is_some()
    }

    #[inline]
    pub fn blocks(&self) -> Result<&'a Blocks> {
        let entry = self.entry;
        if let ChunkEntry::Blocks(blocks) = entry { Ok(blocks) } else { Err(self.undecodable()) }
    }

    #[inline]
    pub fn bytes(&self) -> Result<&'a [u8]> {
        let entry = self.entry;
        if let ChunkEntry::Bytes(bytes) = entry { Ok(bytes) } else { Err(self.undecodable()) }
    }

    pub fn section(&self) -> Result<(&'a Section, usize)> {
        self.section.ok_or_else(|| self.undecodable())
    }

    /// The kind of the blocks that hold values.
    #[inline]
    pub fn value_kind(&self) -> BlockKind {
        if self.holds_words() { BlockKind::Words } else { BlockKind::Strings }
    }

    /// The least and the greatest word of a chunk of integers, or of numerics that are kept as such.
    pub fn integer_bounds(&self) -> Option<(i64, i64)> {
        match self.scale {
            None => self.statistics.integer_bounds(self.kind),
            Some(scale) => self.statistics.mantissa_bounds(scale),
        }
    }

    /// The block that holds `row`, behind `heads` others; its number of rows checked.
    #[inline]
    pub fn block_of_row(&self, blocks: &Blocks, row: usize, heads: usize, kind: BlockKind) -> Result<BlockRef> {
        let index = row >> blocks.shift;
        let block = self.file.block(blocks, index + heads, kind)?;
        if block_rows(&block) != Some(self.rows_of_block(blocks, index)) {
            return Err(self.file.damaged(blocks.number(index + heads), "rows differ from the directory"));
        }
        Ok(block)
    }

    /// Rows of the `index`-th block of rows.
    #[inline]
    fn rows_of_block(&self, blocks: &Blocks, index: usize) -> usize {
        (self.rows - (index << blocks.shift)).min(1 << blocks.shift)
    }

    /// A chunk whose checksums are right and whose values are not.
    #[cold]
    pub fn undecodable(&self) -> SegmentError {
        self.damaged("values do not decode")
    }

    #[cold]
    pub fn damaged(&self, reason: &'static str) -> SegmentError {
        match self.entry {
            ChunkEntry::Blocks(blocks) => self.file.damaged(blocks.first, reason),
            ChunkEntry::Nothing | ChunkEntry::Bytes(_) | ChunkEntry::Section => self.file.damaged_footer(reason),
        }
    }
}

/// The blocks that the last of single rows came from.
#[derive(Default)]
pub(crate) struct HeldRow {
    block: Option<(u32, BlockRef)>,
    head: Option<(u32, BlockRef)>,
    scratch: Vec<u8>,
}

impl HeldRow {
    /// The block of a row, which has no others before it.
    #[inline]
    pub fn block(&mut self, chunk: &ChunkView<'_>, blocks: &Blocks, row: usize, kind: BlockKind) -> Result<&Block> {
        held(&mut self.block, blocks.number(row >> blocks.shift), || chunk.block_of_row(blocks, row, 0, kind))
    }

    /// The block before all others, the block of a row, and a buffer.
    #[inline]
    pub fn head_and_block(
        &mut self,
        chunk: &ChunkView<'_>,
        blocks: &Blocks,
        row: usize,
        (head, kind): (BlockKind, BlockKind),
    ) -> Result<(&Block, &Block, &mut Vec<u8>)> {
        let number = blocks.number((row >> blocks.shift) + 1);
        let block = held(&mut self.block, number, || chunk.block_of_row(blocks, row, 1, kind))?;
        let head = held(&mut self.head, blocks.first, || chunk.file.block(blocks, 0, head))?;
        Ok((head, block, &mut self.scratch))
    }
}

/// The block with a number, which is the one held, or read instead.
#[inline]
fn held(slot: &mut Option<(u32, BlockRef)>, number: u32, read: impl FnOnce() -> Result<BlockRef>) -> Result<&Block> {
    if slot.as_ref().is_none_or(|(held, _)| *held != number) {
        *slot = Some((number, read()?));
    }
    Ok(&slot.as_ref().expect("filled above").1)
}

/// What a scan of a chunk holds from call to call.
#[derive(Default)]
pub(crate) struct HeldScan {
    /// Blocks are read from the file ahead.
    pub reads_ahead: bool,
    /// Frames of the chunk from `frames_at` on: those of a block that was not in the cache, and of some that follow.
    frames: Vec<u8>,
    frames_at: u64,
    /// The block read last, and its index in the chunk.
    current: Option<(usize, Arc<Block>)>,
    /// The chunk's first block, where it precedes the rows.
    head: Option<Arc<Block>>,
    /// The words of that block, once they were needed.
    head_words: Option<Arc<[i64]>>,
    /// The values of codes, once they were requested.
    pub entries: Option<Arc<Column>>,
    pub section: HeldSection,
}

impl HeldScan {
    /// Of a scan that other rows will follow.
    pub fn reading_ahead() -> HeldScan {
        HeldScan { reads_ahead: true, ..HeldScan::default() }
    }
}

/// A chunk on its way through a scan.
pub(crate) struct Scan<'a> {
    pub chunk: ChunkView<'a>,
    pub held: &'a mut HeldScan,
}

impl Scan<'_> {
    /// The block that precedes all rows.
    pub fn head(&mut self, kind: BlockKind) -> Result<Arc<Block>> {
        if let Some(head) = &self.held.head {
            return Ok(Arc::clone(head));
        }
        let head = self.block(self.chunk.blocks()?, 0, kind)?;
        Ok(Arc::clone(self.held.head.insert(head)))
    }

    /// The words of that block.
    pub fn head_words(&mut self) -> Result<Arc<[i64]>> {
        if let Some(words) = &self.held.head_words {
            return Ok(Arc::clone(words));
        }
        let head = self.head(BlockKind::Words)?;
        let Block::Words(block) = &*head else { return Err(self.chunk.damaged("not a dictionary of words")) };
        let mut words = Vec::new();
        block.decode(0..block.rows(), &mut words);
        Ok(Arc::clone(self.held.head_words.insert(words.into())))
    }

    /// Decodes blocks of words as numbers of 32 bits.
    pub fn numbers(&mut self, heads: usize, ranges: &[Range<usize>], validity: &mut Option<Bitmap>) -> Result<Vec<u32>> {
        let mut numbers: Vec<u32> = Vec::with_capacity(total(ranges));
        self.each_block(heads, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            block.decode_validity(rows.clone(), numbers.len(), validity);
            block.decode(rows, &mut numbers);
            true
        })?;
        Ok(numbers)
    }

    /// Calls `visit` with each block that holds rows of a range and which of its rows those are; `heads` blocks precede the
    /// chunk's rows.
    pub fn each_block(
        &mut self,
        heads: usize,
        kind: BlockKind,
        ranges: &[Range<usize>],
        mut visit: impl FnMut(&Block, Range<usize>) -> bool,
    ) -> Result<()> {
        let blocks = self.chunk.blocks()?;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let index = at >> blocks.shift;
                let start = index << blocks.shift;
                let end = (start + (1 << blocks.shift)).min(range.end);
                let block = match self.held.current.take() {
                    Some((current, block)) if current == index + heads => block,
                    _ => self.block(blocks, index + heads, kind)?,
                };
                let expected = self.chunk.rows_of_block(blocks, index);
                if block_rows(&block) != Some(expected) || !visit(&block, at - start..end - start) {
                    return Err(self.chunk.file.damaged(blocks.number(index + heads), "rows differ from the directory"));
                }
                self.held.current = Some((index + heads, block));
                at = end;
            }
        }
        Ok(())
    }

    /// The same with those rows of each block that were picked, by their numbers among all rows of the ranges, ascending.
    pub fn each_block_picked(
        &mut self,
        heads: usize,
        kind: BlockKind,
        ranges: &[Range<usize>],
        mut picks: &[u32],
        mut visit: impl FnMut(&Block, &[u32]) -> bool,
    ) -> Result<()> {
        let (mut before, mut picked) = (0, Vec::new());
        self.each_block(heads, kind, ranges, |block, rows| {
            let here;
            (here, picks) = picks.split_at(picks.partition_point(|pick| (*pick as usize) < before + rows.len()));
            picked.clear();
            picked.extend(here.iter().map(|pick| (*pick as usize - before + rows.start) as u32));
            before += rows.len();
            visit(block, &picked)
        })
    }

    fn block(&mut self, blocks: &Blocks, index: usize, kind: BlockKind) -> Result<Arc<Block>> {
        let (file, held) = (self.chunk.file, &mut *self.held);
        if !held.reads_ahead {
            return file.block(blocks, index, kind).map(BlockRef::into_arc);
        }
        if let Some(block) = file.cached(blocks.number(index)) {
            return Ok(block.into_arc());
        }
        let (offset, length) = blocks.extent(index);
        let is_read = held.frames_at <= offset && offset + length as u64 <= held.frames_at + held.frames.len() as u64;
        if !is_read {
            (held.frames, held.frames_at) = (file.frames_ahead(blocks, index)?, offset);
        }
        let at = (offset - held.frames_at) as usize;
        file.parse(blocks.number(index), &held.frames[at..at + length], kind, file.caches_scans())
    }
}

pub(crate) fn total(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

/// Rows of a block of values; `None` for other blocks.
#[inline]
fn block_rows(block: &Block) -> Option<usize> {
    match block {
        Block::Words(block) => Some(WordBlock::rows(block)),
        Block::Strings(block) => Some(StringBlock::rows(block)),
        Block::Symbols(_) | Block::Digits(_) | Block::Keys(_) | Block::Filter(_) | Block::Reference(_) => None,
    }
}
