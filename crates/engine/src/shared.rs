//! State that sessions and background steps share: the engine's parts, put together.

use std::ops::Range;
use std::sync::Arc;

use melba_locks::LockManager;
use melba_store::{EngineError, Folders, MemoryBudget, Result, Store, TempFiles};
use melba_threads::Scheduler;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_vfs::{Clock, Directory, SyncSwitch};

use crate::background::Background;
use crate::commit::{Apply, Log, Pipeline};
use crate::flush::Flusher;
use crate::merge::Merger;
use crate::moves::Moves;
use crate::options::EngineOptions;
use crate::recovery::{RecoveryProgress, recover};
use crate::runtime::Runtime;
use crate::samples::Samples;
use crate::scan_counts::AllScans;
use crate::serializable::Serializable;
use crate::snapshot::Snapshots;
use crate::write_set::{ChangeKind, WriteSet};

/// Samples of tables may take the block cache's bytes divided by this.
const SAMPLES_SHARE: usize = 32;

/// See the module.
pub(crate) struct Shared {
    pub options: Arc<EngineOptions>,
    pub runtime: Arc<Runtime>,
    pub store: Arc<Store>,
    pub snapshots: Arc<Snapshots>,
    pub locks: Arc<LockManager>,
    pub serializable: Serializable,
    pub moves: Moves,
    pub pipeline: Arc<Pipeline>,
    pub merger: Arc<Merger>,
    pub flusher: Arc<Flusher>,
    pub background: Arc<Background>,
    pub queries: Queries,
    /// The engine was stopped cleanly before it was opened, so unlogged trees are as they were.
    pub unlogged_kept: bool,
    next_txn: AtomicU64,
    /// The newest CSN for which full memory tables were rid of all versions that only older snapshots see.
    memory_tables_pruned: AtomicU64,
}

/// Resources of queries outside their transaction.
pub(crate) struct Queries {
    pub memory: Arc<MemoryBudget>,
    pub temp: Arc<TempFiles>,
    pub scans: AllScans,
    pub samples: Samples,
}

impl Shared {
    /// Opens all parts over a directory, which is empty or an engine's.
    pub fn open(
        options: EngineOptions,
        directory: Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        scheduler: Arc<dyn Scheduler>,
        progress: &RecoveryProgress,
    ) -> Result<Shared> {
        let options = Arc::new(options);
        let runtime = Runtime::new(clock, scheduler);
        let sync = SyncSwitch::new(options.fsync);
        let folders = Folders::open(directory, options.open_files_max, &sync)?;
        let temp = Arc::new(TempFiles::open(Arc::clone(&folders.temp))?);
        let log = Log::new(&options, Arc::clone(&folders.log), sync.clone(), &runtime);
        let (mut store, state) = Store::open(folders, &sync, options.sizes(), options.reserve_bytes(), &*runtime.clock)?;
        let newest = recover(&mut store, &log.wal, &state, progress)?;
        let (store, log) = (Arc::new(store), Arc::new(log));
        let snapshots = Arc::new(Snapshots::new(newest));
        let locks = Arc::new(LockManager::new(Arc::clone(&runtime.scheduler), Arc::clone(&runtime.clock)));
        let pipeline = Arc::new(Pipeline::new(&log, &snapshots, &locks, &runtime));
        let merger = Arc::new(Merger::new(&options, &runtime, &store, &snapshots, &log));
        let flusher = Arc::new(Flusher::new(&options, &runtime, &store, &snapshots, &pipeline, &merger));
        store.all_trees().iter().for_each(|tree| merger.note_flushed(tree));
        Ok(Shared {
            background: Arc::new(Background::new(&options, &runtime, &store, &pipeline, &flusher, &merger)),
            queries: Queries {
                memory: MemoryBudget::new(options.query_bytes),
                temp,
                scans: AllScans::default(),
                samples: Samples::new(store.files.cache.capacity_bytes() / SAMPLES_SHARE),
            },
            unlogged_kept: state.clean,
            options,
            runtime,
            store,
            snapshots,
            locks,
            serializable: Serializable::default(),
            moves: Moves::default(),
            pipeline,
            merger,
            flusher,
            next_txn: AtomicU64::new(1),
            memory_tables_pruned: AtomicU64::new(0),
        })
    }

    /// Numbers for the next transactions of a session.
    pub fn take_transaction_ids(&self) -> Range<u64> {
        const COUNT: u64 = 64;
        let first = self.next_txn.fetch_add(COUNT, Ordering::Relaxed);
        first..first + COUNT
    }

    /// Undoes a change of the schema that was rolled back.
    pub fn undo(&self, what: ChangeKind) {
        match what {
            ChangeKind::CreateTree(tree) => self.store.remove_tree(tree.id),
            ChangeKind::CreateSequence(sequence) => self.store.remove_sequence(sequence.id),
            _ => {}
        }
    }

    /// Rows of memory tables cannot be flushed, so they have a limit. `more` are about to be added. Removing is always possible, and
    /// what was removed makes room as soon as no snapshot sees it.
    pub fn check_memory_tables(&self, writes: &WriteSet, more: usize) -> Result<()> {
        let own = (writes.memory_table_bytes + more) as u64;
        let fits = || own == 0 || self.store.memory_tables_bytes() + own <= self.options.memory_tables_bytes();
        if fits() {
            return Ok(());
        }
        let oldest = self.snapshots.compute_oldest();
        if self.memory_tables_pruned.fetch_max(oldest.0, Ordering::Relaxed) < oldest.0 {
            let Shared { store, snapshots, runtime, .. } = self;
            Apply { store, snapshots, runtime }.prune_memory_trees(oldest);
        }
        if fits() { Ok(()) } else { Err(EngineError::OutOfMemory { what: "memory tables have reached their limit" }) }
    }
}
