//! Row groups: collected as they come, then encoded into blocks.

use melba_types::{Csn, Kind, RowId};

use super::chunk::{ChunkBuffer, Learnt, write_words};
use super::directory::{Chunk, Group};
use super::{HIDDEN_COLUMNS, RowGroup, TableOptions};
use crate::frame::FrameBuffer;

/// The rows of a group that is being collected.
pub(super) struct RawGroup {
    pub columns: Vec<ChunkBuffer>,
    pub row_ids: Vec<i64>,
    pub csns: Vec<i64>,
    pub tombstones: Vec<i64>,
}

impl RawGroup {
    pub fn new(kinds: &[Kind]) -> RawGroup {
        let columns = kinds.iter().map(|&kind| ChunkBuffer::new(kind)).collect();
        RawGroup { columns, row_ids: Vec::new(), csns: Vec::new(), tombstones: Vec::new() }
    }

    pub fn rows(&self) -> usize {
        self.row_ids.len()
    }

    /// Bytes of the columns' values, about.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ChunkBuffer::raw_bytes).sum()
    }

    /// Chunks that it becomes.
    pub fn chunks(&self) -> usize {
        self.columns.len() + HIDDEN_COLUMNS
    }

    pub fn summary(&self) -> RowGroup {
        let csns = self.csns.iter().map(|&csn| csn as u64);
        let ends = self.row_ids.first().zip(self.row_ids.last());
        let (first, last) = ends.map_or((0, 0), |(first, last)| (*first as u64, *last as u64));
        RowGroup {
            rows: self.row_ids.len(),
            tombstones: self.tombstones.iter().filter(|&&t| t != 0).count(),
            row_id_min: RowId(first),
            row_id_max: RowId(last),
            csn_min: Csn(csns.clone().min().unwrap_or(0)),
            csn_max: Csn(csns.max().unwrap_or(0)),
            unique: self.row_ids.windows(2).all(|pair| pair[0] != pair[1]),
        }
    }

    /// Encodes chunk `at` of the group and forgets its values.
    pub fn encode_chunk(
        &mut self,
        at: usize,
        learnt: &mut Vec<Learnt>,
        frames: &mut FrameBuffer,
        options: &TableOptions,
    ) -> Chunk {
        let columns = self.columns.len();
        if at < columns {
            learnt.resize_with(learnt.len().max(columns), Learnt::default);
            return self.columns[at].write(&mut learnt[at], frames, options);
        }
        let (kind, hidden) = match at - columns {
            0 => (Kind::Int8, &mut self.row_ids),
            1 => (Kind::Int8, &mut self.csns),
            _ => (Kind::Bool, &mut self.tombstones),
        };
        let chunk = write_words(kind, hidden, None, 0, frames, options);
        hidden.clear();
        chunk
    }

    /// Encodes the whole group into blocks of their own and empties it.
    pub fn encode(&mut self, learnt: &mut Vec<Learnt>, options: &TableOptions) -> (FrameBuffer, Group) {
        let summary = self.summary();
        let mut frames = FrameBuffer::default();
        let chunks = (0..self.chunks()).map(|at| self.encode_chunk(at, learnt, &mut frames, options)).collect();
        (frames, Group { summary, chunks })
    }
}
