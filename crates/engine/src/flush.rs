//! Flush: writes the row store's versions to segments, so that the log before them is not needed any more.
//!
//! Steps, each run by `Engine::run_once`:
//! 1. Freeze: every tree's active memory table becomes the frozen one, and an empty one takes its place.
//! 2. When every commit that may be in the frozen tables is visible, each table is written into segments.
//! 3. Install: one manifest record adds the segments and moves the replay point; then the frozen tables are dropped.
//!
//! Invariants:
//! 1. Every commit whose record begins before the new replay point is wholly in the frozen tables or older.
//! 2. The log is durable up to everything in the segments before the manifest names them: recovery never finds a commit in a
//!    segment and not an earlier one in the log.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use melba_store::{
    Chain, Edit, IndexOutput, IndexRun, IndexTree, Keep, Levels, MemTable, Payload, Result, RowBytes, Run, SegmentFile, Store,
    Swap, TableOutput, TableRun, TableTree, Tree, TreeData, may_have_key, may_have_row,
};
use melba_threads::atomic::Ordering;
use melba_threads::{Mutex, MutexGuard};
use melba_types::{Csn, Lsn};
use melba_wal::WrittenBy;

use crate::commit::{Floor, Pipeline};
use crate::events::BackgroundEvent;
use crate::merge::{Merger, index_bytes, reserve, table_bytes};
use crate::options::EngineOptions;
use crate::runtime::Runtime;
use crate::snapshot::Snapshots;

/// The log may grow to 1/LOG_SHARE of the segments' size.
const LOG_SHARE: u64 = 4;
/// But it need not be smaller than this.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// When nothing else happens, a row store is flushed that is filled to 1/IDLE_SHARE.
const IDLE_SHARE: u64 = 16;
/// The same holds when its rows are at least 1/HIDDEN_SHARE of those in a tree's segments, which merges then rewrite, and these
/// take at least HIDDEN_BYTES_MIN bytes.
const HIDDEN_SHARE: u64 = 8;
const HIDDEN_BYTES_MIN: u64 = 64 << 10;
/// The check visits all trees, of which there may be many.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// A flush that must end waits so long between its looks at commits that are applied and not published.
const UNPUBLISHED_PAUSE: Duration = Duration::from_micros(50);
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
    written: Vec<(Arc<Tree>, FlushedRuns)>,
    began: Duration,
}

enum FlushedRuns {
    Table(Vec<Arc<TableRun>>),
    Index(Vec<Arc<IndexRun>>),
}

impl FlushedRuns {
    /// Segments, and their bytes.
    fn size(&self) -> (usize, u64) {
        match self {
            FlushedRuns::Table(runs) => (runs.len(), table_bytes(runs)),
            FlushedRuns::Index(runs) => (runs.len(), index_bytes(runs)),
        }
    }
}

/// Does flushes.
pub(crate) struct Flusher {
    options: Arc<EngineOptions>,
    runtime: Arc<Runtime>,
    store: Arc<Store>,
    snapshots: Arc<Snapshots>,
    pipeline: Arc<Pipeline>,
    /// Gets the trees that have new segments.
    merger: Arc<Merger>,
    current: Mutex<Option<Flush>>,
    /// Time of the last check of rows that memory hides, and the newest commit then.
    looked_at: Mutex<(Duration, Csn)>,
}

impl Flusher {
    pub fn new(
        options: &Arc<EngineOptions>,
        runtime: &Arc<Runtime>,
        store: &Arc<Store>,
        snapshots: &Arc<Snapshots>,
        pipeline: &Arc<Pipeline>,
        merger: &Arc<Merger>,
    ) -> Flusher {
        Flusher {
            options: Arc::clone(options),
            runtime: Arc::clone(runtime),
            store: Arc::clone(store),
            snapshots: Arc::clone(snapshots),
            pipeline: Arc::clone(pipeline),
            merger: Arc::clone(merger),
            current: Mutex::default(),
            looked_at: Mutex::default(),
        }
    }

    /// The flush in progress; others wait meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Option<Flush>> {
        self.current.lock()
    }

    /// Does one step of a flush that is due or in progress; false when there was nothing to do.
    pub fn step(&self) -> Result<bool> {
        self.step_locked(&mut self.current.lock(), false)
    }

    /// Flushes everything committed so far, so that replay begins after it. Changes that a transaction moved into private
    /// segments are linked behind the row store, so neither the row store nor recovery may then put older versions of them before
    /// these segments. None is added meanwhile, because the transaction holds the rows' locks.
    pub fn flush_committed(&self) -> Result<()> {
        let end = self.pipeline.log.wal.end();
        let mut first = true;
        while std::mem::take(&mut first) || self.store.checkpoint() < end {
            self.flush_all(&mut self.current.lock())?;
        }
        Ok(())
    }

    /// Whether a flush is due.
    fn is_due(&self) -> bool {
        let bytes = self.store.row_store_bytes();
        let log = self.pipeline.log.wal.end().0.saturating_sub(self.store.checkpoint().0);
        // When nothing else happens, little is left for recovery, and merges have all there is.
        let least = self.options.row_store_bytes() / IDLE_SHARE;
        let is_much = log >= self.options.wal_file_bytes / 2 || bytes >= least || self.store.linked_bytes() > 0;
        let idle = || (is_much || self.hides_much()) && self.pipeline.is_idle();
        bytes >= self.options.row_store_bytes() || self.log_is_long(log) || idle()
    }

    /// Whether rows in memory replace a share of a tree's segments that merges would rewrite: a few bytes can delete many rows.
    fn hides_much(&self) -> bool {
        if self.store.row_store_bytes() == 0 || !self.pipeline.is_idle() {
            return false;
        }
        let (now, assigned) = (self.runtime.clock.monotonic(), self.pipeline.floor().assigned);
        let mut looked_at = self.looked_at.lock();
        if looked_at.1 == assigned || now < looked_at.0 + LOOK_AFTER {
            return false;
        }
        *looked_at = (now, assigned);
        self.store.all_trees().iter().any(|tree| hides_much(tree))
    }

    /// A flush is due when this much log would have to be replayed: it also takes space.
    fn log_is_long(&self, log: u64) -> bool {
        let most = self.options.log_bytes_max();
        let least = most.min(LOG_BYTES_MIN);
        log >= least && log >= (self.store.bottom_bytes() / LOG_SHARE).clamp(least, most)
    }

    /// Does one step of a flush if one is due, in progress, or demanded; false when there was nothing to do.
    fn step_locked(&self, current: &mut Option<Flush>, demanded: bool) -> Result<bool> {
        let Some(mut flush) = current.take() else {
            if !demanded && !self.is_due() {
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
                // A full disk is noticed before anything has changed, and the installation tried again.
                if let Err(e) = self.prepare_install(&flush) {
                    *current = Some(flush);
                    return Err(e);
                }
                self.install(flush).map_err(|e| self.runtime.poison(e))?;
                Ok(true)
            }
        }
    }

    /// Makes the names of the new files durable, and room in the manifest.
    fn prepare_install(&self, flush: &Flush) -> Result<()> {
        self.store.files.sync_names().map_err(|e| self.runtime.poison(e))?;
        let files = |w: &FlushedRuns| match w {
            FlushedRuns::Table(runs) => runs.len(),
            FlushedRuns::Index(runs) => runs.len(),
        };
        let mut manifest = self.store.manifest();
        let edits = self.store.schema_edits(manifest.state());
        // The files of every tree may be named again, those that commits link meanwhile too.
        let trees = self.store.all_trees();
        let runs: usize =
            trees.iter().map(|t| t.run_count()).sum::<usize>() + flush.written.iter().map(|(_, w)| files(w)).sum::<usize>();
        reserve(&mut manifest, &self.runtime, &edits, trees.len() + 2 * runs + SPARE_FILES)
    }

    fn freeze(&self) -> Flush {
        self.store.note_freeze();
        let Floor { whole, replay, .. } = self.pipeline.floor();
        let mut trees: Vec<Arc<Tree>> = self.store.all_trees().into_iter().filter(|t| t.is_flushed()).collect();
        trees.retain(|tree| match &tree.data {
            TreeData::Table(t) => freeze_levels(&mut t.levels.write()),
            TreeData::Index(t) => freeze_levels(&mut t.levels.write()),
        });
        let csn = self.pipeline.floor().assigned;
        Flush { csn, whole, replay, trees, written: Vec::new(), began: self.runtime.clock.monotonic() }
    }

    fn write_frozen(&self, tree: &Tree) -> Result<Option<FlushedRuns>> {
        let keep = Keep::new(self.snapshots.in_use());
        Ok(match &tree.data {
            TreeData::Table(t) => {
                let runs = self.write_frozen_table(tree, t, &keep)?;
                runs.map(|runs| FlushedRuns::Table(runs.into_iter().map(|run| run.of_tree(tree.id)).collect()))
            }
            TreeData::Index(t) => {
                let runs = self.write_frozen_index(tree, t, &keep)?;
                runs.map(|runs| FlushedRuns::Index(runs.into_iter().map(|run| run.of_tree(tree.id)).collect()))
            }
        })
    }

    fn write_frozen_table(&self, tree: &Tree, table: &TableTree, keep: &Keep) -> Result<Option<Vec<Arc<TableRun>>>> {
        let levels = table.levels.read();
        // Dropped meanwhile.
        let Some(frozen) = &levels.frozen else { return Ok(None) };
        let mut output = TableOutput::new(
            &self.store.files,
            tree.is_synced(),
            Arc::clone(&table.layout.read()),
            self.store.files.piece_bytes(),
        )
        .dense_columns(tree.dense_columns.load(Ordering::Relaxed));
        let mut versions: Vec<&Chain<Option<RowBytes>>> = Vec::new();
        // Rows behind all others get separate segments, which overlap no other run and need no merge.
        let mut old_end = levels.runs.iter().map(|r| r.reader.meta().row_id_max).max();
        for (id, chain) in frozen.map.read().iter() {
            if old_end.take_if(|end| *id > *end).is_some() {
                output.cut()?;
            }
            collect(chain, &mut versions);
            // The content of a segment that cannot be read is unknown.
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
        let mut output = IndexOutput::new(&self.store.files, tree.is_synced(), self.store.files.piece_bytes());
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

    /// Makes the written segments part of the database.
    ///
    /// The manifest is locked before the levels are read: a merge changes both under the same lock.
    fn install(&self, flush: Flush) -> Result<()> {
        let Flush { whole, replay, written, began, .. } = flush;
        let mut manifest = self.store.manifest();
        let mut edits = self.store.schema_edits(manifest.state());
        // Freeing many rows takes long, so it happens after the locks are released.
        let mut thawed: Vec<Box<dyn Any>> = Vec::new();
        for (tree, written) in &written {
            match (&tree.data, written) {
                (TreeData::Table(t), FlushedRuns::Table(runs)) => thawed.push(Box::new(thaw(&t.levels, runs))),
                (TreeData::Index(t), FlushedRuns::Index(runs)) => thawed.push(Box::new(thaw(&t.levels, runs))),
                _ => unreachable!("what was written is of the tree's kind"),
            }
        }
        let mut changed = Vec::new();
        for tree in self.store.all_trees() {
            let known = manifest.state().segments.get(&tree.id).map_or(&[][..], |s| s);
            let mut files = match &tree.data {
                TreeData::Table(t) => named_files(&t.levels.read().runs, known, whole),
                TreeData::Index(t) => named_files(&t.levels.read().runs, known, whole),
            };
            if tree.is_damaged() {
                // Segments that cannot be opened stay in place.
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
        edits.push(self.store.checkpoint_edit(replay, self.snapshots.visible()));
        // After the edits were collected: they may contain commits that are not durable yet (invariant 2).
        self.pipeline.flush_log(WrittenBy::Background)?;
        edits.push(Edit::Log(self.pipeline.log.wal.known()));
        manifest.install(&edits)?;
        self.pipeline.log.wal.belongs_to(manifest.state().belongs());
        drop(manifest);
        drop(thawed);
        changed.iter().for_each(|tree| self.merger.note_flushed(tree));
        self.store.note_checkpoint(replay, whole);
        self.store.recount_row_store();
        self.pipeline.log.wal.release_before(replay)?;
        self.runtime.events.tell(|| {
            let sizes = written.iter().map(|(_, written)| written.size());
            let (segments, bytes) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
            let took = self.runtime.clock.monotonic().saturating_sub(began);
            BackgroundEvent::Flushed { trees: written.len(), segments, bytes, took }
        });
        Ok(())
    }

    /// Flushes everything there is, step by step on this thread.
    pub fn flush_all(&self, current: &mut Option<Flush>) -> Result<()> {
        self.finish(current)?;
        self.step_locked(current, true)?;
        self.finish(current)
    }

    /// Continues a flush to its end.
    fn finish(&self, current: &mut Option<Flush>) -> Result<()> {
        while current.is_some() {
            if !self.step_locked(current, false)? {
                // Commits that a panic has left behind are never published.
                self.runtime.check_poison()?;
                self.pipeline.flush_log(WrittenBy::Background)?;
                // The owners of other commits need a processor.
                self.runtime.scheduler.pause(UNPUBLISHED_PAUSE);
            }
        }
        Ok(())
    }
}

/// Whether rows in memory stand for a share of a tree's segments.
fn hides_much(tree: &Tree) -> bool {
    let Some(table) = tree.as_table().filter(|_| tree.is_flushed()) else { return false };
    let levels = table.levels.read();
    let (bytes, rows) = levels.runs.iter().fold((0, 0), |(bytes, rows), run| {
        let meta = run.reader.meta();
        (bytes + meta.stored_bytes, rows + meta.rows)
    });
    bytes >= HIDDEN_BYTES_MIN && levels.active.map.read().len() as u64 * HIDDEN_SHARE >= rows
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
fn named_files<R>(runs: &[Arc<Run<R>>], known: &[SegmentFile], whole: Csn) -> Vec<SegmentFile> {
    let is_named = |s: &SegmentFile| s.assigned <= whole || has_file(known, s);
    runs.iter().map(|r| r.segment).filter(is_named).collect()
}

fn collect<'a, V>(chain: &'a Chain<V>, out: &mut Vec<&'a Chain<V>>) {
    out.clear();
    out.extend(std::iter::successors(Some(chain), |v| v.older.as_deref()));
}
