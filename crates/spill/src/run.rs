//! Runs: batches in a temporary file, read in the order they were written.

use std::sync::Arc;

use melba_engine::{TempBlock, TempFile};
use melba_types::{Batch, Result};

use super::codec;
use melba_types::BATCH_ROWS;

/// Writes a run. Several may write into one file in turn.
pub(super) struct RunWriter {
    file: Arc<TempFile>,
    blocks: Vec<TempBlock>,
    rows: u64,
    block_bytes: usize,
    /// Rows of the next block, and about how many bytes they are.
    pending: Batch,
    pending_bytes: usize,
}

/// What writing a block needs, shared by the writers of an operator.
#[derive(Default)]
pub(super) struct Buffers {
    raw: Vec<u8>,
    packed: Vec<u8>,
}

/// A finished run.
#[derive(Clone)]
pub struct Run {
    file: Arc<TempFile>,
    blocks: Arc<[TempBlock]>,
    pub rows: u64,
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
            pending: Batch::default(),
            pending_bytes: 0,
        }
    }

    pub fn push(&mut self, batch: Batch, buffers: &mut Buffers) -> Result<()> {
        self.pending_bytes += batch.memory_bytes();
        self.pending.append(batch);
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
        buffers.raw.clear();
        codec::encode(&batch, &mut buffers.raw);
        self.blocks.push(self.file.append(&buffers.raw, &mut buffers.packed)?);
        self.rows += batch.rows as u64;
        Ok(())
    }

    pub fn finish(mut self, buffers: &mut Buffers) -> Result<Run> {
        self.write(buffers)?;
        Ok(Run { file: self.file, blocks: self.blocks.into(), rows: self.rows })
    }
}

impl Run {
    pub fn reader(&self) -> RunReader {
        RunReader { run: self.clone(), at: 0, raw: Vec::new(), packed: Vec::new() }
    }
}

impl RunReader {
    /// The next batch, as large as a block.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let Some(block) = self.run.blocks.get(self.at) else { return Ok(None) };
        self.at += 1;
        self.run.file.read(*block, &mut self.packed, &mut self.raw)?;
        codec::decode(&self.raw).map(Some)
    }

    /// Goes back to the beginning.
    pub fn rewind(&mut self) {
        self.at = 0;
    }
}
