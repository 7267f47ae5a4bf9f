//! The trees that merges have still to check: the cost of a step does not depend on the number of trees.

use std::collections::BTreeSet;
use std::ops::Bound;

use melba_types::TreeId;

use super::Eagerness;

/// Trees whose segments have changed since they were checked with all eagerness. Work that does not pay at one eagerness does not
/// pay at a lower one.
#[derive(Default)]
pub(crate) struct Unmerged {
    /// Each tree once: by the least eagerness with which it has still to be checked, beginning with `Busy`.
    due: [BTreeSet<TreeId>; Eagerness::Everything as usize],
}

impl Unmerged {
    /// The segments of a tree have changed.
    pub fn add(&mut self, tree: TreeId) {
        let [busy, eager @ ..] = &mut self.due;
        for trees in eager {
            trees.remove(&tree);
        }
        busy.insert(tree);
    }

    fn due(&self, eagerness: Eagerness) -> impl Iterator<Item = &BTreeSet<TreeId>> {
        self.due[..eagerness as usize].iter()
    }

    /// How many trees are to be checked.
    pub fn len(&self, eagerness: Eagerness) -> usize {
        self.due(eagerness).map(BTreeSet::len).sum()
    }

    /// Takes the first tree behind `last`, or the first of all; the caller checks it next.
    pub fn take(&mut self, eagerness: Eagerness, last: TreeId) -> Option<TreeId> {
        let behind = |trees: &BTreeSet<TreeId>| trees.range((Bound::Excluded(last), Bound::Unbounded)).next().copied();
        let next = self.due(eagerness).filter_map(behind).min();
        let tree = next.or_else(|| self.due(eagerness).filter_map(|trees| trees.first().copied()).min())?;
        self.take_if_due(eagerness, tree).then_some(tree)
    }

    /// Takes one tree; false when it has already been checked.
    pub fn take_if_due(&mut self, eagerness: Eagerness, tree: TreeId) -> bool {
        let (looked_at, rest) = self.due.split_at_mut(eagerness as usize);
        let is_due = looked_at.iter_mut().any(|trees| trees.remove(&tree));
        if let Some(next) = rest.first_mut().filter(|_| is_due) {
            next.insert(tree);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_take_turns_and_are_looked_at_once_by_each_eagerness() {
        let mut unmerged = Unmerged::default();
        [1, 5, 9].into_iter().for_each(|id| unmerged.add(TreeId(id)));
        assert_eq!(unmerged.take(Eagerness::Busy, TreeId(4)), Some(TreeId(5)));
        assert_eq!(unmerged.take(Eagerness::Busy, TreeId(5)), Some(TreeId(9)));
        assert_eq!(unmerged.take(Eagerness::Busy, TreeId(9)), Some(TreeId(1)));
        assert_eq!(unmerged.take(Eagerness::Busy, TreeId(1)), None);
        assert_eq!((unmerged.len(Eagerness::Idle), unmerged.len(Eagerness::Busy)), (3, 0), "there may be more to do when idle");
        unmerged.add(TreeId(5));
        assert_eq!(unmerged.take(Eagerness::Everything, TreeId(0)), Some(TreeId(1)));
        assert_eq!(unmerged.take(Eagerness::Idle, TreeId(0)), Some(TreeId(5)), "1 has been looked at with more");
        assert_eq!(unmerged.take(Eagerness::Busy, TreeId(0)), None);
    }
}
