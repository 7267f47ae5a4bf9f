//! The engine's API beside sessions and transactions.

use std::sync::Arc;

use melba_locks::LockedObject;
use melba_store::{DenseStatistics, MemoryBudget, Result, RowCounts, Tree};
use melba_threads::atomic::Ordering;
use melba_threads::{Mutex, OwnThreads, Running, Scheduler};
use melba_types::{Csn, Lsn, TreeId};
use melba_vfs::{Clock, Directory};
use melba_wal::{WalStatistics, WrittenBy};

use crate::background::{BackgroundStep, BackgroundWorker};
use crate::events::EventWatch;
use crate::options::EngineOptions;
use crate::recovery::RecoveryProgress;
use crate::scan_counts::ScanCounts;
use crate::session::EngineSession;
use crate::shared::Shared;
use crate::txn::Transaction;
use crate::view::Isolation;

/// A part of the engine's memory. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPart {
    pub name: &'static str,
    pub used: u64,
    /// The most that it should have: writers wait, blocks are dropped or queries spill before that.
    pub limit: u64,
}

/// A storage engine over one directory.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<Running<()>>>,
}

impl Engine {
    /// Opens the engine in a directory, which is empty or an engine's; recovers it after a crash.
    pub fn open(options: EngineOptions, directory: Arc<dyn Directory>, clock: Arc<dyn Clock>) -> Result<Arc<Engine>> {
        Engine::open_in_server(options, directory, clock, Arc::new(OwnThreads), &RecoveryProgress::default())
    }

    /// The same for sessions that share threads: `scheduler` is notified of every wait. Meanwhile `progress` tells other threads how
    /// far recovery is.
    pub fn open_in_server(
        options: EngineOptions,
        directory: Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        scheduler: Arc<dyn Scheduler>,
        progress: &RecoveryProgress,
    ) -> Result<Arc<Engine>> {
        let shared = Shared::open(options, directory, clock, scheduler, progress)?;
        Ok(Arc::new(Engine { shared: Arc::new(shared), threads: Mutex::default() }))
    }

    /// A context for one client.
    pub fn session(&self) -> Result<Arc<EngineSession>> {
        EngineSession::open(&self.shared)
    }

    /// Begins a transaction in a new session (tools, tests, bootstrap).
    pub fn begin(&self, isolation: Isolation) -> Result<Arc<Transaction>> {
        self.begin_in(&self.session()?, isolation)
    }

    /// Begins a session's next transaction. The session's previous one has ended.
    pub fn begin_in(&self, session: &Arc<EngineSession>, isolation: Isolation) -> Result<Arc<Transaction>> {
        session.throttle();
        Ok(Transaction::begin(session, isolation))
    }

    /// Runs one step of background work of any kind, if there is any; false when there was none.
    pub fn run_once(&self) -> bool {
        self.shared.background.run_once()
    }

    /// Runs one step of one kind of background work; false when there was none. Production threads loop it, the simulator
    /// calls it. A step that cannot reach the disk is tried again later; one that leaves the durable state unknown, or panics,
    /// poisons the engine.
    pub fn run_step(&self, step: BackgroundStep) -> bool {
        self.shared.background.run_step(step)
    }

    /// Sets the receiver of events and failures of background work. The first watch stays.
    pub fn set_event_watch(&self, watch: Box<EventWatch>) {
        self.shared.runtime.events.set(watch);
    }

    /// Why the engine refuses all work, if it does: it was poisoned, or shut down.
    pub fn failure(&self) -> Option<String> {
        self.shared.runtime.failure()
    }

    /// Flushes the whole row store into segments (CHECKPOINT).
    pub fn checkpoint(&self) -> Result<()> {
        let shared = &self.shared;
        shared.runtime.check_poison()?;
        let mut flush = shared.flusher.lock();
        shared.store.reserve.with(shared.runtime.clock.monotonic(), || shared.flusher.flush_all(&mut flush))
    }

    /// Where recovery would begin to read the log.
    pub fn replay_start(&self) -> Lsn {
        self.shared.store.checkpoint()
    }

    /// The end of the log.
    pub fn log_end(&self) -> Lsn {
        self.shared.pipeline.log.wal.end()
    }

    /// The end of the log's durable part.
    pub fn log_durable(&self) -> Lsn {
        self.shared.pipeline.log.wal.durable()
    }

    /// Merges every tree's segments into one run (VACUUM FULL and the like).
    pub fn merge_all(&self) -> Result<()> {
        self.shared.runtime.check_poison()?;
        self.shared.merger.merge_all(None)?;
        self.shared.store.remove_trash();
        Ok(())
    }

    /// Makes the waiting values of a table dense, and packs its indexes (VACUUM); merges would do it later in idle time.
    pub fn condense(&self, table: TreeId) -> Result<()> {
        let store = &self.shared.store;
        let Ok(toast) = store.tree(table.toast()).map(|tree| Arc::clone(&tree)) else { return Ok(()) };
        let table = Arc::clone(&*store.tree(table)?);
        if table.is_flushed() && table.memory_bytes() + toast.memory_bytes() + store.linked_bytes() > 0 {
            self.checkpoint()?;
        }
        let mut trees: Vec<Arc<Tree>> = store.all_trees().into_iter().filter(|other| other.table == table.id).collect();
        trees.push(toast);
        self.shared.merger.merge_all(Some(&trees))?;
        store.remove_trash();
        Ok(())
    }

    /// Makes every commit so far durable, asynchronous ones too.
    pub fn flush_log(&self) -> Result<()> {
        self.shared.pipeline.flush_log(WrittenBy::Client)
    }

    /// Starts the threads that do background work: for the log, its next file, flushes, and merges, so that none waits for
    /// another.
    pub fn start_background(&self) {
        let runtime = &self.shared.runtime;
        runtime.set_threads(true);
        let mut threads = self.threads.lock();
        let steps = [
            ("log writer", BackgroundStep::Log),
            ("log files", BackgroundStep::LogFile),
            ("flush", BackgroundStep::Flush),
            ("merge", BackgroundStep::Merge),
        ];
        for (name, step) in steps {
            let shared = Arc::clone(&self.shared);
            // Without its threads the engine still works: commits that wait for room do the steps themselves.
            match runtime.scheduler.spawn(name, move || shared.background.work_until_stopped(step)) {
                Ok(thread) => threads.push(thread),
                Err(_) => runtime.set_threads(false),
            }
        }
    }

    /// A clean stop: nothing is lost, also of unlogged trees. The engine refuses work afterwards.
    pub fn shutdown(&self) -> Result<()> {
        let Shared { runtime, store, flusher, merger, .. } = &*self.shared;
        self.stop_background();
        runtime.check_poison()?;
        let mut flush = flusher.lock();
        let _merges = merger.lock();
        store.reserve.with(runtime.clock.monotonic(), || flusher.flush_all(&mut flush))?;
        store.remove_trash();
        store.sync_unlogged()?;
        let edits = store.clean_edits();
        let mut manifest = store.manifest();
        manifest.reserve(&edits, 0)?;
        let installed = manifest.install(&edits);
        // Nothing may follow, whether it succeeded or failed.
        runtime.shut_down();
        installed
    }

    fn stop_background(&self) {
        self.shared.runtime.stop();
        self.shared.pipeline.log.writer.wake();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic in it has poisoned the engine already.
            let _ = thread.join(&*self.shared.runtime.scheduler);
        }
    }

    /// Takes over the options that may change while the engine runs: `fsync`, `wal_writer_delay`, `wal_writer_flush_after_bytes`
    /// and `measure_times`. When syncs are switched on, everything so far is durable on return.
    pub fn reconfigure(&self, options: &EngineOptions) -> Result<()> {
        let Shared { runtime, store, pipeline, background, .. } = &*self.shared;
        background.measure_times(options.measure_times);
        if !pipeline.log.configure(options) {
            return Ok(());
        }
        runtime.check_poison()?;
        let synced = pipeline.flush_log(WrittenBy::Background).and_then(|()| store.sync_everything(|| pipeline.log.sync_files()));
        synced.map_err(|e| runtime.poison(e))
    }

    /// Counts of the log's writes and syncs since the engine was opened.
    pub fn log_statistics(&self) -> WalStatistics {
        self.shared.pipeline.log.wal.statistics()
    }

    /// Whether threads do the background work.
    pub fn has_background(&self) -> bool {
        self.shared.runtime.has_threads()
    }

    /// Each kind of background work: what its thread does, and what it has read and written since the engine was opened.
    pub fn background_workers(&self) -> Vec<BackgroundWorker> {
        self.shared.background.workers()
    }

    /// The scheduler to notify of waits.
    pub fn scheduler(&self) -> &dyn Scheduler {
        &*self.shared.runtime.scheduler
    }

    /// The dense columns of a table's tree or its toast tree: see `DenseStatistics`. Reads a few blocks of each.
    ///
    /// # Errors
    /// Those of reading.
    pub fn dense_statistics(&self, tree: TreeId) -> Result<Vec<DenseStatistics>> {
        self.shared.store.tree(tree)?.dense_statistics(&*self.shared.runtime.clock)
    }

    /// The number that was drawn when the database was made, or restored: states with the same number have one history.
    pub fn database_number(&self) -> u64 {
        self.shared.store.manifest().state().database
    }

    /// The newest visible commit.
    pub fn visible_csn(&self) -> Csn {
        self.shared.snapshots.visible()
    }

    /// The newest commit that a transaction sees which writes: applied, and perhaps not visible to all yet.
    pub fn applied_csn(&self) -> Csn {
        self.shared.snapshots.applied()
    }

    /// Whether a committed tree exists. A new engine has none; the first one created is `TreeId(1)`.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.shared.store.tree(tree).is_ok_and(|t| t.committed.load(Ordering::Acquire))
    }

    /// Bytes of a tree on disk, or in memory as long as it is not flushed.
    pub fn tree_bytes(&self, tree: TreeId) -> u64 {
        self.shared.store.tree(tree).map_or(0, |t| t.stored_bytes() + t.memory_bytes())
    }

    /// About how many live rows or entries a tree has.
    pub fn tree_rows_estimate(&self, tree: TreeId) -> u64 {
        self.shared.store.tree(tree).map_or(0, |t| t.live.load(Ordering::Relaxed).max(0) as u64)
    }

    /// How often a tree was scanned since the engine was opened.
    pub fn tree_scan_counts(&self, tree: TreeId) -> ScanCounts {
        self.shared.queries.scans.of_tree(tree)
    }

    /// The same of the trees that are wanted, together.
    pub fn scan_counts(&self, wanted: impl Fn(TreeId) -> bool) -> ScanCounts {
        self.shared.queries.scans.sum(wanted)
    }

    /// Counts of the row changes by transactions since the engine was opened; bulk loads that were rolled back are not counted.
    pub fn tree_row_counts(&self, tree: TreeId) -> RowCounts {
        self.shared.store.tree(tree).map_or(RowCounts::default(), |t| t.changed.read())
    }

    /// Temporary files made, and bytes written to them, since the engine was opened.
    pub fn temp_counters(&self) -> (u64, u64) {
        self.shared.queries.temp.counters()
    }

    /// The parts of memory that the engine counts.
    pub fn memory(&self) -> [MemoryPart; 5] {
        let (store, queries, options) = (&self.shared.store, self.query_memory(), &self.shared.options);
        let (cache, samples) = (&store.files.cache, &self.shared.queries.samples);
        [
            // While one half is flushed, the other is written.
            MemoryPart { name: "row store", used: store.row_store_bytes(), limit: 2 * options.row_store_bytes() },
            MemoryPart { name: "block cache", used: cache.statistics().bytes as u64, limit: cache.capacity_bytes() as u64 },
            MemoryPart { name: "memory tables", used: store.memory_tables_bytes(), limit: options.memory_tables_bytes() },
            MemoryPart { name: "samples", used: samples.bytes() as u64, limit: samples.limit() as u64 },
            MemoryPart { name: "queries", used: queries.reserved(), limit: queries.limit() },
        ]
    }

    /// The memory that queries hold, and their limit.
    pub fn query_memory(&self) -> &Arc<MemoryBudget> {
        &self.shared.queries.memory
    }

    /// All locks held and waited for (pg_locks).
    pub fn locks(&self) -> Vec<LockedObject> {
        let mut all = self.shared.locks.list();
        for (slot, reads) in self.shared.serializable.list() {
            let pid = slot.map_or(0, |slot| self.shared.locks.pid(slot));
            all.extend(reads.into_iter().map(|(tree, page, row)| LockedObject::predicate(tree, page, row, pid)));
        }
        all
    }

    /// The sessions, by announced process id, whose locks or requests keep one waiting (pg_blocking_pids).
    pub fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        self.shared.locks.blocking_pids(pid)
    }

    /// The sessions whose transactions must end before a SERIALIZABLE READ ONLY DEFERRABLE one of `pid` may begin.
    pub fn safe_snapshot_blocking_pids(&self, pid: i32) -> Vec<i32> {
        let Some(slot) = self.shared.locks.slot(pid) else { return Vec::new() };
        self.shared.serializable.waits_for(slot).into_iter().map(|slot| self.shared.locks.pid(slot)).collect()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Like a crash, except that threads are stopped: a clean stop is `shutdown`.
        self.stop_background();
    }
}
