//! The tree of joins that the paths are chosen for.

use super::rels::Rels;
use melba_tree::Expr;

/// How rows of the left side are combined with rows of the right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeJoin {
    Left,
    Full,
    Semi,
    /// Like `Semi`, with the columns of the first match.
    SemiPair,
    Anti,
    /// Like `Anti` by one equality, whose NULLs count (`JoinType::NotIn`).
    NotIn,
}

/// Joins over range table entries.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Leaf(usize),
    /// All of them, in any order, with conditions over them.
    Inner {
        items: Vec<Tree>,
        conditions: Vec<Expr>,
    },
    Join {
        join: TreeJoin,
        left: Box<Tree>,
        right: Box<Tree>,
        conditions: Vec<Expr>,
    },
}

impl Tree {
    /// For a query that locks rows: the rows that EXISTS and IN have found are kept beside a row, and compared with it again when
    /// it changes.
    pub fn keep_partners(&mut self) {
        match self {
            Tree::Leaf(_) => {}
            Tree::Inner { items, .. } => items.iter_mut().for_each(Tree::keep_partners),
            Tree::Join { join, left, .. } => {
                if *join == TreeJoin::Semi {
                    *join = TreeJoin::SemiPair;
                }
                left.keep_partners();
            }
        }
    }

    /// The relations that outer joins may extend with NULLs.
    pub fn extended(&self) -> Rels {
        match self {
            Tree::Leaf(_) => 0,
            Tree::Inner { items, .. } => items.iter().fold(0, |all, item| all | item.extended()),
            Tree::Join { join: TreeJoin::Left, left, right, .. } => left.extended() | right.rels(),
            Tree::Join { join: TreeJoin::Full, left, right, .. } => left.rels() | right.rels(),
            Tree::Join { left, right, .. } => left.extended() | right.extended(),
        }
    }

    pub fn rels(&self) -> Rels {
        match self {
            Tree::Leaf(entry) => 1 << (*entry).min(127),
            Tree::Inner { items, .. } => items.iter().fold(0, |all, item| all | item.rels()),
            Tree::Join { left, right, .. } => left.rels() | right.rels(),
        }
    }

    /// The entries whose columns an outer join may leave NULL.
    pub fn nullable(&self) -> Rels {
        match self {
            Tree::Leaf(_) => 0,
            Tree::Inner { items, .. } => items.iter().fold(0, |all, item| all | item.nullable()),
            Tree::Join { join, left, right, .. } => {
                let of_join = match join {
                    TreeJoin::SemiPair => 0,
                    TreeJoin::Full => left.rels() | right.rels(),
                    TreeJoin::Left | TreeJoin::Anti | TreeJoin::NotIn | TreeJoin::Semi => right.rels(),
                };
                of_join | left.nullable() | right.nullable()
            }
        }
    }
}

/// Merges inner joins into one list.
pub fn flatten(tree: Tree) -> Tree {
    match tree {
        Tree::Leaf(_) => tree,
        Tree::Inner { items, mut conditions } => {
            let mut flat = Vec::new();
            for item in items {
                match flatten(item) {
                    Tree::Inner { items, conditions: more } => {
                        flat.extend(items);
                        conditions.extend(more);
                    }
                    other => flat.push(other),
                }
            }
            Tree::Inner { items: flat, conditions }
        }
        Tree::Join { join, left, right, conditions } => {
            Tree::Join { join, left: Box::new(flatten(*left)), right: Box::new(flatten(*right)), conditions }
        }
    }
}

pub fn visit_tree(tree: &Tree, f: &mut dyn FnMut(&Expr)) {
    match tree {
        Tree::Leaf(_) => {}
        Tree::Inner { items, conditions } => {
            conditions.iter().for_each(&mut *f);
            items.iter().for_each(|i| visit_tree(i, f));
        }
        Tree::Join { left, right, conditions, .. } => {
            conditions.iter().for_each(&mut *f);
            visit_tree(left, f);
            visit_tree(right, f);
        }
    }
}
