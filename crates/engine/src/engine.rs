//! The engine: trees, sequences, and what all sessions share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use hashbrown::HashMap;
use melba_types::{Csn, Lsn, TreeId};
use melba_vfs::{Clock, Directory, PooledDirectory, SwitchedDirectory, SyncSwitch};
use melba_wal::{LogFiles, Wal, WalOptions, WrittenBy};

use crate::batch;
use crate::commit::Pipeline;
use crate::error::{EngineError, Result};
use crate::flush::Flush;
use crate::levels::{Files, segment_name, segment_number};
use crate::locks::{LockManager, LockedObject};
use crate::log_writer::LogWriter;
use crate::manifest::{Edit, Manifest, SegmentFile};
use crate::memory::MemoryBudget;
use crate::merge::{Eagerness, Merges, Unmerged};
use crate::pace::Activity;
use crate::progress::RecoveryProgress;
use crate::reserve::{Reserve, with_space_of};
use crate::sequence::{Sequence, SequenceId, SequenceState};
use crate::serializable::Serializable;
use crate::session::Session;
use crate::snapshot::Snapshots;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, RwLock};
use crate::temp::TempFiles;
use crate::tree::Tree;
use crate::trees::{TreeRef, Trees};
use crate::txn::{Isolation, Transaction, What};

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Memory for the row store and the block cache together.
    pub memory_bytes: u64,
    /// Memory that queries and write sets may hold, all sessions together.
    pub query_bytes: u64,
    /// What a transaction's changes may take of it before they move into segments.
    pub write_set_bytes: usize,
    /// False: never waits for the disk; a crash of the machine may lose anything.
    pub fsync: bool,
    /// How often asynchronous commits are written out.
    pub wal_writer_delay: Duration,
    /// Asynchronous commits are written out earlier when they have so much log; 0: at once.
    pub wal_writer_flush_after_bytes: u64,
    /// Size of a log file.
    pub wal_file_bytes: u64,
    /// Rows of one statement and table (by `insert_batch`) after which further batches go straight into a segment.
    pub bulk_rows_min: usize,
    /// Raw bytes of a segment, at most, about: what a merge rewrites at a time.
    pub segment_bytes: usize,
    /// Segments and temporary files that are kept open at a time, beside the few other files.
    pub open_files_max: usize,
    /// Values of dense columns stay as they came when making them dense saves less than so many bytes a second.
    pub dense_gain_min_bytes: u64,
    /// How long reading a value of a dense block may take: sets the blocks' size.
    pub dense_read_budget: Duration,
}

/// What a merge holds of a column of an input, about.
const MERGE_COLUMN_BYTES: usize = 96 << 10;
/// The least and the most inputs of a merge that may overlap.
const MERGE_FAN_IN: (usize, usize) = (8, 32);
/// The least and the most bytes that a merge decodes of an input at a time.
const MERGE_PIECE_BYTES: (usize, usize) = (32 << 10, 1 << 20);

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            memory_bytes: 256 << 20,
            query_bytes: 1 << 30,
            write_set_bytes: 16 << 20,
            fsync: true,
            wal_writer_delay: Duration::from_millis(200),
            wal_writer_flush_after_bytes: 1 << 20,
            wal_file_bytes: 8 << 20,
            bulk_rows_min: 8192,
            segment_bytes: 32 << 20,
            open_files_max: 512,
            dense_gain_min_bytes: 64 << 10,
            dense_read_budget: Duration::from_micros(200),
        }
    }
}

impl EngineOptions {
    /// The row store is frozen at this size; while it is flushed, as much again may be written.
    pub(crate) fn row_store_bytes(&self) -> u64 {
        // Larger ones would only make recovery longer.
        (self.memory_bytes / 6).min(128 << 20)
    }

    /// What memory tables may take, beside everything else.
    pub(crate) fn memory_tables_bytes(&self) -> u64 {
        self.memory_bytes / 2
    }

    /// Entries that the build of an index sorts at a time.
    pub(crate) fn index_build_bytes(&self) -> usize {
        (self.query_bytes / 8).clamp(1 << 20, 64 << 20) as usize
    }

    /// What a merge may hold of its inputs, all together.
    fn merge_bytes(&self) -> usize {
        (self.memory_bytes / 8) as usize
    }

    /// Inputs of a merge that may overlap: of each it holds an open block and some read ahead for each column.
    pub(crate) fn merge_fan_in(&self, columns: usize) -> usize {
        (self.merge_bytes() / (columns.max(1) * MERGE_COLUMN_BYTES)).clamp(MERGE_FAN_IN.0, MERGE_FAN_IN.1)
    }

    /// Raw bytes of an input that a merge has decoded.
    pub(crate) fn merge_piece_bytes(&self) -> usize {
        (self.merge_bytes() / MERGE_FAN_IN.1).clamp(MERGE_PIECE_BYTES.0, MERGE_PIECE_BYTES.1)
    }

    pub(crate) fn cache_bytes(&self) -> usize {
        (self.memory_bytes / 3) as usize
    }

    /// Space on the disk that is kept for what gives space back.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        // A flush of little writes some segments and a record of the manifest.
        (self.wal_file_bytes / 2).max(64 << 10)
    }

    /// A flush is due when this much log would have to be replayed.
    pub(crate) fn log_bytes_max(&self) -> u64 {
        (self.memory_bytes / 2).min(512 << 20).max(4 * self.wal_file_bytes)
    }
}

/// Background work that can be done a step at a time: what the threads of `start_background` loop over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundStep {
    /// Writes and syncs what waits in the log's memory.
    Log,
    /// Prepares the log's next file.
    LogFile,
    /// One step of a flush that is due or in progress.
    Flush,
    /// One slice of a merge that pays, and the removal of files that nobody needs.
    Merge,
}

/// A storage engine over one directory.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

/// What sessions and background steps share.
pub(crate) struct Shared {
    pub options: EngineOptions,
    pub snapshots: Snapshots,
    pub locks: LockManager,
    pub serializable: Serializable,
    pub pipeline: Pipeline,
    pub wal: Wal,
    pub log_writer: LogWriter,
    pub log_directory: Arc<dyn Directory>,
    /// Whether syncs reach the disk, but for files that a crash may take anyway.
    pub sync: SyncSwitch,
    pub directory: Arc<dyn Directory>,
    /// Space for what gives space back.
    pub reserve: Reserve,
    pub files: Arc<Files>,
    pub temp: Arc<TempFiles>,
    pub query_memory: Arc<MemoryBudget>,
    /// Memory of all flushable trees.
    pub row_store_bytes: AtomicU64,
    /// Memory of all others.
    pub memory_tables_bytes: AtomicU64,
    /// Where replay would begin.
    pub checkpoint: AtomicU64,
    /// The records of all commits up to here lie before that point: replay does not link their segments any more.
    pub settled: AtomicU64,
    pub manifest: Mutex<Manifest>,
    /// The flush in progress.
    pub background: Mutex<Background>,
    /// Held while a merge runs.
    pub merging: Mutex<Merging>,
    pub unmerged: Mutex<Unmerged>,
    pub activity: Activity,
    /// When the next log file could not be prepared.
    log_file_failed_at: Mutex<Option<Duration>>,
    /// Notified when a flush has made room in the row store.
    pub room: Condvar,
    room_lock: Mutex<()>,
    has_threads: AtomicBool,
    /// How many this process could use when the engine was opened. A thread that is bound to one is told of that one only.
    pub processors: usize,
    stopping: AtomicBool,
    poisoned: OnceLock<String>,
    trees: Trees,
    sequences: RwLock<HashMap<SequenceId, Arc<Sequence>>>,
    pub next_tree: AtomicU64,
    next_txn: AtomicU64,
    pub clock: Arc<dyn Clock>,
    _lock: Box<dyn Send + Sync>,
}

/// What flushes own.
#[derive(Default)]
pub(crate) struct Background {
    pub flush: Option<Flush>,
    /// The last failure of a step that may be tried again.
    failed_at: Option<Duration>,
    failure: Option<EngineError>,
}

/// What merges own.
#[derive(Default)]
pub(crate) struct Merging {
    merges: Merges,
    failed_at: Option<Duration>,
}

/// A failed step is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A background thread looks for work this often.
const IDLE: Duration = Duration::from_millis(20);

impl Engine {
    /// Opens the engine in a directory, which is empty or an engine's; recovers what a crash left.
    pub fn open(options: EngineOptions, directory: Arc<dyn Directory>, clock: Arc<dyn Clock>) -> Result<Arc<Engine>> {
        Engine::open_watched(options, directory, clock, &RecoveryProgress::default())
    }

    /// The same; others may ask meanwhile how far recovery is.
    pub fn open_watched(
        options: EngineOptions,
        directory: Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        progress: &RecoveryProgress,
    ) -> Result<Arc<Engine>> {
        let directory = Arc::new(PooledDirectory::new(directory, options.open_files_max)) as Arc<dyn Directory>;
        let lock = lock(&*directory)?;
        let folder = |name| directory.subdirectory(name).map_err(|e| EngineError::io("open the data directory", e));
        let (segments, log) = (folder("segments")?, folder("wal")?);
        let temp = TempFiles::open(folder("temp")?)?;
        let sync = SyncSwitch::new(options.fsync);
        let directory = Arc::new(SwitchedDirectory::new(directory, sync.clone())) as Arc<dyn Directory>;
        let manifest = with_space_of(&*directory, || open_manifest(&directory, &*segments, &*log, &*clock))?;
        let state = manifest.state().clone();
        let wal_options = WalOptions { file_bytes: options.wal_file_bytes, sync: sync.clone(), ..WalOptions::default() };
        let files = Files::new(&segments, &sync, &options, state.next_file);
        let mut shared = Shared {
            snapshots: Snapshots::new(state.csn),
            locks: LockManager::new(),
            serializable: Serializable::default(),
            pipeline: Pipeline::new(state.csn),
            wal: Wal::new(Arc::clone(&log), wal_options),
            log_writer: LogWriter::new(&options),
            log_directory: log,
            sync,
            reserve: Reserve::new(&directory, options.reserve_bytes()),
            directory,
            files: Arc::new(files),
            temp: Arc::new(temp),
            query_memory: MemoryBudget::new(options.query_bytes),
            row_store_bytes: AtomicU64::new(0),
            memory_tables_bytes: AtomicU64::new(0),
            checkpoint: AtomicU64::new(state.replay.0),
            settled: AtomicU64::new(state.segments.values().flatten().map(|s| s.assigned.0).max().unwrap_or(0)),
            manifest: Mutex::new(manifest),
            background: Mutex::default(),
            merging: Mutex::default(),
            unmerged: Mutex::default(),
            activity: Activity::default(),
            log_file_failed_at: Mutex::default(),
            room: Condvar::new(),
            room_lock: Mutex::new(()),
            has_threads: AtomicBool::new(false),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get()),
            stopping: AtomicBool::new(false),
            poisoned: OnceLock::new(),
            trees: Trees::default(),
            sequences: RwLock::default(),
            next_tree: AtomicU64::new(state.next_tree),
            next_txn: AtomicU64::new(1),
            options,
            clock,
            _lock: lock,
        };
        shared.recover(&state, progress)?;
        Ok(Arc::new(Engine { shared: Arc::new(shared), threads: Mutex::default() }))
    }

    /// A context for one client.
    pub fn session(&self) -> Result<Arc<Session>> {
        Session::open(&self.shared)
    }

    /// Begins a transaction in a session of its own (tools, tests, bootstrap).
    pub fn begin(&self, isolation: Isolation) -> Result<Arc<Transaction>> {
        self.begin_in(&self.session()?, isolation)
    }

    /// Begins a session's next transaction. The session's previous one has ended.
    pub fn begin_in(&self, session: &Arc<Session>, isolation: Isolation) -> Result<Arc<Transaction>> {
        self.shared.pay_debt(session);
        Ok(Transaction::begin(session, isolation))
    }

    /// Runs one step of background work of any kind, if there is any; false when there was none.
    pub fn run_once(&self) -> bool {
        self.shared.run_once()
    }

    /// Runs one step of one kind of background work; false when there was none. Production threads loop it, the simulator
    /// calls it. A step that cannot reach the disk is tried again later; one that leaves the durable state unknown, or panics,
    /// poisons the engine.
    pub fn run_step(&self, step: BackgroundStep) -> bool {
        self.shared.run_step(step)
    }

    /// Why the engine refuses all work, if it does: it was poisoned, or shut down.
    pub fn failure(&self) -> Option<String> {
        self.shared.poisoned.get().cloned()
    }

    /// Flushes the whole row store into segments (CHECKPOINT).
    pub fn checkpoint(&self) -> Result<()> {
        let shared = &self.shared;
        shared.check_poison()?;
        let mut background = shared.background.lock();
        shared.reserve.with(shared.clock.monotonic(), || shared.flush_all(&mut background.flush))
    }

    /// Where recovery would begin to read the log.
    pub fn replay_start(&self) -> Lsn {
        Lsn(self.shared.checkpoint.load(Ordering::Relaxed))
    }

    /// The end of the log.
    pub fn log_end(&self) -> Lsn {
        self.shared.wal.end()
    }

    /// Merges every tree's segments into one run (VACUUM FULL and the like).
    pub fn merge_all(&self) -> Result<()> {
        self.shared.check_poison()?;
        let mut merging = self.shared.merging.lock();
        while self.shared.merge_step(&mut merging.merges, Eagerness::Everything)? {}
        drop(merging);
        self.shared.remove_trash();
        Ok(())
    }

    /// Makes the values of a table dense that wait for it, and packs its indexes (VACUUM); merges would come to it when there is time.
    pub fn condense(&self, table: TreeId) -> Result<()> {
        let Ok(tree) = self.shared.tree(table.toast()) else { return Ok(()) };
        let table = self.shared.tree(table)?;
        if table.is_flushed() && table.memory_bytes() + tree.memory_bytes() > 0 {
            self.checkpoint()?;
        }
        let mut merging = self.shared.merging.lock();
        let of_table = self.shared.all_trees().into_iter().filter(|other| other.table == table.id);
        for tree in of_table.chain([Arc::clone(&tree)]) {
            while self.shared.merge_if_due(&tree, &mut merging.merges, Eagerness::Everything)? {}
        }
        drop(merging);
        self.shared.remove_trash();
        Ok(())
    }

    /// Makes every commit so far durable, asynchronous ones too.
    pub fn flush_log(&self) -> Result<()> {
        self.shared.flush_log(WrittenBy::Client)
    }

    /// Starts the threads that do background work: for the log, its next file, flushes, and merges, so that none waits for
    /// another.
    pub fn start_background(&self) {
        self.shared.has_threads.store(true, Ordering::SeqCst);
        let mut threads = self.threads.lock();
        type Body = fn(&Shared);
        let bodies: [(&str, Body); 4] = [
            ("log writer", Shared::write_log_until_stopped),
            ("log files", |shared| shared.work_until_stopped(BackgroundStep::LogFile)),
            ("flush", |shared| shared.work_until_stopped(BackgroundStep::Flush)),
            ("merge", |shared| shared.work_until_stopped(BackgroundStep::Merge)),
        ];
        for (name, body) in bodies {
            let shared = Arc::clone(&self.shared);
            // Without its threads the engine still works: commits that wait for room do the steps themselves.
            match std::thread::Builder::new().name(name.into()).spawn(move || body(&shared)) {
                Ok(handle) => threads.push(handle),
                Err(_) => self.shared.has_threads.store(false, Ordering::SeqCst),
            }
        }
    }

    /// A clean stop: nothing is lost, also of unlogged trees. The engine refuses work afterwards.
    pub fn shutdown(&self) -> Result<()> {
        let shared = &self.shared;
        self.stop_background();
        shared.check_poison()?;
        let mut background = shared.background.lock();
        let _merging = shared.merging.lock();
        shared.reserve.with(shared.clock.monotonic(), || shared.flush_all(&mut background.flush))?;
        shared.remove_trash();
        shared.sync_unlogged()?;
        let edits: Vec<Edit> = shared
            .all_sequences()
            .iter()
            .filter(|s| s.state.lock().committed)
            .map(|s| Edit::Sequence(shared.sequence_record(s, true)))
            .chain([Edit::Clean(true)])
            .collect();
        let mut manifest = shared.manifest.lock();
        manifest.reserve(&edits, 0)?;
        let installed = manifest.install(&edits);
        // Whatever the outcome, nothing may follow it.
        let _ = shared.poisoned.set("the database system is shut down".into());
        installed
    }

    fn stop_background(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.has_threads.store(false, Ordering::SeqCst);
        self.shared.log_writer.wake();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic in it has poisoned the engine already.
            let _ = thread.join();
        }
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
        self.shared.tree(tree).is_ok_and(|t| t.committed.load(Ordering::Acquire))
    }

    /// Bytes of a tree on disk, or in memory as long as it is not flushed.
    pub fn tree_bytes(&self, tree: TreeId) -> u64 {
        self.shared.tree(tree).map_or(0, |t| t.stored_bytes() + t.memory_bytes())
    }

    /// About how many live rows or entries a tree has.
    pub fn tree_rows_estimate(&self, tree: TreeId) -> u64 {
        self.shared.tree(tree).map_or(0, |t| t.live.load(Ordering::Relaxed).max(0) as u64)
    }

    /// Temporary files made, and bytes written to them, since the engine was opened.
    pub fn temp_counters(&self) -> (u64, u64) {
        self.shared.temp.counters()
    }

    /// What queries hold, and what they may.
    pub fn query_memory(&self) -> &Arc<MemoryBudget> {
        &self.shared.query_memory
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

/// Reads the manifest, or begins one where there is nothing yet.
fn open_manifest(
    directory: &Arc<dyn Directory>,
    segments: &dyn Directory,
    log: &dyn Directory,
    clock: &dyn Clock,
) -> Result<Manifest> {
    let io = |e| EngineError::io("list the data directory", e);
    if !Manifest::is_in(&**directory)? {
        let has_segments = segments.list().map_err(io)?.iter().any(|name| segment_number(name).is_some());
        if has_segments || !LogFiles::list(log)?.starts.is_empty() {
            return Err(Manifest::missing());
        }
    }
    // No two databases are made in the same microsecond.
    let (manifest, _) = Manifest::open(Arc::clone(directory), clock.now_micros().unsigned_abs().max(1))?;
    Ok(manifest)
}

/// Takes the data directory for this engine.
fn lock(directory: &dyn Directory) -> Result<Box<dyn Send + Sync>> {
    directory.lock("engine.lock").map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => EngineError::DirectoryInUse,
        _ => EngineError::io("lock the data directory", e),
    })
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Like a crash, but for threads that would go on: a clean stop is `shutdown`.
        self.stop_background();
    }
}

impl Shared {
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Whether background work is done by threads.
    pub fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Relaxed)
    }

    /// Numbers for the next transactions of a session.
    pub fn take_transaction_ids(&self) -> Range<u64> {
        const COUNT: u64 = 64;
        let first = self.next_txn.fetch_add(COUNT, Ordering::Relaxed);
        first..first + COUNT
    }

    pub fn next_tree_id(&self) -> TreeId {
        TreeId(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    pub fn tree(&self, id: TreeId) -> Result<TreeRef> {
        self.trees.get(id).ok_or(EngineError::UnknownTree(id))
    }

    /// All trees by id.
    pub fn all_trees(&self) -> Vec<Arc<Tree>> {
        self.trees.all()
    }

    pub fn add_tree(&self, tree: Arc<Tree>) {
        self.trees.insert(tree);
    }

    pub fn remove_tree(&self, id: TreeId) {
        self.trees.remove(id);
    }

    pub fn sequence(&self, id: SequenceId) -> Result<Arc<Sequence>> {
        self.sequences.read().get(&id).cloned().ok_or(EngineError::UnknownSequence(id))
    }

    pub fn all_sequences(&self) -> Vec<Arc<Sequence>> {
        let mut sequences: Vec<Arc<Sequence>> = self.sequences.read().values().cloned().collect();
        sequences.sort_by_key(|s| s.id);
        sequences
    }

    pub fn add_sequence(&self, sequence: Arc<Sequence>) {
        self.sequences.write().insert(sequence.id, sequence);
    }

    pub fn remove_sequence(&self, id: SequenceId) {
        self.sequences.write().remove(&id);
    }

    /// Undoes a change of the schema that was rolled back.
    pub fn undo(&self, what: What) {
        match what {
            What::CreateTree(tree) => self.remove_tree(tree.id),
            What::CreateSequence(sequence) => self.remove_sequence(sequence.id),
            _ => {}
        }
    }

    fn log_sequence(&self, id: SequenceId, state: SequenceState) -> Lsn {
        let mut payload = batch::encode_sequence_state(id, state);
        let crc = melba_wal::payload_crc(&payload);
        self.wal.append(Csn(0), &mut payload, crc).1
    }

    /// The next value, and how far the log must be durable before a synchronous commit that used it returns.
    pub fn nextval(&self, id: SequenceId) -> Result<(i64, Lsn)> {
        let sequence = self.sequence(id)?;
        self.with_log(id, |log| sequence.next(log))
    }

    pub fn setval(&self, id: SequenceId, value: i64, is_called: bool) -> Result<Lsn> {
        let sequence = self.sequence(id)?;
        self.with_log(id, |log| sequence.set(value, is_called, log))
    }

    /// Runs what may log a sequence's state, with room for that in the log.
    fn with_log<T>(&self, id: SequenceId, f: impl FnOnce(&mut dyn FnMut(SequenceState) -> Lsn) -> Result<T>) -> Result<T> {
        self.wal.reserve(batch::SEQUENCE_STATE_BYTES)?;
        let mut has_logged = false;
        let result = f(&mut |state| {
            has_logged = true;
            self.log_sequence(id, state)
        });
        if !has_logged {
            self.wal.unreserve(batch::SEQUENCE_STATE_BYTES);
        }
        result
    }

    /// Refuses all further work; returns the error for the caller to hand on.
    pub fn poison(&self, e: EngineError) -> EngineError {
        if !matches!(e, EngineError::Poisoned { .. }) {
            let _ = self.poisoned.set(e.to_string());
        }
        e
    }

    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.get().is_some()
    }

    #[inline]
    pub fn check_poison(&self) -> Result<()> {
        match self.poisoned.get() {
            None => Ok(()),
            Some(cause) => Err(EngineError::Poisoned { cause: cause.clone() }),
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// One background step of any kind; a flush in progress goes before merges.
    pub fn run_once(&self) -> bool {
        self.run_log_step_if_due() || self.run_log_file_step() || self.run_flush_step() || self.run_merge_step()
    }

    pub fn run_step(&self, step: BackgroundStep) -> bool {
        match step {
            BackgroundStep::Log => self.run_log_step(),
            BackgroundStep::LogFile => self.run_log_file_step(),
            BackgroundStep::Flush => self.run_flush_step(),
            BackgroundStep::Merge => self.run_merge_step(),
        }
    }

    fn work_until_stopped(&self, step: BackgroundStep) {
        while !self.is_stopping() {
            if !self.run_step(step) {
                let mut guard = self.room_lock.lock();
                self.room.wait_for(&mut guard, IDLE);
            }
        }
    }

    fn run_log_file_step(&self) -> bool {
        self.guarded(|| {
            let mut failed_at = self.log_file_failed_at.lock();
            let step = || Ok(self.wal.prepare_spare()? || self.is_idle() && self.wal.remove_spares()?);
            let result = self.unless_failed_lately(self.clock.monotonic(), *failed_at, step);
            *failed_at = result.as_ref().err().copied();
            // Last, and only where a step had nothing else to do.
            result.is_ok_and(|worked| worked || self.reserve.prepare(self.clock.monotonic()))
        })
    }

    fn run_flush_step(&self) -> bool {
        self.guarded(|| {
            let mut background = self.background.lock();
            let now = self.clock.monotonic();
            let failed_at = background.failed_at;
            let mut failure = None;
            let flush = || self.flush_step(&mut background.flush, false);
            let step = || self.reserve.with(now, flush).inspect_err(|e| failure = Some(e.clone()));
            let result = self.unless_failed_lately(now, failed_at, step);
            background.failed_at = result.as_ref().err().copied();
            if result.is_ok() || failure.is_some() {
                background.failure = failure;
            }
            result.unwrap_or(false)
        })
    }

    fn run_merge_step(&self) -> bool {
        self.guarded(|| {
            let mut merging = self.merging.lock();
            let now = self.clock.monotonic();
            let failed_at = merging.failed_at;
            let result = self.unless_failed_lately(now, failed_at, || {
                self.reserve.with(now, || self.merge_step(&mut merging.merges, self.eagerness()))
            });
            merging.failed_at = result.as_ref().err().copied();
            result.unwrap_or(false) | self.remove_trash()
        })
    }

    /// The step's answer, or when it failed last.
    fn unless_failed_lately(
        &self,
        now: Duration,
        failed_at: Option<Duration>,
        step: impl FnOnce() -> Result<bool>,
    ) -> std::result::Result<bool, Duration> {
        match failed_at {
            Some(at) if now < at + RETRY_AFTER => Err(at),
            _ => step().map_err(|_| now),
        }
    }

    pub fn guarded(&self, step: impl FnOnce() -> bool) -> bool {
        if self.is_poisoned() {
            return false;
        }
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)) {
            Ok(did_work) => did_work,
            Err(_) => {
                self.poison(EngineError::Misuse("a background step panicked"));
                false
            }
        }
    }

    /// Deletes files that nobody reads, the manifest does not name, and replay would not link; true when there were any.
    pub fn remove_trash(&self) -> bool {
        let files = std::mem::take(&mut *self.files.trash.0.lock());
        if files.is_empty() {
            return false;
        }
        let manifest = self.manifest.lock();
        let settled = Csn(self.settled.load(Ordering::SeqCst));
        let is_needed = |s: &SegmentFile| manifest.state().is_named(s.file) || s.assigned > settled;
        let (keep, remove): (Vec<SegmentFile>, Vec<SegmentFile>) = files.into_iter().partition(is_needed);
        drop(manifest);
        let removed = !remove.is_empty();
        for segment in remove {
            // What cannot be removed now is a stray for the next start.
            let _ = self.files.directory.remove(&segment_name(segment.file));
        }
        self.files.trash.0.lock().extend(keep);
        removed
    }

    /// Waits, or works, while the row store is over its limit.
    pub fn make_room(&self) -> Result<()> {
        let limit = self.options.row_store_bytes() * 2;
        while self.row_store_bytes.load(Ordering::Relaxed) > limit {
            self.check_poison()?;
            // The disk is full, say: better an error now than a wait without end.
            if let Some(e) = self.background.try_lock().and_then(|b| b.failure.clone()) {
                return Err(e);
            }
            if self.has_threads() {
                while crate::wait::about_to_wait() {}
                let mut guard = self.room_lock.lock();
                self.room.wait_for(&mut guard, Duration::from_millis(10));
            } else if !self.run_once() {
                // Nothing can be flushed now (another commit is in flight, the disk is full): memory is exceeded rather than
                // a deadlock risked.
                return Ok(());
            }
        }
        Ok(())
    }
}
