//! Rows in order of arrival, to be read again from any place: shared CTEs, working tables, inner sides of nested loops, results
//! of cursors.

use std::sync::Arc;

use melba_engine::{Held, TempBlock, TempFile};
use melba_types::{Batch, Result};

use super::{Resources, codec};
use melba_types::BATCH_ROWS;

/// Rows and bytes after which a chunk is closed.
const CHUNK_BYTES: usize = 256 << 10;

enum Chunk {
    Memory(Arc<Batch>),
    File(TempBlock),
}

/// Rows kept for later.
pub struct Store {
    resources: Arc<Resources>,
    held: Held,
    /// Each with the number of rows before it.
    chunks: Vec<(u64, Chunk)>,
    /// Rows of the next chunk.
    tail: Batch,
    tail_bytes: usize,
    /// Bytes of the chunks in memory.
    bytes: usize,
    rows: u64,
    file: Option<Arc<TempFile>>,
    /// The chunk read from the file last.
    last: Option<(usize, Arc<Batch>)>,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

/// A reader's place in a store: the number of the next row.
pub type Place = u64;

impl Store {
    pub fn new(resources: &Arc<Resources>) -> Store {
        Store {
            resources: Arc::clone(resources),
            held: resources.held(),
            chunks: Vec::new(),
            tail: Batch::default(),
            tail_bytes: 0,
            bytes: 0,
            rows: 0,
            file: None,
            last: None,
            raw: Vec::new(),
            packed: Vec::new(),
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes held in memory, and bytes written to the file.
    pub fn usage(&self) -> (usize, u64) {
        (self.held.bytes(), self.file.as_ref().map_or(0, |f| f.bytes()))
    }

    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if self.tail.rows > 0 && self.tail.rows + batch.rows > BATCH_ROWS {
            self.close_tail()?;
        }
        self.rows += batch.rows as u64;
        self.tail_bytes += batch.memory_bytes();
        self.tail.append(batch);
        if self.tail.rows >= BATCH_ROWS || self.tail_bytes >= CHUNK_BYTES {
            self.close_tail()?;
        }
        Ok(())
    }

    /// Forgets the rows after the first `rows`.
    pub fn truncate(&mut self, rows: u64) -> Result<()> {
        let tail_from = self.rows - self.tail.rows as u64;
        if rows >= self.rows {
            return Ok(());
        }
        if rows >= tail_from {
            self.tail = first_rows(&self.tail, (rows - tail_from) as usize);
        } else {
            let at = self.chunks.partition_point(|(before, _)| *before <= rows) - 1;
            let kept = (rows - self.chunks[at].0) as usize;
            self.tail = first_rows(&**self.chunk(at)?, kept);
            for (_, chunk) in self.chunks.drain(at..) {
                if let Chunk::Memory(batch) = chunk {
                    self.bytes = self.bytes.saturating_sub(batch.memory_bytes());
                }
            }
            self.last = None;
            self.held.set(self.bytes.min(self.held.bytes()))?;
        }
        self.tail_bytes = self.tail.memory_bytes();
        self.rows = rows;
        Ok(())
    }

    /// Ends writing: `chunk_at` returns all rows from now on.
    pub fn close(&mut self) -> Result<()> {
        if self.tail.rows > 0 { self.close_tail() } else { Ok(()) }
    }

    /// A whole chunk of rows from a place on, where a chunk begins, and the place after it. The store is closed.
    pub fn chunk_at(&mut self, place: &mut Place) -> Result<Option<Arc<Batch>>> {
        if *place >= self.rows {
            return Ok(None);
        }
        let chunk = self.chunk_of(place)?;
        *place += chunk.as_ref().map_or(0, |c| c.rows as u64);
        Ok(chunk)
    }

    /// The chunk that has a row, and the place where it begins. The last one may grow until the store is closed.
    pub fn chunk_of(&mut self, place: &mut Place) -> Result<Option<Arc<Batch>>> {
        if *place >= self.rows {
            return Ok(None);
        }
        let tail_from = self.rows - self.tail.rows as u64;
        if *place >= tail_from {
            *place = tail_from;
            return Ok(Some(Arc::new(self.tail.clone())));
        }
        let at = self.chunks.partition_point(|(before, _)| *before <= *place) - 1;
        *place = self.chunks[at].0;
        Ok(Some(Arc::clone(self.chunk(at)?)))
    }

    fn close_tail(&mut self) -> Result<()> {
        let before = self.rows - self.tail.rows as u64;
        let batch = std::mem::take(&mut self.tail);
        let bytes = std::mem::take(&mut self.tail_bytes);
        if self.file.is_some() {
            let block = self.write(&batch)?;
            self.chunks.push((before, Chunk::File(block)));
            return Ok(());
        }
        self.bytes += bytes;
        self.chunks.push((before, Chunk::Memory(Arc::new(batch))));
        if self.bytes > self.resources.work_bytes || !self.held.try_set(self.bytes) {
            self.spill()?;
        }
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<TempBlock> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(self.resources.file()?)),
        };
        self.raw.clear();
        codec::encode(batch, &mut self.raw);
        Ok(file.append(&self.raw, &mut self.packed)?)
    }

    /// All rows, present and future, are written to the file.
    fn spill(&mut self) -> Result<()> {
        for at in 0..self.chunks.len() {
            if let Chunk::Memory(batch) = &mut self.chunks[at].1 {
                let batch = std::mem::take(batch);
                self.chunks[at].1 = Chunk::File(self.write(&batch)?);
            }
        }
        self.bytes = 0;
        self.held.set(0)?;
        Ok(())
    }

    /// Rows from a place on, at most `limit`, and the place after them; `None` when there are none (yet).
    pub fn read(&mut self, place: &mut Place, limit: usize) -> Result<Option<Batch>> {
        if *place >= self.rows {
            return Ok(None);
        }
        let tail_from = self.rows - self.tail.rows as u64;
        let (from, batch) = if *place >= tail_from {
            (tail_from, &self.tail)
        } else {
            let at = self.chunks.partition_point(|(before, _)| *before <= *place) - 1;
            (self.chunks[at].0, &**self.chunk(at)?)
        };
        let skip = (*place - from) as usize;
        let taken = (batch.rows - skip).min(limit.max(1));
        *place += taken as u64;
        if taken == batch.rows {
            return Ok(Some(batch.clone()));
        }
        let rows: Vec<u32> = (skip as u32..(skip + taken) as u32).collect();
        Ok(Some(batch.take(&rows)))
    }

    fn chunk(&mut self, at: usize) -> Result<&Arc<Batch>> {
        if let Chunk::File(block) = self.chunks[at].1
            && self.last.as_ref().is_none_or(|(last, _)| *last != at)
            && let Some(file) = &self.file
        {
            file.read(block, &mut self.packed, &mut self.raw)?;
            self.last = Some((at, Arc::new(codec::decode(&self.raw)?)));
        }
        match (&self.chunks[at].1, &self.last) {
            (Chunk::Memory(batch), _) | (Chunk::File(_), Some((_, batch))) => Ok(batch),
            (Chunk::File(_), None) => Err(melba_types::DbError::internal("a chunk in a file without a file")),
        }
    }
}

fn first_rows(batch: &Batch, rows: usize) -> Batch {
    match rows {
        0 => Batch::default(),
        rows => batch.take(&(0..rows as u32).collect::<Vec<u32>>()),
    }
}
