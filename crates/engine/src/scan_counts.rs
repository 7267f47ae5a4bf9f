//! Counts the scans of trees, the rows or entries they returned, and the blocks that were read for them.
//!
//! Each session counts for itself, behind a lock that only readers of the sums take besides it: every processor would write a
//! shared counter for every statement.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use melba_threads::Mutex;
use melba_types::TreeId;
use melba_vfs::counts::OwnedCounts;

/// Scans of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    pub scans: u64,
    /// Rows of a table, entries of an index.
    pub rows: u64,
    /// Blocks of segments that the cache had, and that were read from files.
    pub blocks_hit: u64,
    pub blocks_read: u64,
}

impl ScanCounts {
    fn add(&mut self, other: ScanCounts) {
        self.scans += other.scans;
        self.rows += other.rows;
        self.blocks_hit += other.blocks_hit;
        self.blocks_read += other.blocks_read;
    }

    /// The increase since other counts.
    pub fn since(self, before: ScanCounts) -> ScanCounts {
        ScanCounts {
            scans: self.scans.saturating_sub(before.scans),
            rows: self.rows.saturating_sub(before.rows),
            blocks_hit: self.blocks_hit.saturating_sub(before.blocks_hit),
            blocks_read: self.blocks_read.saturating_sub(before.blocks_read),
        }
    }
}

/// Trees that one session counts before it hands its counts on.
const TREES_MAX: usize = 32;

/// Those of one session. The tree that was scanned last is last.
#[derive(Default)]
pub(crate) struct SessionScans(Mutex<Vec<(TreeId, ScanCounts)>>);

/// Those of all sessions.
#[derive(Default)]
pub(crate) struct AllScans {
    live: Mutex<Vec<Weak<SessionScans>>>,
    /// The counts that sessions have handed on.
    folded: Mutex<HashMap<TreeId, ScanCounts>>,
}

impl AllScans {
    pub fn new_session(&self) -> Arc<SessionScans> {
        let scans = Arc::new(SessionScans::default());
        let mut live = self.live.lock();
        live.retain(|session| session.strong_count() > 0);
        live.push(Arc::downgrade(&scans));
        scans
    }

    /// A session's counts become the server's.
    pub fn fold(&self, session: &SessionScans) {
        // Both under one lock, or a reader might count them twice or not at all.
        let mut folded = self.folded.lock();
        for (tree, counts) in session.0.lock().drain(..) {
            folded.entry(tree).or_default().add(counts);
        }
    }

    pub fn of_tree(&self, tree: TreeId) -> ScanCounts {
        self.sum(|counted| counted == tree)
    }

    /// The sum over the trees that are wanted.
    pub fn sum(&self, wanted: impl Fn(TreeId) -> bool) -> ScanCounts {
        let mut sum = ScanCounts::default();
        let folded = self.folded.lock();
        folded.iter().filter(|(tree, _)| wanted(**tree)).for_each(|(_, counts)| sum.add(*counts));
        let live: Vec<Arc<SessionScans>> = self.live.lock().iter().filter_map(Weak::upgrade).collect();
        for session in live {
            session.0.lock().iter().filter(|(tree, _)| wanted(*tree)).for_each(|(_, counts)| sum.add(*counts));
        }
        sum
    }
}

impl SessionScans {
    /// True when the session should hand its counts on.
    pub fn note(&self, tree: TreeId, counts: ScanCounts) -> bool {
        let mut trees = self.0.lock();
        add_to(&mut trees, tree, counts);
        trees.len() > TREES_MAX
    }

    /// Adds the blocks that were read for trees; true as above.
    pub fn note_blocks(&self, owned: &[OwnedCounts]) -> bool {
        let mut trees = self.0.lock();
        // Blocks without an owner are in the sums of sessions only.
        for OwnedCounts { owner, hits, reads } in owned.iter().filter(|owned| owned.owner != 0) {
            let counts = ScanCounts { blocks_hit: *hits, blocks_read: *reads, ..ScanCounts::default() };
            add_to(&mut trees, TreeId(*owner), counts);
        }
        trees.len() > TREES_MAX
    }
}

fn add_to(trees: &mut Vec<(TreeId, ScanCounts)>, tree: TreeId, counts: ScanCounts) {
    match trees.iter_mut().rev().find(|(counted, _)| *counted == tree) {
        Some((_, sum)) => sum.add(counts),
        None => trees.push((tree, counts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_their_session_and_are_counted_once() {
        let all = AllScans::default();
        let (a, b) = (all.new_session(), all.new_session());
        let one = ScanCounts { scans: 1, rows: 5, ..ScanCounts::default() };
        for tree in 0..40 {
            if a.note(TreeId(tree), one) {
                all.fold(&a);
            }
        }
        a.note(TreeId(3), one);
        b.note(TreeId(3), one);
        b.note_blocks(&[OwnedCounts { owner: 3, hits: 4, reads: 1 }, OwnedCounts { owner: 0, hits: 9, reads: 9 }]);
        assert_eq!(all.of_tree(TreeId(3)), ScanCounts { scans: 3, rows: 15, blocks_hit: 4, blocks_read: 1 });
        all.fold(&b);
        drop(b);
        assert_eq!(all.of_tree(TreeId(3)), ScanCounts { scans: 3, rows: 15, blocks_hit: 4, blocks_read: 1 });
        assert_eq!(all.sum(|_| true).scans, 42);
    }
}
