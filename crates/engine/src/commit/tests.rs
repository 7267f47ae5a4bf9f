//! The pipeline over a log in memory, without trees, sessions or an engine.

use std::sync::Arc;
use std::time::Duration;

use melba_locks::{HoldDuration, LockKey, LockManager, RowLockMode, WaitPolicy};
use melba_store::{EngineError, Interrupt, Result};
use melba_threads::OwnThreads;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_types::{Csn, Lsn, RowId, TreeId};
use melba_vfs::{Directory, Faults, FaultyDirectory, FileOperation, ManualClock, MemoryDirectory, SyncSwitch};
use melba_wal::WrittenBy;

use super::{CommitRecord, Committer, Durability, EarlyRelease, Log, Needs, Pipeline, Started};
use crate::options::EngineOptions;
use crate::runtime::Runtime;
use crate::snapshot::Snapshots;

/// All that the pipeline needs.
pub(crate) struct Parts {
    pub faults: Arc<Faults>,
    pub runtime: Arc<Runtime>,
    pub snapshots: Arc<Snapshots>,
    pub locks: Arc<LockManager>,
    pub pipeline: Pipeline,
}

impl Parts {
    pub fn new() -> Arc<Parts> {
        let faults = Faults::new();
        let folder = FaultyDirectory::new(MemoryDirectory::new() as Arc<dyn Directory>, Arc::clone(&faults));
        let runtime = Runtime::new(Arc::new(ManualClock::new()), Arc::new(OwnThreads));
        let options = EngineOptions { wal_file_bytes: 4096, ..EngineOptions::default() };
        let log = Arc::new(Log::new(&options, folder, SyncSwitch::new(true), &runtime));
        log.wal.begin(Lsn(0)).expect("begins");
        let snapshots = Arc::new(Snapshots::new(Csn(0)));
        let locks = Arc::new(LockManager::new(Arc::new(OwnThreads), Arc::new(ManualClock::new())));
        let pipeline = Pipeline::new(&log, &snapshots, &locks, &runtime);
        Arc::new(Parts { faults, runtime, snapshots, locks, pipeline })
    }

    /// Steps 1 and 2 of a commit.
    pub fn start(&self, durability: Durability, locks: Option<EarlyRelease>, apply: impl FnOnce(Csn)) -> Result<Started> {
        let mut payload = vec![7; 20];
        let reservation = Some(self.pipeline.log.reserve(payload.len())?);
        let is_sync = durability == Durability::Sync;
        self.pipeline.commit(CommitRecord { payload: &mut payload, reservation, needs: Needs::default(), is_sync, locks }, apply)
    }

    pub fn wait(&self, slot: u32, started: &Started) -> Result<()> {
        self.pipeline.wait_published(&Committer { slot, delay: &|| (Duration::ZERO, 0) }, started)
    }
}

#[test]
fn commits_become_visible_in_log_order_in_any_order_of_application() {
    let parts = Parts::new();
    let order = AtomicU64::new(0);
    let first = parts.start(Durability::Async, None, |first| {
        let second = parts.start(Durability::Async, None, |csn| order.store(csn.0, Ordering::Relaxed)).expect("starts");
        assert_eq!((first, second.csn), (Csn(1), Csn(2)));
        assert_eq!(order.load(Ordering::Relaxed), 2, "the second is applied");
        assert_eq!((parts.snapshots.visible(), parts.snapshots.applied()), (Csn(0), Csn(0)), "and waits for the first");
        assert_eq!(parts.pipeline.floor().replay, Lsn(0), "replay would begin at the first");
    });
    assert_eq!(first.expect("starts").csn, Csn(1));
    assert_eq!(parts.snapshots.visible(), Csn(2));
    assert!(parts.pipeline.floor().replay > Lsn(0));
}

#[test]
fn a_synchronous_commit_releases_locks_before_it_is_durable_and_is_visible_after() {
    let parts = Parts::new();
    let (key, mode) = (LockKey::Row(TreeId(1), RowId(1)), RowLockMode::ForUpdate.into());
    let interrupt = Interrupt::new();
    let lock = |slot| {
        let policy =
            WaitPolicy { block: false, interrupt: &interrupt, lock_timeout: None, deadlock_timeout: Duration::MAX, watch: None };
        parts.locks.lock(slot, key, mode, HoldDuration::Transaction, &policy).expect("answers")
    };
    parts.locks.attach(0);
    parts.locks.attach(1);
    assert!(lock(0) && !lock(1));
    let started = parts.start(Durability::Sync, Some(EarlyRelease(0)), |_| assert!(!lock(1))).expect("starts");
    assert!(lock(1), "it is applied");
    assert_eq!((parts.snapshots.visible(), parts.snapshots.applied()), (Csn(0), Csn(1)));
    assert!(!parts.pipeline.try_publish(&started).expect("answers"));
    parts.wait(0, &started).expect("is published");
    assert_eq!(parts.snapshots.visible(), Csn(1));
    assert_eq!(parts.pipeline.log.waiting_bytes(), 0);
}

#[test]
fn nothing_is_published_after_a_failed_flush() {
    let parts = Parts::new();
    let started = parts.start(Durability::Sync, None, |_| {}).expect("starts");
    parts.faults.fail_once(&[FileOperation::Sync], 0);
    assert!(parts.pipeline.flush_log(WrittenBy::Background).is_err());
    assert!(matches!(parts.wait(0, &started), Err(EngineError::Poisoned { .. })));
    assert!(parts.start(Durability::Async, None, |_| unreachable!("has no place in the order")).is_err());
    assert!(parts.runtime.is_poisoned());
    assert_eq!(parts.snapshots.visible(), Csn(0));
}
