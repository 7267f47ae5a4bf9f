//! Table segments: rows by column, in row groups, each column chunk in blocks of rows.
//!
//! Invariants:
//! 1. Rows lie in ascending order of row id, versions of one row newest first (descending CSN).
//! 2. All versions of a row are in one row group.
//! 3. A row's position never changes: (row group, row in it).
//! 4. A chunk's block for row `i` of the group is `i >> shift`, so a point read touches one block a column (and the dictionary).
//!
//! See docs/design/segment.md for the bytes.

mod chunk;
mod cold;
mod dense;
pub(crate) mod directory;
mod encoder;
pub(crate) mod filter;
mod group;
mod long;
mod lookup;
mod mantissas;
mod pool;
mod reader;
mod reuse;
mod section;
mod writer;

use melba_toast::dense::{DenseOptions, Pace};
use melba_types::{Bitmap, Column, Csn, RowId};

pub use cold::ColdLayout;
pub use dense::Neighbour;
pub use group::GroupReader;
pub use pool::EncoderPool;
pub use reader::TableSegmentReader;
pub use section::SectionSummary;
pub use writer::{Finishing, TableSegmentWriter, null_batch};

use crate::frame::Codec;

pub(crate) const TABLE_MAGIC: [u8; 8] = *b"MELBATAB";
/// Hidden columns after the user's: row id, CSN, tombstone.
pub(crate) const HIDDEN_COLUMNS: usize = 3;

/// How a table segment is written.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// For blocks of byte strings and floats; integers are dense already.
    pub codec: Codec,
    /// Rows of a row group, at most (a row with more versions than this is still kept together).
    pub group_rows: usize,
    /// Raw bytes of a row group after which it is closed.
    pub group_bytes: usize,
    /// Raw bytes of a block, about: the amount that a point read of a cold value decodes.
    pub block_bytes: usize,
    /// How values of dense columns are put together; `None`: they are left to a later merge.
    pub dense: Option<DenseOptions>,
    /// Which of the first 64 columns are dense, as bits; each frame notes it itself.
    pub dense_columns: u64,
    /// Called between pieces of work of some milliseconds while values are made dense, which may take minutes.
    pub give_way: fn() -> Pace,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            codec: Codec::Lz4,
            group_rows: 1 << 16,
            group_bytes: 8 << 20,
            block_bytes: 32 << 10,
            dense: None,
            dense_columns: 0,
            give_way: || Pace::Thorough,
        }
    }
}

/// The metadata of a finished segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Row versions, tombstones included.
    pub rows: u64,
    pub tombstones: u64,
    /// Bytes of the values before encoding.
    pub raw_bytes: u64,
    /// Bytes of the file.
    pub stored_bytes: u64,
    pub row_id_min: RowId,
    pub row_id_max: RowId,
    pub csn_min: Csn,
    pub csn_max: Csn,
    /// Bytes of values that wait for a merge to make them dense.
    pub waiting_bytes: u64,
    /// The columns that have such values, or are dense, as bits.
    pub dense_columns: u64,
    /// Raw bytes of values in dense sections.
    pub dense_bytes: u64,
    /// Of these, about, those that a fast level has compressed.
    pub hasty_bytes: u64,
    /// Checksum of the directory, which names every block: distinguishes two files.
    pub footer_crc: u32,
}

/// A row group's summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup {
    pub rows: usize,
    pub tombstones: usize,
    pub row_id_min: RowId,
    pub row_id_max: RowId,
    pub csn_min: Csn,
    pub csn_max: Csn,
    /// No row has two versions in the group.
    pub unique: bool,
}

/// Where a row version lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub group: u32,
    pub row: u32,
}

/// A row version found by row id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowVersion {
    pub position: Position,
    pub csn: Csn,
    pub tombstone: bool,
}

/// CSNs of a run of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Csns {
    Uniform(Csn),
    Each(Vec<Csn>),
}

impl Csns {
    #[inline]
    pub fn get(&self, i: usize) -> Csn {
        match self {
            Csns::Uniform(csn) => *csn,
            Csns::Each(csns) => csns[i],
        }
    }
}

/// Decoded rows of a row group.
#[derive(Clone, Debug)]
pub struct GroupData {
    pub row_ids: Vec<RowId>,
    pub csns: Csns,
    /// `None`: no tombstones.
    pub tombstones: Option<Bitmap>,
    /// One for each projected column; `None` where the segment is older than the column.
    pub columns: Vec<Option<Column>>,
}

#[cfg(test)]
mod dense_tests;
#[cfg(test)]
mod filter_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
