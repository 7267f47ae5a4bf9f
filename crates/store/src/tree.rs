//! A tree: the committed state of one table or index.

use melba_types::row::RowLayout;
use melba_types::{Kind, RowId, TreeId};

use crate::dense_work::DenseWork;
use crate::error::{EngineError, Result};
use crate::files::SegmentFile;
use crate::levels::{IndexLevels, Levels, TableLevels};
use crate::persistence::Persistence;
use crate::swap::Swap;
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The rows of a table.
pub struct TableTree {
    pub layout: Swap<RowLayout>,
    pub levels: Swap<TableLevels>,
    pub next_row: AtomicU64,
}

/// Row ids end here: statistics hold them as signed numbers.
const ROW_ID_MAX: u64 = i64::MAX as u64 - 1;

impl TableTree {
    /// Takes `count` row ids; returns the first.
    pub fn take_rows(&self, count: u64) -> Result<u64> {
        let take = |next: u64| next.checked_add(count).filter(|end| *end <= ROW_ID_MAX);
        let taken = self.next_row.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_err(|_| EngineError::Limit("the table has no row numbers left"))
    }

    /// Takes a row id of the caller's choice, and all before it.
    pub fn take_rows_to(&self, last: RowId) -> Result<()> {
        if last.0 >= ROW_ID_MAX {
            return Err(EngineError::Limit("a row number is beyond the last one"));
        }
        self.next_row.fetch_max(last.0 + 1, Ordering::Relaxed);
        Ok(())
    }
}

/// The entries of an index.
pub struct IndexTree {
    pub levels: Swap<IndexLevels>,
}

pub enum TreeData {
    Table(TableTree),
    Index(IndexTree),
}

/// How many rows were added, replaced and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

/// The same, counted by several threads.
#[derive(Debug, Default)]
pub struct RowCounters {
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
}

impl RowCounters {
    pub fn add(&self, counts: RowCounts) {
        let pairs = [(&self.inserted, counts.inserted), (&self.updated, counts.updated), (&self.deleted, counts.deleted)];
        for (counter, count) in pairs.into_iter().filter(|(_, count)| *count > 0) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub fn read(&self) -> RowCounts {
        let [inserted, updated, deleted] = [&self.inserted, &self.updated, &self.deleted].map(|c| c.load(Ordering::Relaxed));
        RowCounts { inserted, updated, deleted }
    }
}

/// Sizes of a tree's runs, which tell how far merges lag behind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bulk {
    pub bottom_bytes: u64,
    pub above_bytes: u64,
}

/// One tree.
pub struct Tree {
    pub id: TreeId,
    /// The table of an index; itself for a table.
    pub table: TreeId,
    pub persistence: Persistence,
    pub data: TreeData,
    /// The creating transaction has committed.
    pub committed: AtomicBool,
    /// About how many live rows or entries.
    pub live: AtomicI64,
    /// Counts of transactions' changes to a table's rows since the server's start.
    pub changed: RowCounters,
    /// Bytes of segments, and of those that lie above others (see `merge`): how far merges lag behind.
    pub bottom_bytes: AtomicU64,
    pub above_bytes: AtomicU64,
    /// The first 64 columns whose values are to become dense, as bits: as set by the last statement that wrote to the table.
    pub dense_columns: AtomicU64,
    pub dense_work: DenseWork,
    is_damaged: AtomicBool,
    damage: Mutex<Damage>,
}

/// Segments of a tree that could not be opened: it cannot be used, only dropped.
#[derive(Default)]
struct Damage {
    files: Vec<SegmentFile>,
    error: Option<EngineError>,
}

impl Tree {
    pub fn table(id: TreeId, kinds: &[Kind], persistence: Persistence) -> Tree {
        let data = TreeData::Table(TableTree {
            layout: Swap::new(RowLayout::new(kinds.to_vec())),
            levels: Swap::new(Levels::default()),
            next_row: AtomicU64::new(1),
        });
        Tree::new(id, id, persistence, data)
    }

    pub fn index(id: TreeId, table: TreeId, persistence: Persistence) -> Tree {
        let data = TreeData::Index(IndexTree { levels: Swap::new(Levels::default()) });
        Tree::new(id, table, persistence, data)
    }

    fn new(id: TreeId, table: TreeId, persistence: Persistence, data: TreeData) -> Tree {
        Tree {
            id,
            table,
            persistence,
            data,
            committed: AtomicBool::new(false),
            live: AtomicI64::new(0),
            changed: RowCounters::default(),
            bottom_bytes: AtomicU64::new(0),
            above_bytes: AtomicU64::new(0),
            dense_columns: AtomicU64::new(0),
            dense_work: DenseWork::default(),
            is_damaged: AtomicBool::new(false),
            damage: Mutex::default(),
        }
    }

    /// Notes that a segment cannot be opened.
    pub fn note_damage(&self, file: SegmentFile, error: EngineError) {
        let mut damage = self.damage.lock();
        damage.files.push(file);
        damage.error.get_or_insert(error);
        self.is_damaged.store(true, Ordering::Release);
    }

    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// The error for users of a tree that cannot be used.
    #[inline]
    pub fn check_damage(&self) -> Result<()> {
        if !self.is_damaged() {
            return Ok(());
        }
        self.damage.lock().error.clone().map_or(Ok(()), Err)
    }

    pub fn damaged_files(&self) -> Vec<SegmentFile> {
        if self.is_damaged() { self.damage.lock().files.clone() } else { Vec::new() }
    }

    /// Notes the sizes of the segments.
    pub fn note_bulk(&self, bulk: Bulk) {
        self.bottom_bytes.store(bulk.bottom_bytes, Ordering::Relaxed);
        self.above_bytes.store(bulk.above_bytes, Ordering::Relaxed);
    }

    pub fn as_table(&self) -> Option<&TableTree> {
        match &self.data {
            TreeData::Table(t) => Some(t),
            TreeData::Index(_) => None,
        }
    }

    pub fn as_index(&self) -> Option<&IndexTree> {
        match &self.data {
            TreeData::Index(t) => Some(t),
            TreeData::Table(_) => None,
        }
    }

    /// The same for callers that know that it is a table.
    #[inline]
    pub fn require_table(&self) -> Result<&TableTree> {
        self.as_table().ok_or(EngineError::Misuse("not a table tree"))
    }

    /// The same for callers that know that it is an index.
    #[inline]
    pub fn require_index(&self) -> Result<&IndexTree> {
        self.as_index().ok_or(EngineError::Misuse("not an index tree"))
    }

    /// Estimate of the memory that the tree's versions take.
    pub fn memory_bytes(&self) -> u64 {
        match &self.data {
            TreeData::Table(t) => t.levels.read().memory_bytes(),
            TreeData::Index(t) => t.levels.read().memory_bytes(),
        }
    }

    /// How many segments the tree has.
    pub fn run_count(&self) -> usize {
        match &self.data {
            TreeData::Table(t) => t.levels.read().runs.len(),
            TreeData::Index(t) => t.levels.read().runs.len(),
        }
    }

    /// Bytes of the tree's segments.
    pub fn stored_bytes(&self) -> u64 {
        match &self.data {
            TreeData::Table(t) => t.levels.read().runs.iter().map(|r| r.reader.meta().stored_bytes).sum(),
            TreeData::Index(t) => t.levels.read().runs.iter().map(|r| r.reader.meta().stored_bytes).sum(),
        }
    }

    /// Forgets everything: the tree was dropped. Segment files are deleted when their last reader is dropped.
    pub fn discard(&self) {
        match &self.data {
            TreeData::Table(t) => {
                let old = std::mem::take(&mut *t.levels.write());
                old.runs.iter().for_each(|r| r.discard());
            }
            TreeData::Index(t) => {
                let old = std::mem::take(&mut *t.levels.write());
                old.runs.iter().for_each(|r| r.discard());
            }
        }
    }

    /// Whether its segments must survive a crash of the machine. Those of an unlogged tree must only survive a clean stop.
    pub fn is_synced(&self) -> bool {
        self.persistence == Persistence::Logged
    }

    /// Whether flushes write its rows to disk.
    pub fn is_flushed(&self) -> bool {
        self.persistence != Persistence::Memory
    }
}
