//! LIKE by a collation that has different texts equal: a part of the text matches literal characters if the two are equal.

use melba_collation::Collator;
use melba_types::Result;
use melba_types::collate::Collate;
use melba_types::limits::Ticker;

use super::dangling_escape;

enum PatternPart {
    Literal(String),
    /// `_`
    One,
    /// `%`
    Any,
}

fn parts(pattern: &str) -> Result<Vec<PatternPart>> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let literal = match c {
            '%' => {
                parts.push(PatternPart::Any);
                continue;
            }
            '_' => {
                parts.push(PatternPart::One);
                continue;
            }
            '\\' => chars.next().ok_or_else(dangling_escape)?,
            c => c,
        };
        match parts.last_mut() {
            Some(PatternPart::Literal(text)) => text.push(literal),
            _ => parts.push(PatternPart::Literal(literal.into())),
        }
    }
    Ok(parts)
}

/// Whether the whole of a text matches. PatternPart by part of the pattern, all places are noted that the text may be matched up to.
pub fn matches(collation: &Collator, text: &str, pattern: &str) -> Result<bool> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut ticker = Ticker::new();
    let mut reached = vec![0];
    for part in parts(pattern)? {
        let Some(first) = reached.first().copied() else { return Ok(false) };
        reached = match part {
            PatternPart::Any => (first..ends.len()).collect(),
            PatternPart::One => reached.into_iter().map(|place| place + 1).filter(|place| *place < ends.len()).collect(),
            PatternPart::Literal(literal) => {
                let mut next = vec![false; ends.len()];
                for from in reached {
                    for to in from..ends.len() {
                        ticker.step()?;
                        next[to] |= collation.compare(&text[ends[from]..ends[to]], &literal).is_eq();
                    }
                }
                (0..ends.len()).filter(|place| next[*place]).collect()
            }
        };
    }
    Ok(reached.last() == Some(&(ends.len() - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_characters_match() {
        let root = Collator::new("und", false).expect("a locale");
        let level2 = Collator::new("und-u-ks-level2", false).expect("a locale");
        for (collation, text, pattern, expected) in [
            (&level2, "AB", "ab", true),
            (&level2, "AB", "\\a%", true),
            (&level2, "AB", "\\a\\%", false),
            (&level2, "xABy", "_ab_", true),
            (&level2, "xABy", "%b", false),
            (&root, "zya\u{308}bc", "zy\u{e4}bc", true),
            (&root, "zya\u{308}bc", "zy\u{e4}%", true),
            (&root, "AB", "ab", false),
        ] {
            assert_eq!(matches(collation, text, pattern).expect("a pattern"), expected, "{text} {pattern}");
        }
        assert!(matches(&root, "a", "a\\").is_err());
    }
}
