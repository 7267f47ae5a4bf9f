//! Writes a key segment front to back.

use melba_types::Csn;
use melba_vfs::Directory;

use super::block::{KeyBlockBuilder, shared_prefix};
use super::directory::{KeyDirectory, PARTITION_BLOCKS};
use super::{KEY_MAGIC, KeyOptions, KeySegmentMeta, ROW_ID_BYTES};
use crate::error::Result;
use crate::filter::FilterBuilder;
use crate::frame::{Codec, FrameWriter};

/// Entries of a block at most, regardless of their size.
const BLOCK_ENTRIES_MAX: usize = 4096;

/// Writes a key segment. Dropped before `finish`, it leaves a file without a footer, which no reader opens and the owner of
/// the directory removes.
pub struct KeySegmentWriter {
    frames: FrameWriter,
    options: KeyOptions,
    block: KeyBlockBuilder,
    filter: FilterBuilder,
    directory: KeyDirectory,
    last_key: Vec<u8>,
    last_csn: Csn,
    scratch: Vec<u8>,
}

impl KeySegmentWriter {
    /// Creates the file `name`, which must not exist.
    pub fn create(directory: &dyn Directory, name: &str, options: &KeyOptions) -> Result<KeySegmentWriter> {
        Ok(KeySegmentWriter {
            frames: FrameWriter::create(directory, name, &KEY_MAGIC)?,
            options: *options,
            block: KeyBlockBuilder::default(),
            filter: FilterBuilder::default(),
            directory: KeyDirectory::default(),
            last_key: Vec::new(),
            last_csn: Csn(0),
            scratch: Vec::new(),
        })
    }

    /// Appends an entry; `key` ends in the row id. `Csn(0)` is for entries whose commit is to come, see
    /// `KeySegmentReader::open_assigned`.
    ///
    /// # Panics
    /// When entries do not come in ascending (key, descending CSN) order: a bug of ours.
    pub fn append(&mut self, key: &[u8], csn: Csn, tombstone: bool) -> Result<()> {
        let meta = &mut self.directory.meta;
        let first = meta.entries == 0;
        let shared = shared_prefix(&self.last_key, key);
        let same = !first && shared == key.len() && shared == self.last_key.len();
        let ordered = if same { csn < self.last_csn } else { self.last_key.get(shared) < key.get(shared) };
        assert!(first || ordered, "keys out of order");
        let full = self.block.bytes() >= self.options.block_bytes || self.block.len() >= BLOCK_ENTRIES_MAX;
        if first {
            meta.key_min = key.to_vec();
            (meta.csn_min, meta.csn_max) = (csn, csn);
        }
        meta.entries += 1;
        meta.tombstones += u64::from(tombstone);
        meta.raw_bytes += key.len() as u64;
        meta.csn_min = meta.csn_min.min(csn);
        meta.csn_max = meta.csn_max.max(csn);
        if full && !same {
            self.flush_block()?;
            if self.directory.extents.len().is_multiple_of(PARTITION_BLOCKS) {
                self.flush_filter()?;
            }
        }
        if self.block.is_empty() {
            // The shortest prefix that is above every key before it.
            let length = if first { 0 } else { shared + 1 };
            self.directory.separators.push(&key[..length.min(key.len())]);
        }
        self.block.push(key, shared, csn, tombstone);
        self.filter.add(&key[..key.len().saturating_sub(ROW_ID_BYTES)]);
        if !same {
            self.last_key.truncate(shared);
            self.last_key.extend_from_slice(&key[shared..]);
        }
        self.last_csn = csn;
        Ok(())
    }

    fn flush_block(&mut self) -> Result<()> {
        self.scratch.clear();
        self.block.finish(&mut self.scratch);
        let offset = self.frames.offset();
        let length = self.frames.block(&self.scratch, self.options.codec)?;
        self.directory.extents.push((offset, length));
        Ok(())
    }

    fn flush_filter(&mut self) -> Result<()> {
        let offset = self.frames.offset();
        let length = self.frames.block(&self.filter.finish(), Codec::None)?;
        self.directory.filters.push((offset, length));
        Ok(())
    }

    /// The key that was appended last; empty when there is none.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes written to the file so far, about: lets a merge cut its output.
    pub fn stored_bytes(&self) -> u64 {
        self.frames.offset()
    }

    /// Writes the rest and the footer, and makes the file's content durable; the caller makes its name durable
    /// (`Directory::sync_names`).
    pub fn finish(mut self) -> Result<KeySegmentMeta> {
        if !self.block.is_empty() {
            self.flush_block()?;
            self.flush_filter()?;
        }
        self.directory.meta.key_max = self.last_key;
        self.directory.meta.packed = self.options.codec != Codec::None;
        let footer = self.directory.encode();
        let (stored_bytes, footer_crc) = self.frames.finish(&footer, &KEY_MAGIC)?;
        Ok(KeySegmentMeta { stored_bytes, footer_crc, ..self.directory.meta })
    }
}
