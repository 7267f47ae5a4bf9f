//! Texts within texts, by a collation that has different texts equal.

use std::cmp::Ordering;

use melba_types::collate::Collate;

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

    /// The end of the part that begins at `start`.
    fn end_of(&self, start: usize) -> Option<usize> {
        let rest = &self.text[start..];
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let mut equal = ends.filter(|end| self.collation.compare(&rest[..*end], self.needle) == Ordering::Equal);
        let end = if self.longest { equal.last() } else { equal.next() };
        end.map(|end| start + end)
    }
}

impl Iterator for Occurrences<'_> {
    /// Begin and end, in bytes.
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let starts = self.text[self.at..].char_indices().map(|(i, _)| self.at + i);
        let (start, end) = starts.into_iter().find_map(|start| Some((start, self.end_of(start)?)))?;
        self.at = end;
        Some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collator;

    #[test]
    fn equal_parts_are_found_in_other_forms() {
        let root = Collator::new("und", false).expect("a locale");
        let found = |text, needle| Occurrences::new(&root, text, needle, true).collect::<Vec<_>>();
        assert_eq!(found("zy\u{e4}bc", "\u{e4}b"), [(2, 5)]);
        assert_eq!(found("zya\u{308}bc", "\u{e4}b"), [(2, 6)]);
        let level1 = Collator::new("und-u-ks-level1", false).expect("a locale");
        assert_eq!(Occurrences::new(&level1, "xAa", "a", true).collect::<Vec<_>>(), [(1, 2), (2, 3)]);
    }
}
