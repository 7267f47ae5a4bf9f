//! PostgreSQL's regular expressions, all three kinds, read into a tree.
//!
//! Tokens come from `lexer`; here are branches, groups and quantifiers.

use std::ops::{Deref, Range};
use std::rc::Rc;

use melba_types::{Result, limits};

use crate::error::invalid;
use crate::flags::{Flags, Flavor};
use crate::lexer::{Lexer, RegexpToken};

/// A part of a pattern. A copy shares its content: patterns have tens of thousands of parts, and a tree names many stretches of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// One character of a set, in the syntax of the `regex` crate.
    Set(Rc<str>),
    /// A place, in the syntax of the `regex` crate.
    Place(&'static str),
    /// An assertion about the text that follows, or that came before.
    Look {
        behind: bool,
        negative: bool,
        part: Rc<Part>,
    },
    /// A group, with its number when it captures.
    Group(Option<usize>, Rc<Part>),
    /// The text that a group has matched.
    Back(usize),
    Repeat {
        part: Rc<Part>,
        min: u32,
        max: Option<u32>,
        prefers: Option<Preference>,
    },
    Sequence(Parts),
    Branches(Parts),
}

/// Several parts, or a stretch of them.
#[derive(Clone, Debug)]
pub struct Parts {
    all: Rc<[Part]>,
    range: Range<usize>,
}

impl Parts {
    /// A stretch of these, which shares them.
    pub fn slice(&self, range: Range<usize>) -> Parts {
        Parts { all: Rc::clone(&self.all), range: self.range.start + range.start..self.range.start + range.end }
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Parts {
        Parts { range: 0..parts.len(), all: parts.into() }
    }
}

impl Deref for Parts {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        &self.all[self.range.clone()]
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Parts) -> bool {
        **self == **other
    }
}

/// Which match a quantifier wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    Longest,
    Shortest,
}

/// A pattern that has been read.
#[derive(Debug)]
pub struct Pattern {
    pub part: Part,
    /// The capturing groups, in their order.
    pub groups: Vec<Part>,
    pub ignore_case: bool,
    /// Atoms in the compiled form.
    pub weight: usize,
}

/// Compiled, an atom takes some hundred bytes. PostgreSQL's limit of states lets about as much pass where a repetition is inside
/// of another one.
const WEIGHT_MAX: usize = 30_000;
/// Where nothing is repeated: PostgreSQL refuses fewer than 50,000 different characters.
const ATOMS_MAX: usize = 50_000;
const DEPTH_MAX: usize = 250;
const TOO_COMPLEX: &str = "regular expression is too complex";
const NOT_BALANCED: &str = "parentheses () not balanced";
const NO_OPERAND: &str = "quantifier operand invalid";

/// Reads a pattern.
///
/// # Errors
/// 2201B with PostgreSQL's reason for an invalid pattern.
pub fn parse(pattern: &str, flags: Flags) -> Result<Pattern> {
    let (flags, body) = flags.of_pattern(pattern)?;
    if flags.flavor == Flavor::Literal {
        if body.len() > ATOMS_MAX {
            return Err(invalid(TOO_COMPLEX));
        }
        let set = |c: char| Part::Set(regex::escape(c.encode_utf8(&mut [0; 4])).into());
        let part = Part::Sequence(body.chars().map(set).collect::<Vec<Part>>().into());
        return Ok(Pattern { part, groups: Vec::new(), ignore_case: flags.ignore_case, weight: body.len() });
    }
    let mut parser = Parser { lexer: Lexer::new(body, flags), token: RegexpToken::End, groups: Vec::new(), depth: 0, weight: 0 };
    parser.advance()?;
    let part = parser.branches(true, false)?;
    let groups = parser.groups.into_iter().flatten().map(|(group, _)| group).collect();
    Ok(Pattern { part, groups, ignore_case: flags.ignore_case, weight: parser.weight })
}

struct Parser {
    lexer: Lexer,
    token: RegexpToken,
    /// By number, each with its weight; unclosed ones are missing.
    groups: Vec<Option<(Part, usize)>>,
    depth: usize,
    /// Atoms, each counted once per repetition, and those of a group again where the pattern refers to it.
    weight: usize,
}

impl Parser {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next(self.groups.len())?;
        Ok(())
    }

    /// Branches up to a closing parenthesis, or at the top to the end.
    fn branches(&mut self, top: bool, looking: bool) -> Result<Part> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(invalid(TOO_COMPLEX));
        }
        let mut branches = vec![self.branch(top, looking)?];
        while self.token == RegexpToken::Or {
            self.advance()?;
            branches.push(self.branch(top, looking)?);
        }
        if !top && self.token == RegexpToken::End {
            return Err(invalid(NOT_BALANCED));
        }
        self.depth -= 1;
        Ok(if branches.len() == 1 { branches.swap_remove(0) } else { Part::Branches(branches.into()) })
    }

    fn branch(&mut self, top: bool, looking: bool) -> Result<Part> {
        let mut parts = Vec::new();
        loop {
            match self.token {
                RegexpToken::Or | RegexpToken::End => break,
                RegexpToken::Close if !top => break,
                _ => {}
            }
            let weight = self.weight;
            let (part, is_atom) = self.atom(looking)?;
            parts.push(if is_atom { self.quantified(part, weight)? } else { part });
        }
        Ok(Part::Sequence(parts.into()))
    }

    /// A part, and whether a quantifier may follow it.
    fn atom(&mut self, looking: bool) -> Result<(Part, bool)> {
        let weight = self.weight;
        self.add_weight(1)?;
        let token = std::mem::replace(&mut self.token, RegexpToken::End);
        let (part, is_atom) = match token {
            RegexpToken::Set(set) => (Part::Set(set.into()), true),
            RegexpToken::Place(place) => (Part::Place(place), false),
            RegexpToken::Look { behind, negative } => {
                self.advance()?;
                let part = Rc::new(self.branches(false, true)?);
                (Part::Look { behind, negative, part }, false)
            }
            RegexpToken::Open { captures } => {
                let number = (captures && !looking).then(|| {
                    self.groups.push(None);
                    self.groups.len()
                });
                self.advance()?;
                let inner = Rc::new(self.branches(false, looking)?);
                let part = Part::Group(number, inner);
                if let Some(number) = number {
                    self.groups[number - 1] = Some((part.clone(), self.weight - weight));
                }
                (part, true)
            }
            RegexpToken::Back(number) => {
                let group = self.groups.get(number.wrapping_sub(1)).and_then(Option::as_ref);
                let Some((_, weight)) = group.filter(|_| !looking) else {
                    return Err(invalid("invalid backreference number"));
                };
                // The pattern for the `regex` crate repeats the group.
                self.add_weight(*weight)?;
                (Part::Back(number), true)
            }
            // An ordinary character where nothing is open: POSIX forgot to forbid it.
            RegexpToken::Close if self.lexer.flavor() == Flavor::Extended => (Part::Set("\\)".into()), true),
            RegexpToken::Close => return Err(invalid(NOT_BALANCED)),
            _ => return Err(invalid(NO_OPERAND)),
        };
        self.advance()?;
        Ok((part, is_atom))
    }

    fn add_weight(&mut self, atoms: usize) -> Result<()> {
        self.weight = self.weight.saturating_add(atoms);
        if self.weight > ATOMS_MAX { Err(invalid(TOO_COMPLEX)) } else { limits::tick() }
    }

    /// A part that has made the whole heavier than `weight`, with the quantifier that follows it.
    fn quantified(&mut self, part: Part, weight: usize) -> Result<Part> {
        let RegexpToken::Repeat { min, max, prefers } = self.token else { return Ok(part) };
        // Repetitions are copies in the compiled form.
        let copies = max.unwrap_or(min).max(1) as usize;
        self.weight = weight + (self.weight - weight).saturating_mul(copies);
        if self.weight > WEIGHT_MAX {
            return Err(invalid(TOO_COMPLEX));
        }
        self.advance()?;
        Ok(Part::Repeat { part: Rc::new(part), min, max, prefers })
    }
}

impl Pattern {
    /// The pattern in the syntax of the `regex` crate, and whether it says less there: back references stand for any match of
    /// their group, and lookaround is left out.
    pub fn regex(&self) -> (String, bool) {
        let mut writer = Writer { pattern: self, out: String::new(), says_less: false, captures: true };
        if self.ignore_case {
            writer.out.push_str("(?i)");
        }
        writer.part(&self.part);
        (writer.out, writer.says_less)
    }

    /// Whether the first match in the order of alternatives, each quantifier greedy, is PostgreSQL's: single characters in a
    /// row, each as often as it may be, take the longest match.
    pub fn is_plain(&self) -> bool {
        is_plain(&self.part)
    }
}

fn is_plain(part: &Part) -> bool {
    match part {
        Part::Set(_) | Part::Place(_) => true,
        Part::Look { .. } | Part::Back(_) | Part::Branches(_) => false,
        Part::Group(_, part) => is_plain(part),
        Part::Repeat { part, prefers, .. } => *prefers != Some(Preference::Shortest) && matches!(**part, Part::Set(_)),
        Part::Sequence(parts) => parts.iter().all(is_plain),
    }
}

struct Writer<'p> {
    pattern: &'p Pattern,
    out: String,
    says_less: bool,
    captures: bool,
}

impl Writer<'_> {
    fn part(&mut self, part: &Part) {
        match part {
            Part::Set(text) => self.out.push_str(text),
            // The place within a back reference is another one.
            Part::Place(_) if !self.captures => {}
            Part::Place(text) => self.out.push_str(text),
            Part::Look { .. } => self.says_less = true,
            Part::Group(number, part) => {
                self.out.push_str(if number.is_some() && self.captures { "(" } else { "(?:" });
                self.part(part);
                self.out.push(')');
            }
            Part::Back(number) => {
                self.says_less = true;
                if let Some(group) = self.pattern.groups.get(number - 1) {
                    let captures = std::mem::replace(&mut self.captures, false);
                    self.part(group);
                    self.captures = captures;
                }
            }
            Part::Repeat { part, min, max, .. } => {
                self.out.push_str("(?:");
                self.part(part);
                self.out.push(')');
                self.out.push_str(&match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                });
            }
            Part::Sequence(parts) => parts.iter().for_each(|part| self.part(part)),
            Part::Branches(branches) => {
                self.out.push_str("(?:");
                for (i, branch) in branches.iter().enumerate() {
                    self.out.push_str(if i == 0 { "" } else { "|" });
                    self.part(branch);
                }
                self.out.push(')');
            }
        }
    }
}
