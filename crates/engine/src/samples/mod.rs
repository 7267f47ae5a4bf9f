//! Rows drawn from tables, for the estimates of plans and for pg_statistic.
//!
//! They are drawn when somebody asks for them and never stored: segments do not change, so rows of one are true as long as it lives, and
//! those of the row store are drawn again when enough of the table's rows have changed. Drawn columns are kept for later plans, up to a
//! limit.
//!
//! Invariants:
//! 1. All columns of one answer have the same rows.
//! 2. The same segments and the same row store give the same rows.
//! 3. The bytes of what is kept stay at or below the limit, except for what was drawn last.

mod drawing;
mod kept;

use std::sync::Arc;

use melba_segment::Statistics;
use melba_types::Column;

pub(crate) use drawing::Drawing;
pub(crate) use kept::Samples;

/// Some rows of a table, as columns. Of a row with several versions one is among them at most when it is in the row store, or when the
/// sample is complete; otherwise, versions in segments that no snapshot sees any more may be among them.
#[derive(Clone, Debug)]
pub struct TableSample {
    pub rows: usize,
    /// These are all rows of the table.
    pub is_complete: bool,
    /// Rows that follow each other in the sample, this many at a time, lie close to each other in the table.
    pub cluster_rows: usize,
    /// Those that were asked for; `None`: not sampled.
    pub columns: Vec<Option<Arc<SampledColumn>>>,
}

/// A column of a sample, in the order of the table.
#[derive(Debug)]
pub struct SampledColumn {
    pub values: Column,
    pub nulls: usize,
    /// Values that occur more than once, the most frequent first: the first row with each, and how many have it.
    pub repeated: Vec<(u32, u32)>,
    /// What the sample says of the rows in the row store, as chunks of a segment: rows of each, and their statistics.
    pub(crate) in_memory: Vec<(u64, Statistics)>,
}

/// How old a sample of rows in the row store may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleAge {
    /// An eighth of the table's rows may have changed since.
    ForPlans,
    /// Nothing has changed since.
    Current,
}
