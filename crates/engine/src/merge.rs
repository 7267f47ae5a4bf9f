//! Merge: segments of a tree are rewritten together; dead versions and tombstones are dropped.
//!
//! Neighbouring runs that do not overlap are a level. A merge of levels rewrites the oldest of them slice by slice, a segment and
//! what the newer levels have in its range at a time; when all slices are done the newer levels go. So the extra space is one
//! segment, not a table, and a pass that a restart ends is simply begun again.
//!
//! Invariants:
//! 1. Only neighbours in the list of runs are merged, so that newer versions stay further to the front. During a pass a version
//!    may be in a newer level and, the same, in a rewritten slice.
//! 2. Only runs that the manifest names are merged (see `recovery`).
//! 3. The inputs stay on disk until the manifest no longer names them and no scan reads them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use melba_segment::{GroupData, KeyCursor, KeySegmentReader, TableSegmentReader};
use melba_types::{Csn, RowId, TreeId};
use parking_lot::RwLock;

use crate::chain::Payload;
use crate::engine::Shared;
use crate::error::{EngineError, Result};
use crate::levels::{Levels, Run, may_have_key, may_have_row};
use crate::manifest::{Edit, SegmentFile};
use crate::output::{IndexOutput, TableOutput};
use crate::planted::{Plant, is_planted};
use crate::tree::{Tree, TreeData};
use crate::versions::Keep;

/// Levels of about one size after which they are merged.
const LEVELS_MAX: usize = 4;
/// A level is of the size of those in front of it when it is at most this many times larger than all of them.
const SIZE_RATIO: u64 = 2;
/// A level is rewritten when one in this many of its rows may be dead: bounds the space that dead versions take.
const DEAD_SHARE: u64 = 4;
/// Small segments of one level are put together when there are this many.
const SMALL_RUNS: usize = 8;
/// A segment is small below this share of what one may hold.
const SMALL_SHARE: u64 = 4;
/// Rows of a row group decoded at a time.
const PIECE_ROWS: usize = 4096;

/// A run as the choice sees it.
struct Candidate {
    bytes: u64,
    raw_bytes: u64,
    rows: u64,
    tombstones: u64,
    /// Keys as bytes; for rows, the id big-endian.
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Candidate {
    fn overlaps(&self, other: &Candidate) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// What to merge: all runs of `newer`, which may be none, into those of `base`.
#[derive(Debug, PartialEq)]
struct Plan {
    newer: Range<usize>,
    base: Range<usize>,
}

/// A merge in progress, by file numbers.
pub(crate) struct Pass {
    tree: TreeId,
    newer: Vec<u64>,
    /// The segments still to be rewritten, by key, and where the next slice begins (`None`: at the beginning).
    base: Vec<u64>,
    from: Option<Vec<u8>>,
    /// Runs behind the merged ones.
    older: Vec<u64>,
    outputs: HashSet<u64>,
}

/// What merges own: the one in progress, and what the last one of each tree made. That is not merged again by itself, so that
/// merging always ends, whatever the rules say of its result.
#[derive(Default)]
pub(crate) struct Merges {
    pass: Option<Pass>,
    made: HashMap<TreeId, HashSet<u64>>,
}

/// Neighbouring runs that do not overlap.
fn levels_of(runs: &[Candidate]) -> Vec<Range<usize>> {
    let mut levels: Vec<Range<usize>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        match levels.last_mut() {
            Some(level) if !runs[level.clone()].iter().any(|r| r.overlaps(run)) => level.end = i + 1,
            _ => levels.push(i..i + 1),
        }
    }
    levels
}

/// What to merge, of runs that are given newest first; `None`: nothing pays.
fn choose(runs: &[Candidate], everything: bool, segment_bytes: u64) -> Option<Plan> {
    let levels = levels_of(runs);
    let into = |at: usize| Plan { newer: 0..levels[at].start, base: levels[at].clone() };
    let sum = |level: &Range<usize>, of: fn(&Candidate) -> u64| runs[level.clone()].iter().map(of).sum::<u64>();
    if everything {
        return (levels.len() > 1).then(|| into(levels.len() - 1));
    }
    // Space: rows in newer levels stand for dead ones in older levels.
    for at in (1..levels.len()).rev() {
        let newer = sum(&(0..levels[at].start), |r| r.rows);
        if newer * DEAD_SHARE > sum(&levels[at], |r| r.rows) {
            return Some(into(at));
        }
    }
    // Reads: enough levels of about one size, the usual way of a log-structured tree.
    let (mut total, mut count) = (0, 0);
    while count < levels.len() {
        let bytes = sum(&levels[count], |r| r.bytes);
        if count >= LEVELS_MAX && bytes > total * SIZE_RATIO {
            break;
        }
        total += bytes;
        count += 1;
    }
    if count > LEVELS_MAX {
        return Some(into(count - 1));
    }
    // Files: small neighbours.
    let small = runs.iter().take_while(|r| r.raw_bytes < segment_bytes / SMALL_SHARE).count();
    if small >= SMALL_RUNS {
        return Some(Plan { newer: 0..small - 1, base: small - 1..small });
    }
    // Runs that are mostly tombstones with nothing below.
    let last = levels.last()?;
    let dead = last.clone().find(|i| runs[*i].tombstones * 2 > runs[*i].rows)?;
    Some(Plan { newer: dead..dead, base: dead..dead + 1 })
}

impl Shared {
    /// Rewrites one slice, of the merge in progress or of a new one; false when no tree needs a merge. One thread at a time does
    /// this.
    pub(crate) fn merge_step(&self, merges: &mut Merges, everything: bool) -> Result<bool> {
        let Merges { pass, made } = merges;
        if pass.is_none() {
            let segment_bytes = self.options.segment_bytes as u64;
            let choose = |runs: &[Candidate]| choose(runs, everything, segment_bytes);
            for tree in self.all_trees() {
                let known = self.manifest.lock().state().segments.get(&tree.id).cloned().unwrap_or_default();
                *pass = match &tree.data {
                    TreeData::Table(t) => plan(tree.id, &t.levels, &known, choose, candidate_of_table),
                    TreeData::Index(t) => plan(tree.id, &t.levels, &known, choose, candidate_of_index),
                };
                let again = |p: &Pass| {
                    let made = made.get(&p.tree);
                    made.is_some_and(|made| p.newer.iter().chain(&p.base).all(|f| made.contains(f)))
                };
                if pass.as_ref().is_some_and(again) {
                    *pass = None;
                }
                if pass.is_some() {
                    break;
                }
            }
        }
        let Some(current) = pass else { return Ok(false) };
        // A failure before the installation leaves the pass as it was, and the slice is tried again.
        let done = match self.tree(current.tree) {
            Err(_) => true,
            Ok(tree) => match &tree.data {
                TreeData::Table(t) => self.merge_slice(current, &t.levels, candidate_of_table, |inputs, older, range| {
                    self.merge_table(&tree, inputs, older, range)
                })?,
                TreeData::Index(t) => self.merge_slice(current, &t.levels, candidate_of_index, |inputs, older, range| {
                    self.merge_index(inputs, older, range)
                })?,
            },
        };
        if done && let Some(pass) = pass.take() {
            made.insert(pass.tree, pass.outputs);
        }
        Ok(true)
    }

    /// Rewrites the next slice of a pass; true when it was the last, or the tree has changed under the pass.
    fn merge_slice<K: Ord, V: Payload, R>(
        &self,
        pass: &mut Pass,
        levels: &RwLock<Levels<K, V, R>>,
        candidate: impl Fn(&R) -> Candidate,
        merge: impl FnOnce(&[Arc<Run<R>>], &[Arc<Run<R>>], Slice<'_>) -> Result<Vec<Arc<Run<R>>>>,
    ) -> Result<bool> {
        let runs = Arc::clone(&levels.read().runs);
        let find = |file: &u64| runs.iter().find(|r| r.segment.file == *file).cloned();
        let Some(&base) = pass.base.first() else { return Ok(true) };
        let inputs: Option<Vec<Arc<Run<R>>>> = pass.newer.iter().chain([&base]).map(find).collect();
        let Some(inputs) = inputs else { return Ok(true) };
        let older: Vec<Arc<Run<R>>> = pass.older.iter().filter_map(find).collect();
        let to = pass.base.get(1).and_then(find).map(|next| candidate(&next.reader).first);
        let slice = Slice { from: pass.from.as_deref(), to: to.as_deref() };
        let outputs = merge(&inputs, &older, slice)?;
        self.files.sync_names()?;
        let is_last = pass.base.len() == 1;
        let mut removed = vec![base];
        // Levels and manifest change under one lock, so that a flush sees both or neither.
        let mut manifest = self.manifest.lock();
        let mut levels = levels.write();
        if !levels.runs.iter().any(|r| r.segment.file == base) {
            // The tree was dropped meanwhile.
            outputs.iter().for_each(|r| r.obsolete.store(true, Ordering::Release));
            return Ok(true);
        }
        levels.replace_runs(&removed, &outputs);
        if is_last {
            levels.replace_runs(&pass.newer, &[]);
        }
        drop(levels);
        let added = outputs.iter().map(|r| r.segment).collect();
        let mut edits = vec![Edit::Segments { tree: pass.tree, removed: std::mem::take(&mut removed), added }];
        if is_last {
            edits.push(Edit::Segments { tree: pass.tree, removed: pass.newer.clone(), added: Vec::new() });
        }
        manifest.install(&edits).map_err(|e| self.poison(e))?;
        pass.outputs.extend(outputs.iter().map(|r| r.segment.file));
        pass.base.remove(0);
        pass.from = to;
        Ok(is_last)
    }

    fn merge_table(
        &self,
        tree: &Tree,
        inputs: &[Arc<Run<TableSegmentReader>>],
        older: &[Arc<Run<TableSegmentReader>>],
        slice: Slice<'_>,
    ) -> Result<Vec<Arc<Run<TableSegmentReader>>>> {
        let table = tree.as_table().ok_or(EngineError::Misuse("not a table tree"))?;
        let keep = Keep::new(self.snapshots.in_use());
        let mut output = TableOutput::new(&self.files, Arc::clone(&table.layout.read()));
        let mut cursors: Vec<TableCursor> = inputs.iter().map(|r| TableCursor::new(&r.reader, slice.first_row())).collect();
        let end = slice.end_row();
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
            let Some(id) = next.filter(|id| *id < end) else { return output.finish() };
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
        slice: Slice<'_>,
    ) -> Result<Vec<Arc<Run<KeySegmentReader>>>> {
        let keep = Keep::new(self.snapshots.in_use());
        let mut output = IndexOutput::new(&self.files);
        let mut cursors: Vec<KeyCursor> = Vec::new();
        for input in inputs {
            let mut cursor = input.reader.cursor();
            cursor.seek(slice.from.unwrap_or(&[]))?;
            cursors.push(cursor);
        }
        let mut key = Vec::new();
        let mut versions: Vec<(Csn, bool)> = Vec::new();
        loop {
            let next = cursors.iter().filter(|c| c.is_valid()).map(|c| c.key()).min();
            let Some(next) = next.filter(|k| slice.to.is_none_or(|to| *k < to)) else { return output.finish() };
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
            if is_planted(Plant::DropIndexEntry) && key.last() == Some(&7) {
                continue;
            }
            for (csn, dead) in &versions {
                output.push(&key, *csn, *dead)?;
            }
        }
    }
}

/// A part of the key axis: from a key on, up to and without another; `None` is no bound.
#[derive(Clone, Copy)]
struct Slice<'a> {
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
}

fn row_of(bytes: &[u8]) -> Option<RowId> {
    bytes.try_into().ok().map(|b| RowId(u64::from_be_bytes(b)))
}

impl Slice<'_> {
    fn first_row(&self) -> RowId {
        self.from.and_then(row_of).unwrap_or(RowId(0))
    }

    fn end_row(&self) -> RowId {
        self.to.and_then(row_of).unwrap_or(RowId(u64::MAX))
    }
}

/// A pass over one tree, if one pays.
fn plan<K: Ord, V: Payload, R>(
    tree: TreeId,
    levels: &RwLock<Levels<K, V, R>>,
    known: &[SegmentFile],
    choose: impl Fn(&[Candidate]) -> Option<Plan>,
    candidate: impl Fn(&R) -> Candidate,
) -> Option<Pass> {
    let runs = Arc::clone(&levels.read().runs);
    // Runs that the manifest does not name yet lie in front; they and those between them wait.
    let settled = runs.iter().rposition(|r| !known.contains(&r.segment)).map_or(0, |at| at + 1);
    let runs = &runs[settled..];
    let candidates: Vec<Candidate> = runs.iter().map(|r| candidate(&r.reader)).collect();
    let Plan { newer, base } = choose(&candidates)?;
    let file = |i: usize| runs[i].segment.file;
    let mut by_key: Vec<usize> = base.clone().collect();
    by_key.sort_by(|a, b| candidates[*a].first.cmp(&candidates[*b].first));
    Some(Pass {
        tree,
        newer: newer.map(file).collect(),
        base: by_key.into_iter().map(file).collect(),
        from: None,
        older: (base.end..runs.len()).map(file).collect(),
        outputs: HashSet::new(),
    })
}

fn candidate_of_table(reader: &TableSegmentReader) -> Candidate {
    let meta = reader.meta();
    Candidate {
        bytes: meta.stored_bytes,
        raw_bytes: meta.raw_bytes,
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
        raw_bytes: meta.raw_bytes,
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
    from: RowId,
    group: usize,
    /// Rows of the group already decoded.
    decoded: usize,
    data: Option<Arc<GroupData>>,
    at: usize,
}

impl TableCursor {
    /// A cursor at the first row at or after `from`.
    fn new(reader: &Arc<TableSegmentReader>, from: RowId) -> TableCursor {
        let projection = (0..reader.kinds().len()).collect();
        let group = reader.row_groups().partition_point(|g| g.row_id_max < from);
        TableCursor { reader: Arc::clone(reader), projection, from, group, decoded: 0, data: None, at: 0 }
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
            let at = data.row_ids.partition_point(|id| *id < self.from);
            (self.data, self.at, self.decoded) = (Some(Arc::new(data)), at, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: u64, first: u8, last: u8) -> Candidate {
        Candidate { bytes: bytes << 20, raw_bytes: bytes << 20, rows: bytes, tombstones: 0, first: vec![first], last: vec![last] }
    }

    fn into(newer: Range<usize>, base: Range<usize>) -> Option<Plan> {
        Some(Plan { newer, base })
    }

    #[test]
    fn runs_are_merged_when_it_pays() {
        assert_eq!(choose(&[], false, 64 << 20), None);
        assert_eq!(choose(&[run(100, 5, 9), run(100, 1, 4)], false, 64 << 20), None, "neighbours without overlap stay");
        assert_eq!(choose(&[run(100, 5, 9), run(100, 1, 4)], true, 64 << 20), None, "they are one level");
        let loads: Vec<Candidate> = (0..9).map(|i| run(100, i, i)).collect();
        assert_eq!(choose(&loads, false, 64 << 20), None, "a large load stays");
        let small: Vec<Candidate> = (0..9).map(|i| run(1, i, i)).collect();
        assert_eq!(choose(&small, false, 64 << 20), into(0..8, 8..9));
        let wide = || run(30, 1, 9);
        assert_eq!(choose(&[wide(), run(50, 5, 9), run(60, 1, 4)], false, 64 << 20), into(0..1, 1..3), "many replaced rows");
        assert_eq!(choose(&[wide(), run(90, 5, 9), run(90, 1, 4)], false, 64 << 20), None);
        assert_eq!(choose(&[wide(), run(90, 5, 9), run(90, 1, 4)], true, 64 << 20), into(0..1, 1..3));
        let mut dead = run(10, 1, 9);
        dead.tombstones = 6;
        assert_eq!(choose(&[dead], false, 64 << 20), into(0..0, 0..1));
    }
}
