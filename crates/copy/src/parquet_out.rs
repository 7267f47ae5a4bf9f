//! COPY TO in Parquet's format.

use std::io::{self, Write};
use std::sync::Arc;

use melba_engine::Held;
use melba_fmgr::Session;
use melba_parquet::{Compression, FileWriter, Written};
use melba_types::{Batch, Result};
use parking_lot::Mutex;

use super::options::CopyOptions;

/// Bytes given at a time: a message to the client is no longer.
const PIECE_BYTES: usize = 1 << 20;

/// What the writer has written and nobody has taken.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A Parquet file in the making.
pub(crate) struct ParquetOut {
    writer: FileWriter<Buffer>,
    buffer: Buffer,
    /// Bytes taken from the buffer, and how many of them are given.
    taken: Vec<u8>,
    given: usize,
    rows: u64,
    done: bool,
}

impl ParquetOut {
    pub fn new(session: Arc<dyn Session>, columns: Vec<Written>, options: &CopyOptions, mut held: Held) -> ParquetOut {
        let buffer = Buffer::default();
        let announce = Box::new(move |bytes: usize| Ok(held.set(bytes)?));
        let mut writer = FileWriter::new(session, columns, buffer.clone(), announce)
            .compression(options.compression.unwrap_or(Compression::Snappy));
        if let Some(rows) = options.row_group_rows {
            writer = writer.row_group_rows(rows);
        }
        ParquetOut { writer, buffer, taken: Vec::new(), given: 0, rows: 0, done: false }
    }

    /// Appends the next piece of the file; false at the end.
    pub fn next(&mut self, source: &mut dyn FnMut() -> Result<Option<Batch>>, out: &mut Vec<u8>) -> Result<bool> {
        loop {
            if self.given < self.taken.len() {
                let piece = &self.taken[self.given..];
                let piece = &piece[..piece.len().min(PIECE_BYTES)];
                out.extend_from_slice(piece);
                self.given += piece.len();
                return Ok(true);
            }
            self.taken = std::mem::take(&mut *self.buffer.0.lock());
            self.given = 0;
            if !self.taken.is_empty() {
                continue;
            }
            if self.done {
                return Ok(false);
            }
            match source()? {
                Some(batch) => {
                    self.rows += batch.rows as u64;
                    self.writer.push(batch)?;
                }
                None => {
                    self.writer.finish()?;
                    self.done = true;
                }
            }
        }
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}
