//! Chunks of long byte strings, such as frames of large values: each string is a separate block, written when it arrives. They
//! are not collected, so they cost one pass for the checksum and the copy into the file.

use super::directory::Chunk;
use crate::encoding::{BLOCKS, BlockList, ChunkEntry};
use crate::error::Result;
use crate::frame::{FrameBuffer, FrameWriter};
use crate::layout::strings;
use crate::statistics::{Bounds, Statistics};

/// A chunk that is being written.
pub(super) struct LongChunk {
    list: BlockList,
    rows: u64,
    nulls: u64,
    bytes: usize,
    head: Vec<u8>,
}

impl LongChunk {
    /// A chunk that begins at the position of the next block.
    pub fn begin(frames: &FrameBuffer) -> LongChunk {
        LongChunk { list: BlockList::new(frames), rows: 0, nulls: 0, bytes: 0, head: Vec::new() }
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether values would still have `average` bytes on average after one more of `bytes`.
    pub fn takes(&self, bytes: usize, average: usize) -> bool {
        self.bytes + bytes >= (self.rows as usize + 1) * average
    }

    /// Writes a value, which comes in parts; `None`: null.
    pub fn append(&mut self, parts: Option<&[&[u8]]>, frames: &mut FrameWriter) -> Result<()> {
        let length = parts.map(|parts| parts.iter().map(|part| part.len()).sum());
        self.head.clear();
        strings::encode_single_head(length, &mut self.head);
        let mut content: Vec<&[u8]> = vec![&self.head];
        content.extend(parts.unwrap_or_default());
        self.list.note(frames.plain_block(&content)?);
        self.rows += 1;
        self.nulls += u64::from(parts.is_none());
        self.bytes += length.unwrap_or(0);
        Ok(())
    }

    pub fn finish(self) -> Chunk {
        let statistics = Statistics { nulls: self.nulls, distinct: self.rows - self.nulls, bounds: Bounds::None };
        Chunk { statistics, encoding: BLOCKS, entry: ChunkEntry::Blocks(self.list.finish(0)), scale: None, filter: None }
    }
}
