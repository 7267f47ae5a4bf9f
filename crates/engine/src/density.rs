//! Dense storage of a tree: what it has gained, and whether merges go on with it (docs/design/dense.md).
//!
//! The governor compares what a merge has saved with the time that it took. Below `EngineOptions::dense_gain_min` merges leave the
//! tree's waiting values as they are, until VACUUM asks for it and finds otherwise.

use std::time::Duration;

use melba_segment::{DenseOptions, Effort, SectionSummary, TableSegmentReader};
use melba_types::TreeId;

use crate::engine::{Engine, EngineOptions, Shared};
use crate::error::Result;
use crate::output::Density;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::tree::Tree;

/// Merges of less say nothing about the next one.
const JUDGED_BYTES_MIN: u64 = 1 << 20;
/// Blocks of a column that are decoded to see what a read takes.
const SAMPLE_BLOCKS: usize = 32;
/// What is decoded of a dense block in a microsecond: half of what the slowest collection of docs/design/dense.md took.
const DENSE_BYTES_A_MICROSECOND: usize = 1280;
/// With less memory the tables of the slower compressors would take too much of it.
const DENSE_MEMORY_MIN: usize = 512 << 20;
/// Frames of a dense segment, compressed by lz4: several hundred megabytes of values.
const DENSE_SPOOL_BYTES_MAX: usize = 64 << 20;

impl EngineOptions {
    /// How merges make frames dense, where memory allows the effort.
    pub(crate) fn density(&self, effort: Effort) -> Density {
        let memory = self.memory_bytes as usize;
        let effort = if memory < DENSE_MEMORY_MIN { Effort::Low } else { effort };
        // A sixth of what a shard of the cache holds: references of several segments are there.
        let reference_bytes_max = (self.cache_bytes() / 96).min(DenseOptions::default().reference_bytes_max);
        let budget = (self.dense_read_budget.as_micros() as usize).clamp(1, 10_000);
        let block_bytes = budget * DENSE_BYTES_A_MICROSECOND;
        let options = DenseOptions { reference_bytes_max, block_bytes, effort };
        Density { options, spool_bytes: (memory / 16).clamp(1, DENSE_SPOOL_BYTES_MAX) }
    }
}

/// What merges have done for a tree's dense values since the start.
#[derive(Default)]
pub(crate) struct DenseWork {
    micros: AtomicU64,
    is_stopped: AtomicBool,
}

impl DenseWork {
    /// A merge has made `waiting_bytes` dense in some time, and brought its inputs from so many bytes to so many.
    pub fn note(&self, waiting_bytes: u64, from: u64, to: u64, time: Duration, gain_min: u64) {
        self.micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        if waiting_bytes >= JUDGED_BYTES_MIN && !time.is_zero() {
            let gain = from.saturating_sub(to) as f64 / time.as_secs_f64();
            self.is_stopped.store(gain < gain_min as f64, Ordering::Relaxed);
        }
    }

    /// Whether it does not pay.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// What a tree has of a dense column, or will have.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseStatistics {
    /// `None`: values that wait, and whose column only their segments know.
    pub column: Option<usize>,
    pub values: u64,
    pub raw_bytes: u64,
    /// References included.
    pub stored_bytes: u64,
    pub reference_bytes: u64,
    /// Of the whole tree: bytes of values that wait in segments.
    pub waiting_bytes: u64,
    pub blocks: u64,
    /// Of a sample: what decoding a value's block takes, from the file or the system's cache.
    pub read_mean: Duration,
    pub read_p99: Duration,
    /// Of the whole tree, since the start.
    pub merge_time: Duration,
    pub is_stopped: bool,
}

impl Engine {
    /// What a table's tree or its toast tree has of dense columns: one entry for each, and one when nothing is dense yet and something
    /// waits. Reads some blocks of each.
    ///
    /// # Errors
    /// Those of reading.
    pub fn dense_statistics(&self, tree: TreeId) -> Result<Vec<DenseStatistics>> {
        let tree = self.shared.tree(tree)?;
        let Some(table) = tree.as_table() else { return Ok(Vec::new()) };
        let readers: Vec<_> = table.levels.read().runs.iter().map(|run| std::sync::Arc::clone(&run.reader)).collect();
        let waiting_bytes = readers.iter().map(|reader| reader.meta().waiting_bytes).sum();
        let mut columns: Vec<usize> = readers.iter().flat_map(|r| r.sections()).map(|section| section.column).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut out = Vec::new();
        for column in columns.into_iter().map(Some).chain([None]) {
            let of_column: Vec<(&TableSegmentReader, SectionSummary)> = readers
                .iter()
                .flat_map(|reader| reader.sections().map(move |section| (&**reader, section)))
                .filter(|(_, section)| Some(section.column) == column)
                .collect();
            if column.is_none() && (waiting_bytes == 0 || !out.is_empty()) {
                continue;
            }
            let sum = |of: fn(&SectionSummary) -> u64| of_column.iter().map(|(_, section)| of(section)).sum();
            let (read_mean, read_p99) = self.shared.sample_reads(&of_column)?;
            out.push(DenseStatistics {
                column,
                values: sum(|section| section.values),
                raw_bytes: sum(|section| section.raw_bytes),
                stored_bytes: sum(|section| section.stored_bytes),
                reference_bytes: sum(|section| section.reference_bytes),
                waiting_bytes,
                blocks: sum(|section| section.blocks as u64),
                read_mean,
                read_p99,
                merge_time: Duration::from_micros(tree.dense_work.micros.load(Ordering::Relaxed)),
                is_stopped: tree.dense_work.is_stopped(),
            });
        }
        Ok(out)
    }
}

impl Shared {
    /// What decoding a block takes: the mean and the 99th percentile of some of them.
    fn sample_reads(&self, sections: &[(&TableSegmentReader, SectionSummary)]) -> Result<(Duration, Duration)> {
        let blocks: usize = sections.iter().map(|(_, section)| section.blocks).sum();
        let step = (blocks / SAMPLE_BLOCKS).max(1);
        let mut times = Vec::new();
        let mut number = 0;
        for (reader, section) in sections {
            // The reference is decoded by the first, and cached.
            reader.decode_section_block(section.column, 0)?;
            for block in 0..section.blocks {
                if number % step == 0 {
                    let start = self.clock().monotonic();
                    reader.decode_section_block(section.column, block)?;
                    times.push(self.clock().monotonic().saturating_sub(start));
                }
                number += 1;
            }
        }
        times.sort_unstable();
        let mean = times.iter().sum::<Duration>() / times.len().max(1) as u32;
        Ok((mean, times.get(times.len() * 99 / 100).copied().unwrap_or_default()))
    }

    /// Whether merges leave a tree's waiting values alone.
    pub(crate) fn leaves_waiting(&self, tree: &Tree) -> bool {
        tree.dense_work.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_too_little_is_stopped_and_what_pays_goes_on() {
        let work = DenseWork::default();
        let second = Duration::from_secs(1);
        work.note(4 << 20, 5 << 20, 1 << 20, second, 1 << 20);
        assert!(!work.is_stopped());
        work.note(4 << 20, 5 << 20, (5 << 20) - 1000, second, 1 << 20);
        assert!(work.is_stopped());
        work.note(1000, 1000, 100, second, 1 << 20);
        assert!(work.is_stopped(), "too little to judge by");
        work.note(4 << 20, 5 << 20, 1 << 20, Duration::ZERO, 1 << 20);
        assert!(work.is_stopped(), "a clock that stands still says nothing");
        work.note(4 << 20, 5 << 20, 1 << 20, second, 1 << 20);
        assert!(!work.is_stopped());
        assert_eq!(work.micros.load(Ordering::Relaxed), 4_000_000);
    }
}
