//! Whether a chunk may hold a value, according to its filter, without reading the chunk.

use melba_types::Datum;

use super::TableSegmentReader;
use super::filter::{ChunkFilter, PART_BLOCKS};
use crate::block::{Block, BlockKind};
use crate::cache::BlockRef;
use crate::error::Result;
use crate::filter::{FILTER_BLOCK_BYTES, block_has, block_of};
use crate::statistics::lookup_hash;

impl TableSegmentReader {
    /// Whether the filter of a chunk says that no row has `value`; false where there is no filter. As for `prune`, the answer is
    /// about this segment's versions, and values that are equal must have equal bytes.
    pub fn filters_out(&self, group: usize, column: usize, value: &Datum) -> Result<bool> {
        let Some(kind) = self.kinds().get(column) else { return Ok(false) };
        let Some(filter) = &self.chunk(group, column).filter else { return Ok(false) };
        let Some(hash) = lookup_hash(*kind, value) else { return Ok(false) };
        let at = block_of(hash, filter.blocks as usize);
        let part = self.filter_part(filter, at / PART_BLOCKS)?;
        let Block::Filter(bytes) = &*part else { return Ok(false) };
        let (blocks, _) = bytes.as_chunks::<FILTER_BLOCK_BYTES>();
        Ok(blocks.get(at % PART_BLOCKS).is_some_and(|block| !block_has(block, hash)))
    }

    /// Parts stay in the cache regardless of the segment's size: they are read often, and one by one.
    fn filter_part(&self, filter: &ChunkFilter, part: usize) -> Result<BlockRef> {
        let number = filter.first + part as u32;
        if let Some(block) = self.file.cached(number) {
            return Ok(block);
        }
        let (offset, length) = filter.extent(part);
        self.file.parse(number, &self.file.frames.bytes(offset, length)?, BlockKind::Filter, true).map(BlockRef::from)
    }

    /// Checks that every value of a chunk is in its filter; nothing to do for one that has none.
    pub(super) fn verify_filter(&self, group: usize, column: usize, values: impl Iterator<Item = Datum>) -> Result<()> {
        let Some(filter) = &self.chunk(group, column).filter else { return Ok(()) };
        for part in 0..filter.parts() {
            self.filter_part(filter, part)?;
        }
        for value in values.filter(|value| !value.is_null()) {
            if self.filters_out(group, column, &value)? {
                return Err(self.file.damaged(filter.first, "value missing from its filter"));
            }
        }
        Ok(())
    }
}
