//! Bytes of file and block headers.

use crate::Result;

pub const MAGIC: [u8; 8] = *b"MELBADMP";
pub const VERSION: u32 = 2;
/// The contents' stream.
pub const CONTENTS: u32 = 0;
/// The end block's stream.
pub const END: u32 = u32::MAX;

pub const FILE_HEADER_BYTES: usize = 24;
pub const BLOCK_HEADER_BYTES: usize = 20;

/// How a file of a dump begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    pub part: u32,
    /// The same in all files of a dump.
    pub dump: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub stream: u32,
    pub sequence: u32,
    pub raw_bytes: u32,
    pub stored_bytes: u32,
    crc: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl FileHeader {
    pub fn encode(self) -> [u8; FILE_HEADER_BYTES] {
        let mut out = [0; FILE_HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.part.to_le_bytes());
        out[16..].copy_from_slice(&self.dump.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<FileHeader> {
        if bytes[..8] != MAGIC {
            return Err("not a dump made by melba dump".to_owned());
        }
        match u32_at(bytes, 8) {
            VERSION => Ok(FileHeader {
                part: u32_at(bytes, 12),
                dump: u64::from(u32_at(bytes, 16)) | u64::from(u32_at(bytes, 20)) << 32,
            }),
            other => Err(format!("the dump has format version {other}, this program reads version {VERSION}")),
        }
    }
}

impl BlockHeader {
    /// Of a block with these stored bytes.
    pub fn new(stream: u32, sequence: u32, raw_bytes: u32, stored: &[u8]) -> BlockHeader {
        let mut header = BlockHeader { stream, sequence, raw_bytes, stored_bytes: stored.len() as u32, crc: 0 };
        header.crc = header.checksum(stored);
        header
    }

    fn checksum(&self, stored: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.encode()[..16]), stored)
    }

    /// Whether header and stored bytes are as they were written.
    pub fn matches(&self, stored: &[u8]) -> bool {
        self.checksum(stored) == self.crc
    }

    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        let fields = [self.stream, self.sequence, self.raw_bytes, self.stored_bytes, self.crc];
        for (chunk, field) in out.chunks_exact_mut(4).zip(fields) {
            chunk.copy_from_slice(&field.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> BlockHeader {
        let [stream, sequence, raw_bytes, stored_bytes, crc] = [0, 4, 8, 12, 16].map(|at| u32_at(bytes, at));
        BlockHeader { stream, sequence, raw_bytes, stored_bytes, crc }
    }
}
