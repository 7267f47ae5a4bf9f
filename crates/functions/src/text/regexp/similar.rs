//! SIMILAR TO: SQL's regular expressions as PostgreSQL's.

use melba_types::{Result, err};

/// The advanced regular expression that is equivalent to a SQL one. `escape` of `None` is the backslash; the empty string: no
/// escape character.
pub fn similar_to_regexp(pattern: &str, escape: Option<&str>) -> Result<String> {
    let escape = match escape {
        None => Some('\\'),
        Some(e) => {
            let mut chars = e.chars();
            let first = chars.next();
            if chars.next().is_some() {
                return Err(crate::text::like::invalid_escape());
            }
            first
        }
    };
    let mut out = String::from("^(?:");
    let (mut after_escape, mut brackets, mut separators) = (false, Brackets::default(), 0);
    for c in pattern.chars() {
        if after_escape {
            after_escape = false;
            if c == '"' && brackets.depth == 0 {
                // The parts before, at and after the result of substring(): the first as short as possible.
                out.push_str(match separators {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => {
                        let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                        return Err(err!(INVALID_USE_OF_ESCAPE_CHARACTER, "{message}"));
                    }
                });
                separators += 1;
            } else {
                out.push('\\');
                out.push(c);
                brackets.take('\\');
            }
        } else if Some(c) == escape {
            after_escape = true;
        } else if brackets.depth > 0 {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            brackets.take(c);
        } else {
            match c {
                '[' => {
                    out.push('[');
                    brackets = Brackets { depth: 1, is_empty: true, is_negated: false };
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// Where in a bracket expression the next character is.
#[derive(Default)]
struct Brackets {
    /// How many are open: classes such as [:alpha:] are inside of another.
    depth: usize,
    /// Nothing has come but perhaps the caret that negates: a closing bracket is an ordinary character.
    is_empty: bool,
    is_negated: bool,
}

impl Brackets {
    fn take(&mut self, c: char) {
        match c {
            _ if self.depth == 0 => return,
            '^' if self.is_empty && !self.is_negated => {
                self.is_negated = true;
                return;
            }
            ']' if !self.is_empty => self.depth -= 1,
            '[' => self.depth += 1,
            _ => {}
        }
        self.is_empty = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXPLAIN's output in PostgreSQL 18.
    #[test]
    fn patterns_of_similar_to_become_regular_expressions() {
        for (pattern, expected) in [
            ("_[_[:alpha:]_]_", "^(?:.[_[:alpha:]_].)$"),
            ("$[$[:alnum:]$]$", "^(?:\\$[$[:alnum:]$]\\$)$"),
            ("()[([:alnum:](]()", "^(?:(?:)[([:alnum:](](?:))$"),
            ("[^^]^", "^(?:[^^]\\^)$"),
            ("[]%][^]%][^%]%", "^(?:[]%][^]%][^%].*)$"),
            ("^[^[:alnum:]^[^^][[^^]][\\^][[\\^]]\\^]^", "^(?:\\^[^[:alnum:]^[^^][[^^]][\\^][[\\^]]\\^]\\^)$"),
        ] {
            assert_eq!(similar_to_regexp(pattern, None).expect(pattern), expected);
        }
        assert_eq!(similar_to_regexp("[|a]%", Some("|")).expect("a pattern"), "^(?:[\\a].*)$");
    }
}
