//! The footer of a key segment: totals, and each block's separator and length.
//!
//! ```text
//! entries, tombstones, raw bytes, csn min, max varint | key min | key max | blocks varint | block ...
//! block    shared varint | rest of the separator (length, bytes) | length varint | [filter length varint]
//! packed u8 (1: the blocks are compressed)
//! ```
//!
//! A file of version 2 ends with the blocks.
//!
//! A filter follows every `PARTITION_BLOCKS`-th block and the last one, in the file and here.

use melba_types::bytes::{ByteReader, put_bytes, put_varint};
use melba_types::{ByteStrings, Csn};

use super::KeySegmentMeta;
use super::block::shared_prefix;
use crate::frame::{FRAME_BYTES, HEADER_BYTES};

/// Key blocks that share one filter: with 8 KB blocks some tens of thousands of keys, a filter of some tens of KB.
pub(crate) const PARTITION_BLOCKS: usize = 32;

/// The version whose footers say whether blocks are compressed.
const VERSION_WITH_PACKED: u32 = 3;

/// Everything the footer holds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct KeyDirectory {
    /// Without `stored_bytes` and `footer_crc`, which the file itself gives.
    pub meta: KeySegmentMeta,
    pub separators: ByteStrings,
    /// Offset of each key block, and its length.
    pub extents: Vec<(u64, u32)>,
    /// The same of each partition's filter.
    pub filters: Vec<(u64, u32)>,
}

/// Whether a filter follows block `index` of `blocks`.
pub(crate) fn ends_partition(index: usize, blocks: usize) -> bool {
    (index + 1).is_multiple_of(PARTITION_BLOCKS) || index + 1 == blocks
}

impl KeyDirectory {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let meta = &self.meta;
        for v in [meta.entries, meta.tombstones, meta.raw_bytes, meta.csn_min.0, meta.csn_max.0] {
            put_varint(v, &mut out);
        }
        put_bytes(&meta.key_min, &mut out);
        put_bytes(&meta.key_max, &mut out);
        put_varint(self.extents.len() as u64, &mut out);
        let mut before: &[u8] = &[];
        for (i, &(_, length)) in self.extents.iter().enumerate() {
            let separator = self.separators.get(i);
            let shared = shared_prefix(before, separator);
            put_varint(shared as u64, &mut out);
            put_bytes(&separator[shared..], &mut out);
            put_varint(u64::from(length), &mut out);
            if ends_partition(i, self.extents.len()) {
                put_varint(u64::from(self.filters[i / PARTITION_BLOCKS].1), &mut out);
            }
            before = separator;
        }
        out.push(u8::from(meta.packed));
        out
    }

    /// Parses a footer of a format version, whose blocks must end at `blocks_end`.
    pub fn decode(bytes: &[u8], version: u32, blocks_end: u64) -> Option<KeyDirectory> {
        let mut r = ByteReader::new(bytes);
        let mut meta = KeySegmentMeta {
            entries: r.varint()?,
            tombstones: r.varint()?,
            raw_bytes: r.varint()?,
            csn_min: Csn(r.varint()?),
            csn_max: Csn(r.varint()?),
            ..KeySegmentMeta::default()
        };
        meta.key_min = r.bytes()?.to_vec();
        meta.key_max = r.bytes()?.to_vec();
        let blocks = r.length()?;
        let mut directory = KeyDirectory { meta, ..KeyDirectory::default() };
        let mut offset = HEADER_BYTES as u64;
        let mut extent = |r: &mut ByteReader<'_>| {
            let length = r.varint().filter(|&length| length > FRAME_BYTES as u64 && length <= u64::from(u32::MAX))?;
            let start = offset;
            offset += length;
            Some((start, length as u32))
        };
        let mut before = 0..0;
        for i in 0..blocks {
            let shared = r.length().filter(|&shared| shared <= before.len())?;
            let rest = r.bytes()?;
            let separators = &mut directory.separators;
            let start = separators.bytes.len();
            if start + shared + rest.len() > u32::MAX as usize {
                return None;
            }
            separators.bytes.extend_from_within(before.start..before.start + shared);
            separators.bytes.extend_from_slice(rest);
            separators.ends.push(separators.bytes.len() as u32);
            before = start..separators.bytes.len();
            directory.extents.push(extent(&mut r)?);
            if ends_partition(i, blocks) {
                directory.filters.push(extent(&mut r)?);
            }
        }
        if version >= VERSION_WITH_PACKED {
            directory.meta.packed = r.u8()? != 0;
        }
        (r.remaining() == 0 && offset == blocks_end).then_some(directory)
    }
}
