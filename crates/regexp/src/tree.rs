//! Which groups match which text: PostgreSQL's rules as a tree.
//!
//! A match is a stretch of text that a pattern as a whole accepts. How it is divided among the parts follows from what each of
//! them prefers: of two parts in a row the first takes as much, or as little, as it can while the second accepts the rest; of
//! branches the first that accepts wins; of the rounds of a repetition each takes as much as it can. A part that need not be
//! divided, because it has no group and no preference, is one leaf. PostgreSQL's manual, 9.7.3.5, defines the preferences.

use std::rc::Rc;

use melba_types::Result;
use melba_types::limits::{check_stack, tick};

use crate::parse::{Part, Parts, Preference};

/// A part of a pattern as far as it is divided.
#[derive(Debug)]
pub struct Tree {
    pub node: Node,
    /// The same as one expression.
    pub part: Part,
    pub traits: Traits,
    /// The group that it is.
    pub group: Option<usize>,
    /// Its place among all nodes.
    pub id: usize,
}

#[derive(Debug)]
pub enum Node {
    Leaf,
    Back {
        group: usize,
        min: u32,
        max: Option<u32>,
    },
    Pair(Box<Tree>, Box<Tree>),
    Branches(Vec<Tree>),
    Rounds {
        min: u32,
        max: Option<u32>,
        of: Box<Tree>,
    },
    /// A group without further structure.
    Only(Box<Tree>),
}

/// The properties of a part that matter for dividing it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traits {
    longest: bool,
    shortest: bool,
    mixed: bool,
    captures: bool,
    refers: bool,
}

impl Traits {
    fn of(prefers: Option<Preference>) -> Traits {
        Traits {
            longest: prefers == Some(Preference::Longest),
            shortest: prefers == Some(Preference::Shortest),
            ..Traits::default()
        }
    }

    pub fn prefers_shortest(self) -> bool {
        self.shortest
    }

    fn has_preference(self) -> bool {
        self.longest || self.shortest
    }

    fn with(self, other: Traits) -> Traits {
        Traits {
            longest: self.longest || other.longest,
            shortest: self.shortest || other.shortest,
            mixed: self.mixed || other.mixed,
            captures: self.captures || other.captures,
            refers: self.refers || other.refers,
        }
    }

    /// Their effect on the parts around.
    fn above(self) -> Traits {
        Traits { longest: false, shortest: false, mixed: self.mixed || self.longest && self.shortest, ..self }
    }

    fn preference_only(self) -> Traits {
        Traits { longest: self.longest, shortest: self.shortest, ..Traits::default() }
    }

    /// Of two in a row the first with a preference decides.
    fn then(self, next: Traits) -> Traits {
        let preference = if self.has_preference() { self } else { next };
        self.with(next).above().with(preference.preference_only())
    }

    fn is_divided(self) -> bool {
        self.mixed || self.captures || self.refers
    }
}

struct Builder {
    nodes: usize,
}

/// The tree of a pattern, and the number of its nodes.
///
/// # Errors
/// Those of the limits: parts in a row become a tree as deep as there are groups.
pub fn tree(part: &Part) -> Result<(Tree, usize)> {
    let mut builder = Builder { nodes: 0 };
    let tree = builder.branches(part)?;
    Ok((tree, builder.nodes))
}

fn is_zero(part: &Part) -> bool {
    matches!(part, Part::Repeat { max: Some(0), .. })
}

impl Builder {
    fn tree(&mut self, node: Node, part: Part, traits: Traits) -> Tree {
        self.nodes += 1;
        Tree { node, part, traits, group: None, id: self.nodes - 1 }
    }

    fn branches(&mut self, part: &Part) -> Result<Tree> {
        let Part::Branches(branches) = part else {
            let only = || Parts::from(vec![part.clone()]);
            return self.sequence(&if let Part::Sequence(parts) = part { parts.clone() } else { only() });
        };
        let trees = branches.iter().map(|b| self.branches(b)).collect::<Result<Vec<Tree>>>()?;
        // Several branches prefer the longest match, whatever each prefers.
        let longest = Traits::of(Some(Preference::Longest));
        let traits = trees.iter().fold(longest, |traits, tree| traits.with(traits.with(tree.traits).above()));
        let node = if traits.is_divided() { Node::Branches(trees) } else { Node::Leaf };
        Ok(self.tree(node, part.clone(), traits))
    }

    /// Parts in a row: the first ones as a leaf, as far as there is nothing to divide; then one that is divided, then the rest.
    fn sequence(&mut self, parts: &Parts) -> Result<Tree> {
        check_stack()?;
        let mut traits = Traits::default();
        for (i, part) in parts.iter().enumerate() {
            tick()?;
            if matches!(part, Part::Set(_) | Part::Place(_) | Part::Look { .. }) || is_zero(part) {
                continue;
            }
            let (inner, min, max, prefers) = match part {
                Part::Repeat { part, min, max, prefers } => (&**part, *min, *max, *prefers),
                part => (part, 1, Some(1), None),
            };
            let atom = self.atom(inner)?;
            let both = traits.with(Traits::of(prefers)).with(atom.traits);
            let undivided = !both.above().is_divided() && !matches!(inner, Part::Group(Some(_), _) | Part::Back(_));
            if undivided {
                traits = both;
                continue;
            }
            let own = Traits::of(prefers).then(atom.traits);
            let atom = match (inner, atom.node) {
                (Part::Back(_), Node::Back { group, .. }) => {
                    Tree { node: Node::Back { group, min, max }, part: part.clone(), traits: atom.traits.with(own), ..atom }
                }
                (_, node) => self.quantified(Tree { node, ..atom }, (min, max, prefers), part),
            };
            return self.divided(traits, atom, own, parts, i);
        }
        Ok(self.tree(Node::Leaf, Part::Sequence(parts.clone()), traits))
    }

    /// The parts before the atom at `at` in `parts`, the atom, and the parts after it.
    fn divided(&mut self, traits: Traits, atom: Tree, own: Traits, parts: &Parts, at: usize) -> Result<Tree> {
        let first = (at > 0).then(|| self.tree(Node::Leaf, Part::Sequence(parts.slice(0..at)), traits));
        let rest = parts.slice(at + 1..parts.len());
        let whole = || Part::Sequence(parts.clone());
        if rest.is_empty() {
            let all = traits.with(traits.then(atom.traits));
            return Ok(match first {
                Some(first) => self.tree(Node::Pair(Box::new(first), Box::new(atom)), whole(), all),
                None => atom,
            });
        }
        let rest_tree = self.sequence(&rest)?;
        let tail = own.with(own.then(rest_tree.traits));
        let all = traits.with(traits.then(tail));
        let Some(first) = first else {
            return Ok(self.tree(Node::Pair(Box::new(atom), Box::new(rest_tree)), whole(), all));
        };
        let tail_part = Part::Sequence(parts.slice(at..parts.len()));
        let leaves = matches!((&atom.node, &rest_tree.node), (Node::Leaf, Node::Leaf));
        let second = if leaves && !atom.traits.with(rest_tree.traits).above().is_divided() {
            let traits = atom.traits.then(rest_tree.traits);
            self.tree(Node::Leaf, tail_part, traits)
        } else {
            self.tree(Node::Pair(Box::new(atom), Box::new(rest_tree)), tail_part, tail)
        };
        Ok(self.tree(Node::Pair(Box::new(first), Box::new(second)), whole(), all))
    }

    /// An atom without its quantifier.
    fn atom(&mut self, part: &Part) -> Result<Tree> {
        Ok(match part {
            Part::Group(None, inner) => self.branches(inner)?,
            Part::Group(Some(number), inner) => {
                let mut tree = self.branches(inner)?;
                if tree.group.is_some() {
                    let traits = tree.traits;
                    tree = self.tree(Node::Only(Box::new(tree)), part.clone(), traits);
                }
                tree.group = Some(*number);
                tree.traits.captures = true;
                tree
            }
            Part::Back(group) => {
                let traits = Traits { refers: true, ..Traits::default() };
                self.tree(Node::Back { group: *group, min: 1, max: Some(1) }, part.clone(), traits)
            }
            part => self.tree(Node::Leaf, part.clone(), Traits::default()),
        })
    }

    /// An atom with its quantifier, `whole`.
    fn quantified(&mut self, atom: Tree, quantifier: (u32, Option<u32>, Option<Preference>), whole: &Part) -> Tree {
        let (min, max, prefers) = quantifier;
        let quantifier = Traits::of(prefers);
        let traits = quantifier.then(atom.traits);
        let inner = Traits { captures: false, refers: false, ..atom.traits };
        if (min, max) == (1, Some(1)) && (prefers.is_none() || inner == Traits::default() || inner == quantifier) {
            return atom;
        }
        if !atom.traits.captures && !atom.traits.refers {
            return self.tree(Node::Leaf, whole.clone(), traits);
        }
        if min > 0 && !atom.traits.refers {
            // Of the rounds only the last is divided.
            let earlier = Part::Repeat { part: Rc::new(atom.part.clone()), min: min - 1, max: max.map(|max| max - 1), prefers };
            let preference = quantifier.then(atom.traits).preference_only();
            let earlier = self.tree(Node::Leaf, earlier, preference);
            return self.tree(Node::Pair(Box::new(earlier), Box::new(atom)), whole.clone(), traits);
        }
        self.tree(Node::Rounds { min, max, of: Box::new(atom) }, whole.clone(), traits)
    }
}
