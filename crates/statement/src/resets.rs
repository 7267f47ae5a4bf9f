//! Resets of statistics (pg_stat_reset and similar functions): the counts at that time, which are subtracted.

use std::collections::HashMap;

use melba_engine::{BackgroundStep, IoCounts, RowCounts, ScanCounts, WalStatistics};
use melba_types::{Oid, TreeId};
use parking_lot::Mutex;

use super::backends::SessionCounts;
use super::background_work::FlushSums;

/// Those of a server. Times are microseconds since 2000-01-01.
#[derive(Debug, Default)]
pub struct Resets(pub(super) Mutex<Kept>);

#[derive(Debug, Default)]
pub(super) struct Kept {
    pub databases: HashMap<Oid, (i64, SessionCounts)>,
    pub trees: HashMap<TreeId, (RowCounts, ScanCounts)>,
    /// By the target's name.
    pub shared: HashMap<&'static str, i64>,
    /// Those of pg_stat_io and pg_stat_wal.
    pub io: IoSums,
    pub wal: WalStatistics,
    /// Those of pg_stat_checkpointer.
    pub flushed: FlushSums,
    /// Those of pg_stat_get_backend_io, by session.
    pub sessions: HashMap<i32, (i64, SessionCounts)>,
}

/// What the server has read and written.
#[derive(Clone, Debug, Default)]
pub(super) struct IoSums {
    pub sessions: SessionCounts,
    /// By kind of background work.
    pub workers: [IoCounts; BackgroundStep::ALL.len()],
    pub log: WalStatistics,
}

/// Targets of pg_stat_reset_shared.
pub(super) const SHARED: [&str; 7] = ["archiver", "bgwriter", "checkpointer", "io", "recovery_prefetch", "slru", "wal"];

impl Resets {
    /// When a database was reset last, and its counts then.
    pub fn of_database(&self, database: Oid) -> Option<(i64, SessionCounts)> {
        self.0.lock().databases.get(&database).copied()
    }

    pub fn of_tree(&self, tree: TreeId) -> (RowCounts, ScanCounts) {
        self.0.lock().trees.get(&tree).copied().unwrap_or_default()
    }

    pub fn of_shared(&self, target: &str) -> Option<i64> {
        self.0.lock().shared.get(target).copied()
    }
}
