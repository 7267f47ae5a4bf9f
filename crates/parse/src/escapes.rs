//! The warnings of PostgreSQL's lexer about escapes in plain strings (escape_string_warning).

use melba_types::{DbError, Severity, SqlState};

use super::Strings;
use super::lexer::{LexemeKind, Lexer};

/// The warnings about a text, with byte positions, one a string.
pub fn warnings(text: &str, strings: Strings) -> Vec<DbError> {
    let mut out = Vec::new();
    if strings.conforming || !strings.warn || !text.as_bytes().contains(&b'\\') {
        return out;
    }
    let mut lexer = Lexer::new(text, strings);
    let mut start = 0;
    while let Some(kind) = lexer.next() {
        if matches!(kind, LexemeKind::String | LexemeKind::National | LexemeKind::Joined { plain: true }) {
            // The N is a separate token.
            let quote = start + usize::from(text.as_bytes()[start] != b'\'');
            out.extend(first_escape(&text.as_bytes()[quote..lexer.at]).map(|escape| warning(escape).at(quote as i32)));
        }
        start = lexer.at;
    }
    out
}

/// The character after the first backslash.
fn first_escape(literal: &[u8]) -> Option<u8> {
    let at = literal.iter().position(|b| *b == b'\\')?;
    literal.get(at + 1).copied()
}

fn warning(escaped: u8) -> DbError {
    let (what, hint) = match escaped {
        b'\'' => ("\\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...')."),
        b'\\' => ("\\\\", "Use the escape string syntax for backslashes, e.g., E'\\\\'."),
        _ => ("escape", "Use the escape string syntax for escapes, e.g., E'\\r\\n'."),
    };
    DbError::new(SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER, format!("nonstandard use of {what} in a string literal"))
        .hint(hint)
        .severity(Severity::Warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_is_warned_of_once() {
        let escaping = Strings { conforming: false, ..Strings::default() };
        let shown = |text: &str, strings| -> Vec<(String, Option<u32>)> {
            warnings(text, strings).iter().map(|w| (w.message().to_owned(), w.fields().position)).collect()
        };
        let warned = |what: &str, position| (format!("nonstandard use of {what} in a string literal"), Some(position));
        let text = r"select '\'', E'\'', N'\\\n', $$\$$, B'1', 'a' -- b
            '\n\'', '\u0041'";
        let expected = [warned(r"\'", 8), warned(r"\\", 22), warned("escape", 43), warned("escape", 72)];
        assert_eq!(shown(text, escaping), expected);
        assert!(shown(text, Strings { warn: false, ..escaping }).is_empty());
        assert!(shown(text, Strings::default()).is_empty());
    }
}
