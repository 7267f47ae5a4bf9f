//! Scans of tables and indexes: a view of own changes, memory and segments merged.
//!
//! Invariant: a scan keeps the levels that were current when it opened. They hold everything that its view sees, and no flush,
//! merge or later commit removes it.

mod changes;
mod find;
mod index;
mod mask;
mod piece;
mod probe;
mod table;

use melba_segment::TableSegmentReader;
use melba_store::Result;
use melba_types::{Datum, RowId};

pub use changes::DifferingRows;
pub use index::IndexScan;
pub use melba_segment::ZoneOp;
pub use piece::ScanPiece;
pub use probe::ClaimedKeys;
pub use table::{ScanBatch, TableScan};

/// A comparison of a column with constants, by which a scan skips row groups where no value can satisfy it.
#[derive(Clone, Debug)]
pub struct ZonePredicate {
    /// Column number of the table's layout.
    pub column: usize,
    pub op: ZoneOp,
    /// Of the column's kind, or of another whose values have one order with it. Byte strings compare by bytes: for other
    /// collations only `Equal` is allowed.
    pub values: Vec<Datum>,
    /// NULL satisfies it as well.
    pub or_null: bool,
}

impl ZonePredicate {
    /// Whether no row of a row group can satisfy it, by the bounds of its values or their filter.
    fn excludes(&self, reader: &TableSegmentReader, group: usize) -> Result<bool> {
        if self.or_null && reader.statistics(group, self.column).is_none_or(|statistics| statistics.nulls > 0) {
            return Ok(false);
        }
        for value in &self.values {
            let outside = reader.prune(group, self.column, self.op, value);
            let is_excluded = outside || self.op == ZoneOp::Equal && reader.filters_out(group, self.column, value)?;
            if !is_excluded {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A part of a table for one worker of a parallel scan: a range of row ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Morsel {
    pub(crate) from: RowId,
    /// Excluded.
    pub(crate) to: RowId,
}

impl Morsel {
    /// The rows with ids from `from` up to but without `to`; none when the ends are the wrong way round.
    pub fn range(from: RowId, to: RowId) -> Morsel {
        Morsel { from, to: to.max(from) }
    }

    /// The rows that are in another part, too.
    pub fn within(self, part: Option<Morsel>) -> Morsel {
        let part = part.unwrap_or(Morsel::ALL);
        Morsel::range(self.from.max(part.from), self.to.min(part.to))
    }

    /// The whole table.
    pub(crate) const ALL: Morsel = Morsel { from: RowId(0), to: RowId(u64::MAX) };

    /// Ranges that cover all ids, at most `parts`; ids from `next_row` on (rows inserted meanwhile) belong to the last. They begin where
    /// row groups do (`starts`, ascending), so that two scans rarely read one group, and evenly behind `last`, where no group is.
    pub(crate) fn split(next_row: u64, starts: &[u64], last: u64, parts: usize) -> Vec<Morsel> {
        let step = next_row.div_ceil(parts.max(1) as u64).max(1);
        let mut cuts = vec![0];
        let in_memory = (1..parts as u64).map(|i| last.saturating_add(i * step)).take_while(|id| *id < next_row);
        for id in starts.iter().copied().chain([last]).chain(in_memory) {
            if id < next_row && cuts.last().is_some_and(|cut| id >= cut + step) {
                cuts.push(id);
            }
        }
        let ends = cuts.iter().skip(1).copied().chain([u64::MAX]);
        cuts.iter().zip(ends).map(|(from, to)| Morsel { from: RowId(*from), to: RowId(to) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_two_parts_are_in_both() {
        let range = |from, to| Morsel::range(RowId(from), RowId(to));
        assert_eq!(range(3, 9).within(None), range(3, 9));
        assert_eq!(range(3, 9).within(Some(range(5, 20))), range(5, 9));
        let none = range(3, 9).within(Some(range(20, 30)));
        assert_eq!(none.from, none.to);
        assert_eq!(range(9, 3).from, range(9, 3).to);
    }

    #[test]
    fn morsels_begin_where_row_groups_do_and_cover_all_ids() {
        let cuts = |next_row, starts: &[u64], last, parts| -> Vec<u64> {
            let morsels = Morsel::split(next_row, starts, last, parts);
            assert!(morsels.len() <= parts.max(1) && morsels.windows(2).all(|two| two[0].to == two[1].from));
            assert_eq!(morsels.last().map(|morsel| morsel.to), Some(RowId(u64::MAX)));
            morsels.iter().map(|morsel| morsel.from.0).collect()
        };
        assert_eq!(cuts(100, &[1, 30, 31, 60, 90], 95, 4), [0, 30, 60, 90]);
        assert_eq!(cuts(100, &[1, 30, 31], 40, 4), [0, 30, 65, 90]);
        assert_eq!(cuts(100, &[], 0, 4), [0, 25, 50, 75]);
        assert_eq!(cuts(100, &[1, 2, 3], 3, 1), [0]);
        assert_eq!(cuts(0, &[], 0, 3), [0]);
    }
}
