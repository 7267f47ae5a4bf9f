//! Regular expressions with PostgreSQL's syntax and rules.
//!
//! PostgreSQL wants the leftmost match, and of those the longest (or the shortest, when the first quantifier is
//! non-greedy); the `regex` crate takes the first in the order of alternatives. Where the two may differ, the match's start
//! is found as usual, its end by following all alternatives, and the groups by matching again within these bounds.

mod functions;
mod similar;
mod translate;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use melba_types::limits::Ticker;
use melba_types::{DbError, Result, err};
use regex_automata::nfa::thompson::{
    self,
    pikevm::{self, PikeVM},
};
use regex_automata::{Anchored, Input, MatchKind};

pub use functions::{FUNCTIONS, SETS};
pub use translate::Flags;
use translate::translate;

/// A compiled regular expression.
pub struct Regexp {
    engine: Engine,
    /// Capturing groups.
    pub groups: usize,
    shortest: bool,
}

enum Engine {
    Plain(regex::Regex),
    /// For patterns whose match's end is not the first alternative's.
    Ambiguous {
        search: regex::Regex,
        end: Box<PikeVM>,
        within: regex::Regex,
    },
    Fancy(Box<fancy_regex::Regex>),
}

/// A match: the whole, then each group.
pub type Captures = Vec<Option<Range<usize>>>;

const COMPILED_BYTES_MAX: usize = 1 << 26;
const CACHED_MAX: usize = 64;

fn too_complex(e: impl std::fmt::Display) -> DbError {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: regular expression is too complex").detail(e.to_string())
}

fn build(pattern: &str) -> Result<regex::Regex> {
    regex::RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(too_complex)
}

impl Regexp {
    /// The compiled form of a pattern, from this thread's cache when it was used lately.
    pub fn get(pattern: &str, flags: Flags) -> Result<Rc<Regexp>> {
        thread_local! {
            static CACHE: RefCell<HashMap<(String, Flags), Rc<Regexp>>> = RefCell::new(HashMap::new());
        }
        let flags = Flags { global: false, ..flags };
        // The key is owned, so that a hit costs one small copy.
        let key = (pattern.to_string(), flags);
        if let Some(found) = CACHE.with_borrow(|cache| cache.get(&key).cloned()) {
            return Ok(found);
        }
        let compiled = Rc::new(Regexp::compile(pattern, flags)?);
        CACHE.with_borrow_mut(|cache| {
            if cache.len() >= CACHED_MAX {
                cache.clear();
            }
            cache.insert(key, compiled.clone());
        });
        Ok(compiled)
    }

    fn compile(pattern: &str, flags: Flags) -> Result<Regexp> {
        let t = translate(pattern, flags)?;
        let engine = if t.fancy {
            Engine::Fancy(Box::new(fancy_regex::Regex::new(&t.pattern).map_err(too_complex)?))
        } else if t.ambiguous {
            let end = PikeVM::builder()
                .configure(pikevm::Config::new().match_kind(MatchKind::All))
                .thompson(thompson::Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX)))
                .build(&t.pattern)
                .map_err(too_complex)?;
            let within = build(&format!("(?:{})\\z", t.pattern))?;
            Engine::Ambiguous { search: build(&t.pattern)?, end: Box::new(end), within }
        } else {
            Engine::Plain(build(&t.pattern)?)
        };
        Ok(Regexp { engine, groups: t.groups, shortest: t.shortest })
    }

    /// Whether there is a match anywhere.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match &self.engine {
            Engine::Plain(r) => Ok(r.is_match(text)),
            Engine::Ambiguous { search, .. } => Ok(search.is_match(text)),
            Engine::Fancy(r) => r.is_match(text).map_err(too_complex),
        }
    }

    /// The first match that starts at or after a byte offset.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>> {
        let ranges = |c: regex::Captures<'_>| (0..=self.groups).map(|i| c.get(i).map(|m| m.range())).collect();
        match &self.engine {
            Engine::Plain(r) if self.groups == 0 => Ok(r.find_at(text, start).map(|m| vec![Some(m.range())])),
            Engine::Plain(r) => Ok(r.captures_at(text, start).map(ranges)),
            Engine::Ambiguous { search, end, within } => {
                let Some(first) = search.find_at(text, start) else { return Ok(None) };
                let input = Input::new(text).range(first.start()..).anchored(Anchored::Yes).earliest(self.shortest);
                let mut cache = end.create_cache();
                let last = end.find_iter(&mut cache, input).next().map_or(first.end(), |m| m.end());
                if self.groups == 0 {
                    return Ok(Some(vec![Some(first.start()..last)]));
                }
                // What follows the match is cut off, so that the match must end there.
                let captures = within.captures_at(&text[..last], first.start());
                Ok(captures.or_else(|| search.captures_at(text, start)).map(ranges))
            }
            Engine::Fancy(r) => {
                let found = r.captures_from_pos(text, start).map_err(too_complex)?;
                Ok(found.map(|c| (0..=self.groups).map(|i| c.get(i).map(|m| m.start()..m.end())).collect()))
            }
        }
    }
}

/// All matches from `start`, none overlapping; an empty match moves on by one character.
pub fn all_matches(regexp: &Regexp, text: &str, start: usize, mut each: impl FnMut(Captures) -> Result<bool>) -> Result<()> {
    let mut at = start;
    let mut ticker = Ticker::new();
    while at <= text.len() {
        ticker.step()?;
        let Some(captures) = regexp.captures_at(text, at)? else { break };
        let Some(whole) = captures[0].clone() else { break };
        if !each(captures)? {
            break;
        }
        at = if whole.is_empty() { whole.end + text[whole.end..].chars().next().map_or(1, char::len_utf8) } else { whole.end };
    }
    Ok(())
}

#[cfg(test)]
mod tests;
