//! The measurements of EXPLAIN ANALYZE for a plan node.

use crate::explain_document::PropertyValue;
use std::time::Duration;

use melba_engine::IoCounts;

/// The measurements of one plan node.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeTiming {
    pub loops: u64,
    pub rows: u64,
    pub total: Duration,
    pub startup: Duration,
    /// Threads that ran a part of the node's input beside the statement's own, the last time.
    pub workers: u64,
    /// Where a node that keeps rows had them.
    pub storage: Option<NodeStorage>,
    /// What was read and written, by the nodes below too.
    pub io: IoCounts,
    /// Rows that were looked at and that the node's conditions left out.
    pub removed: u64,
    /// Ranges of keys that were looked up in its indexes.
    pub searches: u64,
    /// The present run of the node has returned rows.
    pub started: bool,
}

impl NodeTiming {
    /// Adds another thread's measurements of the same node.
    pub fn add(&mut self, other: &NodeTiming) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.total += other.total;
        self.startup += other.startup;
        self.removed += other.removed;
        self.searches += other.searches;
        self.storage = self.storage.or(other.storage);
        self.io.add(&other.io);
    }

    pub fn with_storage(self, storage: Option<NodeStorage>) -> NodeTiming {
        NodeTiming { storage, ..self }
    }
}

/// The memory and files of a node that keeps rows, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum NodeStorage {
    Sort {
        method: &'static str,
        on_disk: bool,
        bytes: u64,
    },
    /// Batches are the parts that the rows were split into; one: none were.
    HashJoin {
        buckets: u64,
        batches: u64,
        memory: u64,
    },
    HashAggregate {
        batches: u64,
        memory: u64,
        disk: u64,
    },
    Rows {
        memory: u64,
        disk: u64,
    },
}

impl NodeStorage {
    /// The name and the value of each figure, as EXPLAIN's text format has them on one line.
    pub fn line(&self) -> String {
        let kb = |bytes: u64| format!("{}kB", bytes.div_ceil(1024));
        match *self {
            NodeStorage::Sort { method, on_disk, bytes } => {
                format!("Sort Method: {method}  {}: {}", if on_disk { "Disk" } else { "Memory" }, kb(bytes))
            }
            NodeStorage::HashJoin { buckets, batches, memory } => {
                format!("Buckets: {buckets}  Batches: {batches}  Memory Usage: {}", kb(memory))
            }
            NodeStorage::HashAggregate { batches, memory, disk: 0 } => {
                format!("Batches: {batches}  Memory Usage: {}", kb(memory))
            }
            NodeStorage::HashAggregate { batches, memory, disk } => {
                format!("Batches: {batches}  Memory Usage: {}  Disk Usage: {}", kb(memory), kb(disk))
            }
            NodeStorage::Rows { memory, disk: 0 } => format!("Storage: Memory  Maximum Storage: {}", kb(memory)),
            NodeStorage::Rows { disk, .. } => format!("Storage: Disk  Maximum Storage: {}", kb(disk)),
        }
    }

    /// The same as the other formats have them.
    pub fn fields(&self) -> Vec<(&'static str, PropertyValue)> {
        let kb = |bytes: u64| PropertyValue::plain(bytes.div_ceil(1024));
        let place = |disk: bool| PropertyValue::text(if disk { "Disk" } else { "Memory" });
        match *self {
            NodeStorage::Sort { method, on_disk, bytes } => {
                vec![
                    ("Sort Method", PropertyValue::text(method)),
                    ("Sort Space Used", kb(bytes)),
                    ("Sort Space Type", place(on_disk)),
                ]
            }
            NodeStorage::HashJoin { buckets, batches, memory } => vec![
                ("Hash Buckets", PropertyValue::plain(buckets)),
                ("Hash Batches", PropertyValue::plain(batches)),
                ("Peak Memory Usage", kb(memory)),
            ],
            NodeStorage::HashAggregate { batches, memory, disk } => {
                vec![
                    ("HashAgg Batches", PropertyValue::plain(batches)),
                    ("Peak Memory Usage", kb(memory)),
                    ("Disk Usage", kb(disk)),
                ]
            }
            NodeStorage::Rows { memory, disk } => {
                vec![("Storage", place(disk > 0)), ("Maximum Storage", kb(memory.max(disk)))]
            }
        }
    }
}
