//! Where the bytes of a file come from.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes that can be read at any place.
pub trait FileBytes: Send + Sync {
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills the buffer from an offset.
    ///
    /// # Errors
    /// Those of reading; `UnexpectedEof` beyond the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Puts as much into the buffer as there is at an offset; 0 bytes only at the end.
    ///
    /// # Errors
    /// Those of reading.
    fn read_some(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.len().saturating_sub(offset).min(out.len() as u64) as usize;
        if bytes > 0 {
            self.read_at(offset, &mut out[..bytes])?;
        }
        Ok(bytes)
    }
    /// Bytes worth reading at once.
    fn read_ahead(&self) -> usize {
        64 << 10
    }
}

/// Bytes in memory.
impl FileBytes for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let part = start.and_then(|start| self.get(start..start.checked_add(out.len())?));
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A source as the decoder wants it.
#[derive(Clone)]
pub(crate) struct Chunks(pub Arc<dyn FileBytes>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = SourceReader;

    fn get_read(&self, start: u64) -> Result<SourceReader> {
        Ok(SourceReader::new(Arc::clone(&self.0), start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Checked first: a wrong length must not become an allocation.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of a file of {} bytes", self.0.len())));
        }
        let mut out = vec![0; length];
        self.0.read_at(start, &mut out).map_err(|e| ParquetError::External(Box::new(e)))?;
        Ok(out.into())
    }
}

/// Reads on from a place, to the end.
pub struct SourceReader {
    source: Arc<dyn FileBytes>,
    next: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl SourceReader {
    pub fn new(source: Arc<dyn FileBytes>, start: u64) -> SourceReader {
        SourceReader { source, next: start, buffer: Vec::new(), at: 0 }
    }
}

impl Read for SourceReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.at = 0;
            buffer.resize(out.len().max(self.source.read_ahead()), 0);
            let bytes = self.source.read_some(self.next, &mut buffer)?;
            buffer.truncate(bytes);
            self.next += bytes as u64;
            self.buffer = buffer;
        }
        let bytes = out.len().min(self.buffer.len() - self.at);
        out[..bytes].copy_from_slice(&self.buffer[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

/// A file that its caller has opened.
pub struct SourceFile {
    pub file: File,
    pub bytes: u64,
}

impl FileBytes for SourceFile {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    /// Up to the end that the file has now: it may have grown, and files of the system are longer than they say (/proc).
    fn read_some(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(out, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}
