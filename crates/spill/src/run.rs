//! Runs: batches in a temporary file, or in memory as far as a writer may keep them, read in the order of writing.

use std::sync::Arc;

use melba_engine::{Held, TempBlock, TempFile};
use melba_types::{Batch, Result};

use super::{Limit, codec};
use melba_types::BATCH_ROWS;

/// Writes a run. Several may write into one file in turn.
pub(super) struct RunWriter {
    file: Arc<TempFile>,
    blocks: Vec<Block>,
    rows: u64,
    block_bytes: usize,
    /// The part that it keeps in memory, if it may.
    held: Option<Held>,
    /// Rows of the next block, and about how many bytes they are.
    pending: Batch,
    pending_bytes: usize,
}

enum Block {
    File(TempBlock),
    Memory(Batch),
}

/// Buffers for writing a block, shared by the writers of an operator.
#[derive(Default)]
pub(super) struct Buffers {
    /// How much may be kept in memory, and how much is.
    limit: Option<Limit>,
    kept_bytes: usize,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

impl Buffers {
    /// So much may be kept in memory.
    pub fn keeping(limit: Limit) -> Buffers {
        Buffers { limit: Some(limit), ..Buffers::default() }
    }
}

/// A finished run.
#[derive(Clone)]
pub struct Run {
    file: Arc<TempFile>,
    blocks: Arc<[Block]>,
    pub rows: u64,
    _held: Option<Arc<Held>>,
}

/// Reads a run from its beginning.
pub struct RunReader {
    run: Run,
    at: usize,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

impl RunWriter {
    pub fn new(file: &Arc<TempFile>, block_bytes: usize) -> RunWriter {
        RunWriter {
            file: Arc::clone(file),
            blocks: Vec::new(),
            rows: 0,
            block_bytes,
            held: None,
            pending: Batch::default(),
            pending_bytes: 0,
        }
    }

    /// Keeps rows in memory, as far as the buffers' limit and the account have room.
    pub fn keeping(self, held: Held) -> RunWriter {
        RunWriter { held: Some(held), ..self }
    }

    /// Whether `bytes` more may be kept; if so, they count as kept.
    fn keeps(&mut self, bytes: usize, buffers: &mut Buffers) -> bool {
        let (Some(limit), Some(held)) = (buffers.limit, &mut self.held) else { return false };
        let all = buffers.kept_bytes + bytes;
        let keeps = limit.holds(held, held.bytes() + bytes, all);
        if keeps {
            buffers.kept_bytes = all;
        }
        keeps
    }

    pub fn push(&mut self, batch: Batch, buffers: &mut Buffers) -> Result<()> {
        let (rows, bytes) = (batch.rows, batch.memory_bytes());
        let is_first = self.pending.rows == 0;
        self.pending_bytes += bytes;
        self.pending.append(batch);
        if is_first && rows > 0 {
            // Capacity for the block, so that rows are not moved when more follow.
            let of_block = (self.block_bytes / (bytes / rows).max(1)).min(BATCH_ROWS);
            self.pending.columns.iter_mut().for_each(|column| column.reserve_like_last(of_block.saturating_sub(rows)));
        }
        if self.pending_bytes >= self.block_bytes || self.pending.rows >= BATCH_ROWS {
            self.write(buffers)?;
        }
        Ok(())
    }

    fn write(&mut self, buffers: &mut Buffers) -> Result<()> {
        let batch = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows as u64;
        if self.held.is_some() && self.keeps(batch.memory_bytes(), buffers) {
            self.blocks.push(Block::Memory(batch));
            return Ok(());
        }
        buffers.raw.clear();
        codec::encode(&batch, &mut buffers.raw);
        self.blocks.push(Block::File(self.file.append(&buffers.raw, &mut buffers.packed)?));
        Ok(())
    }

    pub fn finish(mut self, buffers: &mut Buffers) -> Result<Run> {
        self.write(buffers)?;
        Ok(Run { file: self.file, blocks: self.blocks.into(), rows: self.rows, _held: self.held.map(Arc::new) })
    }
}

impl Run {
    pub fn reader(&self) -> RunReader {
        RunReader { run: self.clone(), at: 0, raw: Vec::new(), packed: Vec::new() }
    }

    /// Hands on all rows.
    pub fn each_batch(&self, mut take: impl FnMut(&Batch) -> Result<()>) -> Result<()> {
        let mut reader = self.reader();
        for block in &*self.blocks {
            match block {
                Block::Memory(batch) => take(batch)?,
                Block::File(block) => take(&reader.read(*block)?)?,
            }
        }
        Ok(())
    }
}

impl RunReader {
    /// The next batch, as large as a block.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let block = match self.run.blocks.get(self.at) {
            None => return Ok(None),
            Some(Block::Memory(batch)) => Err(batch.clone()),
            Some(Block::File(block)) => Ok(*block),
        };
        self.at += 1;
        block.map_or_else(Ok, |block| self.read(block)).map(Some)
    }

    fn read(&mut self, block: TempBlock) -> Result<Batch> {
        self.run.file.read(block, &mut self.packed, &mut self.raw)?;
        codec::decode(&self.raw)
    }

    /// Goes back to the beginning.
    pub fn rewind(&mut self) {
        self.at = 0;
    }
}
