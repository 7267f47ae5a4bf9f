//! The position of the filter of a chunk of many different values: behind the chunk's blocks, in parts of which a lookup reads one.

use crate::filter::FILTER_BLOCK_BYTES;
use crate::frame::FRAME_BYTES;

/// Filter blocks of a part: 4 KB.
pub(crate) const PART_BLOCKS: usize = 128;
/// The size of a part in the file beside its content: the frame, and the codec's byte.
const PART_OVERHEAD_BYTES: u64 = FRAME_BYTES as u64 + 1;

/// Where a chunk's filter lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ChunkFilter {
    /// Filter blocks of all parts.
    pub blocks: u32,
    /// Number of the first part within the file.
    pub first: u32,
    /// Its offset within the file.
    pub offset: u64,
}

impl ChunkFilter {
    pub fn parts(&self) -> usize {
        (self.blocks as usize).div_ceil(PART_BLOCKS)
    }

    /// Bytes of all parts in the file.
    pub fn bytes(&self) -> u64 {
        u64::from(self.blocks) * FILTER_BLOCK_BYTES as u64 + self.parts() as u64 * PART_OVERHEAD_BYTES
    }

    /// Offset and length of a part in the file.
    pub fn extent(&self, part: usize) -> (u64, usize) {
        let start = part as u64 * (PART_OVERHEAD_BYTES + (PART_BLOCKS * FILTER_BLOCK_BYTES) as u64);
        let blocks = (self.blocks as usize - part * PART_BLOCKS).min(PART_BLOCKS);
        (self.offset + start, PART_OVERHEAD_BYTES as usize + blocks * FILTER_BLOCK_BYTES)
    }
}
