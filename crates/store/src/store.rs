//! All trees and sequences of an engine, their files, and the manifest; their memory, and where replay would begin.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, MutexGuard, RwLock};
use melba_types::{Csn, Lsn, TreeId};
use melba_vfs::{Clock, Directory, PooledDirectory, SwitchedDirectory, SyncSwitch, sync_all};
use melba_wal::LogFiles;

use crate::cold::ColdDirectory;
use crate::error::{EngineError, Result};
use crate::files::{Files, SegmentFile, Sizes};
use crate::ids::{SequenceId, segment_name, segment_number};
use crate::manifest::{Edit, Manifest, ManifestState};
use crate::memory_table::MemTable;
use crate::persistence::Persistence;
use crate::reserve::{Reserve, with_space_of};
use crate::sequence::Sequence;
use crate::tree::{Tree, TreeData};
use crate::trees::{TreeRef, Trees};

/// The folders of a data directory, taken for one engine.
pub struct Folders {
    /// With the manifest and the reserve; syncs may be switched off.
    pub root: Arc<dyn Directory>,
    pub segments: Arc<ColdDirectory>,
    pub log: Arc<dyn Directory>,
    pub temp: Arc<dyn Directory>,
    lock: Box<dyn Send + Sync>,
}

/// See the module.
pub struct Store {
    trees: Trees,
    sequences: RwLock<HashMap<SequenceId, Arc<Sequence>>>,
    /// The next tree's number.
    next_tree: AtomicU64,
    pub files: Arc<Files>,
    root: Arc<dyn Directory>,
    manifest: Mutex<Manifest>,
    /// Space for operations that free space.
    pub reserve: Reserve,
    /// Memory of all flushable trees.
    row_store_bytes: AtomicU64,
    /// Memory of all others.
    memory_tables_bytes: AtomicU64,
    /// Bytes of segments that commits have linked since the last flush began: merges read them when the manifest names them.
    linked_bytes: AtomicU64,
    /// Where replay would begin.
    checkpoint_lsn: AtomicU64,
    /// The records of all commits up to here lie before that point: replay does not link their segments any more.
    checkpoint_csn: AtomicU64,
    _lock: Box<dyn Send + Sync>,
}

impl Folders {
    /// Takes a data directory; `sync` says whether syncs of its root reach the disk.
    pub fn open(directory: Arc<dyn Directory>, open_files_max: usize, sync: &SyncSwitch) -> Result<Folders> {
        let directory = Arc::new(PooledDirectory::new(directory, open_files_max)) as Arc<dyn Directory>;
        let lock = directory.lock("engine.lock").map_err(|e| match e.kind() {
            std::io::ErrorKind::WouldBlock => EngineError::DirectoryInUse,
            _ => EngineError::io("lock the data directory", e),
        })?;
        let folder = |name| directory.subdirectory(name).map_err(|e| EngineError::io("open the data directory", e));
        let (segments, log, temp) = (folder("segments")?, folder("wal")?, folder("temp")?);
        let segments = ColdDirectory::new(segments, Arc::clone(&directory));
        let root = Arc::new(SwitchedDirectory::new(directory, sync.clone())) as Arc<dyn Directory>;
        Ok(Folders { root, segments, log, temp, lock })
    }

    /// Reads the manifest, or begins one where there is nothing yet.
    fn open_manifest(&self, clock: &dyn Clock) -> Result<Manifest> {
        let io = |e| EngineError::io("list the data directory", e);
        if !Manifest::is_in(&*self.root)? {
            let has_segments = self.segments.list().map_err(io)?.iter().any(|name| segment_number(name).is_some());
            if has_segments || !LogFiles::list(&*self.log)?.starts.is_empty() {
                return Err(Manifest::missing());
            }
        }
        // No two databases are made in the same microsecond.
        let (manifest, _) = Manifest::open(Arc::clone(&self.root), clock.now_micros().unsigned_abs().max(1))?;
        Ok(manifest)
    }
}

impl Store {
    /// Reads the manifest; trees and sequences come with `load`.
    pub fn open(
        folders: Folders,
        sync: &SyncSwitch,
        sizes: Sizes,
        reserve_bytes: u64,
        clock: &dyn Clock,
    ) -> Result<(Store, ManifestState)> {
        let manifest = with_space_of(&*folders.root, || folders.open_manifest(clock))?;
        let state = manifest.state().clone();
        let linked = state.segments.values().flatten().map(|s| s.assigned.0).max().unwrap_or(0);
        let store = Store {
            trees: Trees::default(),
            sequences: RwLock::default(),
            next_tree: AtomicU64::new(state.next_tree),
            files: Arc::new(Files::new(&folders.segments, sync, sizes, state.next_file)),
            reserve: Reserve::new(&folders.root, reserve_bytes),
            root: folders.root,
            manifest: Mutex::new(manifest),
            row_store_bytes: AtomicU64::new(0),
            memory_tables_bytes: AtomicU64::new(0),
            linked_bytes: AtomicU64::new(0),
            checkpoint_lsn: AtomicU64::new(state.replay.0),
            checkpoint_csn: AtomicU64::new(linked),
            _lock: folders.lock,
        };
        Ok((store, state))
    }

    pub fn root(&self) -> &dyn Directory {
        &*self.root
    }

    /// Levels and manifest change under this lock, so that flushes and merges see both or neither.
    pub fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock()
    }

    /// Checks again whether the reserve exists: opening may have used it.
    pub fn look_for_reserve(&mut self) {
        self.reserve = self.reserve.again();
    }

    // Trees and sequences.

    /// A number for a new tree or sequence.
    pub fn next_tree_id(&self) -> TreeId {
        TreeId(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    /// Numbers below are no longer assigned.
    pub fn skip_tree_ids(&self, next: u64) {
        self.next_tree.fetch_max(next, Ordering::Relaxed);
    }

    #[inline]
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

    /// All sequences by id.
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

    /// The end of a tree that a commit drops. Its relation lock is held, so no session reads it.
    pub fn drop_tree(&self, tree: &Tree) {
        add(self.counter(tree), -(tree.memory_bytes() as i64));
        tree.discard();
        self.remove_tree(tree.id);
    }

    // Memory.

    fn counter(&self, tree: &Tree) -> &AtomicU64 {
        if tree.is_flushed() { &self.row_store_bytes } else { &self.memory_tables_bytes }
    }

    /// A memory table of a tree has grown by `bytes`.
    pub fn account<K, V>(&self, tree: &Tree, table: &MemTable<K, V>, bytes: i64) {
        add(&table.bytes, bytes);
        add(self.counter(tree), bytes);
    }

    /// Memory of all flushable trees.
    #[inline]
    pub fn row_store_bytes(&self) -> u64 {
        self.row_store_bytes.load(Ordering::Relaxed)
    }

    /// Memory of all others.
    pub fn memory_tables_bytes(&self) -> u64 {
        self.memory_tables_bytes.load(Ordering::Relaxed)
    }

    /// Recomputes the row store's size from its parts: corrects errors of estimates and dropped trees.
    pub fn recount_row_store(&self) {
        let bytes: u64 = self.all_trees().iter().filter(|t| t.is_flushed()).map(|t| t.memory_bytes()).sum();
        add(&self.row_store_bytes, bytes as i64 - self.row_store_bytes() as i64);
    }

    /// Bytes of the segments that lie at the bottom of their trees.
    pub fn bottom_bytes(&self) -> u64 {
        self.all_trees().iter().map(|t| t.bottom_bytes.load(Ordering::Relaxed)).sum()
    }

    // Checkpoints and files.

    /// Bytes of segments that commits have linked since the last flush began.
    pub fn linked_bytes(&self) -> u64 {
        self.linked_bytes.load(Ordering::Relaxed)
    }

    /// A commit has linked a segment of `bytes`.
    pub fn note_linked(&self, bytes: u64) {
        self.linked_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A flush begins, after which the manifest names the linked segments.
    pub fn note_freeze(&self) {
        self.linked_bytes.store(0, Ordering::Relaxed);
    }

    /// Where replay would begin.
    pub fn checkpoint(&self) -> Lsn {
        Lsn(self.checkpoint_lsn.load(Ordering::Relaxed))
    }

    /// The manifest says where replay begins, behind the records of all commits up to `csn`.
    pub fn note_checkpoint(&self, replay: Lsn, csn: Csn) {
        self.checkpoint_lsn.store(replay.0, Ordering::Relaxed);
        self.checkpoint_csn.store(csn.0, Ordering::SeqCst);
    }

    /// The edit that moves the point where replay begins.
    pub fn checkpoint_edit(&self, replay: Lsn, csn: Csn) -> Edit {
        let next_tree = self.next_tree.load(Ordering::SeqCst);
        Edit::Checkpoint { replay, csn, next_tree, next_file: self.files.next.load(Ordering::SeqCst) }
    }

    /// Deletes files that have no reader, that the manifest does not name, and that replay would not link; true when there were any.
    pub fn remove_trash(&self) -> bool {
        let files = self.files.trash.take();
        if files.is_empty() {
            return false;
        }
        let manifest = self.manifest.lock();
        let checkpoint = Csn(self.checkpoint_csn.load(Ordering::SeqCst));
        let is_needed = |s: &SegmentFile| manifest.state().is_named(s.file) || s.assigned > checkpoint;
        let (keep, remove): (Vec<SegmentFile>, Vec<SegmentFile>) = files.into_iter().partition(is_needed);
        drop(manifest);
        let removed = !remove.is_empty();
        for segment in remove {
            // A file that cannot be removed now is a stray for the next start.
            let _ = self.files.directory.remove(&segment_name(segment.file));
        }
        self.files.trash.files.lock().extend(keep);
        removed
    }

    /// Whether replay would link a segment.
    pub fn is_replayed(&self, segment: &SegmentFile) -> bool {
        segment.assigned.0 > self.checkpoint_csn.load(Ordering::SeqCst)
    }

    /// Makes the segments of unlogged trees durable, which so far they need not have been: a clean stop keeps them.
    pub fn sync_unlogged(&self) -> Result<()> {
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

    /// Makes everything durable that was written while syncs were off; `log` is called when the segments are.
    pub fn sync_everything(&self, log: impl FnOnce() -> Result<()>) -> Result<()> {
        let io = |e| EngineError::io("sync the data directory", e);
        sync_all(&*self.files.directory).map_err(io)?;
        log()?;
        // Last: it names the others.
        let _manifest = self.manifest.lock();
        sync_all(&*self.root).map_err(io)
    }
}

/// Adds a signed amount.
fn add(counter: &AtomicU64, amount: i64) {
    if is_planted(Plant::CountApart) {
        return counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(amount), Ordering::Relaxed);
    }
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}
