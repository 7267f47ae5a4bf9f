//! Scans of tables and indexes: a view of own changes, memory and segments merged.
//!
//! Invariant: a scan keeps the levels that were current when it opened. Whatever its view sees is in them, and nothing that
//! flush, merge or later commits do takes it away.

mod index;
mod mask;
mod piece;
mod probe;
mod table;

use melba_types::{Datum, RowId};

pub use index::IndexScan;
pub use melba_segment::ZoneOp;
pub use piece::ScanPiece;
pub use table::{ScanBatch, TableScan};

/// A comparison of a column with a constant that lets a scan leave out what cannot satisfy it.
#[derive(Clone, Debug)]
pub struct ZonePredicate {
    /// Column number of the table's layout.
    pub column: usize,
    pub op: ZoneOp,
    /// Of the column's kind; ignored by `IsNull` and `IsNotNull`. Byte strings compare by bytes: for other collations only
    /// `Equal`, `IsNull` and `IsNotNull` may be asked.
    pub value: Datum,
}

/// A part of a table for one worker of a parallel scan: a range of row ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Morsel {
    pub(crate) from: RowId,
    /// Excluded.
    pub(crate) to: RowId,
}

impl Morsel {
    /// The rows with ids from `from` up to but without `to`.
    pub fn range(from: RowId, to: RowId) -> Morsel {
        Morsel { from, to }
    }

    /// The whole table.
    pub(crate) const ALL: Morsel = Morsel { from: RowId(0), to: RowId(u64::MAX) };

    /// Ranges that cover all ids; ids from `next_row` on (rows inserted meanwhile) belong to the last.
    pub(crate) fn split(next_row: u64, parts: usize) -> Vec<Morsel> {
        let parts = (parts.max(1) as u64).min(next_row.max(1));
        let step = next_row.div_ceil(parts).max(1);
        (0..parts)
            .map(|i| Morsel { from: RowId(i * step), to: RowId(if i + 1 == parts { u64::MAX } else { (i + 1) * step }) })
            .collect()
    }
}
