//! Divides a match among the groups of a pattern, by the tree of `tree`, and checks back references.

use std::cell::{Cell, OnceCell};
use std::ops::Range;

use melba_types::Result;
use melba_types::limits::{Ticker, check_stack};

use crate::automaton::Automaton;
use crate::parse::Pattern;
use crate::tree::{Node, Tree, tree};

/// A match: the whole, then each group.
pub type Captures = Vec<Option<Range<usize>>>;

/// A pattern in the form that divides matches.
pub struct Divider {
    pattern: Pattern,
    tree: Tree,
    /// By node, built on demand.
    automatons: Vec<OnceCell<Automaton>>,
    /// The number of states of all of them.
    states: Cell<usize>,
}

/// The automatons of parts in a row have as many states as the square of their number.
const STATES_MAX: usize = 2_000_000;

impl Divider {
    pub fn new(pattern: Pattern) -> Result<Divider> {
        let (tree, nodes) = tree(&pattern.part)?;
        Ok(Divider { pattern, tree, automatons: (0..nodes).map(|_| OnceCell::new()).collect(), states: Cell::new(0) })
    }

    fn automaton(&self, tree: &Tree) -> Result<&Automaton> {
        let cell = &self.automatons[tree.id];
        if cell.get().is_none() {
            if self.states.get() > STATES_MAX {
                return Err(super::error::too_complex("too many states"));
            }
            let automaton = Automaton::new(&tree.part, &self.pattern)?;
            self.states.set(self.states.get() + automaton.size());
            // Another one may not have been set meanwhile: a thread has its patterns for itself.
            let _ = cell.set(automaton);
        }
        cell.get().ok_or_else(|| super::error::too_complex("no automaton"))
    }

    /// The first end of a match from `from` on, if back references matched any match of their groups.
    pub fn first_end(&self, text: &str, from: usize) -> Result<Option<usize>> {
        self.automaton(&self.tree)?.first_end(text, from, from, text.len())
    }

    /// The match that starts at `from`, if there is one.
    pub fn match_at(&self, text: &str, from: usize) -> Result<Option<Captures>> {
        let shortest = self.tree.traits.prefers_shortest();
        let whole = self.automaton(&self.tree)?;
        let (mut least, mut limit) = (from, text.len());
        loop {
            let found = if shortest { whole.first_end(text, from, least, limit)? } else { whole.last_end(text, from, limit)? };
            let Some(end) = found else { return Ok(None) };
            let mut division = Division { divider: self, text, groups: vec![None; self.pattern.groups.len() + 1] };
            if division.divide(&self.tree, from, end)? {
                division.groups[0] = Some(from..end);
                return Ok(Some(division.groups));
            }
            // Only a back reference makes an end that is not one.
            match if shortest { after(text, end) } else { before(text, end, from) } {
                Some(next) if shortest => least = next,
                Some(next) => limit = next,
                None => return Ok(None),
            }
        }
    }
}

/// The next place after `at`.
fn after(text: &str, at: usize) -> Option<usize> {
    text[at..].chars().next().map(|c| at + c.len_utf8())
}

/// The place before `at`, not before `from`.
fn before(text: &str, at: usize, from: usize) -> Option<usize> {
    text[from..at].chars().next_back().map(|c| at - c.len_utf8())
}

struct Division<'d> {
    divider: &'d Divider,
    text: &'d str,
    groups: Captures,
}

impl Division<'_> {
    /// Divides a stretch that the part accepts, except for its back references.
    fn divide(&mut self, tree: &Tree, from: usize, to: usize) -> Result<bool> {
        check_stack()?;
        let found = match &tree.node {
            Node::Leaf => true,
            Node::Only(inner) => self.divide(inner, from, to)?,
            Node::Back { group, min, max } => self.repeats(*group, *min, *max, from, to),
            Node::Pair(first, second) => self.pair(first, second, from, to)?,
            Node::Branches(branches) => self.branches(branches, from, to)?,
            Node::Rounds { min, max, of } => Rounds::new(*min, *max, of, self.text, from, to).run(self)?,
        };
        if let (true, Some(group)) = (found, tree.group) {
            self.groups[group] = Some(from..to);
        }
        Ok(found)
    }

    fn pair(&mut self, first: &Tree, second: &Tree, from: usize, to: usize) -> Result<bool> {
        let (divider, text) = (self.divider, self.text);
        let (start, rest) = (divider.automaton(first)?, divider.automaton(second)?);
        let shortest = first.traits.prefers_shortest();
        let (mut least, mut limit) = (from, to);
        let mut ticker = Ticker::new();
        loop {
            ticker.step()?;
            let middle = if shortest { start.first_end(text, from, least, limit)? } else { start.last_end(text, from, limit)? };
            let Some(middle) = middle else { return Ok(false) };
            if rest.accepts(text, middle, to)? {
                if self.divide(first, from, middle)? && self.divide(second, middle, to)? {
                    return Ok(true);
                }
                self.forget(first);
                self.forget(second);
            }
            match if shortest { after(&text[..to], middle) } else { before(text, middle, from) } {
                Some(next) if shortest => least = next,
                Some(next) => limit = next,
                None => return Ok(false),
            }
        }
    }

    fn branches(&mut self, branches: &[Tree], from: usize, to: usize) -> Result<bool> {
        for branch in branches {
            if self.divider.automaton(branch)?.accepts(self.text, from, to)? && self.divide(branch, from, to)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a stretch repeats a group's match, between `min` and `max` times.
    fn repeats(&self, group: usize, min: u32, max: Option<u32>, from: usize, to: usize) -> bool {
        let Some(range) = self.groups[group].clone() else { return false };
        let (model, text) = (&self.text[range], &self.text[from..to]);
        if model.is_empty() || text.is_empty() {
            return text.is_empty() && (model.is_empty() || min == 0);
        }
        // Characters, as those of another case may be longer.
        let ignore_case = self.divider.pattern.ignore_case;
        let fold = |c: char| if ignore_case { c.to_lowercase().next().unwrap_or(c) } else { c };
        let length = model.chars().count();
        let all = text.chars().count();
        let rounds = all / length;
        let fits = all % length == 0 && rounds >= min as usize && max.is_none_or(|max| rounds <= max as usize);
        fits && text.chars().zip(model.chars().cycle()).all(|(a, b)| fold(a) == fold(b))
    }

    /// Groups of a part that has not matched after all.
    fn forget(&mut self, tree: &Tree) {
        if let Some(group) = tree.group {
            self.groups[group] = None;
        }
        match &tree.node {
            Node::Leaf | Node::Back { .. } => {}
            Node::Only(inner) | Node::Rounds { of: inner, .. } => self.forget(inner),
            Node::Pair(first, second) => [first, second].into_iter().for_each(|t| self.forget(t)),
            Node::Branches(branches) => branches.iter().for_each(|t| self.forget(t)),
        }
    }
}

/// The rounds of a repetition: the ends of those so far, which are moved until all of the stretch is taken.
struct Rounds<'t> {
    min: usize,
    max: usize,
    /// Nothing at all is a match.
    none: bool,
    of: &'t Tree,
    text: &'t str,
    to: usize,
    /// The start, then the end of each round.
    ends: Vec<usize>,
    /// As many of the first rounds have been divided.
    divided: usize,
    /// A round that could not be: those after it need not be tried in other ways.
    blamed: Option<usize>,
}

impl<'t> Rounds<'t> {
    fn new(min: u32, max: Option<u32>, of: &'t Tree, text: &'t str, from: usize, to: usize) -> Rounds<'t> {
        let least = (min as usize).max(1);
        let most = max.map_or(usize::MAX, |max| max as usize).min(to - from).max(least);
        Rounds { min: least, max: most, none: min == 0 && from == to, of, text, to, ends: vec![from], divided: 0, blamed: None }
    }

    fn run(mut self, division: &mut Division<'_>) -> Result<bool> {
        let shortest = self.of.traits.prefers_shortest();
        if shortest && self.none {
            return Ok(true);
        }
        let bound = if shortest { self.ends[0] } else { self.to };
        Ok(self.next_round(division, bound, 0)? || self.none)
    }

    /// Tries all rounds from the next one on; `bound` is where its end may be at most, or at least where rounds are short.
    fn next_round(&mut self, division: &mut Division<'_>, bound: usize, depth: usize) -> Result<bool> {
        check_stack()?;
        let shortest = self.of.traits.prefers_shortest();
        let automaton = division.divider.automaton(self.of)?;
        let (from, round) = (self.ends[depth], depth + 1);
        // An empty round only where there are not characters enough for all.
        let needed = round < self.min && self.min - round >= self.text[from..self.to].chars().count();
        let mut bound = bound;
        let mut ticker = Ticker::new();
        loop {
            ticker.step()?;
            let end = if shortest {
                let skips_empty = bound == from && bound != self.to && !needed;
                let least = if skips_empty { after(self.text, from).unwrap_or(self.to) } else { bound };
                let least = if round >= self.max { self.to } else { least };
                automaton.first_end(self.text, from, least, self.to)?
            } else {
                automaton.last_end(self.text, from, bound)?
            };
            let Some(end) = end else { return Ok(false) };
            self.divided = self.divided.min(depth);
            let ends_here = end == self.to;
            let useful = end != from || needed || ends_here;
            if useful {
                self.ends.truncate(round);
                self.ends.push(end);
                if ends_here && round >= self.min && self.divide_all(division)? {
                    return Ok(true);
                }
                if !ends_here && round < self.max && self.next_round(division, if shortest { end } else { self.to }, round)? {
                    return Ok(true);
                }
                match self.blamed {
                    Some(blamed) if blamed < depth => return Ok(false),
                    _ => self.blamed = None,
                }
                if !ends_here && round >= self.max {
                    return Ok(false);
                }
            }
            let next = if shortest { after(&self.text[..self.to], end) } else { before(self.text, end, from) };
            match next {
                Some(next) if shortest || next > from || needed => bound = next,
                _ => return Ok(false),
            }
        }
    }

    /// Divides each round that has not been divided.
    fn divide_all(&mut self, division: &mut Division<'_>) -> Result<bool> {
        for i in self.divided..self.ends.len() - 1 {
            division.forget(self.of);
            if !division.divide(self.of, self.ends[i], self.ends[i + 1])? {
                self.blamed = Some(i);
                return Ok(false);
            }
            self.divided = i + 1;
        }
        Ok(true)
    }
}
