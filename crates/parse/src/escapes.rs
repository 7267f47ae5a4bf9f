//! The warnings of PostgreSQL's lexer about escapes in plain strings (escape_string_warning).

use melba_types::{DbError, Severity, SqlState};

/// The warning about a plain string that ends at `end`, which begins at `start` and may have an N before its quote.
pub(super) fn warning_of(text: &str, start: usize, end: usize) -> Option<DbError> {
    // The N is a separate token.
    let quote = start + usize::from(text.as_bytes()[start] != b'\'');
    first_escape(&text.as_bytes()[quote..end]).map(|escape| warning(escape).at(quote as i32))
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
