//! Values that wait until all of a section's are known, in memory, compressed by lz4 a few at a time.

use crate::{CodecError, lz4};

/// Raw bytes of values that are compressed together; longer values are alone.
const PIECE_BYTES: usize = 32 << 10;

/// The treatment of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is compressed with others.
    Dense,
    /// Its bytes are stored as they come: compressed already, or incompressible.
    AsIs,
}

/// Values in the order in which they came.
#[derive(Default)]
pub struct Spool {
    values: Vec<SpooledValue>,
    pieces: Vec<SpooledPiece>,
    /// The pieces' bytes.
    bytes: Vec<u8>,
    /// Of the piece that is being collected.
    open: Vec<u8>,
    raw_bytes: u64,
}

struct SpooledValue {
    piece: u32,
    start: u32,
    bytes: u32,
    treatment: Treatment,
}

struct SpooledPiece {
    start: usize,
    raw_bytes: usize,
    compressed: bool,
}

/// Reads values of a spool; keeps the piece that it has decoded last.
pub struct SpoolReader<'a> {
    spool: &'a Spool,
    piece: Option<u32>,
    bytes: Vec<u8>,
}

impl Spool {
    pub fn push(&mut self, value: &[u8], treatment: Treatment) {
        if !self.open.is_empty() && self.open.len() + value.len() > PIECE_BYTES {
            self.close_piece();
        }
        let (piece, start) = (self.pieces.len() as u32, self.open.len() as u32);
        self.values.push(SpooledValue { piece, start, bytes: value.len() as u32, treatment });
        self.open.extend_from_slice(value);
        self.raw_bytes += value.len() as u64;
    }

    fn close_piece(&mut self) {
        let (start, raw_bytes) = (self.bytes.len(), self.open.len());
        self.bytes.resize(start + raw_bytes, 0);
        // A value that does not become smaller stays as it is.
        let written = lz4::compress(&self.open, &mut self.bytes[start..]);
        match written {
            Ok(written) => self.bytes.truncate(start + written),
            Err(_) => self.bytes[start..].copy_from_slice(&self.open),
        }
        self.pieces.push(SpooledPiece { start, raw_bytes, compressed: written.is_ok() });
        self.open.clear();
    }

    /// No more values come: those that are still collected can be read then.
    pub fn close(&mut self) {
        if self.pieces.len() <= self.values.last().map_or(0, |last| last.piece as usize) && !self.values.is_empty() {
            self.close_piece();
        }
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes of the values.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.open.len() + self.values.len() * size_of::<SpooledValue>()
    }

    pub fn treatment(&self, at: usize) -> Treatment {
        self.values[at].treatment
    }

    /// Bytes of a value.
    pub fn value_bytes(&self, at: usize) -> usize {
        self.values[at].bytes as usize
    }

    pub fn reader(&self) -> SpoolReader<'_> {
        SpoolReader { spool: self, piece: None, bytes: Vec::new() }
    }
}

impl SpoolReader<'_> {
    /// A value of a spool that is closed.
    ///
    /// # Errors
    /// `Malformed` when memory has changed: a bug of ours.
    pub fn get(&mut self, at: usize) -> Result<&[u8], CodecError> {
        let value = &self.spool.values[at];
        if self.piece != Some(value.piece) {
            let piece = &self.spool.pieces[value.piece as usize];
            let stored = &self.spool.bytes[piece.start..];
            self.bytes.resize(piece.raw_bytes, 0);
            if piece.compressed {
                let end = self.spool.pieces.get(value.piece as usize + 1).map_or(stored.len(), |next| next.start - piece.start);
                if lz4::decompress(&stored[..end], &mut self.bytes)? != piece.raw_bytes {
                    return Err(CodecError::Malformed);
                }
            } else {
                self.bytes.copy_from_slice(&stored[..piece.raw_bytes]);
            }
            self.piece = Some(value.piece);
        }
        self.bytes.get(value.start as usize..(value.start + value.bytes) as usize).ok_or(CodecError::Malformed)
    }
}
