//! State that the threads of a team share (`parallel`).

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_engine::Morsel;
use melba_plan::node::TableScanNode;
use parking_lot::Mutex;

/// The tables of hash joins, by the number of the plan's node. Only joins know their type.
pub(crate) type BuiltTables = HashMap<usize, Arc<dyn Any + Send + Sync>>;

/// A part of the table, and its number in the table's order.
pub(crate) type Part = (usize, Morsel);

/// The parts that are left, in as many shares as the team has members. A share is a range of the table: in a table whose order is that
/// of a key, members so meet different keys.
struct Shares {
    parts: Vec<VecDeque<Part>>,
    /// Shares that have a member.
    begun: usize,
}

impl Shares {
    fn new(parts: Vec<Morsel>, members: usize) -> Shares {
        let a_share = parts.len().div_ceil(members).max(1);
        let mut parts = parts.into_iter().enumerate();
        Shares { parts: (0..members).map(|_| parts.by_ref().take(a_share).collect()).collect(), begun: 0 }
    }

    /// The next part of a share, or the last one of the share that has most left.
    fn next(&mut self, share: usize) -> Option<Part> {
        let own = self.parts.get_mut(share).and_then(VecDeque::pop_front);
        own.or_else(|| self.parts.iter_mut().max_by_key(|parts| parts.len())?.pop_back())
    }
}

pub(crate) struct Team {
    scan: Arc<TableScanNode>,
    count: usize,
    shares: Mutex<Shares>,
    tables: BuiltTables,
}

impl Team {
    /// Of `members`, for a scan whose table has these parts, below joins with these tables.
    pub fn new(scan: Arc<TableScanNode>, parts: Vec<Morsel>, members: usize, tables: BuiltTables) -> Team {
        Team { scan, count: parts.len(), shares: Mutex::new(Shares::new(parts, members)), tables }
    }

    /// Whether the members take the parts of this scan's table.
    pub fn divides(&self, scan: &Arc<TableScanNode>) -> bool {
        Arc::ptr_eq(&self.scan, scan)
    }

    /// A share for a member that begins.
    pub fn begin_share(&self) -> usize {
        let mut shares = self.shares.lock();
        shares.begun += 1;
        shares.begun - 1
    }

    /// The next part of the table for the member with this share; none when all have been taken.
    pub fn next_part(&self, share: usize) -> Option<Part> {
        self.shares.lock().next(share)
    }

    /// How many parts there were at the start.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Leaves nothing to take.
    pub fn stop(&self) {
        self.shares.lock().parts.clear();
    }

    /// The table of a join, by its node.
    pub fn table<T: Send + Sync + 'static>(&self, join: usize) -> Option<Arc<T>> {
        self.tables.get(&join).and_then(|table| table.clone().downcast().ok())
    }
}

#[cfg(test)]
mod tests {
    use melba_types::RowId;

    use super::*;

    #[test]
    fn members_take_ranges_and_then_what_others_have_left() {
        let mut shares = Shares::new(vec![Morsel::range(RowId(0), RowId(1)); 7], 2);
        let mut taken = |share| shares.next(share).map(|(number, _)| number);
        assert_eq!([taken(1), taken(0), taken(1), taken(1)], [Some(4), Some(0), Some(5), Some(6)]);
        assert_eq!([taken(1), taken(0), taken(1), taken(0)], [Some(3), Some(1), Some(2), None]);
        assert!(Shares::new(Vec::new(), 3).next(0).is_none());
    }
}
