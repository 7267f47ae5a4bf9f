//! A dump's files: checksummed, compressed blocks of any number of numbered streams in few files.
//!
//! ```text
//! file    magic "MELBADMP" | u32 version | u32 part | u64 dump id | block ...
//! block   u32 stream | u32 sequence | u32 raw bytes | u32 stored bytes | u32 crc32c of these 16 bytes and what is stored
//!         | stored: one zstd frame
//! ```
//!
//! All numbers are little-endian. A stream's blocks are numbered from 0 in the order of its bytes; its last block is empty
//! (0 raw bytes). Stream 0, in part 0, is the contents: what the dump is of and which streams it has (`contents`). The file of
//! part 0 ends with a block of stream `u32::MAX` whose raw bytes are the number of parts (u32) and of all blocks (u64).
//!
//! Invariants:
//! 1. A dump is whole when part 0 ends with the end block, and every part has the blocks it counts. The missing parts of an
//!    interrupted one are known: the contents come first, and a stream without its empty block is not whole.
//! 2. Blocks are found by walking their headers: there is no index to lose, and a pipe can be written.
//! 3. Memory is one block per worker when writing, and 16 bytes per block when reading.

pub mod contents;
mod format;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use contents::{Contents, Entry, LARGE_OBJECT_COMMENT, Section, StreamInfo, StreamKind};
pub use reader::ArchiveReader;
pub use writer::ArchiveWriter;

/// Raw bytes of a block, at most.
pub const BLOCK_BYTES: usize = 1 << 20;
