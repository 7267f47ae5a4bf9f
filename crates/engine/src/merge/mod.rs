//! Merge: segments of a tree are rewritten together; dead versions and tombstones are dropped. `choose` says which.
//!
//! A step rewrites one slice of the key axis, or a few levels of recent changes, so that the extra space is a few segments and
//! not a table. Between steps only the absorbed ranges are remembered, which only saves work.
//!
//! Invariants:
//! 1. Newer versions of a key stay further to the front. The same version may be in a newer run and in an older one.
//! 2. Only runs that the manifest names are merged (see `recovery`).
//! 3. The inputs stay on disk until the manifest no longer names them and no scan reads them.
//! 4. No lock that a reader or a commit needs is held while segments are read, written or synced.

mod choose;
mod cursor;
mod neighbour;
mod queue;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_segment::{Effort, GroupData, KeyCursor, KeySegmentReader, SegmentMeta, TableSegmentReader};
use melba_store::{
    Edit, EngineError, IndexOutput, Keep, Levels, Manifest, Payload, Place, Result, Run, SegmentFile, Store, Swap, TableOutput,
    Tree, TreeData, may_have_key, may_have_row,
};
use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, MutexGuard};
use melba_types::{Csn, RowId, TreeId};

use crate::commit::Log;
use crate::events::BackgroundEvent;
use crate::options::EngineOptions;
use crate::runtime::Runtime;
use crate::snapshot::Snapshots;
pub(crate) use choose::Eagerness;
use choose::{Absorbed, Candidate, Limits, Plan, Shape};
use cursor::{Inputs, TableCursor, row_of};
use queue::Unmerged;

/// A run is made about this share of its tree, within bounds: the extra space of a step.
const AIM_SHARE: u64 = 16;

/// Merges of less do not press.
const PRESSING_BYTES_MIN: u64 = 1 << 20;

/// Does merges.
pub(crate) struct Merger {
    options: Arc<EngineOptions>,
    runtime: Arc<Runtime>,
    store: Arc<Store>,
    snapshots: Arc<Snapshots>,
    log: Arc<Log>,
    /// Held while a merge runs.
    merges: Mutex<Merges>,
    /// Statements that wait for that: the running merge does not yield then.
    awaited: AtomicU64,
    /// A merge that should come before dense values are compressed again would pay.
    is_pressed: AtomicBool,
    unmerged: Mutex<Unmerged>,
}

/// State that merges remember between steps.
#[derive(Default)]
pub(crate) struct Merges {
    absorbed: Absorbed,
    /// Files of one merge whose key ranges overlap, and the first of them: rows of several column layouts.
    units: HashMap<u64, u64>,
    /// The tree of the last step: the next one begins behind it, so that no tree waits for another for long.
    last: TreeId,
}

/// The inputs and the output of one step.
struct Job<R> {
    /// Newest first.
    inputs: Vec<Arc<Run<R>>>,
    /// Runs that may have versions behind the inputs'.
    older: Vec<Arc<Run<R>>>,
    /// The key range to rewrite.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// Raw bytes after which another output is begun.
    output_bytes: usize,
    /// The inputs that the outputs replace. Of a sinking, the other inputs are absorbed.
    replaced: Vec<u64>,
    absorbed: Vec<u64>,
    /// Runs above that must be absorbed again.
    left: Vec<u64>,
    place: Place,
}

impl Merger {
    pub fn new(
        options: &Arc<EngineOptions>,
        runtime: &Arc<Runtime>,
        store: &Arc<Store>,
        snapshots: &Arc<Snapshots>,
        log: &Arc<Log>,
    ) -> Merger {
        Merger {
            options: Arc::clone(options),
            runtime: Arc::clone(runtime),
            store: Arc::clone(store),
            snapshots: Arc::clone(snapshots),
            log: Arc::clone(log),
            merges: Mutex::default(),
            awaited: AtomicU64::new(0),
            is_pressed: AtomicBool::new(false),
            unmerged: Mutex::default(),
        }
    }

    /// Keeps merges from running.
    pub fn lock(&self) -> MutexGuard<'_, Merges> {
        self.merges.lock()
    }

    /// Whether a statement waits for the merge that runs.
    pub fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) > 0
    }

    /// Whether work waits that merges do first.
    pub fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// Does one rewriting, if one pays; false when no tree needs any.
    pub fn step(&self, eagerness: Eagerness) -> Result<bool> {
        let done = self.step_locked(&mut self.merges.lock(), eagerness)?;
        if eagerness == Eagerness::Idle && !done {
            self.is_pressed.store(false, Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Rewrites as long as that pays, in all trees or in some.
    pub fn merge_all(&self, only: Option<&[Arc<Tree>]>) -> Result<()> {
        self.awaited.fetch_add(1, Ordering::Relaxed);
        let merges = &mut self.merges.lock();
        self.awaited.fetch_sub(1, Ordering::Relaxed);
        match only {
            None => while self.step_locked(merges, Eagerness::Everything)? {},
            Some(trees) => {
                for tree in trees {
                    while self.merge_if_due(tree, merges, Eagerness::Everything)? {}
                }
            }
        }
        Ok(())
    }

    fn step_locked(&self, merges: &mut Merges, eagerness: Eagerness) -> Result<bool> {
        let mut last = merges.last;
        let count = self.unmerged.lock().len(eagerness);
        for _ in 0..count {
            // Taken before looking, so that a flush that changes the tree meanwhile has the last word.
            let next = self.unmerged.lock().take(eagerness, last);
            let Some(id) = next else { break };
            last = id;
            let Ok(tree) = self.store.tree(id).map(|tree| Arc::clone(&tree)) else { continue };
            if self.merge_taken(&tree, merges, eagerness)? {
                merges.last = tree.id;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does one rewriting of a tree, if one pays; false when it needs none.
    fn merge_if_due(&self, tree: &Tree, merges: &mut Merges, eagerness: Eagerness) -> Result<bool> {
        let is_due = self.unmerged.lock().take_if_due(eagerness, tree.id);
        if is_due { self.merge_taken(tree, merges, eagerness) } else { Ok(false) }
    }

    /// Runs one rewriting of a tree that was taken from the queue.
    fn merge_taken(&self, tree: &Tree, merges: &mut Merges, eagerness: Eagerness) -> Result<bool> {
        if tree.is_damaged() {
            return Ok(false);
        }
        // Freeing space comes first; the gain of a slower level comes when there is no other work.
        let effort = if eagerness < Eagerness::Cold { Effort::Normal } else { Effort::High };
        let write = |job: &Job<_>| Ok(self.merge_table(tree, job, effort)?.into_iter().map(|run| run.of_tree(tree.id)).collect());
        let write_index = |job: &Job<_>| Ok(self.merge_index(tree, job)?.into_iter().map(|run| run.of_tree(tree.id)).collect());
        let result = match &tree.data {
            TreeData::Table(t) => self.merge_tree(tree, merges, eagerness, &t.levels, write),
            TreeData::Index(t) => self.merge_tree(tree, merges, eagerness, &t.levels, write_index),
        };
        if result.as_ref().is_err_and(EngineError::is_damage) {
            // Until it changes: others must not wait for a merge that will fail.
            return Ok(false);
        }
        if !matches!(result, Ok(Outcome::Nothing)) {
            self.unmerged.lock().add(tree.id);
        }
        Ok(result? == Outcome::Rewritten)
    }

    fn merge_tree<K: Ord, V: Payload, R: Described>(
        &self,
        tree: &Tree,
        merges: &mut Merges,
        eagerness: Eagerness,
        levels: &Swap<Levels<K, V, R>>,
        write: impl FnOnce(&Job<R>) -> Result<Vec<Arc<Run<R>>>>,
    ) -> Result<Outcome> {
        let known = self.store.manifest().state().segments.get(&tree.id).cloned().unwrap_or_default();
        let runs = Arc::clone(&levels.read().runs);
        let runs = mergeable(&runs, &known);
        let mut candidates = merges.candidates(runs);
        if tree.as_index().is_some() && (eagerness == Eagerness::Busy || !self.is_dense(tree.table)) {
            // Entries are packed when there is time, and for tables that are to be small.
            candidates.iter_mut().for_each(|candidate| candidate.waiting_bytes = 0);
        }
        if eagerness != Eagerness::Everything && tree.dense_work.is_stopped() {
            candidates.iter_mut().for_each(|candidate| (candidate.waiting_bytes, candidate.hasty_bytes) = (0, 0));
        }
        // What is in a store is not fetched to be compressed better.
        let cold = &self.store.files.cold;
        let of_cold = candidates.iter_mut().filter(|candidate| candidate.files.iter().any(|file| cold.is_cold(*file)));
        of_cold.for_each(|candidate| (candidate.waiting_bytes, candidate.hasty_bytes) = (0, 0));
        let shape = Shape::new(&candidates);
        let oldest = self.snapshots.compute_oldest();
        let limits = self.limits(tree, &candidates);
        let Some(plan) = shape.choose(&merges.absorbed, eagerness, oldest, limits) else {
            let waits = shape.is_held_back(oldest);
            return Ok(if waits { Outcome::Waiting } else { Outcome::Nothing });
        };
        let job = Job::new(plan, &candidates, runs, limits.aim_bytes);
        // A merge waits for no store: it comes when its inputs were brought back.
        if !cold.pin(job.inputs.iter().map(|run| run.segment.file).collect()) {
            return Ok(Outcome::Waiting);
        }
        let start = self.runtime.clock.monotonic();
        let cpu_start = self.runtime.clock.thread_cpu();
        let outputs = write(&job);
        cold.unpin();
        let outputs = outputs?;
        let (before, after) = (Bytes::of(&job.inputs), Bytes::of(&outputs));
        if tree.as_table().is_some() && (before.waiting > after.waiting || before.hasty > after.hasty) {
            // Pauses, and time that other threads had the processors, are not part of its cost.
            let cpu = self.runtime.clock.thread_cpu().zip(cpu_start).map(|(now, start)| now.saturating_sub(start));
            let time = cpu.unwrap_or_else(|| self.runtime.clock.monotonic().saturating_sub(start));
            // Compressing again is not judged.
            let waiting = before.waiting.saturating_sub(after.waiting);
            tree.dense_work.note(waiting, before.stored, after.stored, time, self.options.dense_gain_min_bytes);
        }
        self.store.files.sync_names().map_err(|e| self.runtime.poison(e))?;
        let (inputs, written) = (job.inputs.len(), outputs.len());
        self.install_merge(tree, merges, levels, &job, outputs)?;
        self.runtime.events.tell(|| BackgroundEvent::Merged {
            tree: tree.id.0,
            inputs,
            outputs: written,
            bytes_before: before.stored,
            bytes_after: after.stored,
            took: self.runtime.clock.monotonic().saturating_sub(start),
        });
        Ok(Outcome::Rewritten)
    }

    /// How much a rewriting of a tree with such runs takes.
    fn limits(&self, tree: &Tree, candidates: &[Candidate]) -> Limits {
        let raw_bytes: u64 = candidates.iter().map(|c| c.raw_bytes).sum();
        let most = self.store.files.segment_bytes as u64;
        let aim_bytes = (raw_bytes / AIM_SHARE).clamp(self.store.files.piece_bytes() as u64, most);
        let fan_in = self.options.merge_fan_in(match &tree.data {
            TreeData::Table(t) => t.layout.read().kinds().len(),
            TreeData::Index(_) => 1,
        });
        Limits { aim_bytes, gather_bytes: self.options.density(Effort::Normal).spool_bytes as u64, fan_in }
    }

    /// Whether a table has columns whose values are to become dense.
    fn is_dense(&self, table: TreeId) -> bool {
        self.store.tree(table).is_ok_and(|table| table.dense_columns.load(Ordering::Relaxed) != 0)
    }

    /// Puts the outputs in place, and removes runs that have become superfluous with them.
    fn install_merge<K: Ord, V: Payload, R: Described>(
        &self,
        tree: &Tree,
        merges: &mut Merges,
        levels: &Swap<Levels<K, V, R>>,
        job: &Job<R>,
        outputs: Vec<Arc<Run<R>>>,
    ) -> Result<()> {
        // Levels and manifest change under one lock, so that a flush sees both or neither.
        let mut manifest = self.store.manifest();
        let known = manifest.state().segments.get(&tree.id).cloned().unwrap_or_default();
        if let Err(e) = reserve(&mut manifest, &self.runtime, &[], known.len() + 2 * outputs.len() + 2) {
            outputs.iter().for_each(|r| r.discard());
            return Err(e);
        }
        let before = {
            let mut levels = levels.write();
            if !job.replaced.iter().all(|file| levels.runs.iter().any(|r| r.segment.file == *file)) {
                // The tree was dropped meanwhile.
                outputs.iter().for_each(|r| r.discard());
                return Ok(());
            }
            levels.replace_runs(&job.replaced, &outputs, job.place)
        };
        drop(before);
        let added: Vec<SegmentFile> = outputs.iter().map(|r| r.segment).collect();
        let mut edits = replacement(tree.id, &known, &job.replaced, &added, job.place);
        merges.note_outputs(job, &outputs);
        // The segments that the manifest names after these edits.
        let named: Vec<SegmentFile> = known.iter().chain(&added).copied().collect();
        let runs = Arc::clone(&levels.read().runs);
        let candidates = merges.candidates(mergeable(&runs, &named));
        let shape = Shape::new(&candidates);
        let gone: Vec<u64> = shape.superfluous(&merges.absorbed).into_iter().flat_map(|i| candidates[i].files.clone()).collect();
        let bulk = shape.bulk();
        if !gone.is_empty() {
            let before = levels.write().replace_runs(&gone, &[], Place::First);
            drop(before);
            edits.push(Edit::Segments { tree: tree.id, removed: gone.clone(), added: Vec::new() });
            merges.forget(&gone);
        }
        tree.note_bulk(bulk);
        manifest.install(&edits).map_err(|e| self.runtime.poison(e))?;
        self.log.wal.belongs_to(manifest.state().belongs());
        Ok(())
    }

    /// Checks a tree again after a flush: how far merges lag behind, and that they have work to consider.
    pub fn note_flushed(&self, tree: &Tree) {
        let merges = Merges::default();
        let bulk = match &tree.data {
            TreeData::Table(t) => {
                let mut candidates = merges.candidates(&t.levels.read().runs);
                if tree.dense_work.is_stopped() {
                    candidates.iter_mut().for_each(|candidate| candidate.waiting_bytes = 0);
                }
                let shape = Shape::new(&candidates);
                let limits = self.limits(tree, &candidates);
                let plan = shape.choose(&Absorbed::default(), Eagerness::Idle, Csn(0), limits);
                if plan.is_some_and(|plan| plan.bytes(&candidates) >= PRESSING_BYTES_MIN) {
                    self.is_pressed.store(true, Ordering::Relaxed);
                }
                shape.bulk()
            }
            TreeData::Index(t) => Shape::new(&merges.candidates(&t.levels.read().runs)).bulk(),
        };
        tree.note_bulk(bulk);
        self.unmerged.lock().add(tree.id);
    }

    fn merge_table(
        &self,
        tree: &Tree,
        job: &Job<TableSegmentReader>,
        effort: Effort,
    ) -> Result<Vec<Arc<Run<TableSegmentReader>>>> {
        let table = tree.require_table()?;
        let keep = Keep::new(self.snapshots.in_use());
        let mut output =
            TableOutput::new(&self.store.files, tree.is_synced(), Arc::clone(&table.layout.read()), job.output_bytes);
        // Waiting values in a run at the top keep waiting: the run is soon merged again.
        let has_dense = |meta: &SegmentMeta| meta.dense_bytes > 0 || (meta.waiting_bytes > 0 && job.place == Place::Bottom);
        output = output.dense_columns(job.inputs.iter().fold(0, |columns, run| columns | run.reader.meta().dense_columns));
        if job.inputs.iter().any(|run| has_dense(run.reader.meta())) {
            output = output.dense(self.options.density(effort));
            let dense = job.inputs.iter().filter(|run| run.reader.meta().dense_bytes > 0);
            if let Some(most) = dense.max_by_key(|run| run.reader.meta().dense_bytes) {
                output = output.reuse(Arc::clone(&most.reader));
            }
            if let Some(neighbour) = neighbour::find(&self.options, &table.levels.read().runs, job) {
                output = output.share_references(neighbour);
            }
        }
        let readers = job.inputs.iter().map(|r| Arc::clone(&r.reader));
        let mut inputs: Inputs<TableCursor> = Inputs::new(readers, &job.from, self.options.merge_piece_bytes());
        let end = job.to.as_deref().and_then(row_of).unwrap_or(RowId(u64::MAX));
        // Which cursor's piece, and at which row of it: a row's versions of one run lie together.
        let mut versions: Vec<(usize, Csn, bool, usize)> = Vec::new();
        let mut held: Vec<Arc<GroupData>> = Vec::new();
        loop {
            let next = inputs.least()?.and_then(TableCursor::row_id);
            let Some(id) = next.filter(|id| *id < end) else { return output.finish() };
            versions.clear();
            held.clear();
            for cursor in inputs.cursors() {
                while cursor.row_id() == Some(id) {
                    let Some((data, at)) = cursor.version() else { break };
                    let dead = data.tombstones.as_ref().is_some_and(|t| t.get(at));
                    versions.push((held.len(), data.csns.get(at), dead, at));
                    held.push(data);
                    cursor.advance()?;
                }
            }
            // A run may have versions between those of another.
            versions.sort_by_key(|v| std::cmp::Reverse(v.1));
            keep.select(&mut versions, |v| v.1, |v| v.2, !may_have_row(&job.older, id));
            for (which, csn, dead, at) in &versions {
                output.push_values(id, *csn, *dead, &held[*which].columns, *at)?;
            }
        }
    }

    fn merge_index(&self, tree: &Tree, job: &Job<KeySegmentReader>) -> Result<Vec<Arc<Run<KeySegmentReader>>>> {
        let keep = Keep::new(self.snapshots.in_use());
        let mut output = IndexOutput::new(&self.store.files, tree.is_synced(), job.output_bytes);
        if self.is_dense(tree.table) || job.inputs.iter().any(|run| run.reader.meta().packed) {
            output = output.packed();
        }
        let readers = job.inputs.iter().map(|r| Arc::clone(&r.reader));
        let mut inputs: Inputs<KeyCursor> = Inputs::new(readers, &job.from, 0);
        let mut key = Vec::new();
        let mut versions: Vec<(Csn, bool)> = Vec::new();
        loop {
            let next = inputs.least()?.map(KeyCursor::key);
            let Some(next) = next.filter(|k| job.to.as_deref().is_none_or(|to| *k < to)) else { return output.finish() };
            key.clear();
            key.extend_from_slice(next);
            versions.clear();
            for cursor in inputs.cursors() {
                while cursor.is_valid() && cursor.key() == key {
                    versions.push((cursor.csn(), cursor.tombstone()));
                    cursor.next()?;
                }
            }
            versions.sort_by_key(|v| std::cmp::Reverse(v.0));
            keep.select(&mut versions, |v| v.0, |v| v.1, !may_have_key(&job.older, &key));
            if is_planted(Plant::DropIndexEntry) && key.last() == Some(&7) {
                continue;
            }
            for (csn, dead) in &versions {
                output.push(&key, *csn, *dead)?;
            }
        }
    }
}

/// `Manifest::reserve`; poisons the engine when the manifest's state on disk is unknown afterwards.
pub(crate) fn reserve(manifest: &mut Manifest, runtime: &Runtime, edits: &[Edit], names: usize) -> Result<()> {
    manifest.reserve(edits, names).map_err(|e| if manifest.is_lost() { runtime.poison(e) } else { e })
}

/// Bytes of some runs, and those in them that wait to become dense, or were made so in haste.
struct Bytes {
    stored: u64,
    waiting: u64,
    hasty: u64,
}

impl Bytes {
    fn of<R: Described>(runs: &[Arc<Run<R>>]) -> Bytes {
        let described: Vec<Candidate> = runs.iter().map(|run| run.reader.describe()).collect();
        let sum = |of: fn(&Candidate) -> u64| described.iter().map(of).sum();
        Bytes { stored: sum(|c| c.bytes), waiting: sum(|c| c.waiting_bytes), hasty: sum(|c| c.hasty_bytes) }
    }
}

/// Bytes on disk of a table's segments.
pub(crate) fn table_bytes(runs: &[Arc<Run<TableSegmentReader>>]) -> u64 {
    Bytes::of(runs).stored
}

/// Bytes on disk of an index's segments.
pub(crate) fn index_bytes(runs: &[Arc<Run<KeySegmentReader>>]) -> u64 {
    Bytes::of(runs).stored
}

/// The result of a step for a tree.
#[derive(PartialEq)]
enum Outcome {
    Rewritten,
    /// Nothing yet: snapshots hold versions that could otherwise be dropped, or inputs are in a store.
    Waiting,
    Nothing,
}

impl Merges {
    /// The runs as the choice sees them.
    fn candidates<R: Described>(&self, runs: &[Arc<Run<R>>]) -> Vec<Candidate> {
        let mut out: Vec<Candidate> = Vec::with_capacity(runs.len());
        for run in runs {
            let file = run.segment.file;
            let mut candidate = run.reader.describe();
            candidate.files.push(file);
            match out.last_mut() {
                Some(last) if self.units.get(&file).is_some_and(|unit| self.units.get(&last.files[0]) == Some(unit)) => {
                    last.join(candidate);
                }
                _ => out.push(candidate),
            }
        }
        out
    }

    /// Remembers the ranges that are absorbed now.
    fn note_outputs<R: Described>(&mut self, job: &Job<R>, outputs: &[Arc<Run<R>>]) {
        self.forget(&job.replaced);
        job.left.iter().for_each(|file| self.absorbed.subtract(*file, &job.from, job.to.as_deref()));
        for file in &job.absorbed {
            self.absorbed.add(*file, &job.from, job.to.as_deref());
        }
        let ranges: Vec<Candidate> = outputs.iter().map(|r| r.reader.describe()).collect();
        let overlap = ranges.iter().enumerate().any(|(i, a)| ranges[..i].iter().any(|b| a.first <= b.last && b.first <= a.last));
        if overlap {
            self.units.extend(outputs.iter().map(|run| (run.segment.file, outputs[0].segment.file)));
        }
    }

    fn forget(&mut self, gone: &[u64]) {
        for file in gone {
            self.units.remove(file);
            self.absorbed.remove(*file);
        }
    }
}

/// The runs that the manifest names and nothing in front of them is missing in it: those and runs between them wait.
fn mergeable<'a, R>(runs: &'a [Arc<Run<R>>], known: &[SegmentFile]) -> &'a [Arc<Run<R>>] {
    let known: HashSet<u64> = known.iter().map(|s| s.file).collect();
    let from = runs.iter().rposition(|r| !known.contains(&r.segment.file)).map_or(0, |at| at + 1);
    &runs[from..]
}

/// The manifest's edits for a merge.
fn replacement(tree: TreeId, known: &[SegmentFile], removed: &[u64], added: &[SegmentFile], place: Place) -> Vec<Edit> {
    let removed = removed.to_vec();
    let mut stays = known.iter().filter(|s| !removed.contains(&s.file));
    match (place, stays.next_back()) {
        // Added runs take the place of removed ones: the place of the last one, to come behind it.
        (Place::Bottom, Some(last)) => {
            let behind = [&[*last], added].concat();
            vec![
                Edit::Segments { tree, removed, added: Vec::new() },
                Edit::Segments { tree, removed: vec![last.file], added: behind },
            ]
        }
        _ => vec![Edit::Segments { tree, removed, added: added.to_vec() }],
    }
}

impl<R> Job<R> {
    fn new(plan: Plan, candidates: &[Candidate], runs: &[Arc<Run<R>>], aim_bytes: u64) -> Job<R> {
        let files = |which: &[usize]| -> Vec<u64> { which.iter().flat_map(|i| candidates[*i].files.clone()).collect() };
        let with_files = |files: &[u64]| runs.iter().filter(|r| files.contains(&r.segment.file)).cloned().collect::<Vec<_>>();
        let without_files = |files: &[u64]| runs.iter().filter(|r| !files.contains(&r.segment.file)).cloned().collect::<Vec<_>>();
        match plan {
            Plan::Sink { bottoms, above, left, from, to } => {
                let replaced = files(&bottoms);
                let raw: u64 = bottoms.iter().map(|i| candidates[*i].raw_bytes).sum();
                // Outputs of about equal size, none of which is a small rest.
                let count = ((raw + aim_bytes / 2) / aim_bytes).max(1);
                Job {
                    inputs: with_files(&[files(&above), replaced.clone()].concat()),
                    older: Vec::new(),
                    from,
                    to,
                    output_bytes: aim_bytes.max(raw / count + raw / count / 4) as usize,
                    replaced,
                    absorbed: above.iter().map(|i| candidates[*i].files[0]).collect(),
                    left: left.iter().map(|i| candidates[*i].files[0]).collect(),
                    place: Place::Bottom,
                }
            }
            Plan::Collapse { runs: which } => {
                let replaced = files(&which);
                Job {
                    inputs: with_files(&replaced),
                    older: without_files(&replaced),
                    from: Vec::new(),
                    to: None,
                    output_bytes: aim_bytes as usize,
                    replaced,
                    absorbed: Vec::new(),
                    left: Vec::new(),
                    place: Place::First,
                }
            }
        }
    }
}

/// A segment with metadata for the choice.
trait Described {
    /// All but the file.
    fn describe(&self) -> Candidate;
}

impl Described for TableSegmentReader {
    fn describe(&self) -> Candidate {
        let meta = self.meta();
        // In groups where rows have several versions, a part of them is behind newer ones.
        let doubled: usize = self.row_groups().iter().filter(|g| !g.unique).map(|g| g.rows / 2).sum();
        Candidate {
            files: Vec::new(),
            bytes: meta.stored_bytes,
            raw_bytes: meta.raw_bytes,
            rows: meta.rows,
            held: meta.tombstones.max(doubled as u64),
            waiting_bytes: meta.waiting_bytes,
            dense_bytes: meta.dense_bytes,
            hasty_bytes: meta.hasty_bytes,
            csn_max: meta.csn_max,
            first: meta.row_id_min.0.to_be_bytes().to_vec(),
            last: meta.row_id_max.0.to_be_bytes().to_vec(),
        }
    }
}

impl Described for KeySegmentReader {
    fn describe(&self) -> Candidate {
        let meta = self.meta();
        Candidate {
            files: Vec::new(),
            bytes: meta.stored_bytes,
            raw_bytes: meta.raw_bytes,
            rows: meta.entries,
            held: meta.tombstones,
            waiting_bytes: if meta.packed { 0 } else { meta.stored_bytes },
            dense_bytes: 0,
            hasty_bytes: 0,
            csn_max: meta.csn_max,
            first: meta.key_min.clone(),
            last: meta.key_max.clone(),
        }
    }
}
