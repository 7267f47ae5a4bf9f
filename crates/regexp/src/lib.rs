//! Regular expressions with PostgreSQL's syntax and rules.
//!
//! PostgreSQL wants the leftmost match, and of those the longest (or the shortest, when the first quantifier is non-greedy); the
//! `regex` crate takes the first in the order of alternatives. Where the two may differ, the `regex` crate finds where matches
//! may start, and `divide` finds the match and its groups. Parts:
//!
//! - `flags`, `lexer`, `parse`: a pattern as a tree;
//! - `tree`: how a match is divided among the parts of a pattern;
//! - `search`: the pattern in the `regex` crate;
//! - `automaton`, `divide`: ends of matches, groups, back references, lookaround;
//! - `required`: what every matching text contains.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

mod automaton;
mod divide;
mod error;
mod flags;
mod lexer;
mod parse;
mod required;
mod search;
mod tree;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use melba_types::Result;
use melba_types::limits::Ticker;

pub use divide::Captures;
use divide::Divider;
pub use flags::{Flags, Flavor};
use parse::parse;
pub use required::{Required, RequiredPart, required};

/// A compiled regular expression.
pub struct Regexp {
    /// Finds where a match starts, or, when `says_less`, may start.
    search: regex::Regex,
    says_less: bool,
    /// For patterns whose match is not the first alternative's.
    divider: Option<Divider>,
    /// Capturing groups.
    pub groups: usize,
}

const CACHED_MAX: usize = 64;
/// A search through this many bytes counts as a step.
const SEARCHED_BYTES: usize = 64 << 10;

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
        let pattern = parse(pattern, flags)?;
        let (search, says_less) = search::compile(&pattern)?;
        let groups = pattern.groups.len();
        let divider = if pattern.is_plain() { None } else { Some(Divider::new(pattern)?) };
        Ok(Regexp { search, says_less, divider, groups })
    }

    /// Whether there is a match anywhere.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        Ok(if self.says_less { self.captures_at(text, 0)?.is_some() } else { self.search.is_match(text) })
    }

    /// The first match that starts at or after a byte offset.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>> {
        let Some(divider) = &self.divider else {
            if self.groups == 0 {
                return Ok(self.search.find_at(text, start).map(|m| vec![Some(m.range())]));
            }
            let ranges = |c: regex::Captures<'_>| (0..=self.groups).map(|i| c.get(i).map(|m| m.range())).collect();
            return Ok(self.search.captures_at(text, start).map(ranges));
        };
        let mut at = start;
        let mut ticker = Ticker::new();
        let mut failed = None;
        while let Some(found) = self.search.find_at(text, at) {
            ticker.step()?;
            // PostgreSQL continues behind the end of a failed match, but never at the end of the text.
            if let Some(failed) = failed.filter(|_| found.start() == text.len())
                && divider.first_end(text, failed)? != Some(text.len())
            {
                break;
            }
            if let Some(captures) = divider.match_at(text, found.start())? {
                return Ok(Some(captures));
            }
            failed = Some(found.start());
            let Some(next) = text[found.start()..].chars().next() else { break };
            at = found.start() + next.len_utf8();
        }
        Ok(None)
    }
}

/// The characters of a set in the syntax of the `regex` crate, as ranges in order.
///
/// # Errors
/// 2201B when it is invalid.
pub fn characters(set: &str) -> Result<Vec<(char, char)>> {
    Ok(automaton::ranges(set, false)?.to_vec())
}

/// All matches from `start`, none overlapping; an empty match moves on by one character.
pub fn all_matches(regexp: &Regexp, text: &str, start: usize, mut each: impl FnMut(Captures) -> Result<bool>) -> Result<()> {
    let mut at = start;
    let mut ticker = Ticker::new();
    while at <= text.len() {
        // To find where a match starts, the rest may have to be read.
        ticker.work(1 + (text.len() - at) / SEARCHED_BYTES)?;
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
