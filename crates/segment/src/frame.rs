//! The envelope of every segment file: header, framed blocks, footer, tail.
//!
//! ```text
//! file     header | block ... | footer | tail
//! header   magic 8 | version u32 | crc32c of the 12 bytes before u32
//! block    length of payload u32 | crc32c of payload u32 | payload
//! payload  codec u8 (0 none, 1 lz4, 2 zstd, 3 dense) | [raw length u32] | content
//! footer   a block whose content is the segment kind's directory, always codec 0 or 2
//! tail     footer offset u64 | footer block length u32 | crc32c of the 12 bytes before u32 | magic 8
//! ```
//!
//! Invariants:
//! 1. Blocks lie end to end from the header to the footer: every byte of the file is under a checksum or a constant.
//! 2. A block's length is known from the directory before it is read; the length in the frame must agree.

use std::sync::Arc;

use melba_toast::dense::{self, BlockEncoder};
use melba_toast::{lz4, zstd};
use melba_vfs::{Directory, File, counts};

use crate::error::{BlockName, Result, SegmentError};

/// Version of all segment formats; a change of any of them raises it.
pub const FORMAT_VERSION: u32 = 8;
/// The oldest version that is read: its segments have no dense sections, no numerics as words and no filters.
const FORMAT_VERSION_MIN: u32 = 2;
pub(crate) const MAGIC_BYTES: usize = 8;
pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const TAIL_BYTES: usize = 24;
pub(crate) const FRAME_BYTES: usize = 8;
const CODEC_NONE: u8 = 0;
const CODEC_LZ4: u8 = 1;
const CODEC_ZSTD: u8 = 2;
/// zstd, against the reference of the block's section.
const CODEC_DENSE: u8 = 3;
/// Bytes collected before they are given to the file.
const WRITE_BUFFER_BYTES: usize = 1 << 20;
/// Parts of blocks that are given to the file themselves: collecting them would cost more than a call.
const PART_BYTES_MIN: usize = 32 << 10;
/// Larger blocks are refused: values are limited to 1 GB, row groups to some megabytes beyond one value.
const BLOCK_BYTES_MAX: usize = u32::MAX as usize;

/// How the content of blocks is compressed, when that makes it smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    /// Fast both ways: for flushes and hot data.
    Lz4,
    /// Denser, with a level: for merges and cold data.
    Zstd(i32),
}

/// A compressed block must be at most this percentage of its raw content, else the content is stored uncompressed.
const WORTH_PERCENT: usize = 90;

/// Appends the payload for `content`.
pub(crate) fn encode_payload(content: &[u8], codec: Codec, out: &mut Vec<u8>) {
    let start = out.len();
    let target_bytes = content.len() * WORTH_PERCENT / 100;
    let tag = match codec {
        Codec::None => CODEC_NONE,
        Codec::Lz4 => CODEC_LZ4,
        Codec::Zstd(_) => CODEC_ZSTD,
    };
    if tag != CODEC_NONE && content.len() >= 64 {
        out.push(tag);
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
        let at = out.len();
        out.resize(at + target_bytes, 0);
        let written = match codec {
            Codec::Zstd(level) => zstd::compress(content, &mut out[at..], level),
            _ => lz4::compress(content, &mut out[at..]),
        };
        if let Ok(written) = written {
            out.truncate(at + written);
            return;
        }
        out.truncate(start);
    }
    out.push(CODEC_NONE);
    out.extend_from_slice(content);
}

/// The content of a payload, or why there is none.
pub(crate) fn decode_payload(payload: &[u8]) -> std::result::Result<Vec<u8>, &'static str> {
    let (&codec, body) = payload.split_first().ok_or("empty payload")?;
    if codec == CODEC_NONE {
        return Ok(body.to_vec());
    }
    let (raw, body) = body.split_first_chunk::<4>().ok_or("payload too short")?;
    let raw_bytes = u32::from_le_bytes(*raw) as usize;
    // Neither codec can expand further; without this a damaged length would allocate gigabytes.
    if raw_bytes / 40_000 > body.len() {
        return Err("implausible raw length");
    }
    let mut content = vec![0; raw_bytes];
    let decoded = match codec {
        CODEC_LZ4 => lz4::decompress(body, &mut content),
        CODEC_ZSTD => zstd::decompress(body, &mut content),
        _ => return Err("unknown codec"),
    };
    match decoded {
        Ok(n) if n == raw_bytes => Ok(content),
        _ => Err("content does not decompress"),
    }
}

/// The content of a payload that may need a reference, or why there is none.
fn decode_dense_payload(payload: &[u8], reference: &[u8]) -> std::result::Result<Vec<u8>, &'static str> {
    let Some((&CODEC_DENSE, body)) = payload.split_first() else { return decode_payload(payload) };
    let (raw, stream) = body.split_first_chunk::<4>().ok_or("payload too short")?;
    let raw_bytes = u32::from_le_bytes(*raw) as usize;
    if raw_bytes / 40_000 > stream.len() {
        return Err("implausible raw length");
    }
    let mut content = vec![0; raw_bytes];
    dense::decode_block(reference, stream, &mut content).map_err(|_| "content does not decompress")?;
    Ok(content)
}

/// Checks a frame and returns its payload.
pub(crate) fn open_frame(frame: &[u8]) -> std::result::Result<&[u8], &'static str> {
    let (head, payload) = frame.split_first_chunk::<FRAME_BYTES>().ok_or("frame too short")?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if length as usize != payload.len() {
        return Err("length differs from the directory");
    }
    if crc32c::crc32c(payload) != crc {
        return Err("checksum mismatch");
    }
    Ok(payload)
}

/// Blocks on their way into a file.
#[derive(Default)]
pub(crate) struct FrameBuffer {
    bytes: Vec<u8>,
    /// Where the bytes begin in the file.
    start: u64,
    /// Blocks before the next one, in the file.
    blocks: u32,
    scratch: Vec<u8>,
}

impl FrameBuffer {
    /// Forgets all blocks, as if there had been none.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.start, self.blocks) = (0, 0);
    }

    /// Where the next block begins.
    pub fn offset(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Number of the next block.
    pub fn next_block(&self) -> u32 {
        self.blocks
    }

    /// Adds a block and returns its length in the file.
    pub fn block(&mut self, content: &[u8], codec: Codec) -> u32 {
        self.scratch.clear();
        encode_payload(content, codec, &mut self.scratch);
        self.add_scratch()
    }

    /// Adds a block of a dense section.
    pub fn dense_block(&mut self, content: &[u8], encoder: &mut BlockEncoder) -> u32 {
        self.scratch.clear();
        self.scratch.push(CODEC_DENSE);
        self.scratch.extend_from_slice(&(content.len() as u32).to_le_bytes());
        if !encoder.encode(content, content.len() * WORTH_PERCENT / 100, &mut self.scratch) {
            self.scratch.clear();
            encode_payload(content, Codec::None, &mut self.scratch);
        }
        self.add_scratch()
    }

    /// Adds the block whose payload is in `scratch`.
    fn add_scratch(&mut self) -> u32 {
        assert!(self.scratch.len() + FRAME_BYTES <= BLOCK_BYTES_MAX, "a block of {} bytes", self.scratch.len());
        self.bytes.extend_from_slice(&(self.scratch.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&crc32c::crc32c(&self.scratch).to_le_bytes());
        self.bytes.extend_from_slice(&self.scratch);
        self.blocks += 1;
        (self.scratch.len() + FRAME_BYTES) as u32
    }

    /// Adds a block of uncompressed content that comes in parts.
    pub fn plain_block(&mut self, parts: &[&[u8]]) -> u32 {
        let length = self.begin_plain(parts);
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        length
    }

    /// Adds the header that precedes a block's content, and counts it; returns its length in the file.
    fn begin_plain(&mut self, parts: &[&[u8]]) -> u32 {
        let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
        assert!(length + FRAME_BYTES <= BLOCK_BYTES_MAX, "a block of {length} bytes");
        let crc = parts.iter().fold(crc32c::crc32c(&[CODEC_NONE]), |crc, part| crc32c::crc32c_append(crc, part));
        self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
        self.bytes.extend_from_slice(&crc.to_le_bytes());
        self.bytes.push(CODEC_NONE);
        self.blocks += 1;
        (length + FRAME_BYTES) as u32
    }
}

/// Writes a segment's file front to back.
pub(crate) struct FrameWriter {
    file: Arc<dyn File>,
    name: Arc<str>,
    buffer: FrameBuffer,
    /// Where the bytes begin that the system was not yet asked to write back.
    unsent: u64,
}

impl FrameWriter {
    pub fn create(directory: &dyn Directory, name: &str, magic: &[u8; MAGIC_BYTES]) -> Result<FrameWriter> {
        let name: Arc<str> = name.into();
        let file = directory.create(&name).map_err(|error| SegmentError::Io { file: Arc::clone(&name), error })?;
        let mut bytes = Vec::with_capacity(WRITE_BUFFER_BYTES);
        bytes.extend_from_slice(magic);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        Ok(FrameWriter { file, name, buffer: FrameBuffer { bytes, ..FrameBuffer::default() }, unsent: 0 })
    }

    /// Where the next block begins.
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// Number of the next block.
    pub fn next_block(&self) -> u32 {
        self.buffer.next_block()
    }

    /// The buffer for blocks; call `flush_full` after each few of them.
    pub fn buffer(&mut self) -> &mut FrameBuffer {
        &mut self.buffer
    }

    /// Writes a block and returns its length in the file.
    pub fn block(&mut self, content: &[u8], codec: Codec) -> Result<u32> {
        let length = self.buffer.block(content, codec);
        self.flush_full()?;
        Ok(length)
    }

    /// Writes a block of a dense section and returns its length in the file.
    pub fn dense_block(&mut self, content: &[u8], encoder: &mut BlockEncoder) -> Result<u32> {
        let length = self.buffer.dense_block(content, encoder);
        self.flush_full()?;
        Ok(length)
    }

    /// Writes a block as another file has it, whose frame was checked, and returns its length in the file.
    pub fn copied_block(&mut self, frame: &[u8]) -> Result<u32> {
        self.buffer.bytes.extend_from_slice(frame);
        self.buffer.blocks += 1;
        self.flush_full()?;
        Ok(frame.len() as u32)
    }

    /// Writes a block of uncompressed content that comes in parts, long ones without collecting them; returns its length in the
    /// file.
    pub fn plain_block(&mut self, parts: &[&[u8]]) -> Result<u32> {
        let length = self.buffer.begin_plain(parts);
        for part in parts {
            if part.len() < PART_BYTES_MIN {
                self.buffer.bytes.extend_from_slice(part);
            } else {
                self.give_buffer()?;
                self.give(part)?;
            }
        }
        self.flush_full()?;
        Ok(length)
    }

    /// Adds blocks that were encoded without knowing their position.
    pub fn append(&mut self, blocks: &FrameBuffer) -> Result<()> {
        self.buffer.bytes.extend_from_slice(&blocks.bytes);
        self.buffer.blocks += blocks.blocks;
        self.flush_full()
    }

    /// Writes the buffer to the file once it is large.
    pub fn flush_full(&mut self) -> Result<()> {
        if self.buffer.bytes.len() >= WRITE_BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes footer and tail and makes the file durable (not its name); returns its length and the footer's checksum.
    pub fn finish(mut self, footer: &[u8], magic: &[u8; MAGIC_BYTES]) -> Result<(u64, u32)> {
        let offset = self.offset();
        let length = self.block(footer, Codec::Zstd(1))?;
        let crc = crc32c::crc32c(&self.buffer.scratch);
        let mut tail = Vec::with_capacity(TAIL_BYTES);
        tail.extend_from_slice(&offset.to_le_bytes());
        tail.extend_from_slice(&length.to_le_bytes());
        tail.extend_from_slice(&crc32c::crc32c(&tail).to_le_bytes());
        tail.extend_from_slice(magic);
        self.buffer.bytes.extend_from_slice(&tail);
        self.flush()?;
        self.file.sync().map_err(|error| self.io(error))?;
        counts::note_written(u64::from(self.next_block()), self.offset());
        Ok((self.offset(), crc))
    }

    fn flush(&mut self) -> Result<()> {
        self.give_buffer()?;
        self.write_back()
    }

    /// Writes the buffer to the file.
    fn give_buffer(&mut self) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.buffer.bytes);
        let given = self.give(&bytes);
        bytes.clear();
        self.buffer.bytes = bytes;
        given
    }

    /// Writes bytes to the file; the buffer, which is empty, then continues behind them.
    fn give(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.buffer.start).map_err(|error| self.io(error))?;
        self.buffer.start += bytes.len() as u64;
        if self.buffer.start - self.unsent >= WRITE_BUFFER_BYTES as u64 { self.write_back() } else { Ok(()) }
    }

    /// Piece by piece, so that the sync at the end has little left to do and does not hold up the log's.
    fn write_back(&mut self) -> Result<()> {
        let bytes = self.buffer.start - self.unsent;
        self.file.write_back(self.unsent, bytes).map_err(|error| self.io(error))?;
        self.unsent = self.buffer.start;
        Ok(())
    }

    fn io(&self, error: std::io::Error) -> SegmentError {
        SegmentError::Io { file: Arc::clone(&self.name), error }
    }

    pub fn corrupt(&self, block: BlockName, reason: &'static str) -> SegmentError {
        SegmentError::Corrupt { file: Arc::clone(&self.name), block, reason }
    }
}

/// Reads a segment's file.
pub(crate) struct FrameReader {
    file: Arc<dyn File>,
    pub name: Arc<str>,
    pub file_bytes: u64,
    pub footer_crc: u32,
    /// The file's format version.
    pub version: u32,
    footer_offset: u64,
}

impl FrameReader {
    /// Opens a file and returns the footer's content with it.
    pub fn open(directory: &dyn Directory, name: &str, magic: &[u8; MAGIC_BYTES]) -> Result<(FrameReader, Vec<u8>)> {
        let name: Arc<str> = name.into();
        let io = |error| SegmentError::Io { file: Arc::clone(&name), error };
        let file = directory.open_on_demand(&name).map_err(io)?;
        let file_bytes = file.len().map_err(io)?;
        let mut reader = FrameReader { file, name: Arc::clone(&name), file_bytes, footer_crc: 0, version: 0, footer_offset: 0 };
        if file_bytes < (HEADER_BYTES + TAIL_BYTES) as u64 {
            return Err(reader.corrupt(BlockName::Tail, "file too short"));
        }
        reader.version = reader.check_header(magic)?;
        let tail = reader.bytes(file_bytes - TAIL_BYTES as u64, TAIL_BYTES)?;
        let crc = u32::from_le_bytes([tail[12], tail[13], tail[14], tail[15]]);
        if tail[16..] != magic[..] || crc32c::crc32c(&tail[..12]) != crc {
            return Err(reader.corrupt(BlockName::Tail, "checksum mismatch"));
        }
        let mut fields = melba_types::bytes::ByteReader::new(&tail);
        let (offset, length) = fields.u64().zip(fields.u32()).ok_or_else(|| reader.corrupt(BlockName::Tail, "too short"))?;
        let end = offset.checked_add(u64::from(length));
        if offset < HEADER_BYTES as u64 || end != Some(file_bytes - TAIL_BYTES as u64) {
            return Err(reader.corrupt(BlockName::Tail, "footer not where the tail says"));
        }
        reader.footer_offset = offset;
        let frame = reader.bytes(offset, length as usize)?;
        reader.footer_crc = crc32c::crc32c(frame.get(FRAME_BYTES..).unwrap_or_default());
        let footer = open_frame(&frame).and_then(decode_payload);
        let footer = footer.map_err(|reason| reader.corrupt(BlockName::Footer, reason))?;
        Ok((reader, footer))
    }

    fn check_header(&self, magic: &[u8; MAGIC_BYTES]) -> Result<u32> {
        let header = self.bytes(0, HEADER_BYTES)?;
        let crc = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        if header[..MAGIC_BYTES] != magic[..] || crc32c::crc32c(&header[..12]) != crc {
            return Err(self.corrupt(BlockName::Header, "checksum or magic mismatch"));
        }
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
            return Err(SegmentError::Version { file: Arc::clone(&self.name), found: version });
        }
        Ok(version)
    }

    /// Where blocks end.
    pub fn blocks_end(&self) -> u64 {
        self.footer_offset
    }

    /// See `File::expect`.
    pub fn expect(&self, range: std::ops::Range<u64>) {
        self.file.expect(range);
    }

    /// `length` bytes at `offset`, frames included.
    pub fn bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let read = self.file.read_at(&mut bytes, offset);
        read.map_err(|error| SegmentError::Io { file: Arc::clone(&self.name), error })?;
        Ok(bytes)
    }

    /// The frame of a block, verified.
    pub fn frame(&self, offset: u64, length: usize, number: u32) -> Result<Vec<u8>> {
        let frame = self.bytes(offset, length)?;
        open_frame(&frame).map_err(|reason| self.corrupt(BlockName::Data(number), reason))?;
        Ok(frame)
    }

    /// The verified content of one frame that is not needed any more.
    pub fn content_of(&self, mut frame: Vec<u8>, number: u32) -> Result<Vec<u8>> {
        let payload = open_frame(&frame).map_err(|reason| self.corrupt(BlockName::Data(number), reason))?;
        if payload.first() != Some(&CODEC_NONE) {
            return decode_payload(payload).map_err(|reason| self.corrupt(BlockName::Data(number), reason));
        }
        frame.drain(..=FRAME_BYTES);
        Ok(frame)
    }

    /// The verified content of a frame of a dense section.
    pub fn dense_content(&self, frame: &[u8], number: u32, reference: &[u8]) -> Result<Vec<u8>> {
        let content = open_frame(frame).and_then(|payload| decode_dense_payload(payload, reference));
        content.map_err(|reason| self.corrupt(BlockName::Data(number), reason))
    }

    /// The verified content of one frame.
    pub fn content(&self, frame: &[u8], number: u32) -> Result<Vec<u8>> {
        open_frame(frame).and_then(decode_payload).map_err(|reason| self.corrupt(BlockName::Data(number), reason))
    }

    pub fn corrupt(&self, block: BlockName, reason: &'static str) -> SegmentError {
        SegmentError::Corrupt { file: Arc::clone(&self.name), block, reason }
    }
}
