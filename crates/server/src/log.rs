//! What the server tells whoever runs it: lines on standard error.

use std::fmt::{Display, Write as _};

/// Writes a line. What clients sent may be part of it, so characters that would begin another line are escaped.
pub(crate) fn log(text: impl Display) {
    eprintln!("melba: {}", printable(&text.to_string()));
}

fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => _ = write!(out, "{}", c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_text_is_one_line() {
        assert_eq!(super::printable("user \"a\nmelba: b\u{1b}\""), "user \"a\\nmelba: b\\u{1b}\"");
    }
}
