//! State that the threads of a team share (`parallel`).

use std::any::Any;
use std::iter::Enumerate;
use std::sync::Arc;
use std::vec::IntoIter;

use hashbrown::HashMap;
use melba_engine::Morsel;
use melba_plan::node::TableScanNode;
use parking_lot::Mutex;

/// The tables of hash joins, by the number of the plan's node. Only joins know their type.
pub(crate) type BuiltTables = HashMap<usize, Arc<dyn Any + Send + Sync>>;

/// A part of the table, and its number in the table's order.
pub(crate) type Part = (usize, Morsel);

pub(crate) struct Team {
    scan: Arc<TableScanNode>,
    count: usize,
    parts: Mutex<Enumerate<IntoIter<Morsel>>>,
    tables: BuiltTables,
}

impl Team {
    /// For a scan whose table has these parts, below joins with these tables.
    pub fn new(scan: Arc<TableScanNode>, parts: Vec<Morsel>, tables: BuiltTables) -> Team {
        Team { scan, count: parts.len(), parts: Mutex::new(parts.into_iter().enumerate()), tables }
    }

    /// Whether the members take the parts of this scan's table.
    pub fn divides(&self, scan: &Arc<TableScanNode>) -> bool {
        Arc::ptr_eq(&self.scan, scan)
    }

    /// The next part of the table that no member has taken.
    pub fn next_part(&self) -> Option<Part> {
        self.parts.lock().next()
    }

    /// How many parts there were at the start.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Leaves nothing to take.
    pub fn stop(&self) {
        self.parts.lock().by_ref().for_each(drop);
    }

    /// The table of a join, by its node.
    pub fn table<T: Send + Sync + 'static>(&self, join: usize) -> Option<Arc<T>> {
        self.tables.get(&join).and_then(|table| table.clone().downcast().ok())
    }
}
