//! Flush: the row store's versions become segments, and the log before them superfluous.
//!
//! Steps, each run by `Engine::run_once`:
//! 1. Freeze: every tree's active memory table becomes the frozen one, and an empty one takes its place.
//! 2. When every commit that may be in the frozen tables is visible, each table is written into segments.
//! 3. Install: one manifest record adds the segments and moves the point where replay begins; then the frozen tables go.
//!
//! Invariants:
//! 1. Every commit whose record begins before the new replay point is wholly in the frozen tables or older.
//! 2. The log is durable up to everything in the segments before the manifest names them: recovery never finds a commit in a
//!    segment and not an earlier one in the log.

use std::any::Any;
use std::sync::Arc;

use melba_types::{Csn, Lsn};
use melba_wal::WrittenBy;

use crate::RowBytes;
use crate::chain::{Chain, Payload};
use crate::commit::{Floor, add};
use crate::engine::Shared;
use crate::error::{EngineError, Result};
use crate::levels::{IndexRun, Levels, MemTable, Run, TableRun, may_have_key, may_have_row, segment_name};
use crate::manifest::{Edit, Manifest, ManifestState, SegmentFile};
use crate::output::{IndexOutput, TableOutput};
use crate::swap::Swap;
use crate::sync::atomic::Ordering;
use crate::tree::{IndexTree, Persistence, TableTree, Tree, TreeData};
use crate::versions::Keep;

/// The log takes at most about one part in so many of what the segments take.
const LOG_SHARE: u64 = 4;
/// But it need not be smaller than this.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// When nothing else happens, a row store is flushed that has filled up to one part in so many.
const IDLE_SHARE: u64 = 16;
/// Room in the manifest for files that come while a flush is installed.
const SPARE_FILES: usize = 1000;

/// A flush in progress.
pub(crate) struct Flush {
    /// All commits up to here may be in the frozen tables.
    csn: Csn,
    /// All commits up to here are in the frozen tables or older, their records lie before `replay`.
    whole: Csn,
    replay: Lsn,
    trees: Vec<Arc<Tree>>,
    written: Vec<(Arc<Tree>, Written)>,
}

enum Written {
    Table(Vec<Arc<TableRun>>),
    Index(Vec<Arc<IndexRun>>),
}

impl Shared {
    /// Whether a flush is due.
    fn flush_is_due(&self) -> bool {
        let bytes = self.row_store_bytes.load(Ordering::Relaxed);
        let log = self.wal.end().0.saturating_sub(self.checkpoint.load(Ordering::Relaxed));
        // When nothing else happens, little is left for recovery, and merges have all there is.
        let is_much = log >= self.options.wal_file_bytes / 2 || bytes >= self.options.row_store_bytes() / IDLE_SHARE;
        let idle = || is_much && self.is_idle();
        bytes >= self.options.row_store_bytes() || self.log_is_long(log) || idle()
    }

    /// A flush is due when this much log would have to be replayed: it also takes space.
    fn log_is_long(&self, log: u64) -> bool {
        let most = self.options.log_bytes_max();
        let least = most.min(LOG_BYTES_MIN);
        let stored = || -> u64 { self.all_trees().iter().map(|t| t.bottom_bytes.load(Ordering::Relaxed)).sum() };
        log >= least && log >= (stored() / LOG_SHARE).clamp(least, most)
    }

    /// Does one step of a flush if one is due, in progress, or demanded; false when there was nothing to do.
    pub(crate) fn flush_step(&self, current: &mut Option<Flush>, demanded: bool) -> Result<bool> {
        let Some(mut flush) = current.take() else {
            if !demanded && !self.flush_is_due() {
                return Ok(false);
            }
            *current = Some(self.freeze());
            return Ok(true);
        };
        if self.snapshots.visible() < flush.csn {
            // Commits that are applied but not published; their owners or the log writer move them on.
            *current = Some(flush);
            return Ok(false);
        }
        match flush.trees.pop() {
            Some(tree) => {
                // A failure leaves the frozen table as it is; the next step tries again with new files.
                let result = self.write_frozen(&tree);
                let outcome = match result {
                    Ok(written) => {
                        flush.written.extend(written.map(|w| (tree, w)));
                        Ok(true)
                    }
                    Err(e) => {
                        flush.trees.push(tree);
                        Err(e)
                    }
                };
                *current = Some(flush);
                outcome
            }
            None => {
                // A full disk is heard of before anything has changed, and the installation tried again.
                if let Err(e) = self.prepare_install(&flush) {
                    *current = Some(flush);
                    return Err(e);
                }
                self.install(flush).map_err(|e| self.poison(e))?;
                Ok(true)
            }
        }
    }

    /// Makes the names of the new files durable, and room in the manifest.
    fn prepare_install(&self, flush: &Flush) -> Result<()> {
        self.files.sync_names().map_err(|e| self.poison(e))?;
        let files = |w: &Written| match w {
            Written::Table(runs) => runs.len(),
            Written::Index(runs) => runs.len(),
        };
        let mut manifest = self.manifest.lock();
        let edits = self.schema_edits(manifest.state());
        // The files of every tree may be named anew, those that commits link meanwhile too.
        let trees = self.all_trees();
        let runs: usize =
            trees.iter().map(|t| t.run_count()).sum::<usize>() + flush.written.iter().map(|(_, w)| files(w)).sum::<usize>();
        self.reserve_manifest(&mut manifest, &edits, trees.len() + 2 * runs + SPARE_FILES)
    }

    fn freeze(&self) -> Flush {
        let Floor { whole, replay, .. } = self.floor();
        let mut trees: Vec<Arc<Tree>> = self.all_trees().into_iter().filter(|t| t.is_flushed()).collect();
        trees.retain(|tree| match &tree.data {
            TreeData::Table(t) => freeze_levels(&mut t.levels.write()),
            TreeData::Index(t) => freeze_levels(&mut t.levels.write()),
        });
        let csn = self.floor().assigned;
        Flush { csn, whole, replay, trees, written: Vec::new() }
    }

    fn write_frozen(&self, tree: &Tree) -> Result<Option<Written>> {
        let keep = Keep::new(self.snapshots.in_use());
        Ok(match &tree.data {
            TreeData::Table(t) => self.write_frozen_table(tree, t, &keep)?.map(Written::Table),
            TreeData::Index(t) => self.write_frozen_index(tree, t, &keep)?.map(Written::Index),
        })
    }

    fn write_frozen_table(&self, tree: &Tree, table: &TableTree, keep: &Keep) -> Result<Option<Vec<Arc<TableRun>>>> {
        let levels = table.levels.read();
        // Dropped meanwhile.
        let Some(frozen) = &levels.frozen else { return Ok(None) };
        let mut output =
            TableOutput::new(&self.files, tree.is_synced(), Arc::clone(&table.layout.read()), self.files.piece_bytes())
                .dense_columns(tree.dense_columns.load(Ordering::Relaxed));
        let mut versions: Vec<&Chain<Option<RowBytes>>> = Vec::new();
        // Rows behind all others get segments of their own, which lie on nothing and need no merge.
        let mut old_end = levels.runs.iter().map(|r| r.reader.meta().row_id_max).max();
        for (id, chain) in frozen.map.read().iter() {
            if old_end.take_if(|end| *id > *end).is_some() {
                output.cut()?;
            }
            collect(chain, &mut versions);
            // What a segment has that cannot be read is unknown.
            let bottom = !tree.is_damaged() && !may_have_row(&levels.runs, *id);
            keep.select(&mut versions, |v| v.csn, |v| !v.value.is_live(), bottom);
            for version in &versions {
                output.push_row(*id, version.csn, version.value.as_deref())?;
            }
        }
        output.finish().map(Some)
    }

    fn write_frozen_index(&self, tree: &Tree, index: &IndexTree, keep: &Keep) -> Result<Option<Vec<Arc<IndexRun>>>> {
        let levels = index.levels.read();
        let Some(frozen) = &levels.frozen else { return Ok(None) };
        let mut output = IndexOutput::new(&self.files, tree.is_synced(), self.files.piece_bytes());
        let mut versions: Vec<&Chain<bool>> = Vec::new();
        for (key, chain) in frozen.map.read().iter() {
            collect(chain, &mut versions);
            let bottom = !tree.is_damaged() && !may_have_key(&levels.runs, key.as_slice());
            keep.select(&mut versions, |v| v.csn, |v| !v.value, bottom);
            for version in &versions {
                output.push(key.as_slice(), version.csn, !version.value)?;
            }
        }
        output.finish().map(Some)
    }

    /// `Manifest::reserve`; poisons the engine when what is in force is unknown afterwards.
    pub(crate) fn reserve_manifest(&self, manifest: &mut Manifest, edits: &[Edit], names: usize) -> Result<()> {
        manifest.reserve(edits, names).map_err(|e| if manifest.is_lost() { self.poison(e) } else { e })
    }

    /// Makes the written segments part of the database.
    ///
    /// The manifest is locked from the first look at the levels on: a merge changes both under the same lock.
    fn install(&self, flush: Flush) -> Result<()> {
        let Flush { whole, replay, written, .. } = flush;
        let mut manifest = self.manifest.lock();
        let mut edits = self.schema_edits(manifest.state());
        // Freeing many rows takes long, so that is left for when the locks are given back.
        let mut thawed: Vec<Box<dyn Any>> = Vec::new();
        for (tree, written) in &written {
            match (&tree.data, written) {
                (TreeData::Table(t), Written::Table(runs)) => thawed.push(Box::new(thaw(&t.levels, runs))),
                (TreeData::Index(t), Written::Index(runs)) => thawed.push(Box::new(thaw(&t.levels, runs))),
                _ => unreachable!("what was written is of the tree's kind"),
            }
        }
        let mut changed = Vec::new();
        for tree in self.all_trees() {
            let known = manifest.state().segments.get(&tree.id).map_or(&[][..], |s| s);
            let mut files = match &tree.data {
                TreeData::Table(t) => settled(&t.levels.read().runs, known, whole),
                TreeData::Index(t) => settled(&t.levels.read().runs, known, whole),
            };
            if tree.is_damaged() {
                // What cannot be opened stays where it was.
                files.retain(|f| !has_file(known, f));
                files.extend(known);
                files.extend(tree.damaged_files().iter().filter(|f| !has_file(known, f)));
            }
            if files != known && tree.committed.load(Ordering::Acquire) {
                let removed = known.iter().map(|s| s.file).collect();
                edits.push(Edit::Segments { tree: tree.id, removed, added: files });
                changed.push(tree);
            }
        }
        edits.push(Edit::Checkpoint {
            replay,
            csn: self.snapshots.visible(),
            next_tree: self.next_tree.load(Ordering::SeqCst),
            next_file: self.files.next.load(Ordering::SeqCst),
        });
        // After the edits were collected: they may tell of commits that are not durable yet (invariant 2).
        self.flush_log(WrittenBy::Background)?;
        edits.push(Edit::Log(self.wal.known()));
        manifest.install(&edits)?;
        self.wal.belongs_to(manifest.state().belongs());
        drop(manifest);
        drop(thawed);
        changed.iter().for_each(|tree| self.note_flushed(tree));
        self.checkpoint.store(replay.0, Ordering::Relaxed);
        self.settled.store(whole.0, Ordering::SeqCst);
        self.recount_row_store();
        self.wal.release_before(replay)?;
        self.room.notify_all();
        Ok(())
    }

    /// Trees and sequences as they are now, where the manifest has them otherwise.
    fn schema_edits(&self, state: &ManifestState) -> Vec<Edit> {
        let mut edits = Vec::new();
        for tree in self.all_trees().iter().filter(|t| t.committed.load(Ordering::Acquire)) {
            let record = self.tree_record(tree);
            if state.trees.get(&tree.id) != Some(&record) {
                edits.push(Edit::Tree(record));
            }
        }
        edits.extend(state.trees.keys().filter(|id| self.tree(**id).is_err()).map(|id| Edit::DropTree(*id)));
        for sequence in self.all_sequences() {
            let record = self.sequence_record(&sequence, false);
            let committed = sequence.state.lock().committed;
            if committed && state.sequences.get(&sequence.id) != Some(&record) {
                edits.push(Edit::Sequence(record));
            }
        }
        let gone = state.sequences.keys().filter(|id| self.sequence(**id).is_err());
        edits.extend(gone.map(|id| Edit::DropSequence(*id)));
        edits
    }

    /// The row store's size from its parts: corrects what estimates and dropped trees left over.
    fn recount_row_store(&self) {
        let bytes: u64 = self.all_trees().iter().filter(|t| t.is_flushed()).map(|t| t.memory_bytes()).sum();
        let before = self.row_store_bytes.load(Ordering::Relaxed);
        add(&self.row_store_bytes, bytes as i64 - before as i64);
    }

    /// Makes the segments of unlogged trees durable, which so far they need not have been: a clean stop keeps them.
    pub(crate) fn sync_unlogged(&self) -> Result<()> {
        let io = |e| EngineError::io("sync an unlogged table", e);
        for tree in self.all_trees().iter().filter(|t| t.persistence == Persistence::Unlogged) {
            let files: Vec<u64> = match &tree.data {
                TreeData::Table(t) => t.levels.read().runs.iter().map(|r| r.segment.file).collect(),
                TreeData::Index(t) => t.levels.read().runs.iter().map(|r| r.segment.file).collect(),
            };
            for file in files {
                self.files.directory.open(&segment_name(file)).and_then(|file| file.sync()).map_err(io)?;
            }
        }
        self.files.sync_names()
    }

    /// Flushes everything there is, step by step on this thread.
    pub(crate) fn flush_all(&self, current: &mut Option<Flush>) -> Result<()> {
        while current.is_some() {
            if !self.flush_step(current, false)? {
                // Commits that a panic has left behind are never published.
                self.check_poison()?;
                self.flush_log(WrittenBy::Background)?;
            }
        }
        self.flush_step(current, true)?;
        while current.is_some() {
            if !self.flush_step(current, false)? {
                // Commits that a panic has left behind are never published.
                self.check_poison()?;
                self.flush_log(WrittenBy::Background)?;
            }
        }
        Ok(())
    }
}

/// Freezes the active table; false when it is empty.
fn freeze_levels<K: Ord, V: Payload, R>(levels: &mut Levels<K, V, R>) -> bool {
    if levels.active.map.read().is_empty() {
        return false;
    }
    levels.frozen = Some(std::mem::replace(&mut levels.active, MemTable::new()));
    true
}

/// Puts the segments in the frozen table's place, and returns that.
fn thaw<K: Ord, V: Payload, R>(levels: &Swap<Levels<K, V, R>>, runs: &[Arc<Run<R>>]) -> Option<Arc<MemTable<K, V>>> {
    let mut levels = levels.write();
    let frozen = levels.frozen.take();
    match &frozen {
        Some(_) => levels.add_runs(runs.iter().cloned()),
        // The tree was dropped meanwhile.
        None => runs.iter().for_each(|r| r.discard()),
    }
    frozen
}

fn has_file(files: &[SegmentFile], file: &SegmentFile) -> bool {
    files.iter().any(|f| f.file == file.file)
}

/// The runs that the manifest is to name: all but those whose links the log still replays.
fn settled<R>(runs: &[Arc<Run<R>>], known: &[SegmentFile], whole: Csn) -> Vec<SegmentFile> {
    let is_settled = |s: &SegmentFile| s.assigned <= whole || has_file(known, s);
    runs.iter().map(|r| r.segment).filter(is_settled).collect()
}

fn collect<'a, V>(chain: &'a Chain<V>, out: &mut Vec<&'a Chain<V>>) {
    out.clear();
    out.extend(std::iter::successors(Some(chain), |v| v.older.as_deref()));
}
