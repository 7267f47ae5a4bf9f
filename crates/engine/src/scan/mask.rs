//! Finds the rows of an older segment that newer levels replace.

use std::sync::Arc;

use melba_segment::TableSegmentReader;
use melba_store::{Result, TableLevels, TableRun, Tree};
use melba_types::{Csn, RowId};

use crate::txn::OwnView;

/// Leaves out of `wanted` (positions in `row_ids`, ascending) the rows that are in `masked` (ascending).
fn remove_masked(masked: &[RowId], row_ids: &[RowId], wanted: &mut Vec<u32>) {
    if masked.is_empty() {
        return;
    }
    let mut at = 0;
    wanted.retain(|i| {
        let id = row_ids[*i as usize];
        while at < masked.len() && masked[at] < id {
            at += 1;
        }
        masked.get(at) != Some(&id)
    });
}

/// The rows of a range that own changes or memory tables have a visible version of.
#[derive(Default)]
pub(crate) struct MemoryMask {
    ids: Vec<RowId>,
}

impl MemoryMask {
    /// Fills the mask for the rows from `first` to `last`; without `levels`, with own changes only.
    pub fn load(&mut self, own: &OwnView, tree: &Tree, levels: Option<&TableLevels>, first: RowId, last: RowId) {
        self.ids.clear();
        own.row_ids(tree.id, first, last, &mut self.ids);
        let csn = own.view().csn;
        let own = self.ids.len();
        for table in levels.into_iter().flat_map(|l| l.used_memory()) {
            let map = table.map.read();
            let seen = map.range(first..=last).filter(|(_, chain)| chain.visible(csn).is_some());
            self.ids.extend(seen.map(|(id, _)| *id));
        }
        if own > 0 || levels.is_some_and(|l| l.frozen.is_some()) {
            self.ids.sort_unstable();
        }
    }

    /// Whether a mask of these rows would have any.
    pub fn has_any(&mut self, own: &OwnView, tree: &Tree, levels: Option<&TableLevels>, first: RowId, last: RowId) -> bool {
        self.ids.clear();
        own.row_ids(tree.id, first, last, &mut self.ids);
        let csn = own.view().csn;
        let mut tables = levels.into_iter().flat_map(|l| l.used_memory());
        !self.ids.is_empty()
            || tables.any(|table| table.map.read().range(first..=last).any(|(_, chain)| chain.visible(csn).is_some()))
    }

    pub fn filter(&self, row_ids: &[RowId], wanted: &mut Vec<u32>) {
        remove_masked(&self.ids, row_ids, wanted);
    }
}

/// The rows that a newer segment has a visible version of, row group by row group.
pub(crate) struct RunMask {
    reader: Arc<TableSegmentReader>,
    csn: Csn,
    /// The row groups in `ids`.
    loaded: std::ops::Range<usize>,
    ids: Vec<RowId>,
}

impl RunMask {
    pub fn new(run: &TableRun, csn: Csn) -> RunMask {
        RunMask { reader: Arc::clone(&run.reader), csn, loaded: 0..0, ids: Vec::new() }
    }

    /// Removes from `wanted` the rows from `first` to `last` that the segment replaces.
    pub fn filter(&mut self, first: RowId, last: RowId, row_ids: &[RowId], wanted: &mut Vec<u32>) -> Result<()> {
        let groups = self.reader.row_groups();
        let from = groups.partition_point(|g| g.row_id_max < first);
        let to = groups.partition_point(|g| g.row_id_min <= last);
        if from >= to || wanted.is_empty() {
            return Ok(());
        }
        if self.loaded != (from..to) {
            self.ids.clear();
            for group in from..to {
                self.load(group)?;
            }
            self.loaded = from..to;
        }
        let start = self.ids.partition_point(|id| *id < first);
        remove_masked(&self.ids[start..], row_ids, wanted);
        Ok(())
    }

    fn load(&mut self, group: usize) -> Result<()> {
        let summary = &self.reader.row_groups()[group];
        let mut reader = self.reader.group(group, &[]);
        let ids = reader.row_ids(0..summary.rows)?;
        if summary.csn_max <= self.csn {
            self.ids.extend(ids);
        } else {
            let csns = reader.csns(0..summary.rows)?;
            self.ids.extend(ids.into_iter().enumerate().filter(|(i, _)| csns.get(*i) <= self.csn).map(|(_, id)| id));
        }
        Ok(())
    }
}
