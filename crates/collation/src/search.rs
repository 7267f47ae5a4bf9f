//! Texts within texts, by a collation that has different texts equal.

use std::cmp::Ordering;

use melba_types::collate::Collate;
use melba_types::{Result, limits};

/// The places where a text has parts that a collation has equal to a needle, from the left, none over another.
pub struct Occurrences<'a> {
    collation: &'a dyn Collate,
    text: &'a str,
    needle: &'a str,
    /// The longest of the parts that begin at a place, not the shortest one.
    longest: bool,
    at: usize,
}

impl<'a> Occurrences<'a> {
    pub fn new(collation: &'a dyn Collate, text: &'a str, needle: &'a str, longest: bool) -> Occurrences<'a> {
        Occurrences { collation, text, needle, longest, at: 0 }
    }

    /// The end of the part that begins at `start`. Parts of all lengths are compared, as in PostgreSQL.
    fn end_of(&self, start: usize) -> Result<Option<usize>> {
        let rest = &self.text[start..];
        let mut found = None;
        for at in limits::ticked(rest.char_indices().map(|(at, c)| at + c.len_utf8())) {
            let end = at?;
            if self.collation.compare(&rest[..end], self.needle) == Ordering::Equal {
                found = Some(start + end);
                if !self.longest {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn find(&mut self) -> Result<Option<(usize, usize)>> {
        for (i, _) in self.text[self.at..].char_indices() {
            limits::check_interrupt()?;
            let start = self.at + i;
            if let Some(end) = self.end_of(start)? {
                self.at = end;
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Occurrences<'_> {
    /// Begin and end, in bytes; an error when the statement is cancelled.
    type Item = Result<(usize, usize)>;

    fn next(&mut self) -> Option<Result<(usize, usize)>> {
        self.find().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collator;

    #[test]
    fn equal_parts_are_found_in_other_forms() {
        let root = Collator::new("und", false).expect("a locale");
        let found = |text, needle| Occurrences::new(&root, text, needle, true).collect::<Result<Vec<_>>>().expect("no interrupt");
        assert_eq!(found("zy\u{e4}bc", "\u{e4}b"), [(2, 5)]);
        assert_eq!(found("zya\u{308}bc", "\u{e4}b"), [(2, 6)]);
        let level1 = Collator::new("und-u-ks-level1", false).expect("a locale");
        let parts = Occurrences::new(&level1, "xAa", "a", true).collect::<Result<Vec<_>>>();
        assert_eq!(parts.expect("no interrupt"), [(1, 2), (2, 3)]);
    }
}
