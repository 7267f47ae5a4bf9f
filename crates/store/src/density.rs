//! Statistics of a tree's dense columns (docs/design/dense.md).

use std::time::Duration;

use melba_segment::{SectionSummary, TableSegmentReader};
use melba_vfs::Clock;

use crate::error::Result;
use crate::tree::Tree;

/// Blocks of a column that are decoded to measure the time of a read.
const SAMPLE_BLOCKS: usize = 32;

/// Statistics of a tree's dense column, or of one that will become dense.
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
    /// Of the whole tree: raw bytes of values that a fast level has made dense, about.
    pub hasty_bytes: u64,
    pub blocks: u64,
    /// Of a sample: the time to decode a value's block, from the file or the system's cache.
    pub read_mean: Duration,
    pub read_p99: Duration,
    /// Of the whole tree, since the start.
    pub merge_time: Duration,
    pub is_stopped: bool,
}

impl Tree {
    /// The dense columns of a table's tree or its toast tree: one entry for each, and one when nothing is dense yet but values
    /// wait. Reads a few blocks of each.
    ///
    /// # Errors
    /// Those of reading.
    pub fn dense_statistics(&self, clock: &dyn Clock) -> Result<Vec<DenseStatistics>> {
        let Some(table) = self.as_table() else { return Ok(Vec::new()) };
        let readers: Vec<_> = table.levels.read().runs.iter().map(|run| std::sync::Arc::clone(&run.reader)).collect();
        let waiting_bytes = readers.iter().map(|reader| reader.meta().waiting_bytes).sum();
        let hasty_bytes = readers.iter().map(|reader| reader.meta().hasty_bytes).sum();
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
            let (read_mean, read_p99) = sample_reads(&of_column, clock)?;
            out.push(DenseStatistics {
                column,
                values: sum(|section| section.values),
                raw_bytes: sum(|section| section.raw_bytes),
                stored_bytes: sum(|section| section.stored_bytes),
                reference_bytes: sum(|section| section.reference_bytes),
                waiting_bytes,
                hasty_bytes,
                blocks: sum(|section| section.blocks as u64),
                read_mean,
                read_p99,
                merge_time: self.dense_work.time(),
                is_stopped: self.dense_work.is_stopped(),
            });
        }
        Ok(out)
    }
}

/// The time to decode a block: the mean and the 99th percentile of a sample.
fn sample_reads(sections: &[(&TableSegmentReader, SectionSummary)], clock: &dyn Clock) -> Result<(Duration, Duration)> {
    let blocks: usize = sections.iter().map(|(_, section)| section.blocks).sum();
    let step = (blocks / SAMPLE_BLOCKS).max(1);
    let mut times = Vec::new();
    let mut number = 0;
    for (reader, section) in sections {
        // The reference is decoded by the first, and cached.
        reader.decode_section_block(section.column, 0)?;
        for block in 0..section.blocks {
            if number % step == 0 {
                let start = clock.monotonic();
                reader.decode_section_block(section.column, block)?;
                times.push(clock.monotonic().saturating_sub(start));
            }
            number += 1;
        }
    }
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / times.len().max(1) as u32;
    Ok((mean, times.get(times.len() * 99 / 100).copied().unwrap_or_default()))
}
