//! The blocks of an open table segment: looked up in the cache or read from the file, verified and parsed.

use std::sync::Arc;

use crate::block::{Block, BlockKind, ReferenceName};
use crate::cache::{BlockRef, SegmentBlocks};
use crate::error::{BlockName, Result, SegmentError};
use crate::frame::FrameReader;

/// Scans leave blocks in the cache only of segments up to this share of its capacity, so that one scan of a large table
/// does not empty it.
const SCAN_CACHE_SHARE: u64 = 8;
/// Bytes of a chunk that are read from the file at a time, unless a single block is longer.
const READ_AHEAD_BYTES: u64 = 64 << 10;

/// Blocks that lie end to end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// Rows a block: `1 << shift`.
    pub shift: u8,
    /// Number of the first one within the file.
    pub first: u32,
    /// Its offset within the file.
    pub offset: u64,
    /// Where each ends, relative to `offset`.
    pub ends: Vec<u64>,
}

impl Blocks {
    /// Offset and length of the `index`-th block.
    #[inline]
    pub fn extent(&self, index: usize) -> (u64, usize) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        (self.offset + start, (self.ends[index] - start) as usize)
    }

    /// The `index`-th block's number within the file.
    #[inline]
    pub fn number(&self, index: usize) -> u32 {
        self.first + index as u32
    }

    /// Selects a row within its block.
    #[inline]
    pub fn mask(&self) -> usize {
        (1 << self.shift) - 1
    }
}

/// The blocks of one file.
pub(crate) struct BlockFile {
    pub frames: FrameReader,
    cached: SegmentBlocks,
    /// The places of references that other files may have too, by the number of the block here.
    references: Vec<(u32, Arc<SegmentBlocks>)>,
}

impl BlockFile {
    pub fn new(frames: FrameReader, cached: SegmentBlocks) -> BlockFile {
        BlockFile { frames, cached, references: Vec::new() }
    }

    /// Says which reference a block is.
    pub fn share_reference(&mut self, number: u32, name: ReferenceName) {
        self.references.push((number, self.cached.cache().reference(name)));
    }

    /// Says for whom the blocks are counted.
    pub fn set_owner(&self, owner: u64) {
        self.cached.set_owner(owner);
    }

    /// The frame of one block.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let frame = self.frames.bytes(offset, length)?;
        self.cached.note_read(length);
        Ok(frame)
    }

    /// A block if it is in the cache.
    #[inline]
    pub fn cached(&self, number: u32) -> Option<BlockRef> {
        self.cached.get(number)
    }

    /// A block, which stays in the cache.
    #[inline]
    pub fn block(&self, blocks: &Blocks, index: usize, kind: BlockKind) -> Result<BlockRef> {
        let number = blocks.number(index);
        if let Some(block) = self.cached(number) {
            return Ok(block);
        }
        let (offset, length) = blocks.extent(index);
        let content = self.frames.content_of(self.read(offset, length)?, number)?;
        self.keep(number, content, kind, true).map(BlockRef::from)
    }

    /// The content of a reference, which stays in the cache.
    pub fn reference(&self, blocks: &Blocks) -> Result<BlockRef> {
        let number = blocks.number(0);
        let shared = self.references.iter().find(|(of, _)| *of == number);
        let (place, at) = shared.map_or((&self.cached, number), |(_, shared)| (&**shared, 0));
        if let Some(block) = place.get(at) {
            return Ok(block);
        }
        let (offset, length) = blocks.extent(0);
        let content = self.frames.content_of(self.read(offset, length)?, number)?;
        let block = Arc::new(Block::Reference(content));
        place.insert(at, &block);
        Ok(BlockRef::from(block))
    }

    /// Reads a block that is compressed against a reference past the cache, and leaves it there if `keep`.
    pub fn dense_block(&self, blocks: &Blocks, index: usize, reference: &[u8], keep: bool) -> Result<Arc<Block>> {
        let (offset, length) = blocks.extent(index);
        let number = blocks.number(index);
        let content = self.frames.dense_content(&self.read(offset, length)?, number, reference)?;
        self.keep(number, content, BlockKind::Strings, keep)
    }

    /// The frames of a block and of those behind it that fit into one read.
    pub fn frames_ahead(&self, blocks: &Blocks, index: usize) -> Result<Vec<u8>> {
        let (offset, length) = blocks.extent(index);
        let most = offset - blocks.offset + READ_AHEAD_BYTES;
        let end = blocks.ends[..blocks.ends.partition_point(|end| *end <= most)].last().copied().unwrap_or(0);
        self.frames.bytes(offset, length.max((blocks.offset + end).saturating_sub(offset) as usize))
    }

    /// Verifies and parses a block's frame, and leaves the block in the cache if `keep`.
    pub fn parse(&self, number: u32, frame: &[u8], kind: BlockKind, keep: bool) -> Result<Arc<Block>> {
        self.cached.note_read(frame.len());
        self.keep(number, self.frames.content(frame, number)?, kind, keep)
    }

    fn keep(&self, number: u32, content: Vec<u8>, kind: BlockKind, keep: bool) -> Result<Arc<Block>> {
        let block = Block::parse(kind, content).ok_or_else(|| self.damaged(number, "unknown layout"))?;
        let block = Arc::new(block);
        if keep {
            self.cached.insert(number, &block);
        }
        Ok(block)
    }

    /// A block as the file has it, verified.
    pub fn frame(&self, blocks: &Blocks, index: usize) -> Result<Vec<u8>> {
        let (offset, length) = blocks.extent(index);
        let frame = self.frames.frame(offset, length, blocks.number(index))?;
        self.cached.note_read(length);
        Ok(frame)
    }

    /// Whether scans leave blocks in the cache.
    pub fn caches_scans(&self) -> bool {
        self.frames.file_bytes <= self.cache_bytes() / SCAN_CACHE_SHARE
    }

    /// Bytes that the cache may hold.
    pub fn cache_bytes(&self) -> u64 {
        self.cached.cache().capacity_bytes() as u64
    }

    pub fn damaged(&self, number: u32, reason: &'static str) -> SegmentError {
        self.frames.corrupt(BlockName::Data(number), reason)
    }

    pub fn damaged_footer(&self, reason: &'static str) -> SegmentError {
        self.frames.corrupt(BlockName::Footer, reason)
    }
}
