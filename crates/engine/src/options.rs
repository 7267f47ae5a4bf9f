//! An engine's options, and the sizes derived from them.

use std::time::Duration;

use melba_segment::{DenseOptions, Effort};
use melba_store::{DensePolicy, Sizes};

/// A part of the block cache; a table with more references of dense values than fit into it has too many.
const REFERENCES_SHARE: usize = 4;

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Memory for the row store and the block cache together.
    pub memory_bytes: u64,
    /// Memory that queries and write sets may hold, all sessions together.
    pub query_bytes: u64,
    /// Bytes of it that a transaction's changes may take before they move into segments.
    pub write_set_bytes: usize,
    /// False: never waits for the disk; a crash of the machine may lose anything.
    pub fsync: bool,
    /// How often asynchronous commits are written out.
    pub wal_writer_delay: Duration,
    /// Asynchronous commits are written out earlier when they have so much log; 0: at once.
    pub wal_writer_flush_after_bytes: u64,
    /// Size of a log file.
    pub wal_file_bytes: u64,
    /// Rows of one statement and table (`BulkRows::insert`) after which further batches are written directly to a segment.
    pub bulk_rows_min: usize,
    /// Raw bytes of a segment, at most, about: the amount that a merge rewrites at a time.
    pub segment_bytes: usize,
    /// Segments and temporary files that are kept open at a time, beside the few other files.
    pub open_files_max: usize,
    /// Values of dense columns stay as they are when making them dense saves less than this many bytes a second.
    pub dense_gain_min_bytes: u64,
    /// How long reading a value of a dense block may take: sets the blocks' size.
    pub dense_read_budget: Duration,
    /// Background work measures how long its reads and writes take (track_io_timing).
    pub measure_times: bool,
}

/// Bytes that a merge holds of a column of an input, about.
const MERGE_COLUMN_BYTES: usize = 96 << 10;
/// The least and the most inputs of a merge that may overlap.
const MERGE_FAN_IN: (usize, usize) = (8, 32);
/// The least and the most bytes that a merge decodes of an input at a time.
const MERGE_PIECE_BYTES: (usize, usize) = (32 << 10, 1 << 20);

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            memory_bytes: 256 << 20,
            query_bytes: 1 << 30,
            write_set_bytes: 16 << 20,
            fsync: true,
            wal_writer_delay: Duration::from_millis(200),
            wal_writer_flush_after_bytes: 1 << 20,
            wal_file_bytes: 8 << 20,
            bulk_rows_min: 8192,
            segment_bytes: 32 << 20,
            open_files_max: 512,
            dense_gain_min_bytes: 64 << 10,
            dense_read_budget: Duration::from_micros(200),
            measure_times: false,
        }
    }
}

impl EngineOptions {
    /// The row store is frozen at this size; while it is flushed, as much again may be written.
    pub(crate) fn row_store_bytes(&self) -> u64 {
        // Larger ones would only make recovery longer.
        (self.memory_bytes / 6).min(128 << 20)
    }

    /// Bytes that memory tables may take, beside everything else.
    pub(crate) fn memory_tables_bytes(&self) -> u64 {
        self.memory_bytes / 2
    }

    /// Entries that the build of an index sorts at a time.
    pub(crate) fn index_build_bytes(&self) -> usize {
        (self.query_bytes / 8).clamp(1 << 20, 64 << 20) as usize
    }

    /// Bytes that a merge may hold of all its inputs together.
    fn merge_bytes(&self) -> usize {
        (self.memory_bytes / 8) as usize
    }

    /// Inputs of a merge that may overlap: of each it holds an open block and some read ahead for each column.
    pub(crate) fn merge_fan_in(&self, columns: usize) -> usize {
        (self.merge_bytes() / (columns.max(1) * MERGE_COLUMN_BYTES)).clamp(MERGE_FAN_IN.0, MERGE_FAN_IN.1)
    }

    /// Raw bytes of an input that a merge has decoded.
    pub(crate) fn merge_piece_bytes(&self) -> usize {
        (self.merge_bytes() / MERGE_FAN_IN.1).clamp(MERGE_PIECE_BYTES.0, MERGE_PIECE_BYTES.1)
    }

    fn cache_bytes(&self) -> usize {
        (self.memory_bytes / 3) as usize
    }

    /// Whether n references of dense values, decoded, leave the block cache little room for other blocks.
    pub(crate) fn are_crowded(&self, references: usize) -> bool {
        references * self.density(Effort::Normal).options.reference_bytes_max > self.cache_bytes() / REFERENCES_SHARE
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { cache_bytes: self.cache_bytes(), segment_bytes: self.segment_bytes }
    }

    /// Space on the disk that is reserved for operations that free space.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        // A flush of little writes some segments and a record of the manifest.
        (self.wal_file_bytes / 2).max(64 << 10)
    }

    /// A flush is due when this much log would have to be replayed.
    pub(crate) fn log_bytes_max(&self) -> u64 {
        (self.memory_bytes / 2).min(512 << 20).max(4 * self.wal_file_bytes)
    }

    /// How merges make values dense, as far as memory allows.
    pub(crate) fn density(&self, effort: Effort) -> DensePolicy {
        let options = DenseOptions::within(self.memory_bytes, self.dense_read_budget, effort);
        DensePolicy { options, spool_bytes: DenseOptions::section_bytes(self.memory_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_leave_room_for_other_blocks() {
        // The cache has 128 MB, and a reference up to 1.4.
        let options = EngineOptions { memory_bytes: 384 << 20, ..EngineOptions::default() };
        assert!(!options.are_crowded(24) && options.are_crowded(25));
    }
}
