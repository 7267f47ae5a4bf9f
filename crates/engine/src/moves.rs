//! Rows that left their tree for another one: an UPDATE that moves a row to another partition deletes it here and inserts it there.
//!
//! A transaction that sees such a row and waits for its lock finds it deleted. It must fail, because the row lives on where it
//! cannot follow. So a commit notes the rows that it moves, and who finds a row deleted by a concurrent commit asks
//! here. The note is no part of the tombstone: a flush or a merge may write that, or drop it, at any time.
//!
//! Invariants:
//! 1. A commit notes its moves before it applies its changes and releases its locks: who finds a row gone finds the note.
//! 2. A note is kept as long as a view older than its commit may be in use. No other view shows the row. So a restart needs no
//!    notes, except those of prepared transactions (`txn::prepare`).
//! 3. Memory is bounded. Beyond `ROWS_MAX` rows a tree is noted with the range of the commits. Any row that such a commit
//!    deleted in that tree counts as moved, at worst an error that a retry cures.

use hashbrown::HashMap;
use melba_threads::Mutex;
use melba_threads::atomic::{AtomicU64, Ordering};
use melba_types::{Csn, RowId, TreeId};

use crate::snapshot::Snapshots;
use crate::write_set::MovedRows;

/// Rows that all notes together name, at about 40 bytes each.
const ROWS_MAX: usize = melba_threads::sized(1 << 18, 2);
/// The least number of rows after which notes that are not needed any more are dropped.
const ROWS_PER_SEARCH_MIN: usize = melba_threads::sized(1024, 1);

#[derive(Default)]
struct Noted {
    rows: HashMap<(TreeId, RowId), Csn>,
    /// The first and the last commit that moved rows which `rows` does not name.
    trees: HashMap<TreeId, (Csn, Csn)>,
    newest: Csn,
    /// Rows noted since the last search for notes that are not needed any more.
    since_search: usize,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Moves {
    noted: Mutex<Noted>,
    /// The newest commit with a note; 0: there are no notes.
    newest: AtomicU64,
}

impl Moves {
    /// Notes the moves of a commit. `oldest`: the oldest view that may be in use.
    pub fn note(&self, moved: &MovedRows, csn: Csn, oldest: Csn) {
        if moved.is_empty() {
            return;
        }
        let mut noted = self.noted.lock();
        for (tree, row) in moved.iter() {
            noted.add(tree, row, csn, oldest);
        }
        noted.newest = noted.newest.max(csn);
        self.newest.store(noted.newest.0, Ordering::SeqCst);
    }

    /// Whether a row was moved that a view in use shows and a commit at `deleted` has deleted.
    pub fn has(&self, tree: TreeId, row: RowId, deleted: Csn) -> bool {
        if self.newest.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let noted = self.noted.lock();
        // The tombstone of a row that no view shows may be gone: its commit is unknown then.
        let may_be = |(first, last): &(Csn, Csn)| deleted == Csn(0) || (*first..=*last).contains(&deleted);
        noted.rows.contains_key(&(tree, row)) || noted.trees.get(&tree).is_some_and(may_be)
    }

    /// Drops all notes, once every view in use is newer.
    pub fn forget(&self, snapshots: &Snapshots) {
        let newest = self.newest.load(Ordering::SeqCst);
        if newest == 0 || Csn(newest) > snapshots.oldest_lagging() {
            return;
        }
        let mut noted = self.noted.lock();
        if noted.newest.0 == newest {
            *noted = Noted::default();
            self.newest.store(0, Ordering::SeqCst);
        }
    }
}

impl Noted {
    fn add(&mut self, tree: TreeId, row: Option<RowId>, csn: Csn, oldest: Csn) {
        self.since_search += 1;
        // A search costs as much as the rows noted since the last one.
        if self.since_search > self.rows.len().max(ROWS_PER_SEARCH_MIN) {
            self.rows.retain(|_, csn| *csn > oldest);
            self.trees.retain(|_, (_, last)| *last > oldest);
            self.since_search = 0;
        }
        match row {
            Some(row) if self.rows.len() < ROWS_MAX => drop(self.rows.insert((tree, row), csn)),
            _ => {
                let (first, last) = self.trees.entry(tree).or_insert((csn, csn));
                (*first, *last) = ((*first).min(csn), (*last).max(csn));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(rows: &[(u64, u64)]) -> MovedRows {
        let mut moved = MovedRows::default();
        rows.iter().for_each(|(tree, row)| moved.push(1, TreeId(*tree), RowId(*row)));
        moved
    }

    #[test]
    fn notes_are_kept_while_an_older_view_is_in_use() {
        let (moves, snapshots) = (Moves::default(), Snapshots::new(Csn(3)));
        let slot = snapshots.take_slot().expect("free");
        snapshots.acquire(slot, None, Csn(0));
        moves.note(&moved(&[(1, 5)]), Csn(4), Csn(3));
        snapshots.publish(Csn(9));
        snapshots.compute_oldest();
        moves.forget(&snapshots);
        assert!(moves.has(TreeId(1), RowId(5), Csn(4)));
        assert!(!moves.has(TreeId(1), RowId(6), Csn(4)) && !moves.has(TreeId(2), RowId(5), Csn(4)));
        snapshots.hold(slot, None);
        snapshots.compute_oldest();
        moves.forget(&snapshots);
        assert!(!moves.has(TreeId(1), RowId(5), Csn(4)));
    }

    #[test]
    fn the_rows_beyond_the_limit_are_known_by_tree_and_commit() {
        let moves = Moves::default();
        let mut csn = 10;
        for row in 0..ROWS_MAX as u64 + 1 {
            csn += u64::from(row as usize == ROWS_MAX);
            moves.note(&moved(&[(1, row)]), Csn(csn), Csn(1));
        }
        moves.note(&moved(&[(1, u64::MAX)]), Csn(12), Csn(1));
        let has = |row, csn| moves.has(TreeId(1), RowId(row), Csn(csn));
        assert!(has(0, 10) && has(u64::MAX, 12));
        assert!(has(u64::MAX - 1, 11), "any row that these commits deleted counts");
        assert!(!has(u64::MAX - 1, 10) && !has(u64::MAX - 1, 13), "those of others do not");
        assert_eq!(moves.noted.lock().rows.len(), ROWS_MAX);
        for row in 0..ROWS_MAX as u64 + 1 {
            moves.note(&moved(&[(2, row)]), Csn(20), Csn(12));
        }
        let noted = moves.noted.lock();
        assert!(noted.rows.keys().all(|(tree, _)| *tree == TreeId(2)), "what no view can ask for is dropped");
        assert!(!noted.trees.contains_key(&TreeId(1)));
    }
}
