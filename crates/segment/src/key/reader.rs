//! Reads a key segment.

use std::sync::Arc;

use melba_types::Csn;
use melba_vfs::Directory;

use super::block::RestartInterval;
use super::cursor::KeyCursor;
use super::directory::{KeyDirectory, PARTITION_BLOCKS};
use super::heads::Heads;
use super::{KEY_MAGIC, KeySegmentMeta, ROW_ID_BYTES};
use crate::block::{Block, BlockKind};
use crate::cache::{BlockCache, BlockRef, SegmentBlocks};
use crate::error::{BlockName, Result, SegmentError};
use crate::filter;
use crate::frame::FrameReader;

/// An open key segment; shared between threads.
pub struct KeySegmentReader {
    frames: FrameReader,
    cached: SegmentBlocks,
    directory: KeyDirectory,
    /// Of the separators but the first, which is empty.
    heads: Heads,
    /// The meaning of a stored CSN of 0.
    assigned: Csn,
}

impl KeySegmentReader {
    /// Opens a segment, reading its footer only.
    pub fn open(directory: &dyn Directory, name: &str, cache: &Arc<BlockCache>) -> Result<Arc<KeySegmentReader>> {
        KeySegmentReader::open_assigned(directory, name, cache, Csn(0))
    }

    /// Opens a segment written before its transaction's commit: entries stored with CSN 0 have CSN `assigned`.
    pub fn open_assigned(
        directory: &dyn Directory,
        name: &str,
        cache: &Arc<BlockCache>,
        assigned: Csn,
    ) -> Result<Arc<KeySegmentReader>> {
        let (frames, footer) = FrameReader::open(directory, name, &KEY_MAGIC)?;
        let decoded = KeyDirectory::decode(&footer, frames.version, frames.blocks_end());
        let mut directory = decoded.ok_or_else(|| frames.corrupt(BlockName::Footer, "not a key directory"))?;
        directory.meta.stored_bytes = frames.file_bytes;
        directory.meta.footer_crc = frames.footer_crc;
        if directory.meta.csn_min.0 == 0 {
            let uniform = directory.meta.csn_max.0 == 0;
            directory.meta.csn_min = if uniform { assigned } else { assigned.min(Csn(1)) };
            directory.meta.csn_max = directory.meta.csn_max.max(assigned);
        }
        let cached = SegmentBlocks::new(cache, directory.extents.len() + directory.filters.len());
        let separators = &directory.separators;
        let heads = Heads::new(separators.len().saturating_sub(1), |i| separators.get(i + 1));
        Ok(Arc::new(KeySegmentReader { frames, cached, directory, heads, assigned }))
    }

    /// Says for whom the blocks are counted (`melba_vfs::counts`).
    pub fn set_owner(&self, owner: u64) {
        self.cached.set_owner(owner);
    }

    pub fn meta(&self) -> &KeySegmentMeta {
        &self.directory.meta
    }

    /// About `n` bounds of blocks, spread over the segment: they divide it into parts with about equally many entries.
    pub fn sample(&self, n: usize) -> impl Iterator<Item = &[u8]> {
        let step = (self.blocks() / n.max(1)).max(1);
        (0..self.blocks()).step_by(step).map(|block| self.directory.separators.get(block))
    }

    /// A cursor, not yet positioned.
    pub fn cursor(self: &Arc<Self>) -> KeyCursor {
        KeyCursor::new(Arc::clone(self))
    }

    /// Whether some entry's key without its row id may be exactly `prefix`: false is certain, true is wrong about once in a
    /// hundred times.
    pub fn may_contain(&self, prefix: &[u8]) -> Result<bool> {
        if self.blocks() == 0 || prefix > self.meta().key_max.as_slice() {
            return Ok(false);
        }
        // Entries with the prefix begin in this block or, when all its keys are below, in the next one.
        let block = self.block_of(prefix);
        let partition = block / PARTITION_BLOCKS;
        let next = ((block + 1) / PARTITION_BLOCKS).min(self.directory.filters.len() - 1);
        for partition in partition..=next {
            match &*self.filter(partition)? {
                Block::Filter(bytes) if !filter::may_contain(bytes, prefix) => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Checks every block: checksums, layouts, the order of keys, and that filters know their keys.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        let mut last: Option<(Vec<u8>, Csn)> = None;
        let (mut interval, mut entries) = (RestartInterval::default(), 0);
        for index in 0..self.blocks() {
            let damaged = |reason| self.damaged(index, reason);
            let block = self.block(index)?;
            let Block::Keys(keys) = &*block else { return Err(damaged("unknown layout")) };
            let filter = self.filter(index / PARTITION_BLOCKS)?;
            for i in 0..keys.intervals() {
                keys.enter(i, &mut interval)
                    .and_then(|()| keys.decode_rest(&mut interval))
                    .ok_or_else(|| damaged("entries do not decode"))?;
                for i in 0..interval.len() {
                    let (key, csn) = (interval.key(i), interval.version(i).0);
                    let ordered = last.as_ref().is_none_or(|(k, c)| k.as_slice() < key || (k == key && *c > csn));
                    if !ordered || key < self.directory.separators.get(index) {
                        return Err(damaged("keys out of order"));
                    }
                    let prefix = &key[..key.len().saturating_sub(ROW_ID_BYTES)];
                    if !matches!(&*filter, Block::Filter(bytes) if filter::may_contain(bytes, prefix)) {
                        return Err(damaged("key missing from its filter"));
                    }
                    last = Some((key.to_vec(), csn));
                }
            }
            entries += keys.entries() as u64;
        }
        let key_max = last.map(|(key, _)| key).unwrap_or_default();
        if entries != self.meta().entries || key_max != self.meta().key_max {
            return Err(self.frames.corrupt(BlockName::Footer, "totals differ from the blocks"));
        }
        Ok(())
    }

    pub(super) fn blocks(&self) -> usize {
        self.directory.extents.len()
    }

    pub(super) fn assigned(&self) -> Csn {
        self.assigned
    }

    /// The last block whose separator is not above `key`.
    pub(super) fn block_of(&self, key: &[u8]) -> usize {
        self.heads.partition_point(key, |i| self.directory.separators.get(i + 1) <= key)
    }

    /// Greater than every key before a block, and not greater than any in it.
    pub(super) fn separator(&self, index: usize) -> &[u8] {
        self.directory.separators.get(index)
    }

    /// Number of a key block within the file: filters lie between them.
    fn number(index: usize) -> u32 {
        (index + index / PARTITION_BLOCKS) as u32
    }

    pub(super) fn block(&self, index: usize) -> Result<BlockRef> {
        self.load(self.directory.extents[index], KeySegmentReader::number(index), BlockKind::Keys)
    }

    fn filter(&self, partition: usize) -> Result<BlockRef> {
        let last = ((partition + 1) * PARTITION_BLOCKS).min(self.blocks()) - 1;
        self.load(self.directory.filters[partition], KeySegmentReader::number(last) + 1, BlockKind::Filter)
    }

    fn load(&self, (offset, length): (u64, u32), number: u32, kind: BlockKind) -> Result<BlockRef> {
        if let Some(block) = self.cached.get(number) {
            return Ok(block);
        }
        let frame = self.frames.bytes(offset, length as usize)?;
        self.cached.note_read(frame.len());
        let content = self.frames.content(&frame, number)?;
        let block = Block::parse(kind, content);
        let block = block.ok_or_else(|| self.frames.corrupt(BlockName::Data(number), "unknown layout"))?;
        let block = Arc::new(block);
        self.cached.insert(number, &block);
        Ok(block.into())
    }

    pub(super) fn damaged(&self, index: usize, reason: &'static str) -> SegmentError {
        self.frames.corrupt(BlockName::Data(KeySegmentReader::number(index)), reason)
    }
}
