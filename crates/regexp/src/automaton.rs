//! Where a part of a pattern can end: follows all its matches from a place at once.
//!
//! Slower than the `regex` crate by far: used only where the division of a match into groups, a back reference or lookaround
//! needs it. Each step takes time proportional to the size of the part; nothing is ever tried twice.

use std::collections::HashMap;
use std::rc::Rc;

use melba_types::Result;
use melba_types::limits::{Ticker, tick};
use regex_automata::{Anchored, Input, meta};
use regex_syntax::hir::HirKind;

use crate::error::too_complex;
use crate::parse::{Part, Pattern};

enum State {
    /// A character of these ranges leads on.
    Set(Rc<[(char, char)]>, usize),
    Fork(usize, usize),
    Place(Rc<meta::Regex>, usize),
    Look(Box<Look>, usize),
    End,
}

struct Look {
    behind: bool,
    negative: bool,
    automaton: Automaton,
}

pub struct Automaton {
    states: Vec<State>,
    start: usize,
}

const STATES_MAX: usize = 200_000;

/// States in the order of their arrival, each once.
#[derive(Default)]
struct Threads {
    list: Vec<usize>,
    seen: Vec<bool>,
}

impl Threads {
    fn clear(&mut self, states: usize) {
        self.list.clear();
        self.seen.clear();
        self.seen.resize(states, false);
    }
}

impl Automaton {
    pub fn new(part: &Part, pattern: &Pattern) -> Result<Automaton> {
        let mut compiler = Compiler { pattern, states: vec![State::End], places: true, sets: HashMap::new() };
        let start = compiler.part(part, 0)?;
        Ok(Automaton { states: compiler.states, start })
    }

    /// How many states it has, of lookaround only as one.
    pub fn size(&self) -> usize {
        self.states.len()
    }

    /// Whether a match may be exactly this stretch.
    pub fn accepts(&self, text: &str, from: usize, to: usize) -> Result<bool> {
        Ok(self.last_end(text, from, to)? == Some(to))
    }

    /// The last place up to `limit` where a match from `from` may end.
    pub fn last_end(&self, text: &str, from: usize, limit: usize) -> Result<Option<usize>> {
        let mut last = None;
        self.ends(text, from, limit, &mut |end| {
            last = Some(end);
            true
        })?;
        Ok(last)
    }

    /// The first place from `least` up to `limit` where a match from `from` may end.
    pub fn first_end(&self, text: &str, from: usize, least: usize, limit: usize) -> Result<Option<usize>> {
        let mut first = None;
        self.ends(text, from, limit, &mut |end| {
            first = (end >= least).then_some(end);
            first.is_none()
        })?;
        Ok(first)
    }

    /// Calls `each` with every end, in order, until it says that it has enough.
    fn ends(&self, text: &str, from: usize, limit: usize, each: &mut dyn FnMut(usize) -> bool) -> Result<()> {
        let (mut now, mut next) = (Threads::default(), Threads::default());
        let mut ticker = Ticker::new();
        now.clear(self.states.len());
        self.arrive(self.start, text, from, &mut now)?;
        let mut at = from;
        loop {
            ticker.step()?;
            if now.seen[0] && !each(at) {
                return Ok(());
            }
            let Some(c) = text[at..limit].chars().next() else { return Ok(()) };
            at += c.len_utf8();
            next.clear(self.states.len());
            for state in &now.list {
                if let State::Set(ranges, to) = &self.states[*state]
                    && contains(ranges, c)
                {
                    self.arrive(*to, text, at, &mut next)?;
                }
            }
            if next.list.is_empty() {
                return Ok(());
            }
            std::mem::swap(&mut now, &mut next);
        }
    }

    /// Adds a state and all that it leads to without a character.
    fn arrive(&self, state: usize, text: &str, at: usize, threads: &mut Threads) -> Result<()> {
        let mut waiting = vec![state];
        while let Some(state) = waiting.pop() {
            if std::mem::replace(&mut threads.seen[state], true) {
                continue;
            }
            threads.list.push(state);
            match &self.states[state] {
                State::Fork(a, b) => waiting.extend([*b, *a]),
                State::Place(place, to) => {
                    if place.is_match(Input::new(text).range(at..).anchored(Anchored::Yes)) {
                        waiting.push(*to);
                    }
                }
                State::Look(look, to) => {
                    if look.holds(text, at)? {
                        waiting.push(*to);
                    }
                }
                State::Set(..) | State::End => {}
            }
        }
        Ok(())
    }
}

impl Look {
    fn holds(&self, text: &str, at: usize) -> Result<bool> {
        let found = if self.behind {
            let mut starts = text[..at].char_indices().map(|(i, _)| i).chain([at]);
            starts.try_fold(false, |found, from| Ok(found || self.automaton.accepts(text, from, at)?))?
        } else {
            self.automaton.first_end(text, at, at, text.len())?.is_some()
        };
        Ok(found != self.negative)
    }
}

fn contains(ranges: &[(char, char)], c: char) -> bool {
    let after = ranges.partition_point(|(low, _)| *low <= c);
    after > 0 && c <= ranges[after - 1].1
}

struct Compiler<'p> {
    pattern: &'p Pattern,
    states: Vec<State>,
    /// False within a back reference: the text around its group is not around it.
    places: bool,
    /// The characters of each set so far.
    sets: HashMap<Rc<str>, Rc<[(char, char)]>>,
}

impl Compiler<'_> {
    fn state(&mut self, state: State) -> Result<usize> {
        tick()?;
        if self.states.len() >= STATES_MAX {
            return Err(too_complex("too many states"));
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    /// The state from which a part leads to `to`.
    fn part(&mut self, part: &Part, to: usize) -> Result<usize> {
        match part {
            Part::Set(text) => {
                if !self.sets.contains_key(text) {
                    self.sets.insert(Rc::clone(text), ranges(text, self.pattern.ignore_case)?);
                }
                let ranges = Rc::clone(&self.sets[text]);
                self.state(State::Set(ranges, to))
            }
            Part::Place(_) | Part::Look { .. } if !self.places => Ok(to),
            Part::Place(text) => {
                let place = meta::Regex::new(text).map_err(too_complex)?;
                self.state(State::Place(Rc::new(place), to))
            }
            Part::Look { behind, negative, part } => {
                let automaton = Automaton::new(part, self.pattern)?;
                self.state(State::Look(Box::new(Look { behind: *behind, negative: *negative, automaton }), to))
            }
            Part::Group(_, part) => self.part(part, to),
            Part::Back(number) => {
                let Some(group) = self.pattern.groups.get(number - 1) else { return Ok(to) };
                let places = std::mem::replace(&mut self.places, false);
                let start = self.part(group, to);
                self.places = places;
                start
            }
            Part::Repeat { part, min, max, .. } => self.repeat(part, *min, *max, to),
            Part::Sequence(parts) => parts.iter().rev().try_fold(to, |to, part| self.part(part, to)),
            Part::Branches(branches) => {
                let mut start = None;
                for branch in branches.iter().rev() {
                    let own = self.part(branch, to)?;
                    start = Some(match start {
                        Some(others) => self.state(State::Fork(own, others))?,
                        None => own,
                    });
                }
                Ok(start.unwrap_or(to))
            }
        }
    }

    fn repeat(&mut self, part: &Part, min: u32, max: Option<u32>, to: usize) -> Result<usize> {
        let mut start = to;
        match max {
            Some(max) => {
                for _ in min..max {
                    let round = self.part(part, start)?;
                    start = self.state(State::Fork(round, to))?;
                }
            }
            None => {
                let fork = self.state(State::Fork(to, to))?;
                let round = self.part(part, fork)?;
                self.states[fork] = State::Fork(round, to);
                start = fork;
            }
        }
        (0..min).try_fold(start, |to, _| self.part(part, to))
    }
}

/// The characters of a set.
pub fn ranges(set: &str, ignore_case: bool) -> Result<Rc<[(char, char)]>> {
    let parsed = regex_syntax::ParserBuilder::new().case_insensitive(ignore_case).build().parse(set).map_err(too_complex)?;
    Ok(match parsed.kind() {
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => class.iter().map(|r| (r.start(), r.end())).collect(),
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            text.chars().take(1).map(|c| (c, c)).collect()
        }
        _ => Rc::from([]),
    })
}
