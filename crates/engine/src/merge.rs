//! Merge: several segments of a tree become one; dead versions and tombstones are dropped.
//!
//! Invariants:
//! 1. Only neighbours in the list of runs are merged, so that newer versions stay further to the front.
//! 2. Only runs that the manifest names are merged (see `recovery`).
//! 3. The inputs stay on disk until the manifest no longer names them and no scan reads them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_segment::{GroupData, KeyCursor, KeySegmentReader, TableSegmentReader};
use melba_types::{Csn, RowId};

use crate::engine::Shared;
use crate::error::{EngineError, Result};
use crate::levels::{Run, may_have_key, may_have_row};
use crate::manifest::{Edit, SegmentFile};
use crate::output::{IndexOutput, TableOutput};
use crate::tree::{Tree, TreeData};
use crate::versions::Keep;

/// Runs of about one size after which they are merged.
const RUNS_MAX: usize = 4;
/// A run is of the size of those in front of it when it is at most this many times larger than all of them.
const SIZE_RATIO: u64 = 2;
/// A run is rewritten when one in this many of its rows may be dead: bounds the space that dead versions take.
const DEAD_SHARE: u64 = 4;
/// Rows of a row group decoded at a time.
const PIECE_ROWS: usize = 4096;

/// A run as the choice sees it.
struct Candidate {
    bytes: u64,
    rows: u64,
    tombstones: u64,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Candidate {
    fn overlaps(&self, other: &Candidate) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Which neighbouring runs to merge, newest first; `None`: nothing pays.
fn choose(runs: &[Candidate]) -> Option<std::ops::Range<usize>> {
    // Enough runs of about one size: the usual way of a log-structured tree. Runs that overlap nothing need no merging
    // unless they are small.
    let mut total = 0;
    let mut end = 0;
    while end < runs.len() && (end < RUNS_MAX || runs[end].bytes <= total * SIZE_RATIO) {
        total += runs[end].bytes;
        end += 1;
    }
    let group = &runs[..end];
    let overlapping = group.iter().enumerate().filter(|(i, a)| group[..*i].iter().any(|b| a.overlaps(b))).count();
    if group.len() > RUNS_MAX && (overlapping > 0 || total < (64 << 20)) {
        return Some(0..end);
    }
    // Space: rows in newer runs stand for dead ones in the older runs that they overlap.
    for (i, old) in runs.iter().enumerate().rev() {
        let newer = runs[..i].iter().filter(|r| r.overlaps(old));
        let dead: u64 = newer.map(|r| r.rows).sum();
        if dead * DEAD_SHARE > old.rows && i > 0 {
            return Some(0..i + 1);
        }
    }
    // A run that is mostly tombstones with nothing below.
    let last = runs.len().checked_sub(1)?;
    (runs[last].tombstones * 2 > runs[last].rows).then_some(last..runs.len())
}

impl Shared {
    /// Merges one group of runs of one tree; false when no tree needs it. One thread at a time does this.
    pub(crate) fn merge_step(&self, everything: bool) -> Result<bool> {
        for tree in self.all_trees() {
            let known = self.manifest.lock().state().segments.get(&tree.id).cloned().unwrap_or_default();
            let merged = match &tree.data {
                TreeData::Table(table) => self.merge_runs(
                    &tree,
                    &known,
                    everything,
                    &table.levels,
                    |r| candidate_of_table(r),
                    |inputs, older| self.merge_table(&tree, inputs, older),
                )?,
                TreeData::Index(index) => self.merge_runs(
                    &tree,
                    &known,
                    everything,
                    &index.levels,
                    |r| candidate_of_index(r),
                    |inputs, older| self.merge_index(inputs, older),
                )?,
            };
            if merged {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn merge_runs<K: Ord, V: crate::chain::Payload, R>(
        &self,
        tree: &Tree,
        known: &[SegmentFile],
        everything: bool,
        levels: &parking_lot::RwLock<crate::levels::Levels<K, V, R>>,
        candidate: impl Fn(&R) -> Candidate,
        merge: impl FnOnce(&[Arc<Run<R>>], &[Arc<Run<R>>]) -> Result<Vec<Arc<Run<R>>>>,
    ) -> Result<bool> {
        let runs = Arc::clone(&levels.read().runs);
        // Runs that the manifest does not name yet lie in front; they and those between them wait.
        let settled = runs.iter().rposition(|r| !known.contains(&r.segment)).map_or(0, |at| at + 1);
        let candidates: Vec<Candidate> = runs[settled..].iter().map(|r| candidate(&r.reader)).collect();
        let chosen = match everything {
            true => (candidates.len() > 1).then_some(0..candidates.len()),
            false => choose(&candidates),
        };
        let Some(chosen) = chosen else { return Ok(false) };
        let inputs = &runs[settled + chosen.start..settled + chosen.end];
        let outputs = merge(inputs, &runs[settled + chosen.end..])?;
        self.files.sync_names()?;
        let removed: Vec<u64> = inputs.iter().map(|r| r.segment.file).collect();
        // Levels and manifest change under one lock, so that a flush sees both or neither.
        let mut manifest = self.manifest.lock();
        let mut levels = levels.write();
        // The tree may have been dropped meanwhile.
        if !levels.runs.iter().any(|r| removed.contains(&r.segment.file)) {
            outputs.iter().for_each(|r| r.obsolete.store(true, Ordering::Release));
            return Ok(true);
        }
        levels.replace_runs(&removed, &outputs);
        let added = outputs.iter().map(|r| r.segment).collect();
        drop(levels);
        let edit = Edit::Segments { tree: tree.id, removed, added };
        manifest.install(&[edit]).map_err(|e| self.poison(e))?;
        Ok(true)
    }

    fn merge_table(
        &self,
        tree: &Tree,
        inputs: &[Arc<Run<TableSegmentReader>>],
        older: &[Arc<Run<TableSegmentReader>>],
    ) -> Result<Vec<Arc<Run<TableSegmentReader>>>> {
        let table = tree.as_table().ok_or(EngineError::Misuse("not a table tree"))?;
        let keep = Keep::new(self.snapshots.in_use());
        let mut output = TableOutput::new(&self.files, Arc::clone(&table.layout.read()));
        let mut cursors: Vec<TableCursor> = inputs.iter().map(|r| TableCursor::new(&r.reader)).collect();
        // Which cursor, at which row of its piece: a row's versions of one run lie together.
        let mut versions: Vec<(usize, Csn, bool, usize)> = Vec::new();
        let mut held: Vec<Option<Arc<GroupData>>> = Vec::new();
        loop {
            let mut next: Option<RowId> = None;
            for cursor in &mut cursors {
                if let Some(id) = cursor.row_id()? {
                    next = Some(next.map_or(id, |n| n.min(id)));
                }
            }
            let Some(id) = next else { return output.finish() };
            versions.clear();
            held.clear();
            for cursor in &mut cursors {
                while cursor.row_id()? == Some(id) {
                    let Some(data) = &cursor.data else { break };
                    let at = cursor.at;
                    let dead = data.tombstones.as_ref().is_some_and(|t| t.get(at));
                    versions.push((held.len(), data.csns.get(at), dead, at));
                    held.push(Some(Arc::clone(data)));
                    cursor.at += 1;
                }
            }
            keep.select(&mut versions, |v| v.1, |v| v.2, !may_have_row(older, id));
            for (which, csn, dead, at) in &versions {
                if let Some(Some(data)) = held.get(*which) {
                    output.push_values(id, *csn, *dead, &data.columns, *at)?;
                }
            }
        }
    }

    fn merge_index(
        &self,
        inputs: &[Arc<Run<KeySegmentReader>>],
        older: &[Arc<Run<KeySegmentReader>>],
    ) -> Result<Vec<Arc<Run<KeySegmentReader>>>> {
        let keep = Keep::new(self.snapshots.in_use());
        let mut output = IndexOutput::new(&self.files);
        let mut cursors: Vec<KeyCursor> = Vec::new();
        for input in inputs {
            let mut cursor = input.reader.cursor();
            cursor.seek_first()?;
            cursors.push(cursor);
        }
        let mut key = Vec::new();
        let mut versions: Vec<(Csn, bool)> = Vec::new();
        loop {
            let Some(next) = cursors.iter().filter(|c| c.is_valid()).map(|c| c.key()).min() else {
                return output.finish();
            };
            key.clear();
            key.extend_from_slice(next);
            versions.clear();
            for cursor in &mut cursors {
                while cursor.is_valid() && cursor.key() == key {
                    versions.push((cursor.csn(), cursor.tombstone()));
                    cursor.next()?;
                }
            }
            keep.select(&mut versions, |v| v.0, |v| v.1, !may_have_key(older, &key));
            for (csn, dead) in &versions {
                output.push(&key, *csn, *dead)?;
            }
        }
    }
}

fn candidate_of_table(reader: &TableSegmentReader) -> Candidate {
    let meta = reader.meta();
    Candidate {
        bytes: meta.stored_bytes,
        rows: meta.rows,
        tombstones: meta.tombstones,
        first: meta.row_id_min.0.to_be_bytes().to_vec(),
        last: meta.row_id_max.0.to_be_bytes().to_vec(),
    }
}

fn candidate_of_index(reader: &KeySegmentReader) -> Candidate {
    let meta = reader.meta();
    Candidate {
        bytes: meta.stored_bytes,
        rows: meta.entries,
        tombstones: meta.tombstones,
        first: meta.key_min.clone(),
        last: meta.key_max.clone(),
    }
}

/// Walks all row versions of a table segment.
struct TableCursor {
    reader: Arc<TableSegmentReader>,
    projection: Vec<usize>,
    group: usize,
    /// Rows of the group already decoded.
    decoded: usize,
    data: Option<Arc<GroupData>>,
    at: usize,
}

impl TableCursor {
    fn new(reader: &Arc<TableSegmentReader>) -> TableCursor {
        let projection = (0..reader.kinds().len()).collect();
        TableCursor { reader: Arc::clone(reader), projection, group: 0, decoded: 0, data: None, at: 0 }
    }

    /// The row id at the cursor; `None` at the end.
    fn row_id(&mut self) -> Result<Option<RowId>> {
        loop {
            if let Some(id) = self.data.as_ref().and_then(|d| d.row_ids.get(self.at)) {
                return Ok(Some(*id));
            }
            let Some(group) = self.reader.row_groups().get(self.group) else { return Ok(None) };
            if self.decoded == group.rows {
                (self.group, self.decoded) = (self.group + 1, 0);
                continue;
            }
            let to = (self.decoded + PIECE_ROWS).min(group.rows);
            let data = self.reader.group(self.group, &self.projection).read(self.decoded..to)?;
            (self.data, self.at, self.decoded) = (Some(Arc::new(data)), 0, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: u64, first: u8, last: u8) -> Candidate {
        Candidate { bytes: bytes << 20, rows: bytes, tombstones: 0, first: vec![first], last: vec![last] }
    }

    #[test]
    fn runs_are_merged_when_it_pays() {
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[run(100, 5, 9), run(100, 1, 4)]), None, "neighbours without overlap stay");
        let loads: Vec<Candidate> = (0..9).map(|i| run(100, i, i)).collect();
        assert_eq!(choose(&loads), None, "a large load stays");
        let small: Vec<Candidate> = (0..5).map(|i| run(1, i, i)).collect();
        assert_eq!(choose(&small), Some(0..5));
        assert_eq!(choose(&[run(30, 1, 9), run(100, 1, 9)]), Some(0..2), "many replaced rows");
        assert_eq!(choose(&[run(10, 1, 9), run(100, 1, 9)]), None);
        let mut dead = run(10, 1, 9);
        dead.tombstones = 6;
        assert_eq!(choose(&[dead]), Some(0..1));
    }
}
