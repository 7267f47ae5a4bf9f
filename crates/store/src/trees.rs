//! All trees by id.

use std::ops::Deref;
use std::sync::Arc;

use melba_types::TreeId;

use crate::swap::{Reading, Swap};
use crate::tree::Tree;

/// A part of the trees, ascending by id.
type Part = Vec<Arc<Tree>>;

/// A change copies one part.
const PARTS: usize = 2048;

/// The trees of an engine.
pub struct Trees {
    parts: Box<[Swap<Part>]>,
}

/// A tree in use for a moment.
pub struct TreeRef {
    part: Reading<Part>,
    at: usize,
}

impl Deref for TreeRef {
    type Target = Arc<Tree>;

    #[inline]
    fn deref(&self) -> &Arc<Tree> {
        &self.part[self.at]
    }
}

impl Default for Trees {
    fn default() -> Trees {
        Trees { parts: (0..PARTS).map(|_| Swap::default()).collect() }
    }
}

impl Trees {
    fn part(&self, id: TreeId) -> &Swap<Part> {
        &self.parts[id.0 as usize % PARTS]
    }

    #[inline]
    pub fn get(&self, id: TreeId) -> Option<TreeRef> {
        let part = self.part(id).read();
        let at = part.binary_search_by_key(&id, |tree| tree.id).ok()?;
        Some(TreeRef { part, at })
    }

    /// Ascending by id.
    pub fn all(&self) -> Vec<Arc<Tree>> {
        let mut trees: Vec<Arc<Tree>> = self.parts.iter().flat_map(|part| part.read().to_vec()).collect();
        trees.sort_by_key(|tree| tree.id);
        trees
    }

    /// Adds a tree, in place of the one with its id, if there is one.
    pub fn insert(&self, tree: Arc<Tree>) {
        let mut part = self.part(tree.id).write();
        match part.binary_search_by_key(&tree.id, |tree| tree.id) {
            Ok(at) => part[at] = tree,
            Err(at) => part.insert(at, tree),
        }
    }

    pub fn remove(&self, id: TreeId) {
        self.part(id).write().retain(|tree| tree.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::Persistence;

    #[test]
    fn trees_are_found_until_they_are_removed() {
        let trees = Trees::default();
        let new = |id: u64| Arc::new(Tree::table(TreeId(id), &[], Persistence::Logged));
        (0..1000).rev().for_each(|id| trees.insert(new(id)));
        let held = trees.get(TreeId(300)).expect("there");
        trees.remove(TreeId(300));
        assert!(trees.get(TreeId(300)).is_none());
        assert_eq!(held.id, TreeId(300));
        assert!(trees.all().iter().map(|t| t.id.0).eq((0..300).chain(301..1000)));
        assert!(trees.all().iter().all(|t| trees.get(t.id).is_some_and(|found| Arc::ptr_eq(&found, t))));
    }
}
