//! Row groups: collected in order of arrival, then encoded into blocks.

use melba_types::{Csn, Kind, RowId};

use super::chunk::{ChunkBuffer, ChunkCarryover, write_hidden};
use super::directory::{Chunk, Group};
use super::{HIDDEN_COLUMNS, RowGroup, TableOptions};
use crate::frame::FrameBuffer;

/// The rows of a group that is being collected.
pub(super) struct RawGroup {
    pub columns: Vec<ChunkBuffer>,
    pub row_ids: Vec<i64>,
    pub csns: Vec<i64>,
    /// Empty as long as there is none.
    tombstones: Vec<i64>,
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

    /// Adds rows with their CSNs; `deleted` marks tombstones (`None`: none).
    pub fn append_hidden(
        &mut self,
        row_ids: &[RowId],
        csns: impl Iterator<Item = Csn>,
        deleted: Option<impl Iterator<Item = bool>>,
    ) {
        let before = self.rows();
        self.row_ids.extend(row_ids.iter().map(|id| id.0 as i64));
        self.csns.extend(csns.map(|csn| csn.0 as i64));
        if let Some(deleted) = deleted {
            self.tombstones.resize(before, 0);
            self.tombstones.extend(deleted.map(i64::from));
        } else if !self.tombstones.is_empty() {
            self.tombstones.resize(self.rows(), 0);
        }
    }

    pub fn summary(&self) -> RowGroup {
        let ends = self.row_ids.first().zip(self.row_ids.last());
        let (first, last) = ends.map_or((0, 0), |(first, last)| (*first as u64, *last as u64));
        let csns = self.csns.iter().map(|&csn| csn as u64);
        let first_csn = csns.clone().next().unwrap_or(0);
        // A load's are all equal; this check is faster.
        let (csn_min, csn_max) = match csns.clone().all(|csn| csn == first_csn) {
            true => (first_csn, first_csn),
            false => csns.fold((first_csn, first_csn), |(min, max), csn| (min.min(csn), max.max(csn))),
        };
        RowGroup {
            rows: self.rows(),
            tombstones: self.tombstones.iter().filter(|&&t| t != 0).count(),
            row_id_min: RowId(first),
            row_id_max: RowId(last),
            csn_min: Csn(csn_min),
            csn_max: Csn(csn_max),
            unique: self.row_ids.windows(2).all(|pair| pair[0] != pair[1]),
        }
    }

    /// Encodes chunk `at` of the group and forgets its values.
    pub fn encode_chunk(
        &mut self,
        at: usize,
        carryover: &mut ChunkCarryover,
        frames: &mut FrameBuffer,
        options: &TableOptions,
    ) -> Chunk {
        let columns = self.columns.len();
        if at < columns {
            return self.columns[at].write(carryover.column(at), frames, options);
        }
        let (kind, hidden) = match at - columns {
            0 => (Kind::Int8, &mut self.row_ids),
            1 => (Kind::Int8, &mut self.csns),
            _ => (Kind::Bool, &mut self.tombstones),
        };
        if hidden.is_empty() {
            // No tombstone: the same for all rows.
            hidden.push(0);
        }
        let chunk = write_hidden(kind, hidden, frames, options);
        hidden.clear();
        chunk
    }

    /// Encodes the whole group into separate blocks, replacing those in `frames`, and empties it.
    pub fn encode(
        &mut self,
        carryover: &mut ChunkCarryover,
        mut frames: FrameBuffer,
        options: &TableOptions,
    ) -> (FrameBuffer, Group) {
        frames.clear();
        let summary = self.summary();
        let chunks = (0..self.chunks()).map(|at| self.encode_chunk(at, carryover, &mut frames, options)).collect();
        (frames, Group { summary, chunks })
    }
}
