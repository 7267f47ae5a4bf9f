//! The engine: trees, sequences, and what all sessions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use melba_types::{Csn, Lsn, TreeId, TxnId};
use melba_vfs::{Clock, Directory};
use parking_lot::RwLock;

use crate::commit::Pipeline;
use crate::error::{EngineError, Result};
use crate::locks::{LockManager, LockedObject};
use crate::sequence::{Sequence, SequenceId};
use crate::session::Session;
use crate::snapshot::Snapshots;
use crate::tree::Tree;
use crate::txn::{Isolation, Transaction, What};

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Memory for the row store and the block cache together.
    pub memory_bytes: u64,
    /// False: never waits for the disk; a crash of the machine may lose anything.
    pub fsync: bool,
    /// How often asynchronous commits are written out.
    pub wal_writer_delay: std::time::Duration,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions { memory_bytes: 256 << 20, fsync: true, wal_writer_delay: std::time::Duration::from_millis(200) }
    }
}

/// A storage engine over one directory.
pub struct Engine {
    shared: Arc<Shared>,
}

/// What sessions and background steps share.
pub(crate) struct Shared {
    pub options: EngineOptions,
    pub snapshots: Snapshots,
    pub locks: LockManager,
    pub pipeline: Pipeline,
    trees: RwLock<HashMap<TreeId, Arc<Tree>>>,
    sequences: RwLock<HashMap<SequenceId, Arc<Sequence>>>,
    next_tree: AtomicU64,
    next_txn: AtomicU64,
    pub directory: Arc<dyn Directory>,
    pub clock: Arc<dyn Clock>,
}

impl Engine {
    /// Opens the engine in a directory, which is empty or an engine's; recovers what a crash left.
    pub fn open(options: EngineOptions, directory: Arc<dyn Directory>, clock: Arc<dyn Clock>) -> Result<Arc<Engine>> {
        let shared = Shared {
            options,
            snapshots: Snapshots::new(Csn(0)),
            locks: LockManager::new(),
            pipeline: Pipeline::new(Csn(0)),
            trees: RwLock::default(),
            sequences: RwLock::default(),
            next_tree: AtomicU64::new(1),
            next_txn: AtomicU64::new(1),
            directory,
            clock,
        };
        Ok(Arc::new(Engine { shared: Arc::new(shared) }))
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
        if isolation == Isolation::Serializable {
            return Err(EngineError::Unsupported("SERIALIZABLE isolation"));
        }
        let id = TxnId(self.shared.next_txn.fetch_add(1, Ordering::Relaxed));
        Ok(Transaction::begin(session, id, isolation))
    }

    /// Runs one step of background work, if there is any; false when there was none. Production threads loop it, the
    /// simulator calls it.
    pub fn run_once(&self) -> bool {
        false
    }

    /// A clean stop: nothing is lost, also of unlogged trees. The engine refuses work afterwards.
    pub fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    /// The newest visible commit.
    pub fn visible_csn(&self) -> Csn {
        self.shared.snapshots.visible()
    }

    /// Whether a committed tree exists. A new engine has none; the first one created is `TreeId(1)`.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.shared.tree(tree).is_ok_and(|t| t.committed.load(Ordering::Acquire))
    }

    /// Bytes of a tree on disk, or in memory as long as it is not flushed.
    pub fn tree_bytes(&self, tree: TreeId) -> u64 {
        self.shared.tree(tree).map_or(0, |t| t.memory_bytes())
    }

    /// About how many live rows or entries a tree has.
    pub fn tree_rows_estimate(&self, tree: TreeId) -> u64 {
        self.shared.tree(tree).map_or(0, |t| t.live_entries.load(Ordering::Relaxed))
    }

    /// All locks held and waited for (pg_locks).
    pub fn locks(&self) -> Vec<LockedObject> {
        self.shared.locks.list()
    }
}

impl Shared {
    pub fn next_tree_id(&self) -> TreeId {
        TreeId(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    pub fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        self.trees.read().get(&id).cloned().ok_or(EngineError::UnknownTree(id))
    }

    pub fn add_tree(&self, tree: Arc<Tree>) {
        self.trees.write().insert(tree.id, tree);
    }

    pub fn remove_tree(&self, id: TreeId) {
        self.trees.write().remove(&id);
    }

    pub fn sequence(&self, id: SequenceId) -> Result<Arc<Sequence>> {
        self.sequences.read().get(&id).cloned().ok_or(EngineError::UnknownSequence(id))
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

    /// The next value, and how far the log must be durable before a synchronous commit that used it returns.
    pub fn nextval(&self, id: SequenceId) -> Result<(i64, Lsn)> {
        let (value, _log) = self.sequence(id)?.next()?;
        Ok((value, Lsn(0)))
    }

    pub fn setval(&self, id: SequenceId, value: i64, is_called: bool) -> Result<Lsn> {
        let _log = self.sequence(id)?.set(value, is_called)?;
        Ok(Lsn(0))
    }
}
