//! What a text must contain to match a pattern: the characters that the pattern names, for indexes that find texts by parts of them.
//!
//! Less may be demanded than could be: sets of characters, lookaround, back references and places within a text demand nothing.

use melba_types::Result;
use melba_types::limits::{check_stack, tick};

use crate::flags::Flags;
use crate::parse::{Part, parse};

/// What a matching text contains.
#[derive(Clone, Debug, PartialEq)]
pub enum Required {
    /// These, in a row.
    Text(Vec<RequiredPart>),
    /// All of them.
    All(Vec<Required>),
    /// One of them at least.
    Any(Vec<Required>),
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredPart {
    /// In lower or upper case when case is ignored.
    Char(char),
    /// Any characters, or none.
    Gap,
    /// The text begins or ends here, or a line of it.
    Edge,
}

/// Repetitions of a part that are written out.
const ROUNDS_MAX: u32 = 4;
/// Parts of a pattern that are looked at, each as often as it is written out. What is left then demands nothing.
const PARTS_MAX: u32 = 1000;

/// What every text contains in which the pattern matches somewhere.
///
/// # Errors
/// 2201B for an invalid pattern.
pub fn required(pattern: &str, flags: Flags) -> Result<Required> {
    let pattern = parse(pattern, flags)?;
    let mut found = Found::new(PARTS_MAX);
    found.part(&pattern.part)?;
    Ok(found.into_required())
}

struct Found {
    text: Vec<RequiredPart>,
    others: Vec<Required>,
    /// Parts still to look at.
    left: u32,
}

impl Found {
    fn new(left: u32) -> Found {
        Found { text: vec![RequiredPart::Gap], others: Vec::new(), left }
    }

    fn into_required(mut self) -> Required {
        self.gap();
        if self.others.is_empty() {
            return Required::Text(self.text);
        }
        self.others.push(Required::Text(self.text));
        Required::All(self.others)
    }

    fn gap(&mut self) {
        if self.text.last() != Some(&RequiredPart::Gap) {
            self.text.push(RequiredPart::Gap);
        }
    }

    fn part(&mut self, part: &Part) -> Result<()> {
        check_stack()?;
        tick()?;
        if self.left == 0 {
            self.gap();
            return Ok(());
        }
        self.left -= 1;
        match part {
            Part::Set(set) => match only_char(set) {
                Some(c) => self.text.push(RequiredPart::Char(c)),
                None => self.gap(),
            },
            Part::Place("\\A" | "\\z" | "(?m:^)" | "(?m:$)") => self.text.push(RequiredPart::Edge),
            // A word may end before a character that belongs to it elsewhere.
            Part::Place(_) | Part::Back(_) => self.gap(),
            // The characters around it are neighbours.
            Part::Look { .. } => {}
            Part::Group(_, part) => self.part(part)?,
            Part::Sequence(parts) => parts.iter().try_for_each(|part| self.part(part))?,
            Part::Repeat { min: 0, .. } => self.gap(),
            Part::Repeat { part, min, max, .. } => {
                let rounds = (*min).min(ROUNDS_MAX);
                (0..rounds).try_for_each(|_| self.part(part))?;
                if *max != Some(rounds) {
                    // The first rounds, and the last one.
                    self.gap();
                    self.part(part)?;
                }
            }
            Part::Branches(branches) => {
                let mut all = Vec::with_capacity(branches.len());
                for branch in branches.iter() {
                    let mut found = Found::new(self.left);
                    found.part(branch)?;
                    self.left = found.left;
                    all.push(found.into_required());
                }
                self.others.push(Required::Any(all));
                self.gap();
            }
        }
        Ok(())
    }
}

/// The one character of a set in the syntax of the `regex` crate.
fn only_char(set: &str) -> Option<char> {
    let mut chars = set.chars();
    match (chars.next()?, chars.next(), chars.next()) {
        (c, None, _) if c != '.' => Some(c),
        ('\\', Some(c), None) if c.is_ascii_punctuation() => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps as `*`, edges as `|`.
    fn shown(required: &Required) -> String {
        let list = |parts: &[Required], by: &str| parts.iter().map(shown).collect::<Vec<_>>().join(by);
        match required {
            Required::Text(parts) => parts
                .iter()
                .map(|part| match part {
                    RequiredPart::Char(c) => *c,
                    RequiredPart::Gap => '*',
                    RequiredPart::Edge => '|',
                })
                .collect(),
            Required::All(parts) => list(parts, " and "),
            Required::Any(parts) => format!("({})", list(parts, " or ")),
        }
    }

    #[test]
    fn literal_characters_are_required() {
        let cases = [
            ("abc", "*abc*"),
            ("^ab\\.c$", "*|ab.c|*"),
            ("a.c", "*a*c*"),
            ("ab*c", "*a*c*"),
            ("ab+c", "*ab*bc*"),
            ("(ab){2}c", "*ababc*"),
            ("(ab){2,}c", "*abab*abc*"),
            ("a{9}", "*aaaa*a*"),
            ("ab?", "*a*"),
            ("x(foo|ba[rz])y", "(*foo* or *ba*) and *x*y*"),
            ("foo|", "(*foo* or *) and *"),
            ("a(?=b)c", "*ac*"),
            ("\\mab\\M", "*ab*"),
            ("(a)\\1b", "*a*b*"),
            ("[a]b[ab]", "*b*"),
            ("***=a.b", "*a.b*"),
            ("a\\db", "*a*b*"),
        ];
        for (pattern, expected) in cases {
            let required = required(pattern, Flags::default()).unwrap();
            assert_eq!(shown(&required), expected, "{pattern}");
        }
        assert!(required("(", Flags::default()).is_err());
    }

    #[test]
    fn nested_repetitions_are_not_all_written_out() {
        let nested = format!("{}a{}", "(".repeat(60), "+)".repeat(60));
        for pattern in [nested, "(a|b){4}".repeat(1000)] {
            assert!(shown(&required(&pattern, Flags::default()).unwrap()).len() < 20_000);
        }
    }
}
