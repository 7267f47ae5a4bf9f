//! Key segments: sorted memcomparable keys, each ending in its row id (8 bytes, big-endian).
//!
//! Invariants:
//! 1. Entries lie in ascending order of key, versions of one key newest first (descending CSN).
//! 2. All versions of a key are in one block.
//! 3. A block's separator is greater than every key before the block and not greater than any key in it.
//!
//! See docs/design/segment.md for the bytes.

pub(crate) mod block;
mod cursor;
pub(crate) mod directory;
mod find;
mod heads;
mod reader;
mod writer;

use melba_types::Csn;

pub use cursor::KeyCursor;
pub use reader::KeySegmentReader;
pub use writer::KeySegmentWriter;

use crate::frame::Codec;

pub(crate) const KEY_MAGIC: [u8; 8] = *b"MELBAKEY";
/// Bytes of the row id at a key's end.
pub const ROW_ID_BYTES: usize = 8;

/// How a key segment is written.
#[derive(Clone, Copy, Debug)]
pub struct KeyOptions {
    pub codec: Codec,
    /// Encoded bytes of a block, about.
    pub block_bytes: usize,
}

impl Default for KeyOptions {
    fn default() -> Self {
        KeyOptions { codec: Codec::None, block_bytes: 8 << 10 }
    }
}

/// The content of a finished key segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySegmentMeta {
    /// Versions, tombstones included.
    pub entries: u64,
    pub tombstones: u64,
    /// Bytes of all keys.
    pub raw_bytes: u64,
    /// Bytes of the file.
    pub stored_bytes: u64,
    /// Empty for a segment without entries.
    pub key_min: Vec<u8>,
    pub key_max: Vec<u8>,
    pub csn_min: Csn,
    pub csn_max: Csn,
    /// Its blocks are compressed.
    pub packed: bool,
    /// Checksum of the directory, which names every block: distinguishes two files.
    pub footer_crc: u32,
}

#[cfg(test)]
mod tests;
