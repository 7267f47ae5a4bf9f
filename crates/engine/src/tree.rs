//! A tree: the committed state of one table or index.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use melba_types::row::RowLayout;
use melba_types::{Kind, TreeId};
use parking_lot::RwLock;

use crate::levels::{IndexLevels, Levels, TableLevels};

/// What a restart leaves of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Persistence {
    /// Everything that was committed.
    Logged = 0,
    /// Everything after a clean stop, nothing after a crash.
    Unlogged = 1,
    /// Nothing; rows never touch the disk. The tree itself stays.
    Memory = 2,
    /// Not even the tree.
    Temporary = 3,
}

/// The rows of a table.
pub(crate) struct TableTree {
    pub layout: RwLock<Arc<RowLayout>>,
    pub levels: RwLock<TableLevels>,
    pub next_row: AtomicU64,
}

/// The entries of an index.
pub(crate) struct IndexTree {
    pub levels: RwLock<IndexLevels>,
}

pub(crate) enum TreeData {
    Table(TableTree),
    Index(IndexTree),
}

/// One tree.
pub(crate) struct Tree {
    pub id: TreeId,
    /// The table of an index; itself for a table.
    pub table: TreeId,
    pub persistence: Persistence,
    pub data: TreeData,
    /// The creating transaction has committed.
    pub committed: AtomicBool,
    /// About how many live rows or entries.
    pub live: AtomicI64,
}

impl Tree {
    pub fn table(id: TreeId, kinds: &[Kind], persistence: Persistence) -> Tree {
        let data = TreeData::Table(TableTree {
            layout: RwLock::new(Arc::new(RowLayout::new(kinds.to_vec()))),
            levels: RwLock::new(Levels::new()),
            next_row: AtomicU64::new(1),
        });
        Tree { id, table: id, persistence, data, committed: AtomicBool::new(false), live: AtomicI64::new(0) }
    }

    pub fn index(id: TreeId, table: TreeId, persistence: Persistence) -> Tree {
        let data = TreeData::Index(IndexTree { levels: RwLock::new(Levels::new()) });
        Tree { id, table, persistence, data, committed: AtomicBool::new(false), live: AtomicI64::new(0) }
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

    /// Estimate of the memory that the tree's versions take.
    pub fn memory_bytes(&self) -> u64 {
        match &self.data {
            TreeData::Table(t) => t.levels.read().memory_bytes(),
            TreeData::Index(t) => t.levels.read().memory_bytes(),
        }
    }

    /// Bytes of the tree's segments.
    pub fn stored_bytes(&self) -> u64 {
        match &self.data {
            TreeData::Table(t) => t.levels.read().runs.iter().map(|r| r.reader.meta().stored_bytes).sum(),
            TreeData::Index(t) => t.levels.read().runs.iter().map(|r| r.reader.meta().stored_bytes).sum(),
        }
    }

    /// Forgets everything: the tree was dropped. Segment files go when their last reader does.
    pub fn discard(&self) {
        match &self.data {
            TreeData::Table(t) => {
                let old = std::mem::replace(&mut *t.levels.write(), Levels::new());
                old.runs.iter().for_each(|r| r.obsolete.store(true, Ordering::Release));
            }
            TreeData::Index(t) => {
                let old = std::mem::replace(&mut *t.levels.write(), Levels::new());
                old.runs.iter().for_each(|r| r.obsolete.store(true, Ordering::Release));
            }
        }
    }

    /// Whether flushes write its rows to disk.
    pub fn is_flushed(&self) -> bool {
        self.persistence != Persistence::Memory
    }
}
