//! Rows that a transaction moves to other trees.

use melba_types::{RowId, TreeId};

/// Rows that a transaction notes one by one, at 32 bytes each; of further ones it notes the tree.
const ROWS_MAX: usize = melba_threads::sized(16384, 2);

struct MovedRow {
    command: u32,
    tree: TreeId,
    /// `None`: some rows of the tree.
    row: Option<RowId>,
}

/// In the order of the commands.
#[derive(Default)]
pub(crate) struct MovedRows(Vec<MovedRow>);

impl MovedRows {
    pub fn push(&mut self, command: u32, tree: TreeId, row: RowId) {
        let is_known = |moved: &MovedRow| moved.row.is_none() && moved.tree == tree;
        let row = (self.0.len() < ROWS_MAX).then_some(row);
        if row.is_some() || !self.0[ROWS_MAX..].iter().any(is_known) {
            self.0.push(MovedRow { command, tree, row });
        }
    }

    /// Forgets those of `command` and later.
    pub fn roll_back_to(&mut self, command: u32) {
        self.0.truncate(self.0.partition_point(|moved| moved.command < command));
    }

    pub fn clear(&mut self) {
        self.0 = Vec::new();
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The trees, each with the row; without one, some of the tree's rows.
    pub fn iter(&self) -> impl Iterator<Item = (TreeId, Option<RowId>)> {
        self.0.iter().map(|moved| (moved.tree, moved.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_of_a_tree_are_noted_as_the_tree() {
        let mut moved = MovedRows::default();
        let count = |moved: &MovedRows, tree| moved.iter().filter(|(t, _)| *t == TreeId(tree)).count();
        for row in 0..ROWS_MAX as u64 + 5 {
            moved.push(1, TreeId(1), RowId(row));
        }
        moved.push(2, TreeId(2), RowId(7));
        moved.push(3, TreeId(2), RowId(8));
        assert_eq!((count(&moved, 1), count(&moved, 2)), (ROWS_MAX + 1, 1));
        assert_eq!(moved.iter().last(), Some((TreeId(2), None)));
        moved.roll_back_to(3);
        assert_eq!(count(&moved, 2), 1, "its command was before");
        moved.roll_back_to(2);
        assert_eq!((count(&moved, 1), count(&moved, 2)), (ROWS_MAX + 1, 0));
        moved.roll_back_to(1);
        assert!(moved.is_empty());
    }
}
